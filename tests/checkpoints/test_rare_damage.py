"""Rarer damage: loading and converting give the right numbers or one clear error.

Each row: a function that damages a fresh copy, and what the message must match
(`None` if the checkpoint must load all the same).
"""

import shutil

import damaged_files
import fuzz_checkpoints
import numpy as np
import pytest
from damaged_files import (
    DATA,
    DELETED,
    HF_WORDS,
    INDEX,
    WEIGHTS,
    WORDS,
    assert_clear_error,
    assert_harmless,
    assert_loads,
    copied,
    copy,
    cut,
    edit_bytes,
    edit_json,
    edit_tensors,
    edit_zip,
    file_of_another,
    flip,
    moved,
    read_safetensors,
    remove,
    replace,
    write_safetensors,
)

from albert_tf.checkpoints import convert_checkpoint

pytestmark = pytest.mark.nightly
forms, weights = damaged_files.forms, damaged_files.weights

SHARDS = f"{WEIGHTS}.index.json"
FIRST, SECOND = (f"model-0000{x}-of-00002.safetensors" for x in (1, 2))
SOP = "cls/seq_relationship/output_weights"
HUB_DATA = "variables/variables.data-00000-of-00001"
HUB_CONFIG = "assets/albert_config.json"
ZEROS = np.zeros((40, 4), "float32")


def cast(name, dtype):
    return edit_tensors({name: lambda x: x.astype(dtype)})


def fill(name, number):
    def change(x):
        x = x.copy()
        x.flat[x.size // 2] = number
        return x

    return edit_tensors({name: change})


def second_checkpoint(folder):
    for file in (INDEX, DATA):
        shutil.copy(folder / file, folder / file.replace("albert_model", "model"))


def tensor_in_both_shards(folder):
    tensors = {**read_safetensors(folder, SECOND), HF_WORDS: ZEROS}
    write_safetensors(folder, tensors, SECOND)


BUNDLES = {
    "index_changed": (flip(INDEX, 0.3), "index is damaged"),
    "index_empty": (replace(INDEX, b""), "index is damaged"),
    "index_of_another": (file_of_another(INDEX), "cannot be read from"),
    "data_of_another": (file_of_another(DATA), "cannot be read from"),
    "data_empty": (replace(DATA, b""), "is cut short"),
    "data_one_byte_short": (edit_bytes(DATA, lambda x: x[:-1]), "is cut short"),
    "data_longer": (edit_bytes(DATA, lambda x: x + x), None),
    "data_shifted": (edit_bytes(DATA, lambda x: b"\0" + x[:-1]), "cannot be read"),
    "data_name": (moved(DATA, DATA.replace("of-00001", "of-00002")), "cannot be read"),
    "second_checkpoint": (second_checkpoint, "holds 2 checkpoints"),
    "tensor_in_a_scope": (edit_tensors({f"x/{WORDS}": ZEROS}), "has.*x/bert"),
    "tensor_twice": (edit_tensors({f"module/{WORDS}": ZEROS}), "two tensors"),
    "tensor_flat": (edit_tensors({WORDS: np.ravel}), WORDS),
    "tensor_scalar": (edit_tensors({WORDS: np.float32(1)}), WORDS),
    "tensor_without_rows": (edit_tensors({WORDS: lambda x: x[:0]}), WORDS),
    "tensor_float64": (cast(WORDS, "float64"), None),
    "tensor_float64_too_large": (
        edit_tensors({WORDS: lambda x: x.astype("float64") * 1e300}),
        f"{WORDS}.*not finite",
    ),
    "tensor_int32": (cast(WORDS, "int32"), f"{WORDS}.*int32"),
    "tensor_transposed": (edit_tensors({WORDS: np.transpose}), WORDS),
    "step": (edit_tensors({"global_step": np.int64(3)}), None),
    "nan_in_a_slot": (edit_tensors({f"{WORDS}/adam_m": np.float32([np.nan])}), None),
}
HUGGINGFACE = {
    "empty": (replace(WEIGHTS, b""), "not a safetensors file"),
    "longer": (edit_bytes(WEIGHTS, lambda x: x + b"\0"), "not a safetensors file"),
    "web_page": (replace(WEIGHTS, "<html>404</html>"), "not a safetensors file"),
    "header_too_long": (
        edit_bytes(WEIGHTS, lambda x: b"\xff" * 7 + b"\x7f" + x[8:]),
        "not a safetensors file",
    ),
    "config_cut": (cut("config.json", 0.5), "config.json is not a JSON"),
    "config_missing": (remove("config.json"), "no config beside"),
    "tensor_missing": (edit_tensors({HF_WORDS: DELETED}), f"lacks.*{HF_WORDS}"),
    "tensor_extra": (edit_tensors({"albert.x": ZEROS}), r"has \['albert.x'\]"),
    "tensor_twice": (
        edit_tensors({HF_WORDS.removeprefix("albert."): ZEROS}),
        "two tensors",
    ),
    "tensor_transposed": (edit_tensors({HF_WORDS: np.transpose}), "is not the config"),
    "tensor_infinite": (fill(HF_WORDS, np.inf), f"{HF_WORDS}.*not finite"),
    "tensor_int64": (cast(HF_WORDS, "int64"), f"{HF_WORDS}.*int64"),
    "tensor_float64": (cast(HF_WORDS, "float64"), None),
    "position_ids": (
        edit_tensors({"albert.embeddings.position_ids": np.arange(16)}),
        None,
    ),
}
SHARDED = {
    "map_cut": (cut(SHARDS, 0.5), f"{SHARDS} is not a JSON file"),
    "map_missing_field": (edit_json(SHARDS, {"weight_map": DELETED}), "weight_map"),
    "map_to_another_folder": (
        edit_json(SHARDS, {"weight_map": {"a": "../x.safetensors"}}),
        "not a file of weights beside it",
    ),
    "map_of_another": (edit_json(SHARDS, {"weight_map": {"a": FIRST}}), "lacks"),
    "first_cut": (cut(FIRST, 0.9), f"{FIRST} is damaged"),
    "first_twice": (copied(FIRST, SECOND), "two files that hold"),
    "tensor_in_both": (tensor_in_both_shards, HF_WORDS),
}
MODULES = {
    "data_cut": (cut(HUB_DATA, 0.9), "is cut short"),
    "data_missing": (remove(HUB_DATA), "data-00000-of-00001 does not exist"),
    "no_variables": (remove("variables"), "no checkpoint in"),
    "no_assets": (remove("assets"), "no config beside"),
    "config_cut": (cut(HUB_CONFIG, 0.5), "albert_config.json is not a JSON file"),
    # The graph is never read.
    "graph_empty": (replace("saved_model.pb", b""), None),
}
PRESETS = {
    "config_cut": (cut("config.json", 0.5), "config.json is not a JSON file"),
    "no_weights_of_the_task": (remove("task.weights.h5"), "it lacks task.weights.h5"),
    "task_of_an_unknown_class": (
        edit_json("task.json", {"registered_name": "x>Y"}),
        "task.json is of the class 'x>Y'",
    ),
}
KERAS_FILES = {
    "web_page": (replace("", "<html>"), "checkpoint.keras"),
    "no_weights": (edit_zip({"model.weights.h5": DELETED}), "keras cannot be read"),
}
TABLES = {
    "google": BUNDLES,
    "huggingface": HUGGINGFACE,
    "sharded": SHARDED,
    "hub": MODULES,
    "keras": PRESETS,
    "keras_file": KERAS_FILES,
}


@pytest.mark.parametrize(
    ("form", "name"), [(form, name) for form in TABLES for name in TABLES[form]]
)
def test_rare_damage(forms, weights, tmp_path, form, name):
    damage, error = TABLES[form][name]
    path = copy(forms[form], tmp_path)
    damage(path)
    assert_harmless(path, weights[form], error)


@pytest.mark.parametrize("damage", [fill(SOP, np.nan), cast(SOP, "int64")])
def test_a_damaged_head_does_not_keep_the_encoder_from_loading(
    forms, weights, tmp_path, damage
):
    path = copy(forms["google"], tmp_path)
    damage(path)
    assert_loads(path, weights["google"])
    target = tmp_path / "out"
    call = lambda: convert_checkpoint(path, target, "huggingface")  # noqa: E731
    assert_clear_error(call, SOP, path)
    assert not target.exists()


def test_a_sample_of_random_damage(capsys):
    failed = fuzz_checkpoints.main(["--mutations", "150", "--seed", "2"])
    assert not failed, capsys.readouterr().out
