"""Small checkpoints in every form, ways to damage them, and what to expect of it."""

import json
import pathlib
import re
import shutil
import traceback
import unicodedata
import zipfile

import numpy as np
import pytest
from checkpoint_files import read, write, write_module

import albert_tf
from albert_tf.checkpoints import convert_checkpoint, save_checkpoint
from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.tokenizers import WordPieceTokenizer

PACKAGE = pathlib.Path(albert_tf.__file__).parent

# No two sizes are equal, so that no tensor is mistaken for its transpose.
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
WORDS = "bert/embeddings/word_embeddings"
HF_WORDS = "albert.embeddings.word_embeddings.weight"
# In place of a value in `changed`: the field is removed.
DELETED = object()


# === Whole checkpoints ===


def build_forms(root):
    """Write a small checkpoint in every form and return their paths by form."""
    names = ("google", "albert_zh", "hub", "huggingface", "kerashub")
    paths = {form: root / form for form in (*names, "keras")}
    paths["keras_file"] = root / "model.keras"
    tokenizer = WordPieceTokenizer(TOKENS)
    google, albert_zh = (
        filled(AlbertPretrainer(small_backbone(order))) for order in ("after", "before")
    )
    save_checkpoint(google, paths["google"], "google", tokenizer)
    save_checkpoint(albert_zh, paths["albert_zh"], "albert_zh", tokenizer)
    save_checkpoint(google, paths["huggingface"], "huggingface", tokenizer)
    save_checkpoint(google.backbone, paths["kerashub"], "kerashub", tokenizer)
    save_checkpoint(google, paths["keras"], "keras", tokenizer)
    google.save(paths["keras_file"])
    config = json.loads((paths["google"] / "albert_config.json").read_text())
    write_module(paths["hub"], read(paths["google"] / PREFIX), config)
    return paths


def small_backbone(order="after"):
    return AlbertBackbone(**SIZES, embedding_projection=f"{order}_layer_norm")


def filled(model, seed=0):
    """Return the model with random numbers everywhere, biases included."""
    random = np.random.default_rng(seed)
    model.set_weights(
        [random.normal(size=x.shape).astype("float32") for x in model.get_weights()]
    )
    return model


def copy(path, root, name="checkpoint"):
    """Return the path of a fresh copy of a file or folder in `root`."""
    if path.is_dir():
        return pathlib.Path(shutil.copytree(path, root / name))
    return pathlib.Path(shutil.copy(path, root / (name + path.suffix)))


def read_safetensors(folder, file=WEIGHTS):
    from safetensors.numpy import load_file

    return load_file(folder / file)


def write_safetensors(folder, tensors, file=WEIGHTS):
    """Write a file as transformers does, without our checksums."""
    from safetensors.numpy import save_file

    tensors = {name: np.ascontiguousarray(x) for name, x in tensors.items()}
    save_file(tensors, folder / file, metadata={"format": "pt"})


# === Damages: functions of the path of a copy ===


def changed(fields, changes):
    """Return a dict with changes: a value, a function of the old one, or `DELETED`."""
    fields = dict(fields)
    for name, value in changes.items():
        if value is DELETED:
            del fields[name]
        else:
            fields[name] = value(fields[name]) if callable(value) else value
    return fields


def edit_tensors(changes):
    """Change tensors of a TensorFlow checkpoint or a safetensors directory."""

    def damage(folder):
        if (folder / WEIGHTS).exists():
            write_safetensors(folder, changed(read_safetensors(folder), changes))
        else:
            write(folder, changed(read(folder / PREFIX), changes), prefix=PREFIX)

    return damage


def swap(first, second):
    """Give two tensors each other's name."""

    def damage(folder):
        tensors = read(folder / PREFIX)
        edit_tensors({first: tensors[second], second: tensors[first]})(folder)

    return damage


def edit_json(file, changes):
    """Change fields of a JSON file."""

    def damage(folder):
        content = json.loads((folder / file).read_text(encoding="utf-8"))
        text = json.dumps(changed(content, changes))
        (folder / file).write_text(text, encoding="utf-8")

    return damage


def edit_bytes(file, change):
    """Change the content of a file: `change` maps a bytearray to another."""

    def damage(folder):
        content = bytearray((folder / file).read_bytes())
        (folder / file).write_bytes(change(content))

    return damage


def edit_zip(changes):
    """Change members of a zip file."""

    def damage(path):
        with zipfile.ZipFile(path) as file:
            members = {name: file.read(name) for name in file.namelist()}
        with zipfile.ZipFile(path, "w") as file:
            for name, content in changed(members, changes).items():
                file.writestr(name, content)

    return damage


def replace(file, content):
    """Give the file another content, bytes or text."""
    content = content.encode() if isinstance(content, str) else content
    return edit_bytes(file, lambda _: content)


def cut(file, share):
    """Keep only the first part of a file."""
    return edit_bytes(file, lambda content: content[: int(len(content) * share)])


def flip(file, share):
    """Change one bit of a file."""

    def change(content):
        content[int((len(content) - 1) * share)] ^= 1
        return content

    return edit_bytes(file, change)


def remove(file):
    """Remove the file or folder."""

    def damage(folder):
        path = folder / file
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def copied(old, new):
    """Copy a file within the folder."""
    return lambda folder: shutil.copy(folder / old, folder / new)


def moved(old, new):
    """Rename a file."""
    return lambda folder: (folder / old).rename(folder / new)


def file_of_another(file):
    """Take one of the two files from a checkpoint of equal shapes."""

    def damage(folder):
        other = folder.with_name("other")
        tensors = {name: x + 1 for name, x in read(folder / PREFIX).items()}
        write(other, tensors, prefix=PREFIX)
        shutil.move(other / file, folder / file)
        shutil.rmtree(other)

    return damage


# === What to expect ===


def faults(error, path):
    """List what keeps an error from being one clear sentence of ours.

    Args:
        error: the exception.
        path: path that was given; the message must name it, or a file in it.
    """
    found = []
    if not isinstance(error, (ValueError, OSError)) or isinstance(error, UnicodeError):
        found.append(f"it is a {type(error).__name__}")
    frame = traceback.extract_tb(error.__traceback__)[-1]
    # The operating system may raise it, too, if it names the file.
    system = isinstance(error, OSError) and error.errno and error.filename
    if not pathlib.Path(frame.filename).is_relative_to(PACKAGE) and not system:
        found.append(f"it comes from {frame.filename}:{frame.lineno}")
    message = str(error)
    if not message or any(unicodedata.category(x) == "Cc" for x in message):
        found.append("its message is not one line of text")
    if "Traceback" in message or " object at 0x" in message:
        found.append("its message shows internals of Python")
    # If a file is missing, the message may name its folder.
    names = [str(path), path.name, *(x.name for x in path.rglob("*"))]
    if not any(name in message for name in names):
        found.append("its message names no file")
    return found


def assert_clear_error(call, match, path):
    """Assert that the call ends in one clear error, whose message matches."""
    with pytest.raises(Exception) as caught:
        call()
    found, message = faults(caught.value, path), str(caught.value)
    assert not found, f"{found}: {message}"
    assert re.search(match, message), f"{message!r} does not match {match!r}"


def assert_loads(path, weights):
    """Assert that the checkpoint loads with these numbers."""
    found = albert_tf.load_checkpoint(path).get_weights()
    for new, old in zip(found, weights, strict=True):
        assert new.dtype == old.dtype and np.array_equal(new, old)


def assert_harmless(path, weights, error, layout="google"):
    """Assert that loading and converting agree: right numbers or one clear error.

    Args:
        path: path of the damaged checkpoint.
        weights: list of arrays, what it holds if it loads.
        error: regular expression of the message, or `None` if it must load.
        layout: string, what to convert to.
    """
    target = path.parent / "out" / "converted"
    if error is None:
        assert_loads(path, weights)
        convert_checkpoint(path, target, layout)
        assert_loads(target, weights)
        return
    assert_clear_error(lambda: albert_tf.load_checkpoint(path), error, path)
    call = lambda: convert_checkpoint(path, target, layout)  # noqa: E731
    assert_clear_error(call, error, path)
    assert not target.exists()


# === Fixtures, which each module of tests imports ===


@pytest.fixture(scope="session")
def forms(tmp_path_factory):
    """A whole checkpoint of every form: {form: path}."""
    return build_forms(tmp_path_factory.mktemp("forms"))


@pytest.fixture(scope="session")
def weights(forms):
    return {
        form: albert_tf.load_checkpoint(path).get_weights()
        for form, path in forms.items()
    }
