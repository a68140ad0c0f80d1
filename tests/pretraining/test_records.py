"""TFRecords with the original feature names, written and read."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.pretraining.records import parse_records, record_lengths, write_records

# As `create_pretraining_data.py` of google-research/bert names them.
ORIGINAL = {
    "input_ids": "int64_list",
    "input_mask": "int64_list",
    "segment_ids": "int64_list",
    "masked_lm_positions": "int64_list",
    "masked_lm_ids": "int64_list",
    "masked_lm_weights": "float_list",
    "next_sentence_labels": "int64_list",
}


def arrays(rows=3, time=17):
    random = np.random.default_rng(0)
    return {
        "token_ids": random.integers(5, 90, (rows, time)),
        "padding_mask": np.ones((rows, time), int),
        "segment_ids": random.integers(0, 2, (rows, time)),
        "word_starts": random.random((rows, time)) < 0.5,
        "labels": np.array([0, 1, 1]),
        "mask_positions": np.array([[1, 4, 9, 16], [2, 3, 0, 0], [5, 0, 0, 0]]),
        "mask_ids": random.integers(5, 90, (rows, 4)),
        "mask_weights": np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0.0]]),
    }


def test_records_have_the_original_names_and_round_trip(tmp_path):
    path = tmp_path / "a.tfrecord"
    written = arrays()
    write_records(path, written)
    kinds = {**ORIGINAL, "token_boundary": "int64_list"}
    records = tf.data.TFRecordDataset(str(path))
    for record in records:
        features = tf.train.Example.FromString(record.numpy()).features.feature
        assert {x: y.WhichOneof("kind") for x, y in features.items()} == kinds
    lengths = record_lengths(path)
    assert lengths["token_ids"] == 17 and lengths.keys() == written.keys()
    read = parse_records(next(iter(records.batch(3))), lengths)
    assert read.keys() == written.keys()
    for name, values in written.items():
        assert np.array_equal(read[name], values), name
        assert read[name].dtype == ("float32" if "weights" in name else "int32")


def test_records_of_the_original_are_read_and_damage_is_named(tmp_path):
    path = tmp_path / "a.tfrecord"
    original = {x: y for x, y in arrays().items() if x != "word_starts"}
    write_records(path, original)
    records = list(tf.data.TFRecordDataset(str(path)))
    read = parse_records(records, record_lengths(path))
    assert read.keys() == original.keys()
    assert np.array_equal(read["mask_ids"], original["mask_ids"])
    del original["padding_mask"]
    write_records(path, original)
    with pytest.raises(ValueError, match=r"a.tfrecord lack \['input_mask'\]"):
        record_lengths(path)
    for content in (path.read_bytes()[:99], b"text", b"\0" * 40):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="a.tfrecord cannot be read as TFRecords"):
            record_lengths(path)
