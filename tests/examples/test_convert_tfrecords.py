"""TFRecords of google-research/albert and albert_zh become records."""

import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf
from made_records import word_starts

from albert_tf.pretraining.records.records_directory import read_manifest
from albert_tf.pretraining.records.shard_files import read_shard

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "convert_tfrecords.py"
CLS, SEP, MASK, SIZE = 2, 3, 4, 90


def examples(count, seed=0, length=24, boundaries=True, masks=True):
    """Features as `create_pretraining_data.py` writes them, by their names there."""
    random = np.random.default_rng(seed)
    for number in range(count):
        first = int(random.integers(1, 9))
        ids = [CLS, *random.integers(5, SIZE, first), SEP]
        # Some have one segment.
        if number % 4 > 0:
            ids += [*random.integers(5, SIZE, random.integers(1, 9)), SEP]
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
def folder(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [chr(0x4E00 + i) for i in range(SIZE - 5)]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return tmp_path


@pytest.fixture
def convert(folder, monkeypatch):
    """Run the script with shards of eight sequences, and return the manifest."""
    code = SCRIPT.read_text("utf-8").replace("1_000_000", "200")

    def convert(*options, files="*.tfrecord", output="out"):
        paths = ("--vocab", folder / "vocab.txt", "--output", folder / output)
        given = (SCRIPT, "--input", folder / files, *paths, *options)
        monkeypatch.setattr(sys, "argv", [str(x) for x in given])
        exec(compile(code, str(SCRIPT), "exec"), {"__doc__": "Convert."})
        return read_manifest(folder / output)

    return convert


@pytest.mark.parametrize(
    ("boundaries", "masks"),
    [
        pytest.param(True, True, id="google"),
        pytest.param(False, True, id="albert_zh"),
        pytest.param(True, False, id="albert-tf 0.1.0"),
    ],
)
def test_converted_arrays_equal_the_features(folder, convert, boundaries, masks):
    rows = list(examples(90, boundaries=boundaries, masks=masks))
    write(folder / "a.tfrecord", rows[:50])
    write(folder / "b.tfrecord", rows[50:])
    manifest = convert()
    # Of 50 and of 40 sequences, eight per shard.
    assert len(manifest["shards"]) == 7 + 5
    assert manifest["settings"]["sequence_length"] == 24
    tokens = {"size": SIZE, "cls": CLS, "sep": SEP, "pad": 0, "mask": MASK}
    assert manifest["tokens"] == tokens
    assert (folder / "out" / "vocab.txt").exists()
    names = [x["name"] for x in manifest["shards"]]
    shards = [read_shard(folder / "out" / name) for name in names]
    shards = [{**x, "word_starts": word_starts(x)} for x in shards]
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
        used = [CLS, *ids[:second], SEP]
        if second < length:
            used += [*ids[second:], SEP]
        padding = [0] * (24 - len(used))
        features = {
            "input_ids": used + padding,
            "input_mask": [1] * len(used) + padding,
            "segment_ids": [int(second + 2 <= i < len(used)) for i in range(24)],
            "next_sentence_labels": [arrays["labels"][number]],
        }
        if masks:
            count = int(arrays["mask_counts"][number])
            for name in ("positions", "ids"):
                values = arrays[f"mask_{name}"][mask : mask + count]
                features[f"masked_lm_{name}"] = [*values] + [0] * (4 - count)
            features["masked_lm_weights"] = [float(i < count) for i in range(4)]
            mask += count
        words = row.pop("token_boundary", [1] * 24)
        words = [*words[1 : second + 1], *words[second + 2 : length + 2]]
        # A segment begins with a word.
        assert starts == [x or i in (0, second) for i, x in enumerate(words)]
        assert features == row
        token += length
    assert token == len(arrays["token_ids"]) == manifest["counts"]["tokens"]
    assert len(rows) == len(arrays["labels"]) == manifest["counts"]["sequences"]


def test_an_interrupted_conversion_is_resumed(folder, convert):
    rows = list(examples(90))
    write(folder / "a.tfrecord", rows[:50])
    write(folder / "b.tfrecord", rows[50:])
    whole = (folder / "b.tfrecord").read_bytes()
    # Cut off within a record, and between two, in its length.
    for content, message in (
        (whole[:-1], "b.tfrecord cannot be converted: .*truncated"),
        (whole[: len(whole) // 2 + 3], "b.tfrecord"),
    ):
        (folder / "b.tfrecord").write_bytes(content)
        with pytest.raises(SystemExit, match=message):
            convert()
    assert "shards" not in read_manifest(folder / "out")
    # The shards of the first file.
    complete = [*(folder / "out").glob("pretrain-0000[0-6]-*/*")]
    before = {x: x.stat().st_mtime_ns for x in complete}
    (folder / "b.tfrecord").write_bytes(whole)
    assert convert() == convert(output="other")
    assert before and all(x.stat().st_mtime_ns == y for x, y in before.items())
    with pytest.raises(ValueError, match="other settings .order: 'sop', now 'nsp'"):
        convert("--order", "nsp")


def test_files_that_do_not_fit_are_refused(folder, convert, capsys):
    path = folder / "a.tfrecord"
    rows = list(examples(9))
    with pytest.raises(SystemExit):
        convert()
    assert "no file with content matches" in capsys.readouterr().err
    write(path, [{x: y for x, y in rows[0].items() if x != "input_mask"}])
    with pytest.raises(SystemExit):
        convert()
    assert "a.tfrecord lacks ['input_mask']" in capsys.readouterr().err
    path.write_bytes(b"text" * 9)
    with pytest.raises(tf.errors.DataLossError, match="corrupted record at 0"):
        convert()
    write(path, rows + list(examples(1, length=30)))
    with pytest.raises(SystemExit, match="a.tfrecord cannot be converted: .*size: 30"):
        convert()
    for changes in ({"input_ids": [1] * 24}, {"input_mask": [0, 1] * 12}):
        write(path, [rows[1] | changes])
        with pytest.raises(SystemExit, match=r"other sequences than \[CLS\] text .SEP"):
            convert()
    write(path, [rows[1] | {"next_sentence_labels": [2]}])
    with pytest.raises(ValueError, match="`labels` has values from 2 to 2"):
        convert()
    manifest = convert("--order", "none", output="none")
    assert "labels" not in read_shard(folder / "none" / manifest["shards"][0]["name"])
