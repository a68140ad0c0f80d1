"""Shards on disk, and arrays written as records."""

import numpy as np
import pytest

from albert_tf.files import BUNDLED, find_bundled
from albert_tf.pretraining import (
    PretrainingRecords,
    read_heads,
    read_weights,
    write_records,
)
from albert_tf.pretraining.records.shard_files import (
    read_shard,
    token_dtype,
    write_shard,
)
from albert_tf_lite.errors import AlbertError

SIZE = 90
VOCABULARY = find_bundled(BUNDLED[0]) / "vocab.txt"


def test_shards_round_trip_and_damage_is_named(tmp_path):
    shard = {
        "token_ids": np.arange(7, dtype=token_dtype(SIZE)),
        "word_starts": np.ones(7, bool),
        "lengths": np.array([3, 4], "uint16"),
        "second_starts": np.array([1, 4], "uint16"),
        "documents": np.array([0, 2], "uint32"),
    }
    write_shard(tmp_path / "a", shard)
    read = read_shard(tmp_path / "a")
    assert read.keys() == shard.keys()
    for name, values in (shard | {"word_starts": np.array([254], "uint8")}).items():
        assert np.array_equal(read[name], values) and read[name].dtype == values.dtype
        assert isinstance(read[name], np.memmap)
    assert token_dtype(2**16) == "uint16" and token_dtype(2**16 + 1) == "uint32"
    write_shard(tmp_path / "b", shard | {"word_starts": np.ones(17, bool)})
    file = tmp_path / "a" / "token_ids.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    for name in ("a", "b", "none"):
        with pytest.raises(ValueError, match=f"{name} is damaged"):
            read_shard(tmp_path / name)


def part():
    """A sequence of two segments, and one of one segment."""
    return {
        "token_ids": np.array([10, 11, 12, 13, 14, 15, 16]),
        "word_starts": np.array([1, 1, 0, 1, 1, 1, 0], bool),
        "lengths": np.array([5, 2]),
        "second_starts": np.array([3, 2]),
    }


def test_arrays_are_written_as_records_once(tmp_path):
    def write(parts, **options):
        return write_records(parts, tmp_path, VOCABULARY, 8, sources=["a"], **options)

    manifest = write([part(), part()])
    assert manifest["counts"] == {"sequences": 4, "tokens": 14}
    records = PretrainingRecords(tmp_path)
    assert records.lengths.tolist() == [5, 2] * 2 and not records.is_masked
    assert records.shards[1]["token_ids"].tolist() == [*range(10, 17)]
    assert records.shards[1]["documents"].tolist() == [0, 1]
    times = {x: x.stat().st_mtime_ns for x in tmp_path.glob("pretrain-*/*")}
    assert write([part(), part()]) == manifest
    assert {x: x.stat().st_mtime_ns for x in tmp_path.glob("pretrain-*/*")} == times
    with pytest.raises(ValueError, match="other settings .order: 'sop', now 'nsp'"):
        write([part()], order="nsp")
    with pytest.raises(ValueError, match="other settings .file"):
        write_records([part()], tmp_path, VOCABULARY, 8, sources=["b"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": np.array([5, 3])}, "`token_ids` has 7 values.* must be 8"),
        ({"second_starts": np.array([3, 9])}, "`second_starts` has values from 3 to 9"),
        ({"second_starts": np.array([3, 3])}, "larger than `lengths`"),
        ({"token_ids": np.arange(10**6, 10**6 + 7)}, "`token_ids` has values from"),
        ({"token_ids": -np.arange(7)}, "`token_ids` has values from -6 to 0"),
        ({"labels": np.array([0, 2])}, "`labels` has values from 0 to 2, outside 0 to"),
        ({"mask_counts": np.array([1, 0])}, "has a part of the arrays"),
        ({"words": np.array([1])}, r"unknown arrays \['words'\]"),
        (
            {
                "lengths": np.array([7]),
                "second_starts": np.array([7]),
            },
            "sequence of 9 tokens",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=f"Part 0.*{message}"):
        write_records([part() | changes], tmp_path, VOCABULARY, sequence_length=8)
    assert not [*tmp_path.glob("pretrain-*")]


@pytest.mark.parametrize("damage", ["truncated", "text", "changed", "no sizes"])
def test_damaged_weights_are_named(damage, tmp_path):
    path = tmp_path / "weights.npz"
    np.savez_compressed(path, config="{}", kernel=np.arange(3000.0))
    data = path.read_bytes()
    content = {
        "truncated": data[: len(data) // 2],
        "text": b"kernel",
        "changed": data[:2000] + bytes(20) + data[2020:],
        "no sizes": data,
    }
    path.write_bytes(content[damage])
    message = "does not have the sizes" if damage == "no sizes" else "is damaged, trun"
    with pytest.raises(AlbertError, match=f"weights.npz {message}"):
        read_weights(path)
    if damage != "no sizes":
        (tmp_path / "heads.json").write_text("{}", "utf-8")
        path.rename(tmp_path / "heads.npz")
        with pytest.raises(AlbertError, match="heads.npz is damaged"):
            read_heads(tmp_path)
