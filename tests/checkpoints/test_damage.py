"""Damage that users meet: cut, missing and mixed-up files, and wrong configs.

Each ends in one clear error that names the file and what is wrong.
"""

import json
import os
import pickle

import damaged_files
import keras
import numpy as np
import pytest
from checkpoint_files import GOLDEN, config_of, weights_of, write
from damaged_files import (
    DATA,
    DELETED,
    HF_WORDS,
    INDEX,
    TOKENS,
    WEIGHTS,
    WORDS,
    assert_clear_error,
    assert_loads,
    copied,
    copy,
    cut,
    edit_bytes,
    edit_json,
    edit_tensors,
    flip,
    moved,
    remove,
    replace,
    swap,
)

from albert_tf.checkpoints import (
    CheckpointError,
    convert_checkpoint,
    inspect_checkpoint,
    load_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from albert_tf.models import AlbertPretrainer, AlbertTextClassifier

forms, weights = damaged_files.forms, damaged_files.weights

CONFIG = "albert_config.json"
PRESET_WEIGHTS = "model.weights.h5"
POSITIONS = "bert/embeddings/position_embeddings"
POOLER = "bert/pooler/dense/kernel"
GROUP = "bert/encoder/transformer/group_0/inner_group_0"
LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"


def nan(values):
    values = values.copy()
    values.flat[3] = float("nan")
    return values


# Form, damage, regular expression of the message.
DAMAGES = {
    "index_cut": ("google", cut(INDEX, 0.75), f"{INDEX} is damaged"),
    "index_missing": ("google", remove(INDEX), "no checkpoint in"),
    "index_web_page": ("google", replace(INDEX, "<html>" * 99), f"{INDEX} is damaged"),
    "data_cut": ("google", cut(DATA, 0.9), f"{DATA} is truncated"),
    "data_changed": ("google", flip(DATA, 0.3), "is damaged"),
    "data_missing": (
        "albert_zh",
        remove(DATA),
        f"{DATA} does not exist. Put it beside",
    ),
    "config_missing": ("google", remove(CONFIG), "no config beside.*`config=`"),
    "config_cut": ("google", cut(CONFIG, 0.5), "not a JSON file"),
    "config_list": ("google", replace(CONFIG, "[48]"), "must hold a JSON object"),
    "config_wrong": (
        "google",
        edit_json(CONFIG, {"vocab_size": 41}),
        "sizes in .*config",
    ),
    "tensor_missing": ("google", edit_tensors({POOLER: DELETED}), f"lacks.*{POOLER}"),
    "tensor_extra": (
        "google",
        edit_tensors({"bert/encoder/adapter/kernel": np.zeros(4, "float32")}),
        "has .*adapter/kernel.*no place",
    ),
    "tensors_swapped": ("google", swap(WORDS, POSITIONS), "not have the sizes in"),
    "tensor_transposed": (
        "google",
        edit_tensors({f"{GROUP}/ffn_1/intermediate/dense/kernel": np.transpose}),
        "ffn_1/intermediate/dense/kernel",
    ),
    "tensor_nan": ("google", edit_tensors({WORDS: nan}), "not finite"),
    "tensor_of_integers": (
        "google",
        edit_tensors({WORDS: lambda x: x.astype("int32")}),
        f"{WORDS}.*int32",
    ),
    "module_index_cut": ("hub", cut("variables/variables.index", 0.5), "is damaged"),
    "safetensors_cut": ("huggingface", cut(WEIGHTS, 0.9), f"{WEIGHTS} is damaged"),
    "safetensors_git_lfs_pointer": (
        "huggingface",
        replace(WEIGHTS, LFS_POINTER),
        f"{WEIGHTS} is damaged",
    ),
    "config_of_bert": (
        "huggingface",
        edit_json("config.json", {"model_type": "bert"}),
        "model_type='bert'",
    ),
    "preset_without_weights": ("kerashub", remove(PRESET_WEIGHTS), PRESET_WEIGHTS),
    "preset_cut": ("keras", cut(PRESET_WEIGHTS, 0.5), "is damaged"),
    "keras_file_cut": ("keras_file", cut("", 0.5), "checkpoint.keras is damaged"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage(forms, tmp_path, name):
    form, damage, message = DAMAGES[name]
    path = copy(forms[form], tmp_path)
    damage(path)
    assert_clear_error(lambda: load_checkpoint(path), message, path)


def test_layers_of_bert_are_no_known_layout(tmp_path):
    tensors = {
        WORDS: np.zeros((120, 48), "float32"),
        "bert/encoder/layer_0/attention/self/query/kernel": np.eye(48),
    }
    write(tmp_path, tensors, config_of("google_v2"))
    with pytest.raises(CheckpointError, match="no known ALBERT layout.*google.*layer_"):
        load_checkpoint(tmp_path)


# Wrong fields of a config, regular expression of the message.
CONFIGS = (
    ({"hidden_size": 52}, r"kernel is \(16, 48\) and should be \(16, 52\)"),
    ({"max_position_embeddings": 512}, r"is \(64, 16\) and should be \(512, 16\)"),
    ({"num_hidden_groups": 2}, "lacks .*group_1.*Compare num_hidden_groups"),
    ({"num_hidden_groups": 12}, "grouped dense layer"),
    ({"num_hidden_layers": "3"}, "num_hidden_layers='3'. Expected a number"),
    ({"num_attention_heads": DELETED}, r"lacks .*\['num_attention_heads'\]"),
    ({"hidden_act": "swish"}, "gelu.*relu"),
)


def test_wrong_configs():
    for changes, message in CONFIGS:
        config = damaged_files.changed(config_of("google_v2"), changes)
        with pytest.raises(CheckpointError, match=message):
            load_checkpoint(GOLDEN / "google_v2", config=config)
    config = {**config_of("albert_zh_preln"), "ln_type": "rms"}
    with pytest.raises(CheckpointError, match="ln_type='rms'.*postln.*preln"):
        load_checkpoint(GOLDEN / "albert_zh_preln", config=config)


def test_released_fast_configs_are_refused(assets):
    for path in (assets / "released" / "configs").glob("*_fast.json"):
        with pytest.raises(CheckpointError, match="grouped dense layer"):
            inspect_checkpoint(GOLDEN / "google_v2", config=path)


def test_query_and_key_of_unequal_widths(tmp_path):
    """Joined they have the right width, but would be split at the wrong place.

    The model that was to be filled keeps its weights.
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
    edit_tensors({bias: DELETED})(folder)
    load = AlbertPretrainer.from_checkpoint
    assert_clear_error(lambda: load(folder), f"lacks .*{bias}", folder)
    assert "masked_lm_head" not in inspect_checkpoint(folder).heads
    assert_loads(folder, load_checkpoint(forms["google"]).get_weights())


def test_nothing_is_half_written(forms, tmp_path):
    """The last tensor of the file is damaged: all others can be read."""
    folder = copy(forms["google"], tmp_path)
    flip(DATA, 1)(folder)
    target = tmp_path / "out" / "there"
    call = lambda: convert_checkpoint(folder, target, "huggingface")  # noqa: E731
    assert_clear_error(call, "is damaged", folder)
    assert not (tmp_path / "out").exists()
    assert inspect_checkpoint(folder).damaged


@pytest.mark.parametrize("form", ["google", "huggingface"])
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
    "cut": (cut("vocab.txt", 0.1), "vocab.txt.* lacks"),
    "of_another_model": (
        edit_bytes("vocab.txt", lambda x: x + b"\nzz"),
        "has 42 tokens, the model 40",
    ),
    "twice": (copied("vocab.txt", "vocab_2.txt"), "several vocabulary files"),
    "wrong_name": (moved("vocab.txt", "spiece.model"), "spiece.model.* is text"),
    "config_cut": (
        cut("tokenizer_config.json", 0.5),
        "tokenizer_config.json is not a JSON file",
    ),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(forms, weights, tmp_path, name):
    """The encoder loads; reading the vocabulary ends in a clear error."""
    damage, message = TOKENIZERS[name]
    folder = copy(forms["huggingface"], tmp_path)
    damage(folder)
    assert_loads(folder, weights["huggingface"])
    call = lambda: convert_checkpoint(folder, tmp_path / "x", "google")  # noqa: E731
    assert_clear_error(call, message, folder)


def test_no_vocabulary(forms, tmp_path):
    folder = copy(forms["google"], tmp_path)
    (folder / "vocab.txt").unlink()
    load = AlbertTextClassifier.from_checkpoint
    call = lambda: load(folder, num_classes=2)  # noqa: E731
    assert_clear_error(call, "no vocabulary beside", folder)


def test_tokenizer_json(forms, tmp_path):
    """Another type of tokenizer, and gaps between the ids."""
    folder = copy(forms["huggingface"], tmp_path)
    (folder / "vocab.txt").unlink()
    for model in (
        {"type": "BPE", "vocab": {}},
        {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": 3}},
    ):
        (folder / "tokenizer.json").write_text(json.dumps({"model": model}))
        call = lambda: open_checkpoint(folder).tokenizer()  # noqa: E731
        assert_clear_error(call, "tokenizer.json", folder)


def test_labels(tmp_path):
    """Labels in a list, and counted from one."""
    backbone = damaged_files.small_backbone()
    save_checkpoint(AlbertTextClassifier(backbone, 3), tmp_path, "huggingface")
    for labels in (
        ["a", "b", "c"],
        {"1": "a", "2": "b", "3": "c"},
    ):
        edit_json("config.json", {"id2label": labels})(tmp_path)
        call = lambda: open_checkpoint(tmp_path).head_config("classifier")  # noqa: E731
        assert_clear_error(call, "config.json", tmp_path)


# === Files that want to run code ===


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


def test_code_in_a_pickle_does_not_run(forms, tmp_path):
    folder = copy(forms["huggingface"], tmp_path)
    (folder / WEIGHTS).unlink()
    payload = {HF_WORDS: Payload(tmp_path / "it_ran")}
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(payload))
    assert_clear_error(lambda: load_checkpoint(folder), "pytorch_model.bin", folder)
    assert not (tmp_path / "it_ran").exists()


def test_code_in_a_keras_file_does_not_run(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x + 1)])
    model.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="lambda"):
        load_checkpoint(tmp_path / "model.keras")
