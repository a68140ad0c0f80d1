"""What users meet: cut, missing and mixed-up files. Each ends in one clear error.

The tables at length are in `test_harm*.py`, which `make test-all` runs.
"""

import json
import os
import pickle

import harm_files
import keras
import pytest
from harm_files import (
    BUNDLES,
    DATA,
    DELETED,
    HF_WORDS,
    INDEX,
    TOKENS,
    WEIGHTS,
    WORDS,
    assert_loads,
    assert_one_clear_error,
    classifier,
    copied,
    copy,
    cut,
    edit_bytes,
    edit_json,
    edit_tensors,
    edit_zip,
    flip,
    moved,
    pack,
    remove,
    replace,
)

import albert_tf
from albert_tf.checkpoints import open_checkpoint
from albert_tf.conversion import convert_checkpoint, save_checkpoint
from albert_tf.models import AlbertTextClassifier

forms, weights = harm_files.forms, harm_files.weights

SHARDS, SECOND = f"{WEIGHTS}.index.json", "model-00002-of-00002.safetensors"
HUB_INDEX = "variables/variables.index"
CONFIG = "albert_config.json"
KERAS_WEIGHTS = "model.weights.h5"


def nan(values):
    values = values.copy()
    values.flat[3] = float("nan")
    return values


def flip_in(name):
    """Another number in a tensor of a safetensors file."""

    def change(content):
        size = int.from_bytes(content[:8], "little")
        start, _ = json.loads(content[8 : 8 + size])[name]["data_offsets"]
        content[8 + size + start] ^= 1
        return content

    return change


# form, damage, what the error says
DAMAGES = {
    "index_cut": ("google", edit_bytes(INDEX, cut(0.75)), f"{INDEX} is damaged"),
    "index_missing": ("google", remove(INDEX), "no checkpoint in"),
    "data_cut": ("google", edit_bytes(DATA, cut(0.9)), f"{DATA} is cut short"),
    "data_changed": ("google", edit_bytes(DATA, flip(0.3)), "cannot be read from"),
    "data_missing": ("albert_zh", remove(DATA), "no data beside it"),
    "config_missing": ("google", remove(CONFIG), "no config beside"),
    "config_cut": ("google", edit_bytes(CONFIG, cut(0.5)), "not a JSON file"),
    "config_wrong": ("google", edit_json(CONFIG, {"vocab_size": 41}), "vocab_size is"),
    "tensor_missing": ("google", edit_tensors({WORDS: DELETED}), f"lacks.*{WORDS}"),
    "tensor_nan": ("google", edit_tensors({WORDS: nan}), "not finite"),
    "safetensors_cut": (
        "huggingface",
        edit_bytes(WEIGHTS, cut(0.9)),
        f"{WEIGHTS} is damaged",
    ),
    "safetensors_changed": (
        "huggingface",
        edit_bytes(WEIGHTS, flip_in(HF_WORDS)),
        "checksum",
    ),
    "safetensors_a_pointer": (
        "huggingface",
        replace(WEIGHTS, "version https://git-lfs.github.com/spec/v1\n"),
        f"{WEIGHTS} is damaged or no safetensors",
    ),
    "shard_missing": ("sharded", remove(SECOND), f"names.*{SECOND}"),
    "config_of_bert": (
        "huggingface",
        edit_json("config.json", {"model_type": "bert"}),
        "model_type='bert'",
    ),
    "preset_without_weights": ("kerashub", remove(KERAS_WEIGHTS), KERAS_WEIGHTS),
    "preset_cut": ("keras", edit_bytes(KERAS_WEIGHTS, cut(0.5)), "cannot be read"),
    "keras_cut": ("keras_file", edit_bytes("", cut(0.5)), "checkpoint.keras cannot"),
}
# Near kin of those above.
RARE_DAMAGES = {
    "index_changed": ("google", edit_bytes(INDEX, flip(0.3)), f"{INDEX} is damaged"),
    "index_a_web_page": ("google", replace(INDEX, "<html>" * 99), "index is damaged"),
    "tensor_turned": ("albert_zh", edit_tensors({WORDS: lambda x: x.T}), WORDS),
    "tensor_of_ints": (
        "google",
        edit_tensors({WORDS: lambda x: x.astype("int32")}),
        f"{WORDS}.*int32",
    ),
    "module_index_cut": ("hub", edit_bytes(HUB_INDEX, cut(0.5)), "index is damaged"),
    "module_without_assets": ("hub_plain", remove("assets"), "no config beside"),
    "shards_elsewhere": (
        "sharded",
        edit_json(SHARDS, {"weight_map": {"a": "../x.safetensors"}}),
        "no file of weights beside it",
    ),
    "preset_config_cut": (
        "keras",
        edit_bytes("config.json", cut(0.5)),
        "config.json is not a JSON file",
    ),
    "task_without_weights": ("keras", remove("task.weights.h5"), "it has no task.we"),
    "task_of_nobody": (
        "keras",
        edit_json("task.json", {"registered_name": "x>Y"}),
        "task.json is of the class 'x>Y'",
    ),
    "keras_a_web_page": ("keras_file", replace("", "<html>"), "checkpoint.keras"),
    "keras_without_weights": (
        "keras_file",
        edit_zip({KERAS_WEIGHTS: DELETED}),
        "checkpoint.keras cannot be read",
    ),
}


def rarely(names, rare):
    slow = pytest.mark.slow
    return [pytest.param(x, marks=slow) if x in rare else x for x in names]


@pytest.mark.parametrize("name", rarely({**DAMAGES, **RARE_DAMAGES}, RARE_DAMAGES))
def test_damage(forms, tmp_path, name):
    form, damage, message = {**DAMAGES, **RARE_DAMAGES}[name]
    path = copy(forms[form], tmp_path)
    damage(path)
    assert_one_clear_error(lambda: albert_tf.load_checkpoint(path), message, path)


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_an_archive_cut_short(forms, tmp_path, ending):
    path = pack(forms["huggingface"], tmp_path / f"x{ending}")
    path.write_bytes(path.read_bytes()[:-200])
    call = lambda: albert_tf.load_checkpoint(path)  # noqa: E731
    assert_one_clear_error(call, "damaged, cut short", path)


def test_nothing_half_written_or_half_loaded(forms, tmp_path):
    """The last tensor of the file is damaged: all others can be read."""
    folder = copy(forms["google"], tmp_path)
    edit_bytes(DATA, flip(1))(folder)
    target = tmp_path / "out" / "there"
    call = lambda: convert_checkpoint(folder, target, "huggingface")  # noqa: E731
    assert_one_clear_error(call, "cannot be read", folder)
    assert list((tmp_path / "out").iterdir()) == []
    assert albert_tf.inspect_checkpoint(folder).damaged


@pytest.mark.parametrize("form", rarely([*BUNDLES, "huggingface", "sharded"], BUNDLES))
def test_a_byte_order_mark(forms, weights, tmp_path, form):
    """Some editors of Windows put one before every JSON file."""
    folder = copy(forms[form], tmp_path)
    for file in folder.glob("*.json"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert_loads(folder, weights[form])
    assert open_checkpoint(folder).tokenizer().vocabulary_size() == len(TOKENS)


# === Tokenizers and labels ===

TOKENIZERS = {
    "empty": (replace("vocab.txt", ""), "vocab.txt.* is empty"),
    "not_utf8": (replace("vocab.txt", b"\xff\xfe"), "vocab.txt.*not UTF-8"),
    "cut": (edit_bytes("vocab.txt", cut(0.1)), "vocab.txt.* lacks"),
    "too_long": (edit_bytes("vocab.txt", lambda x: x + b"\nzz" * 9), "vocab.txt"),
    "twice": (copied("vocab.txt", "vocab_2.txt"), "several vocabulary files"),
    "a_model_by_name": (moved("vocab.txt", "spiece.model"), "spiece.model.* is text"),
    "its_config_cut": (
        edit_bytes("tokenizer_config.json", cut(0.5)),
        "tokenizer_config.json is not a JSON file",
    ),
    "lower_case_a_string": (
        edit_json("tokenizer_config.json", {"do_lower_case": "no"}),
        "do_lower_case",
    ),
}


@pytest.mark.parametrize("name", rarely(TOKENIZERS, ("empty", "cut", "its_config_cut")))
def test_tokenizers(forms, weights, tmp_path, name):
    """The encoder loads; what reads text says what is wrong with its vocabulary."""
    damage, message = TOKENIZERS[name]
    folder = copy(forms["huggingface"], tmp_path)
    damage(folder)
    assert_loads(folder, weights["huggingface"])
    call = lambda: convert_checkpoint(folder, tmp_path / "x", "google")  # noqa: E731
    assert_one_clear_error(call, message, folder)


def test_no_vocabulary(forms, tmp_path):
    folder = copy(forms["google"], tmp_path)
    (folder / "vocab.txt").unlink()
    load = AlbertTextClassifier.from_checkpoint
    assert_one_clear_error(
        lambda: load(folder, num_classes=2), "no vocabulary beside", folder
    )


# Another type, no tokens, gaps.
TOKENIZER_FILES = (
    {"model": {"type": "BPE", "vocab": {}}},
    {"model": {"type": "WordPiece"}},
    {"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": 3}}},
)


def test_tokenizer_json(forms, tmp_path):
    folder = copy(forms["huggingface"], tmp_path)
    (folder / "vocab.txt").unlink()
    for content in TOKENIZER_FILES:
        (folder / "tokenizer.json").write_text(json.dumps(content))
        call = lambda: open_checkpoint(folder).tokenizer()  # noqa: E731
        assert_one_clear_error(call, "tokenizer.json", folder)


# Null, too few, one twice, from one on.
LABELS = (
    {"0": None, "1": None, "2": None},
    {"0": "a", "1": "b"},
    {"0": "a", "1": "a", "2": "b"},
    {"1": "a", "2": "b", "3": "c"},
)


def test_labels(tmp_path):
    save_checkpoint(classifier(), tmp_path, "huggingface")
    for labels in LABELS:
        edit_json("config.json", {"id2label": labels})(tmp_path)
        call = lambda: open_checkpoint(tmp_path).head_config("classifier")  # noqa: E731
        assert_one_clear_error(call, "config.json", tmp_path)


# === Files that want to run code ===


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


@pytest.mark.parametrize("content", [lambda x: x, lambda x: {HF_WORDS: x}])
def test_code_in_a_pickle_does_not_run(forms, tmp_path, content):
    folder = copy(forms["huggingface"], tmp_path)
    (folder / WEIGHTS).unlink()
    payload = content(Payload(tmp_path / "it_ran"))
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(payload))
    call = lambda: albert_tf.load_checkpoint(folder)  # noqa: E731
    assert_one_clear_error(call, "pytorch_model.bin", folder)
    assert not (tmp_path / "it_ran").exists()


def test_code_in_a_keras_file_does_not_run(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x + 1)])
    model.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="lambda"):
        albert_tf.load_checkpoint(tmp_path / "model.keras")


def test_a_bug_of_ours_is_a_traceback(forms, monkeypatch):
    """And no damaged file: nothing catches what it does not expect."""

    def broken(*_):
        raise KeyError("a bug")

    monkeypatch.setattr("albert_tf.checkpoints.plan.model_weights", broken)
    with pytest.raises(KeyError, match="a bug"):
        albert_tf.load_checkpoint(forms["google"])
