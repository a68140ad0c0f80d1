"""Shards on disk, and TFRecords of others converted into them."""

import numpy as np
import pytest
import tensorflow as tf
from command_line import refused, run
from made_records import word_starts

from albert_tf.pretraining import tfrecords
from albert_tf.pretraining.records import (
    read_manifest,
    read_shard,
    token_dtype,
    write_shard,
)
from albert_tf.pretraining.tfrecords import convert_records, find_tfrecords

CLS, SEP, MASK, SIZE = 2, 3, 4, 90


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


# === TFRecords ===


def examples(count, seed=0, length=24, boundaries=True, masks=True):
    """Features as `create_pretraining_data.py` writes them, by their names there."""
    random = np.random.default_rng(seed)
    for number in range(count):
        first = int(random.integers(1, 9))
        # Some have one segment.
        second = int(random.integers(1, 9)) * (number % 4 > 0)
        ids = [CLS, *random.integers(5, SIZE, first), SEP]
        ids += [*random.integers(5, SIZE, second), SEP] * (second > 0)
        text = [i for i, x in enumerate(ids) if x not in (CLS, SEP)]
        positions = sorted(random.choice(text, min(len(text), 3), replace=False))
        labels = [ids[i] for i in positions]
        padding = [0] * (length - len(ids))
        features = {
            "segment_ids": [0] * (first + 2) + [1] * (len(ids) - first - 2) + padding,
            "input_mask": [1] * len(ids) + padding,
            "next_sentence_labels": [number % 2],
        }
        if boundaries:
            features["token_boundary"] = [*random.integers(0, 2, len(ids)), *padding]
        if masks:
            more = [0] * (4 - len(positions))
            features["masked_lm_positions"] = [*positions, *more]
            features["masked_lm_ids"] = [*labels, *more]
            features["masked_lm_weights"] = [1.0] * len(positions) + [0.0] * len(more)
            for i in positions:
                ids[i] = MASK
        yield {**features, "input_ids": [*ids, *padding]}


def write(path, rows):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            example = tf.train.Example()
            for name, values in row.items():
                feature = example.features.feature[name]
                is_float = name == "masked_lm_weights"
                kind = feature.float_list if is_float else feature.int64_list
                kind.value.extend(values)
            writer.write(example.SerializeToString())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tfrecords, "SHARD_TOKENS", 100)
    monkeypatch.setattr(tfrecords, "PARSED", 8)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [chr(0x4E00 + i) for i in range(SIZE - 5)]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return tmp_path


def convert(folder, files="*.tfrecord", output="out", **kwargs):
    return convert_records(
        folder / files, folder / output, folder / "vocab.txt", **kwargs
    )


@pytest.mark.parametrize(
    ("boundaries", "masks"),
    [
        pytest.param(True, True, id="google"),
        pytest.param(False, True, id="albert_zh"),
        pytest.param(True, False, id="albert-tf 0.1.0"),
    ],
)
def test_converted_arrays_equal_the_features(folder, boundaries, masks):
    rows = list(examples(90, boundaries=boundaries, masks=masks))
    write(folder / "a.tfrecord", rows[:50])
    write(folder / "b.tfrecord", rows[50:])
    manifest = convert(folder)
    assert manifest == read_manifest(folder / "out") and len(manifest["shards"]) > 3
    assert manifest["settings"]["sequence_length"] == 24
    tokens = {"size": SIZE, "cls": CLS, "sep": SEP, "pad": 0, "mask": MASK}
    assert manifest["tokens"] == tokens
    assert (folder / "out" / "vocab.txt").exists()
    names = [x["name"] for x in manifest["shards"]]
    shards = [read_shard(folder / "out" / name) for name in names]
    shards = [{**x, "word_starts": word_starts(x)} for x in shards]
    assert all(len(x["token_ids"]) < 100 + 8 * 21 for x in shards)
    for shard in shards:
        assert len(set(shard["documents"])) == len(shard["documents"])
    arrays = {name: np.concatenate([x[name] for x in shards]) for name in shards[0]}
    assert arrays["token_ids"].dtype == "uint16" and ("mask_ids" in arrays) == masks
    token = mask = 0
    for number, row in enumerate(rows):
        length, second = (int(arrays[x][number]) for x in ("lengths", "second_starts"))
        ids, starts = (
            list(arrays[x][token : token + length])
            for x in ("token_ids", "word_starts")
        )
        used = [CLS, *ids[:second], SEP] + [*ids[second:], SEP] * (second < length)
        padding = [0] * (24 - len(used))
        found = {
            "input_ids": used + padding,
            "input_mask": [1] * len(used) + padding,
            "segment_ids": [int(second + 2 <= i < len(used)) for i in range(24)],
            "next_sentence_labels": [arrays["labels"][number]],
        }
        if masks:
            count = int(arrays["mask_counts"][number])
            for name in ("positions", "ids"):
                values = arrays[f"mask_{name}"][mask : mask + count]
                found[f"masked_lm_{name}"] = [*values, *[0] * (4 - count)]
            found["masked_lm_weights"] = [float(i < count) for i in range(4)]
            mask += count
        words = row.pop("token_boundary", [1] * 24)
        words = [*words[1 : second + 1], *words[second + 2 : length + 2]]
        # A segment begins with a word.
        assert starts == [x or i in (0, second) for i, x in enumerate(words)]
        assert found == row
        token += length
    assert token == len(arrays["token_ids"]) == manifest["counts"]["tokens"]
    assert len(rows) == len(arrays["labels"]) == manifest["counts"]["sequences"]


def test_an_interrupted_conversion_is_resumed(folder):
    rows = list(examples(90))
    write(folder / "a.tfrecord", rows[:50])
    write(folder / "b.tfrecord", rows[50:])
    whole = (folder / "b.tfrecord").read_bytes()
    # Cut off within a record, and between two, in its length.
    for content in (whole[:-1], whole[: len(whole) // 2 + 3]):
        (folder / "b.tfrecord").write_bytes(content)
        with pytest.raises(ValueError, match="b.tfrecord is damaged"):
            convert(folder)
    assert "shards" not in read_manifest(folder / "out")
    before = {x: x.stat().st_mtime_ns for x in (folder / "out").glob("pretrain-*/*")}
    (folder / "b.tfrecord").write_bytes(whole)
    assert convert(folder) == convert(folder, output="other") | {
        "files": [str(folder / x) for x in ("a.tfrecord", "b.tfrecord")]
    }
    assert before and all(x.stat().st_mtime_ns == y for x, y in before.items())
    sums = [
        {x.relative_to(y): x.read_bytes() for x in y.glob("pretrain-*/*")}
        for y in (folder / "out", folder / "other")
    ]
    assert sums[0] == sums[1]
    with pytest.raises(ValueError, match="other settings .order: 'sop', now 'nsp'"):
        convert(folder, order="nsp")


def test_files_that_do_not_fit_are_refused(folder):
    path = folder / "a.tfrecord"
    rows = list(examples(9))
    with pytest.raises(FileNotFoundError, match="There are no TFRecords in"):
        convert(folder)
    write(path, [{x: y for x, y in rows[0].items() if x != "input_mask"}])
    with pytest.raises(ValueError, match=r"a.tfrecord lack \['input_mask'\]"):
        convert(folder)
    write(path, rows)
    whole = path.read_bytes()
    for content in (whole[:99], b"text", b"\0" * 40):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="a.tfrecord cannot be read as TFRecords"):
            convert(folder)
    write(path, rows + list(examples(1, length=30)))
    with pytest.raises(ValueError, match="its records differ from those of the other"):
        convert(folder)
    for changes in ({"input_ids": [1] * 24}, {"input_mask": [0, 1] * 12}):
        write(path, [rows[1] | changes])
        with pytest.raises(ValueError, match=r"other sequences than \[CLS\] text .SEP"):
            convert(folder)
    write(path, [rows[1] | {"next_sentence_labels": [2]}])
    with pytest.raises(ValueError, match="label 2, but the order 'sop' has 2 classes"):
        convert(folder)
    with pytest.raises(ValueError, match="Unknown order 'mlm'"):
        convert(folder, order="mlm")
    manifest = convert(folder, order="none")
    assert "labels" not in read_shard(folder / "out" / manifest["shards"][0]["name"])


def test_the_command_finds_tfrecords_by_their_content(folder):
    write(folder / "part-0", examples(20))
    (folder / "part-1").write_text("文字很多，不是记录。")
    assert find_tfrecords(folder / "part-0") and not find_tfrecords(folder / "part-1")
    files = ("--vocab", folder / "vocab.txt", "--output", folder / "out")
    command = ("pretrain-data", "--input", folder / "part-*", *files)
    assert "part-0 has TFRecords and" in refused(*command)
    command = ("pretrain-data", "--input", folder / "part-0", *files)
    error = refused(*command, "--duplicates", 2, "--no-whole-word")
    assert "--duplicates, --whole-word: only for text" in error
    out = " ".join(run(*command, "--order", "nsp").stdout.split())
    assert "sequences 20" in out and "Shards of records in" in out
    assert read_manifest(folder / "out")["settings"]["order"] == "nsp"
