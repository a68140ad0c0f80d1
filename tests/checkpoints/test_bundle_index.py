"""Indexes of TensorFlow checkpoints: names, types, shapes and checksums."""

import json
import pathlib

import tensorflow as tf
from checkpoint_files import GOLDEN, NAMES

from albert_tf.checkpoints.formats.bundle_index import masked_crc32c, read_index

INDEX, DATA = "model.ckpt-best.index", "model.ckpt-best.data-00000-of-00001"


def test_golden_indexes_agree_with_tensorflow():
    for name in NAMES:
        prefix = GOLDEN / name / "model.ckpt-best"
        entries = read_index(prefix)
        reader = tf.train.load_checkpoint(str(prefix))
        shapes = reader.get_variable_to_shape_map()
        assert {name: list(x.shape) for name, x in entries.items()} == shapes
        dtypes = reader.get_variable_to_dtype_map()
        assert all(x.dtype == dtypes[name].name for name, x in entries.items())


def test_checksums_are_those_of_the_data():
    for name in NAMES:
        data = (GOLDEN / name / DATA).read_bytes()
        for entry in read_index(GOLDEN / name / "model.ckpt-best").values():
            content = data[entry.offset : entry.offset + entry.size]
            assert masked_crc32c(content) == entry.crc32c


def test_released_indexes(assets, tmp_path):
    """They hold optimizer slots and are compressed with Snappy."""
    paths = sorted((assets / "released").glob("*/*.index"))
    assert len(paths) == 7
    for number, path in enumerate(paths):
        facts = json.loads(pathlib.Path(f"{path}.json").read_text())
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / INDEX).write_bytes(path.read_bytes())
        with (folder / DATA).open("wb") as file:
            file.truncate(facts["data_file_bytes"])
        entries = read_index(folder / "model.ckpt-best")
        assert list(entries) == sorted(facts["tensors"])
        for name, entry in entries.items():
            expected = facts["tensors"][name]
            dtype = tf.dtypes.as_dtype(expected["dtype"]).name
            assert (entry.dtype, list(entry.shape)) == (dtype, expected["shape"])
            assert entry.crc32c == expected["crc32c"]
