"""Damaged Hugging Face directories: an error or the right numbers."""

import json
import shutil

import harm_files
import ml_dtypes
import numpy as np
import pytest
from harm_files import (
    DELETED,
    EITHER,
    HF_WORDS,
    WEIGHTS,
    assert_loads,
    copied,
    copy,
    cut,
    edit_bytes,
    edit_json,
    edit_tensors,
    folder_in_place_of,
    raw_safetensors,
    read_safetensors,
    remove,
    replace,
    write_safetensors,
)

import albert_tf
from albert_tf.conversion import convert_checkpoint

pytestmark = pytest.mark.slow
forms, weights, harm = harm_files.forms, harm_files.weights, harm_files.harm

FIRST, SECOND = (f"model-0000{x}-of-00002.safetensors" for x in (1, 2))
SHARDS = f"{WEIGHTS}.index.json"
BLOCK = "albert.encoder.albert_layer_groups.0.albert_layers.0"
FFN = f"{BLOCK}.ffn.weight"
BIN = "pytorch_model.bin"
ZEROS = np.zeros((40, 4), "float32")


def retyped(name, dtype):
    return edit_tensors({name: lambda x: x.astype(dtype)})


def filled_with(name, number):
    def fill(x):
        x = x.copy()
        x.flat[x.size // 2] = number
        return x

    return edit_tensors({name: fill})


def header(change):
    """A damage: another header, the data and the length field as they should be."""

    def damage(content):
        size = int.from_bytes(content[:8], "little")
        fields = json.loads(content[8 : 8 + size])
        return raw_safetensors(change(fields), bytes(content[8 + size :]))

    return edit_bytes(WEIGHTS, damage)


def entry(name, **changes):
    """A damage: the header says something else of a tensor."""
    return header(lambda x: {**x, name: {**x[name], **changes}})


def overlapping(fields):
    fields[HF_WORDS]["data_offsets"] = fields[FFN]["data_offsets"]
    return fields


NO_SAFETENSORS = rf"{WEIGHTS}.* is damaged or no safetensors file"
FILES = {
    **{
        f"cut_at_{share}": (edit_bytes(WEIGHTS, cut(share)), NO_SAFETENSORS)
        for share in (0, 0.0005, 0.999)
    },
    "longer": (edit_bytes(WEIGHTS, lambda x: x + b"\0"), NO_SAFETENSORS),
    "zeros": (replace(WEIGHTS, bytes(5000)), NO_SAFETENSORS),
    "web_page": (replace(WEIGHTS, "<html>404</html>"), NO_SAFETENSORS),
    "git_lfs_pointer": (
        replace(WEIGHTS, "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
        NO_SAFETENSORS,
    ),
    "a_folder": (folder_in_place_of(WEIGHTS), WEIGHTS),
    "header_of_2_to_the_63": (
        edit_bytes(WEIGHTS, lambda x: b"\xff" * 7 + b"\x7f" + x[8:]),
        NO_SAFETENSORS,
    ),
    "header_of_100_mb": (
        edit_bytes(WEIGHTS, lambda x: (10**8).to_bytes(8, "little") + x[8:]),
        NO_SAFETENSORS,
    ),
    "header_a_list": (replace(WEIGHTS, raw_safetensors([])), NO_SAFETENSORS),
    "header_not_utf8": (
        replace(WEIGHTS, raw_safetensors(b"\xff{}")),
        NO_SAFETENSORS,
    ),
    "header_deep": (replace(WEIGHTS, raw_safetensors(b"[" * 99999)), NO_SAFETENSORS),
    "header_empty": (replace(WEIGHTS, raw_safetensors({})), "no known ALBERT layout"),
    "header_surrogate": (
        replace(WEIGHTS, raw_safetensors(b'{"\\ud800": 1}')),
        NO_SAFETENSORS,
    ),
    "offsets_overlap": (header(overlapping), NO_SAFETENSORS),
    "offsets_swapped": (entry(HF_WORDS, data_offsets=[640, 0]), NO_SAFETENSORS),
    "offsets_huge": (entry(HF_WORDS, data_offsets=[0, 2**63]), NO_SAFETENSORS),
    "offsets_negative": (entry(HF_WORDS, data_offsets=[-640, 0]), NO_SAFETENSORS),
    "shape_huge": (entry(HF_WORDS, shape=[2**62, 2**62]), NO_SAFETENSORS),
    "shape_negative": (entry(HF_WORDS, shape=[-40, -4]), NO_SAFETENSORS),
    "shape_null": (entry(HF_WORDS, shape=None), NO_SAFETENSORS),
    "shape_another": (entry(HF_WORDS, shape=[4, 40]), "is not the config of"),
    "dtype_unknown": (entry(HF_WORDS, dtype="F31"), NO_SAFETENSORS),
    "dtype_int": (entry(HF_WORDS, dtype="I32"), f"{HF_WORDS}.*(int32|checksum)"),
    "dtype_of_another_size": (entry(HF_WORDS, dtype="F16"), NO_SAFETENSORS),
    "metadata_not_strings": (
        header(lambda x: {**x, "__metadata__": {"a": 1}}),
        NO_SAFETENSORS,
    ),
    "checksums_wrong": (
        header(lambda x: {**x, "__metadata__": {"crc32": json.dumps({HF_WORDS: 1})}}),
        f"{HF_WORDS}.*checksum",
    ),
    "no_config": (remove("config.json"), "no config beside"),
    "config_a_folder": (folder_in_place_of("config.json"), "config.json"),
    "config_of_bert": (edit_json("config.json", {"model_type": "bert"}), "model_type"),
    "config_cut": (edit_bytes("config.json", cut(0.5)), "config.json is not a JSON"),
}


@pytest.mark.parametrize("name", FILES)
def test_files(harm, name):
    harm("huggingface", *FILES[name])


TENSORS = {
    "missing": (edit_tensors({HF_WORDS: DELETED}), f"lacks.*{HF_WORDS}"),
    "extra": (
        edit_tensors({"albert.x": ZEROS}),
        r"has \['albert.x'\]",
    ),
    "extra_of_no_name": (edit_tensors({"": np.zeros(2, "float32")}), r"has \[''\]"),
    "twice": (
        edit_tensors({HF_WORDS.removeprefix("albert."): ZEROS}),
        "two tensors that are both",
    ),
    "transposed": (edit_tensors({FFN: np.transpose}), FFN),
    "transposed_words": (edit_tensors({HF_WORDS: np.transpose}), "is not the config"),
    "scalar": (edit_tensors({HF_WORDS: np.float32(1)}), HF_WORDS),
    "scalar_bias": (edit_tensors({f"{BLOCK}.ffn.bias": np.float32(1)}), "ffn.bias"),
    "flat": (edit_tensors({HF_WORDS: np.ravel}), HF_WORDS),
    "no_rows": (edit_tensors({HF_WORDS: lambda x: x[:0]}), "is not the config"),
    "nan": (filled_with(HF_WORDS, np.nan), f"{HF_WORDS}.*not finite"),
    "infinity": (filled_with(HF_WORDS, np.inf), f"{HF_WORDS}.*not finite"),
    "float64": (retyped(HF_WORDS, "float64"), None),
    "int64": (retyped(HF_WORDS, "int64"), f"{HF_WORDS}.*int64"),
    "uint8": (retyped(HF_WORDS, "uint8"), f"{HF_WORDS}.*uint8"),
    "bool": (retyped(HF_WORDS, "bool"), f"{HF_WORDS}.*bool"),
    "position_ids": (
        edit_tensors({"albert.embeddings.position_ids": np.arange(16)}),
        None,
    ),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors(harm, name):
    harm("huggingface", *TENSORS[name])


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_half_precision_gives_the_numbers_it_holds(forms, tmp_path, dtype):
    folder = copy(forms["huggingface"], tmp_path)
    retyped(HF_WORDS, dtype)(folder)
    expected = albert_tf.load_checkpoint(forms["huggingface"])
    table = expected.embedding.token_table
    table.assign(table.numpy().astype(dtype).astype("float32"))
    assert_loads(folder, expected.get_weights())


# === Several files ===

SHARDED = {
    "index_cut": (edit_bytes(SHARDS, cut(0.5)), f"{SHARDS} is not a JSON file"),
    "index_empty": (replace(SHARDS, b""), f"{SHARDS} is not a JSON file"),
    "index_a_list": (replace(SHARDS, b"[]"), f"{SHARDS} should hold a JSON object"),
    "index_without_map": (edit_json(SHARDS, {"weight_map": DELETED}), "weight_map"),
    "map_a_list": (edit_json(SHARDS, {"weight_map": [FIRST]}), "weight_map"),
    "map_empty": (edit_json(SHARDS, {"weight_map": {}}), "weight_map"),
    "map_of_numbers": (edit_json(SHARDS, {"weight_map": {"a": 1}}), "names.*1"),
    "map_of_nothing": (edit_json(SHARDS, {"weight_map": {"a": ""}}), SHARDS),
    "map_of_the_folder": (edit_json(SHARDS, {"weight_map": {"a": "."}}), SHARDS),
    **{
        f"map_to_{kind}": (edit_json(SHARDS, {"weight_map": {"a": name}}), error)
        for kind, name, error in (
            ("a_folder_above", "../x.safetensors", SHARDS),
            ("the_folder_above", "..", SHARDS),
            ("the_root", "/etc/passwd", SHARDS),
            ("a_folder_below", "a/b.safetensors", SHARDS),
            ("a_folder_of_windows", "..\\x.safetensors", SHARDS),
            ("nowhere", "nowhere.safetensors", SHARDS),
            ("nul", "x\0y.safetensors", SHARDS),
            ("itself", SHARDS, SHARDS),
            ("the_config", "config.json", SHARDS),
            ("a_long_name", "x" * 300, "xxx"),
        )
    },
    "map_lacks_a_file": (
        edit_json(
            SHARDS,
            {"weight_map": lambda x: {y: z for y, z in x.items() if z == FIRST}},
        ),
        "lacks",
    ),
    # What is in the files counts.
    "map_names_another_file": (
        edit_json(SHARDS, {HF_WORDS: SECOND}, inside=("weight_map",)),
        EITHER,
    ),
    "map_names_what_is_not_there": (
        edit_json(SHARDS, {"albert.x": FIRST}, inside=("weight_map",)),
        EITHER,
    ),
    "first_missing": (remove(FIRST), f"names.*{FIRST}"),
    "second_missing": (remove(SECOND), f"names.*{SECOND}"),
    "first_cut": (edit_bytes(FIRST, cut(0.9)), f"{FIRST} is damaged"),
    "second_empty": (replace(SECOND, b""), f"{SECOND} is damaged"),
    "second_a_folder": (folder_in_place_of(SECOND), SECOND),
    "first_twice": (copied(FIRST, SECOND), "lacks|has|twice"),
    "a_tensor_in_both": (
        lambda folder: write_safetensors(
            folder,
            {**read_safetensors(folder, SECOND), HF_WORDS: ZEROS},
            SECOND,
        ),
        f"{HF_WORDS}",
    ),
}


@pytest.mark.parametrize("name", SHARDED)
def test_sharded(harm, name):
    harm("sharded", *SHARDED[name])


# === Links, as in the cache of huggingface_hub ===


def test_links_to_blobs(forms, weights, tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for number, file in enumerate(forms["huggingface"].iterdir()):
        shutil.copy(file, blobs / f"{number:064x}")
        (snapshot / file.name).symlink_to(f"../../blobs/{number:064x}")
    for path in (snapshot, snapshot / WEIGHTS):
        assert_loads(path, weights["huggingface"])
    convert_checkpoint(snapshot, tmp_path / "out", "google")
    assert_loads(tmp_path / "out", weights["huggingface"])
