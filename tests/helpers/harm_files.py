"""Small checkpoints in every form, ways to damage them, and what must come of it.

`fuzz_checkpoints.py` builds on it too.
"""

import contextlib
import json
import pathlib
import re
import resource
import shutil
import signal
import struct
import tarfile
import traceback
import unicodedata
import zipfile

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.conversion import convert_checkpoint, save_checkpoint
from albert_tf.models import AlbertBackbone, AlbertPretrainer, AlbertTextClassifier
from albert_tf.tokenizers import WordPieceTokenizer

PACKAGE = pathlib.Path(albert_tf.__file__).parent

# Of eight sizes no two are equal, so that no tensor is mistaken for its transposed.
SIZES = {
    "vocabulary_size": 40,
    "num_layers": 3,
    "num_heads": 2,
    "embedding_dim": 4,
    "hidden_dim": 6,
    "intermediate_dim": 10,
    "max_sequence_length": 16,
    "num_segments": 5,
}
TOKENS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *"abcdefghijklmnopqrstuvwxyz012345678",
]
PREFIX = "albert_model.ckpt"
INDEX, DATA = f"{PREFIX}.index", f"{PREFIX}.data-00000-of-00001"
WEIGHTS = "model.safetensors"
GROUP = "bert/encoder/transformer/group_0/inner_group_0"
WORDS = "bert/embeddings/word_embeddings"
HF_WORDS = "albert.embeddings.word_embeddings.weight"

BUNDLES = ("google", "albert_zh")
MODULES = ("hub", "hub_plain")
HUGGINGFACE = ("huggingface", "sharded")
KERAS = ("kerashub", "keras", "keras_file")
FORMS = (*BUNDLES, *MODULES, *HUGGINGFACE, *KERAS)
# Where the config of each form is.
CONFIG_FILES = {
    **dict.fromkeys(BUNDLES, "albert_config.json"),
    **dict.fromkeys(MODULES, "assets/albert_config.json"),
    **dict.fromkeys((*HUGGINGFACE, "kerashub", "keras"), "config.json"),
}

DELETED = object()


# === Whole checkpoints ===


def build_forms(root):
    """Write a small checkpoint in every form.

    Args:
        root: path of a directory.

    Returns:
        A dict of form to path.
    """
    paths = {form: root / form for form in FORMS}
    paths["keras_file"] = root / "model.keras"
    tokenizer = WordPieceTokenizer(TOKENS)
    google = filled(AlbertPretrainer(_backbone("after_layer_norm")))
    albert_zh = filled(AlbertPretrainer(_backbone("before_layer_norm")))
    save_checkpoint(google, paths["google"], "google", tokenizer)
    save_checkpoint(albert_zh, paths["albert_zh"], "albert_zh", tokenizer)
    save_checkpoint(google, paths["huggingface"], "huggingface", tokenizer)
    save_checkpoint(google.backbone, paths["kerashub"], "kerashub", tokenizer)
    save_checkpoint(google, paths["keras"], "keras", tokenizer)
    google.save(paths["keras_file"])
    for form, scope in (("hub", "module/"), ("hub_plain", "")):
        write_module(paths["google"], paths[form], scope)
    shard(paths["huggingface"], paths["sharded"])
    return paths


def _backbone(projection):
    return AlbertBackbone(**SIZES, embedding_projection=projection)


def filled(model, seed=0):
    """The model with other numbers everywhere, biases included."""
    random = np.random.default_rng(seed)
    model.set_weights(
        [random.normal(size=x.shape).astype("float32") for x in model.get_weights()]
    )
    return model


def write_module(bundle, folder, scope):
    """A TF-Hub module of TensorFlow 1: a graph, its variables and assets."""
    tensors = read_bundle(bundle)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, value in tensors.items():
            tf.compat.v1.get_variable(scope + name, initializer=value)
        session.run(tf.compat.v1.global_variables_initializer())
        builder = tf.compat.v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, tags=[])
        builder.save()
    (folder / "assets").mkdir()
    for name in ("albert_config.json", "vocab.txt"):
        shutil.copy(bundle / name, folder / "assets" / name)


def shard(source, folder):
    """The safetensors directory `source` in two files and their index."""
    shutil.copytree(source, folder)
    tensors = read_safetensors(folder)
    (folder / WEIGHTS).unlink()
    names = sorted(tensors)
    weight_map = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-{number:05d}-of-00002.safetensors"
        write_safetensors(folder, {name: tensors[name] for name in part}, file)
        weight_map.update(dict.fromkeys(part, file))
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))


def classifier():
    """A classifier of three classes."""
    return filled(AlbertTextClassifier(_backbone("after_layer_norm"), num_classes=3))


def copy(path, root, name="checkpoint"):
    """A fresh copy of a file or folder, in `root`."""
    if path.is_dir():
        return pathlib.Path(shutil.copytree(path, root / name))
    return pathlib.Path(shutil.copy(path, root / (name + path.suffix)))


def pack(path, archive):
    """A file or folder as .tar.gz or .zip."""
    files = [x for x in path.rglob("*") if x.is_file()] if path.is_dir() else [path]
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for member in files:
                file.write(member, member.relative_to(path.parent))
    else:
        with tarfile.open(archive, "w:gz") as file:
            for member in files:
                file.add(member, member.relative_to(path.parent))
    return archive


# === Tensors and bytes ===


def read_bundle(folder):
    reader = tf.train.load_checkpoint(str(folder / PREFIX))
    return {
        name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
    }


def write_bundle(folder, tensors):
    tf.raw_ops.SaveV2(
        prefix=str(folder / PREFIX),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.convert_to_tensor(value) for value in tensors.values()],
    )


def read_safetensors(folder, file=WEIGHTS):
    from safetensors.numpy import load_file

    return load_file(folder / file)


def write_safetensors(folder, tensors, file=WEIGHTS):
    """As transformers writes it: without our checksums."""
    from safetensors.numpy import save_file

    tensors = {name: np.ascontiguousarray(x) for name, x in tensors.items()}
    save_file(tensors, folder / file, metadata={"format": "pt"})


def raw_safetensors(header, data=b""):
    """The bytes of a file with this header, true or not."""
    if not isinstance(header, bytes):
        header = json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def edit_tensors(changes):
    """A damage: `changed` tensors in a bundle or a safetensors directory."""

    def damage(folder):
        if (folder / WEIGHTS).exists():
            write_safetensors(folder, changed(read_safetensors(folder), changes))
        else:
            write_bundle(folder, changed(read_bundle(folder), changes))

    return damage


def changed(fields, changes):
    """The dict with changes: a value, a function of the old value, or `DELETED`."""
    fields = dict(fields)
    for name, value in changes.items():
        if value is DELETED:
            del fields[name]
        else:
            fields[name] = value(fields[name]) if callable(value) else value
    return fields


def edit_json(file, changes, inside=()):
    """A damage: a JSON file with changed fields, of the object at path `inside`."""

    def damage(folder):
        content = json.loads((folder / file).read_text(encoding="utf-8"))
        parent, fields = None, content
        for key in inside:
            parent, fields = fields, fields[key]
        fields = changed(fields, changes)
        if parent is None:
            content = fields
        else:
            parent[inside[-1]] = fields
        (folder / file).write_text(json.dumps(content), encoding="utf-8")

    return damage


def edit_bytes(file, change):
    """A damage: `change` maps the content of a file to another, as bytearrays."""

    def damage(folder):
        content = bytearray((folder / file).read_bytes())
        (folder / file).write_bytes(change(content))

    return damage


def edit_zip(changes):
    """A damage: a zip file with `changed` members."""

    def damage(path):
        with zipfile.ZipFile(path) as file:
            members = {name: file.read(name) for name in file.namelist()}
        with zipfile.ZipFile(path, "w") as file:
            for name, content in changed(members, changes).items():
                file.writestr(name, content)

    return damage


def replace(file, content):
    """A damage: the file has other content (bytes or text)."""
    content = content.encode() if isinstance(content, str) else content
    return edit_bytes(file, lambda _: content)


def cut(share):
    """A change of bytes: the rest is gone."""
    return lambda content: content[: int(len(content) * share)]


def flip(share, bit=0):
    """A change of bytes: one bit is another."""

    def change(content):
        content[int((len(content) - 1) * share)] ^= 1 << bit
        return content

    return change


def remove(file):
    """A damage: the file (or folder) is not there."""

    def damage(folder):
        path = folder / file
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def copied(old, new):
    """A damage: another file has the content of this one, too."""

    def damage(folder):
        shutil.copy(folder / old, folder / new)

    return damage


def moved(old, new):
    """A damage: the file has another name."""

    def damage(folder):
        (folder / old).rename(folder / new)

    return damage


def added(file, content):
    """A damage: there is one more file."""

    def damage(folder):
        (folder / file).write_bytes(content)

    return damage


def folder_in_place_of(file):
    """A damage: there is a folder of the file's name."""

    def damage(folder):
        (folder / file).unlink()
        (folder / file).mkdir()

    return damage


# === What must come of it ===


# As an expected error: one of any words, or none.
EITHER = object()


class Hang(BaseException):
    """No `Exception`, so that nothing takes it for a damaged file."""


@contextlib.contextmanager
def limits(seconds=10, more_bytes=4 * 2**30):
    """Bounds the time and the memory that the block takes."""

    def stop(*_):
        raise Hang(f"more than {seconds} s")

    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    old = resource.getrlimit(resource.RLIMIT_AS)
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_AS, (size + more_bytes, old[1]))
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, old)


def faults(error, path=None):
    """What keeps an error from being one clear sentence of ours; a list of strings.

    What h5py, Keras and torch say of their own files may be theirs.

    Args:
        error: the exception.
        path: optional path that was given; the message has to name it, or a file
            in it.
    """
    found = []
    if not isinstance(error, (ValueError, OSError)) or isinstance(error, UnicodeError):
        found.append(f"it is a {type(error).__name__}")
    if not _is_raised_here(error):
        frames = traceback.extract_tb(error.__traceback__)
        found.append(f"it comes from {frames[-1].filename}:{frames[-1].lineno}")
    message = str(error)
    if not message or "Traceback" in message or _has_control_characters(message):
        found.append("its message is not one line of text")
    if " object at 0x" in message:
        found.append("its message shows an object of Python")
    if path is not None and not _names(message, pathlib.Path(path)):
        found.append("its message names no file")
    return found


def _is_raised_here(error):
    """Whether our code raised it, or the operating system with the file's name."""
    frames = traceback.extract_tb(error.__traceback__)
    here = pathlib.Path(frames[-1].filename).is_relative_to(PACKAGE)
    system = isinstance(error, OSError) and error.errno and error.filename
    return here or bool(system)


def _has_control_characters(text):
    return any(unicodedata.category(character) == "Cc" for character in text)


def _names(message, path):
    # A file that is missing is named as well; its folder is, then.
    names = [str(path), path.name, *(x.name for x in path.rglob("*"))]
    return any(name in message for name in names if name)


def ends_well(call, error, path=None):
    """What the call returns; if it fails, it has to be in one clear error of ours.

    Args:
        call: callable.
        error: regular expression of the message, `None` if the call must succeed, or
            `EITHER`.
        path: as for `faults`.

    Returns:
        What the call returns, or `None` if it failed.
    """
    try:
        with limits():
            result = call()
    except Exception as caught:
        if error is None:
            raise
        message = f"{type(caught).__name__}: {caught}"
        if found := faults(caught, path):
            raise AssertionError(f"{'; '.join(found)}:\n{message}") from caught
        if error is not EITHER and not re.search(error, str(caught)):
            raise AssertionError(f"{message!r} does not match {error!r}") from caught
        return None
    assert error is None or error is EITHER, f"No error. Expected: {error!r}"
    return result


def assert_one_clear_error(call, match="", path=None):
    """The call ends in one error of ours, whose message matches."""
    ends_well(call, match, path)


def assert_loads(path, weights):
    """The checkpoint loads, every number as it was."""
    with limits():
        assert_same(albert_tf.load_checkpoint(path), weights)


def assert_same(model, weights):
    found = model.get_weights()
    assert len(found) == len(weights)
    for new, old in zip(found, weights, strict=True):
        assert new.dtype == old.dtype and np.array_equal(new, old)


def assert_harmless(path, weights, root, error=None, converts=None, layout="google"):
    """Loading, inspecting and converting end well, or in one clear error each.

    Args:
        path: path of the damaged checkpoint.
        weights: list of arrays, what it holds if it loads.
        root: path of an empty directory to write to.
        error: regular expression of the message, `None` if it is to load, or
            `EITHER`.
        converts: the same of converting. By default as loading.
        layout: string, what to convert to.
    """
    model = ends_well(lambda: albert_tf.load_checkpoint(path), error, path)
    if model is not None:
        assert_same(model, weights)
    assert_inspects(path)
    target = root / "out" / "converted"
    converts = error if converts is None else converts
    done = ends_well(lambda: convert_checkpoint(path, target, layout), converts, path)
    if done is not None:
        assert_loads(target, weights)
    written = [x.name for x in (root / "out").glob("*")]
    assert written == (["converted"] if done is not None else [])


def assert_inspects(path):
    """`inspect_checkpoint` gives a report or one clear error."""
    try:
        with limits():
            albert_tf.inspect_checkpoint(path)
    except Exception as error:
        if found := faults(error, path):
            raise AssertionError(f"inspect: {'; '.join(found)}: {error}") from error


# === Fixtures, which each module of tests takes over by assignment ===

_built = {}


@pytest.fixture(scope="session")
def forms(tmp_path_factory):
    """A whole checkpoint of every form: {form: path}. Built once a process."""
    if not _built:
        _built.update(build_forms(tmp_path_factory.mktemp("forms")))
    return _built


@pytest.fixture(scope="session")
def weights(forms):
    return {
        form: albert_tf.load_checkpoint(path).get_weights()
        for form, path in forms.items()
    }


@pytest.fixture
def harm(forms, weights, tmp_path):
    """Damage a copy of a form and see what comes of it; see `assert_harmless`."""

    def check(form, damage, error, converts=None):
        path = copy(forms[form], tmp_path)
        path = damage(path) or path
        layout = "albert_zh" if form == "albert_zh" else "google"
        assert_harmless(path, weights[form], tmp_path, error, converts, layout)

    return check
