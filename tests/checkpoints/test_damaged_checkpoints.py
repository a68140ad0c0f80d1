"""Damaged, mixed-up and hostile checkpoints, and wrong configs.

Each ends in one clear error that names the file and what is wrong.
"""

import json
import os
import pathlib
import pickle
import random
import re
import resource
import shutil
import subprocess
import sys
import time

import keras
import keras_hub
import numpy as np
import pytest
from archives import write_archive
from checkpoint_files import GOLDEN, TOKENS, config_of, read, weights_of, write
from hostile_files import FILES
from processes import PATH
from tiers import few

import albert_tf_lite
from albert_tf import AlbertError, convert_checkpoint
from albert_tf.checkpoints import (
    CheckpointError,
    inspect_checkpoint,
    load_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from albert_tf.checkpoints.download import download_release, unpack
from albert_tf.models import (
    AlbertPretrainer,
    AlbertSentenceOrder,
    AlbertTextClassifier,
)
from albert_tf.models.task_of_checkpoint import build_model
from albert_tf.tokenizers import WordPieceTokenizer

PREFIX = "albert_model.ckpt"
INDEX, DATA = f"{PREFIX}.index", f"{PREFIX}.data-00000-of-00001"
CONFIG = "albert_config.json"
WEIGHTS = "model.safetensors"
PRESET_WEIGHTS = "model.weights.h5"
WORDS = "bert/embeddings/word_embeddings"
GROUP = "bert/encoder/transformer/group_0/inner_group_0"


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """A whole checkpoint of every form: {form: path}."""
    root = tmp_path_factory.mktemp("forms")
    model = AlbertPretrainer.from_checkpoint(GOLDEN / "google_v2")
    tokenizer = WordPieceTokenizer(TOKENS)
    paths = {x: root / x for x in ("google", "huggingface", "kerashub", "keras")}
    for layout, path in paths.items():
        saved = model.backbone if layout == "kerashub" else model
        save_checkpoint(saved, path, layout, tokenizer)
    model.save(root / "model.keras")
    return {**paths, "keras_file": root / "model.keras"}


def copy(path, root):
    """Return the path of a fresh copy of a file or folder in `root`."""
    if path.is_dir():
        return pathlib.Path(shutil.copytree(path, root / "checkpoint"))
    return pathlib.Path(shutil.copy(path, root / f"checkpoint{path.suffix}"))


# === Damages: functions of the path of a copy ===


def edit_tensors(change):
    """Change the dict of tensors of a TensorFlow checkpoint."""

    def damage(folder):
        tensors = read(folder / PREFIX)
        change(tensors)
        write(folder, tensors, prefix=PREFIX)

    return damage


def edit_tensor(name, change):
    return edit_tensors(lambda x: x.update({name: change(x[name])}))


def edit_json(file, **changes):
    def damage(folder):
        fields = json.loads((folder / file).read_text(encoding="utf-8"))
        (folder / file).write_text(json.dumps({**fields, **changes}))

    return damage


def edit_bytes(file, change):
    """Change the content of a file: `change` maps a bytearray to another."""

    def damage(folder):
        content = bytearray((folder / file).read_bytes())
        (folder / file).write_bytes(change(content))

    return damage


def replace(file, content):
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
    return lambda folder: (folder / file).unlink()


def add_nan(values):
    values = values.copy()
    values.flat[3] = float("nan")
    return values


def assert_clear_error(call, match, path):
    """Assert that the call raises an error that names the file."""
    with pytest.raises((CheckpointError, ValueError, OSError), match=match) as caught:
        call()
    names = [str(path), path.name, *(x.name for x in path.rglob("*"))]
    assert any(name in str(caught.value) for name in names)


# Form, damage, regular expression of the message.
DAMAGES = {
    "index_cut": ("google", cut(INDEX, 0.75), f"{INDEX} is damaged"),
    "data_cut": ("google", cut(DATA, 0.9), f"{DATA} is truncated"),
    "data_changed": ("google", flip(DATA, 0.3), "is damaged"),
    "data_missing": ("google", remove(DATA), f"{DATA} does not exist"),
    "config_missing": ("google", remove(CONFIG), "no config beside.*`config=`"),
    "tensor_extra": (
        "google",
        edit_tensors(lambda x: x.update({"bert/encoder/x": np.float32([4])})),
        "has .*bert/encoder/x.*without a place",
    ),
    "tensor_transposed": (
        "google",
        edit_tensor(f"{GROUP}/ffn_1/intermediate/dense/kernel", np.transpose),
        "ffn_1/intermediate/dense/kernel",
    ),
    "tensor_nan": ("google", edit_tensor(WORDS, add_nan), "not finite"),
    "config_of_bert": (
        "huggingface",
        edit_json("config.json", model_type="bert"),
        "model_type='bert'",
    ),
    # No tensor tells the number of layers or heads.
    "config_of_another_model": (
        "huggingface",
        edit_json("config.json", num_attention_heads=2),
        r"belongs to another model.*num_heads=2 \(the weights have 4\)",
    ),
    "preset_without_weights": ("kerashub", remove(PRESET_WEIGHTS), PRESET_WEIGHTS),
    "preset_without_head": ("keras", remove("task.weights.h5"), "task.weights.h5"),
    "keras_file_cut": ("keras_file", cut("", 0.5), "checkpoint.keras is damaged"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage(forms, tmp_path, name):
    form, damage, message = DAMAGES[name]
    path = copy(forms[form], tmp_path)
    damage(path)
    assert_clear_error(lambda: load_checkpoint(path), message, path)


# Wrong fields of a config, regular expression of the message.
CONFIGS = (
    ({"hidden_size": 52}, r"kernel is \(16, 48\) and should be \(16, 52\)"),
    ({"num_hidden_groups": 2}, "lacks .*group_1.*Compare sizes and groups"),
    ({"num_attention_heads": True}, "num_attention_heads=True. Expected a positive"),
    ({"hidden_act": ["gelu"]}, "hidden_act=.'gelu'.. Expected one of"),
    ({"num_attention_heads": None}, r"lacks .*\['num_attention_heads'\]"),
)


def test_wrong_configs():
    for changes, message in CONFIGS:
        config = {**config_of("google_v2"), **changes}
        config = {field: x for field, x in config.items() if x is not None}
        with pytest.raises(AlbertError, match=message):
            load_checkpoint(GOLDEN / "google_v2", config=config)


def test_wrong_arguments_and_foreign_files(forms, tmp_path):
    tensors, config = weights_of("google_v2"), config_of("google_v2")
    write(tmp_path / "other", {"dense/kernel": np.ones(2)}, config)
    twice = {f"{x}output_bias": np.ones(2) for x in ("", "loss/")}
    write(tmp_path / "twice", {**tensors, **twice}, config)
    hub = keras_hub.models.AlbertBackbone(9, 1, 1, 1, 4, 4)
    for call, message in (
        (lambda: load_checkpoint(tmp_path / "other"), "no known ALBERT layout.*dense"),
        (lambda: load_checkpoint(tmp_path / "twice"), "two tensors.*both output_bias"),
        (lambda: load_checkpoint(forms["keras_file"], config), "has its own config"),
        (lambda: load_checkpoint(tmp_path / "no.keras"), "no.keras does not exist"),
        (lambda: save_checkpoint(hub, tmp_path / "x"), "must be an AlbertBackbone of"),
        (lambda: save_checkpoint(hub, tmp_path / "x", "tf2"), "Unknown layout 'tf2'"),
        (lambda: download_release("albert"), "no release named 'albert'"),
    ):
        with pytest.raises((ValueError, TypeError, OSError), match=message):
            call()


def test_query_and_key_of_unequal_widths(tmp_path):
    """Joined they have the right width, but would be split at the wrong place.

    The model keeps its weights.
    """
    tensors = weights_of("google_v2")
    query, key = (f"{GROUP}/attention_1/self/{x}/kernel" for x in ("query", "key"))
    joined = np.concatenate([tensors[query], tensors[key]], axis=-1)
    tensors[query], tensors[key] = np.split(joined, [40], axis=-1)
    write(tmp_path, tensors, config_of("google_v2"))
    backbone = load_checkpoint(GOLDEN / "google_v2")
    before = backbone.get_weights()
    with pytest.raises(CheckpointError, match="query/kernel"):
        open_checkpoint(tmp_path).load_into(backbone)
    for old, new in zip(before, backbone.get_weights(), strict=True):
        assert np.array_equal(old, new)


def test_a_damaged_head_matters_only_where_it_is_needed(forms, tmp_path):
    bias = "cls/predictions/output_bias"
    folder = copy(forms["google"], tmp_path)
    edit_tensors(lambda x: x.pop(bias))(folder)
    load = AlbertPretrainer.from_checkpoint
    assert_clear_error(lambda: load(folder), f"lacks .*{bias}", folder)
    assert "masked_lm_head" not in inspect_checkpoint(folder).heads
    # The other head answers, and the incomplete one is named.
    with pytest.warns(UserWarning, match=f"a part of the masked_lm_head.*{bias}"):
        models = [build_model(open_checkpoint(folder))]
    with pytest.warns(UserWarning, match="left out"):
        models.append(AlbertSentenceOrder.from_checkpoint(folder))
    for model in models:
        assert model.heads == ("sop_head",)
    lacking = inspect_checkpoint(folder).incomplete_heads
    assert lacking == {"masked_lm_head": [bias]}


def test_the_head_of_another_training_is_refused(forms, tmp_path):
    # Its shapes are the same.
    folder = copy(forms["keras"], tmp_path)
    other = AlbertPretrainer.from_checkpoint(GOLDEN / "google_v2")
    other.backbone.pooled_dense.bias.assign(np.ones(48))
    other.save_to_preset(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "task.weights.h5", folder)
    for load in (AlbertPretrainer.from_preset, open_checkpoint):
        call = lambda: load(str(folder))  # noqa: B023, E731
        assert_clear_error(call, "are of different trainings", folder)


def test_nothing_is_half_written(forms, tmp_path):
    """The last tensor of the file is damaged: all others can be read."""
    folder = copy(forms["google"], tmp_path)
    flip(DATA, 1)(folder)
    target = tmp_path / "out" / "there"
    call = lambda: convert_checkpoint(folder, target, "huggingface")  # noqa: E731
    assert_clear_error(call, "is damaged", folder)
    assert not (tmp_path / "out").exists()
    assert inspect_checkpoint(folder).damaged


def test_a_byte_order_mark(forms, tmp_path):
    """Some editors of Windows put one before every JSON file."""
    folder = copy(forms["huggingface"], tmp_path)
    for file in folder.glob("*.json"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    load_checkpoint(folder)
    assert open_checkpoint(folder).tokenizer().vocabulary_size() == len(TOKENS)


# === Tokenizers ===

TOKENIZERS = {
    "empty": (replace("vocab.txt", b""), "vocab.txt.* is empty"),
    "cut": (
        edit_bytes("vocab.txt", lambda x: x[: x.index("个".encode())]),
        "model 120",
    ),
    "twice": (
        lambda folder: shutil.copy(folder / "vocab.txt", folder / "vocab_2.txt"),
        "several vocabulary files",
    ),
    "config_cut": (cut("tokenizer_config.json", 0.5), "_config.json is not a JSON"),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(forms, tmp_path, name):
    """The encoder loads; reading the vocabulary ends in a clear error."""
    damage, message = TOKENIZERS[name]
    folder = copy(forms["huggingface"], tmp_path)
    damage(folder)
    load_checkpoint(folder)
    call = lambda: convert_checkpoint(folder, tmp_path / "x", "google")  # noqa: E731
    assert_clear_error(call, message, folder)


def test_a_vocabulary_truncated_at_a_line_end(tmp_path):
    backbone = load_checkpoint(GOLDEN / "google_v2")
    model = AlbertTextClassifier.from_backbone(backbone, WordPieceTokenizer(TOKENS), 2)
    model.save_to_preset(str(tmp_path))
    (file,) = tmp_path.rglob("vocabulary.txt")
    file.write_text("\n".join(TOKENS[:-20]) + "\n", encoding="utf-8")
    for load in (
        AlbertTextClassifier.from_preset,
        AlbertTextClassifier.from_checkpoint,
    ):
        with pytest.raises(ValueError, match="has 100 tokens, the model 120"):
            load(str(tmp_path))


# === Archives ===

both = pytest.mark.parametrize("ending", [".tar.gz", ".zip"])


def assert_not_unpacked(archive):
    with pytest.raises(CheckpointError, match="is damaged, truncated") as error:
        unpack(archive, archive.parent / "out")
    assert str(archive) in str(error.value)


@both
def test_nothing_is_written_outside_the_folder(ending, tmp_path):
    for name in ("../up.txt", "model/../../up.txt"):
        archive = write_archive(tmp_path / f"x{ending}", {"a": b"a", name: b"bad"})
        if ending == ".tar.gz":
            assert_not_unpacked(archive)
        else:
            unpack(archive, tmp_path / "zip")
        assert not list(tmp_path.glob("up.txt"))


@both
def test_truncated_archives_and_web_pages(ending, tmp_path):
    content = {"a": random.Random(0).randbytes(20_000)}
    archive = write_archive(tmp_path / f"x{ending}", content)
    data = archive.read_bytes()
    archive.write_text("<html>Please log in</html>")
    assert_not_unpacked(archive)
    for length in range(0, 20_000, 4001):
        archive.write_bytes(data[:length])
        assert_not_unpacked(archive)


# === Files that want to run code ===


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


@pytest.mark.peers
def test_code_in_a_pickle_does_not_run(forms, tmp_path):
    pytest.importorskip("torch")
    folder = copy(forms["huggingface"], tmp_path)
    (folder / WEIGHTS).unlink()
    payload = {"albert.x": Payload(tmp_path / "it_ran")}
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(payload))
    assert_clear_error(lambda: load_checkpoint(folder), "pytorch_model.bin", folder)
    assert not (tmp_path / "it_ran").exists()


def test_code_in_a_keras_file_does_not_run(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x + 1)])
    model.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="lambda"):
        load_checkpoint(tmp_path / "model.keras")


# === Files that stop a process or fill its memory ===

EXPORTED = (".onnx", ".tflite")


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused(name, tmp_path):
    """At once, in one line, and before memory is filled."""
    write, message = FILES[name]
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path = write(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.monotonic()
    read = albert_tf_lite.pipeline if path.suffix in EXPORTED else load_checkpoint
    with pytest.raises((AlbertError, OSError), match=message) as error:
        read(path)
    assert time.monotonic() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500e3
    text = str(error.value)
    assert str(path) in text and "\n" not in text and len(text) < 1000
    assert not [*tmp_path.rglob("escaped*")]


# Prints seconds and MB beyond those of the import, whose peak is forgotten.
MEASURED = """
import pathlib, re, time
import albert_tf_cli, albert_tf_cli.shared.importing
def peak():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search("VmHWM: *(.*) kB", status)[1]) / 1e3
albert_tf_cli.shared.importing.import_tensorflow()
pathlib.Path("/proc/self/clear_refs").write_text("5")
before, start = peak(), time.monotonic()
try:
    albert_tf_cli.main()
finally:
    print(f"{time.monotonic() - start:.2f} {peak() - before:.0f}")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")
@pytest.mark.parametrize(
    "name",
    [
        *few(("preset_wide", "tar_bomb"), (), pytest.mark.slow),
        *few(("wide", "long_vocabulary"), ()),
    ],
)
def test_commands_refuse_it_in_one_line(name, tmp_path):
    write, message = FILES[name]
    (tmp_path / "input").mkdir()
    path = write(tmp_path / "input")
    command = ["convert", path, tmp_path / "out", "--to", "keras"]
    if path.suffix in EXPORTED:
        command = ["predict", path, "好"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, command)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 1, done.stderr
    # Before the first line, TensorFlow logs its import.
    assert len(re.findall(r"^Error: .*", done.stderr, re.MULTILINE)) == 1
    assert re.search(message, done.stderr.splitlines()[-1])
    seconds, megabytes = map(float, done.stdout.split())
    assert seconds < 2 and megabytes < 500
    print(f"{name} {seconds} s {megabytes:.0f} MB")
