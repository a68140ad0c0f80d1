"""Damaged TensorFlow checkpoints and TF-Hub modules: an error or the right numbers.

Each row: what it is called, a function that damages a fresh copy, and what the
message must say (`None` where it must load all the same).
"""

import shutil

import harm_files
import numpy as np
import pytest
import tensorflow as tf
from harm_files import (
    BUNDLES,
    DATA,
    DELETED,
    GROUP,
    INDEX,
    MODULES,
    PREFIX,
    WORDS,
    added,
    assert_harmless,
    assert_one_clear_error,
    changed,
    cut,
    edit_bytes,
    edit_tensors,
    flip,
    folder_in_place_of,
    moved,
    read_bundle,
    remove,
    replace,
    write_bundle,
)

from albert_tf.models import AlbertPretrainer

FFN = f"{GROUP}/ffn_1/intermediate/dense/kernel"
QUERY = f"{GROUP}/attention_1/self/query/kernel"
pytestmark = pytest.mark.slow
forms, weights, harm = harm_files.forms, harm_files.weights, harm_files.harm


def random_bytes(size, seed=0):
    return np.random.default_rng(seed).bytes(size)


def twice(content):
    return content + content


def transposed(name):
    return edit_tensors({name: np.transpose})


def retyped(name, dtype):
    return edit_tensors({name: lambda x: tf.cast(x, dtype)})


def filled_with(name, number):
    def fill(x):
        x = x.copy()
        x.flat[x.size // 2] = number
        return x

    return edit_tensors({name: fill})


def renamed(old, new):
    def damage(folder):
        tensors = read_bundle(folder)
        write_bundle(folder, {new if x == old else x: y for x, y in tensors.items()})

    return damage


def swapped(first, second):
    """Two tensors of one shape under each other's name."""

    def damage(folder):
        tensors = read_bundle(folder)
        changes = {first: tensors[second], second: tensors[first]}
        write_bundle(folder, changed(tensors, changes))

    return damage


def files_of_another(file):
    """One of the two files from a checkpoint of the same shapes, other numbers."""

    def damage(folder):
        other = folder.parent / "other"
        shutil.copytree(folder, other)
        write_bundle(other, {x: y + 1 for x, y in read_bundle(folder).items()})
        shutil.copy(other / file, folder / file)
        shutil.rmtree(other)

    return damage


def reordered(folder):
    """The data of the same tensors written in another order: a bad match."""
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    tensors = read_bundle(folder)
    write_bundle(other, {f"x/{x}": y for x, y in sorted(tensors.items())[::-1]})
    shutil.copy(other / DATA, folder / DATA)
    shutil.rmtree(other)


def with_optimizer(folder):
    tensors = read_bundle(folder)
    slots = {f"{x}/adam_m": np.zeros_like(y) for x, y in tensors.items()}
    write_bundle(folder, {**tensors, **slots, "global_step": np.int64(7)})


def second_checkpoint(folder):
    for file in (INDEX, DATA):
        shutil.copy(folder / file, folder / file.replace(PREFIX, "model.ckpt-9"))


DAMAGED_INDEX = r"albert_model.ckpt.index.* is damaged"
DAMAGED_DATA = r"cannot be read from .*albert_model.ckpt.data"
FILES = {
    **{
        f"index_cut_at_{share}": (edit_bytes(INDEX, cut(share)), DAMAGED_INDEX)
        for share in (0.01, 0.99)
    },
    **{
        f"index_flipped_at_{share}_{bit}": (
            edit_bytes(INDEX, flip(share, bit)),
            DAMAGED_INDEX,
        )
        for share in (0, 0.4, 0.8)
        for bit in (7,)
    },
    "index_zeros": (replace(INDEX, bytes(1000)), DAMAGED_INDEX),
    # What counts is found from the end, and places from the start.
    "index_doubled": (edit_bytes(INDEX, twice), None),
    "index_of_2_mb": (replace(INDEX, bytes(2**21)), f"{DAMAGED_INDEX}: it has"),
    "index_a_folder": (folder_in_place_of(INDEX), "index"),
    "data_a_folder": (folder_in_place_of(DATA), "data-00000-of-00001"),
    "data_empty": (replace(DATA, b""), "is cut short"),
    "data_one_byte_short": (edit_bytes(DATA, lambda x: x[:-1]), "is cut short"),
    "data_zeros": (edit_bytes(DATA, lambda x: bytes(len(x))), DAMAGED_DATA),
    "data_longer": (edit_bytes(DATA, twice), None),
    "data_shifted": (edit_bytes(DATA, lambda x: b"\0" + x[:-1]), DAMAGED_DATA),
    **{
        f"data_flipped_at_{share}": (edit_bytes(DATA, flip(share, 7)), DAMAGED_DATA)
        for share in (0, 0.5)
    },
    # The heads come last, which loading the encoder does not read.
    "data_flipped_at_the_end": (edit_bytes(DATA, flip(1)), None, DAMAGED_DATA),
    "data_of_another": (files_of_another(DATA), DAMAGED_DATA),
    "index_of_another": (files_of_another(INDEX), DAMAGED_DATA),
    "data_in_another_order": (reordered, DAMAGED_DATA),
    "data_of_two_shards": (
        moved(DATA, f"{PREFIX}.data-00000-of-00002"),
        "data-00000-of-00001 is not there",
    ),
    "no_config": (remove("albert_config.json"), "no config beside"),
    "optimizer": (with_optimizer, None),
    "second_checkpoint": (second_checkpoint, "holds 2 checkpoints"),
    "checkpoint_file_hostile": (
        added("checkpoint", b"\xff" * 99),
        None,
    ),
    "meta_damaged": (
        added(f"{PREFIX}.meta", b"\xff" * 99),
        None,
    ),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("form", BUNDLES)
def test_files(harm, form, name):
    harm(form, *FILES[name])


# Of both layouts; what is told of another shape or type names the tensor.
TENSORS = {
    "missing": (edit_tensors({WORDS: DELETED}), f"lacks.*{WORDS}"),
    "renamed": (renamed(WORDS, "bert/embeddings/words"), f"lacks.*{WORDS}"),
    "of_a_scope": (renamed(WORDS, f"scope/{WORDS}"), f"lacks.*{WORDS}"),
    "twice": (
        edit_tensors({f"module/{WORDS}": np.zeros((40, 4), "float32")}),
        "two tensors that are both",
    ),
    "transposed_words": (transposed(WORDS), WORDS),
    "swapped_shapes": (
        swapped("bert/embeddings/position_embeddings", WORDS),
        "is not the config of",
    ),
    "scalar": (edit_tensors({WORDS: np.float32(1)}), f"{WORDS} is \\(\\)"),
    "flat": (edit_tensors({WORDS: np.ravel}), WORDS),
    "rank_3": (edit_tensors({WORDS: lambda x: x[..., None]}), WORDS),
    "no_rows": (edit_tensors({WORDS: lambda x: x[:0]}), WORDS),
    "a_row_more": (edit_tensors({WORDS: lambda x: np.pad(x, ((0, 1), (0, 0)))}), WORDS),
    "nan": (filled_with(WORDS, np.nan), f"{WORDS}.*not finite"),
    "float64": (retyped(WORDS, "float64"), None),
    "float64_too_large": (
        edit_tensors({WORDS: lambda x: np.where(x == x[1, 1], np.float64(1e300), x)}),
        f"{WORDS}.*not finite",
    ),
    "int32": (retyped(WORDS, "int32"), f"{WORDS}.*int32"),
    "complex": (retyped(WORDS, "complex64"), f"index is damaged: .*{WORDS}"),
    "strings": (
        edit_tensors({WORDS: np.array([b"a", b"b"])}),
        f"index is damaged: .*{WORDS}",
    ),
    "extra": (
        edit_tensors({"bert/adapter/kernel": np.zeros(3, "float32")}),
        "bert/adapter/kernel",
    ),
    "extra_empty": (edit_tensors({"x": np.zeros((0, 3), "float32")}), r"has \['x'\]"),
    "extra_strings": (edit_tensors({"x": np.array([b"a"])}), "index is damaged.*x "),
    "extra_step": (edit_tensors({"global_step": np.int64(3)}), None),
    "extra_nan_slot": (
        edit_tensors({f"{WORDS}/adam_m": np.float32([np.nan])}),
        None,
    ),
}


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("form", BUNDLES)
def test_tensors(harm, form, name):
    harm(form, *TENSORS[name])


GOOGLE_TENSORS = {
    "transposed_ffn": (transposed(FFN), FFN),
    "missing_group": (edit_tensors({QUERY: DELETED}), f"lacks.*{QUERY}"),
    "missing_half_of_the_pooler": (
        edit_tensors({"bert/pooler/dense/bias": DELETED}),
        "lacks.*pooler/dense/bias",
    ),
    "second_group": (
        renamed(QUERY, QUERY.replace("group_0", "group_1", 1)),
        "lacks.*group_0.*has.*group_1",
    ),
    "group_of_many_digits": (
        renamed(QUERY, QUERY.replace("group_0", "group_" + "9" * 400, 1)),
        "lacks.*group_0.*has.*group_9",
    ),
    "mixed_layouts": (
        edit_tensors(
            {"bert/encoder/layer_shared/output/dense/bias": np.zeros(6, "float32")}
        ),
        "has.*layer_shared",
    ),
    "names_of_bert": (
        lambda folder: write_bundle(
            folder,
            {
                x.replace("transformer/group_0/inner_group_0", "layer_0"): y
                for x, y in read_bundle(folder).items()
            },
        ),
        "no known ALBERT layout",
    ),
    "nothing": (
        lambda folder: write_bundle(folder, {"a": np.zeros(1, "float32")}),
        "no known ALBERT layout",
    ),
}


@pytest.mark.parametrize("name", GOOGLE_TENSORS)
def test_tensors_of_google(harm, name):
    harm("google", *GOOGLE_TENSORS[name])


# === Heads, which only converting and tasks read ===

MLM = "cls/predictions/output_bias"
SOP = "cls/seq_relationship/output_weights"
HEADS = {
    "mlm_nan": (filled_with(MLM, np.nan), f"{MLM}.*not finite"),
    "mlm_shape": (edit_tensors({MLM: lambda x: x[:-1]}), MLM),
    "mlm_scalar": (edit_tensors({MLM: np.float32(0)}), MLM),
    "mlm_int": (retyped(MLM, "int64"), f"{MLM}.*int64"),
    "sop_transposed": (transposed(SOP), SOP),
    "sop_of_three": (edit_tensors({SOP: lambda x: np.pad(x, ((0, 1), (0, 0)))}), SOP),
    "sop_empty": (edit_tensors({SOP: lambda x: x[:0]}), SOP),
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("form", BUNDLES)
def test_heads(harm, forms, tmp_path, form, name):
    damage, error = HEADS[name]
    harm(form, damage, None, error)
    path = tmp_path / "checkpoint"
    load = AlbertPretrainer.from_checkpoint
    assert_one_clear_error(lambda: load(path), error, path)


# === TF-Hub modules ===

MODULE_INDEX = "variables/variables.index"
MODULE_DATA = "variables/variables.data-00000-of-00001"
MODULE = {
    "index_cut": (edit_bytes(MODULE_INDEX, cut(0.5)), "variables.index is damaged"),
    "index_flipped": (
        edit_bytes(MODULE_INDEX, flip(0.3)),
        "variables.index is damaged",
    ),
    "index_missing": (remove(MODULE_INDEX), "variables.index does not exist"),
    "index_empty": (replace(MODULE_INDEX, b""), "variables.index is damaged"),
    "data_cut": (edit_bytes(MODULE_DATA, cut(0.9)), "is cut short"),
    "data_flipped": (edit_bytes(MODULE_DATA, flip(0.5)), "cannot be read from"),
    "data_missing": (remove(MODULE_DATA), "data-00000-of-00001 does not exist"),
    "data_a_folder": (folder_in_place_of(MODULE_DATA), "data-00000-of-00001"),
    "no_variables": (remove("variables"), "no checkpoint in"),
    "no_graph": (remove("saved_model.pb"), "no config beside"),
    # The graph is never read: nothing in it can do harm.
    "graph_empty": (replace("saved_model.pb", b""), None),
    "graph_random": (replace("saved_model.pb", random_bytes(999)), None),
    "graph_a_folder": (folder_in_place_of("saved_model.pb"), None),
    "no_assets": (remove("assets"), "no config beside"),
    "no_config": (remove("assets/albert_config.json"), "no config beside"),
    "config_cut": (
        edit_bytes("assets/albert_config.json", cut(0.5)),
        "albert_config.json is not a JSON file",
    ),
    "config_a_folder": (
        folder_in_place_of("assets/albert_config.json"),
        "albert_config.json",
    ),
}


@pytest.mark.parametrize("name", MODULE)
@pytest.mark.parametrize("form", MODULES)
def test_modules(harm, form, name):
    harm(form, *MODULE[name])


# === Nothing there ===


def test_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    assert_harmless(tmp_path / "empty", [], tmp_path, "no checkpoint in")
