"""Records on disk: what a manifest says, what is damaged, labels with `##`."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from made_records import VOCABULARY, damage, masks_of, write, write_manifest

from albert_tf.pretraining import PretrainingRecords
from albert_tf.pretraining.records import (
    parse_records,
    record_lengths,
    unmask,
    write_records,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return write(tmp_path_factory.mktemp("made") / "records", documents=20, files=3)


@pytest.fixture
def folder(made, tmp_path):
    """Three files of records and a manifest."""
    return write_manifest(shutil.copytree(made, tmp_path / "records"))


def names(records):
    return [file.name for file in records.files]


# === The manifest ===


@pytest.mark.parametrize("text", ['{"shards": [', "[]", "{}", '{"shards": [{}]}', "3"])
def test_a_manifest_that_is_none(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match="manifest.json is cut short, or no manifest"):
        PretrainingRecords(folder)


def test_a_pattern_takes_a_part_of_the_manifest(folder):
    records = PretrainingRecords(folder / "[02]*")
    assert names(records) == ["0.tfrecord", "2.tfrecord"]
    # What is left out may be damaged.
    (folder / "1.tfrecord").unlink()
    assert names(PretrainingRecords(folder / "[02]*")) == names(records)
    with pytest.raises(FileNotFoundError, match="no records in .*x.*manifest.json"):
        PretrainingRecords(folder / "x*")


def test_the_manifest_names_the_vocabulary(folder):
    (folder / "notes.txt").write_text("not a vocabulary\n")
    assert PretrainingRecords(folder).vocabulary_size == VOCABULARY
    (folder / "manifest.json").unlink()
    assert PretrainingRecords(folder).tokenizer is None


def test_a_damaged_file_is_named(folder):
    records = PretrainingRecords(folder)
    seen = []
    records.verify(lambda done, total: seen.append((done, total)))
    size = sum(file.stat().st_size for file in records.files)
    assert seen[-1] == (size, size)
    damage(folder / "1.tfrecord")
    with pytest.raises(ValueError, match="1.tfrecord is damaged: its checksum"):
        PretrainingRecords(folder).verify()
    (folder / "manifest.json").unlink()
    PretrainingRecords(folder).verify()
    with pytest.raises(ValueError, match="1.tfrecord is damaged.*corrupted record"):
        PretrainingRecords(folder).read_through()
    damage(folder / "0.tfrecord")
    with pytest.raises(ValueError, match=r"0.tfrecord is damaged \(corrupted"):
        PretrainingRecords(folder).read_through()


@pytest.mark.parametrize("with_manifest", [True, False])
def test_contents_tell_records_apart(folder, made, with_manifest):
    if not with_manifest:
        (folder / "manifest.json").unlink()
    contents = PretrainingRecords(folder).contents
    moved = shutil.move(folder, folder.with_name("moved"))
    assert PretrainingRecords(moved).contents == contents
    shutil.rmtree(moved)
    write(folder, documents=20, files=2)
    assert PretrainingRecords(folder).contents != contents


# === Counting ===


@pytest.fixture(params=[True, False], ids=["manifest", "none"])
def with_an_empty_file(folder, request):
    with tf.io.TFRecordWriter(str(folder / "1.tfrecord")):
        pass
    (folder / "manifest.json").unlink()
    return write_manifest(folder) if request.param else folder


def test_a_file_without_records_is_left_out(with_an_empty_file):
    records = PretrainingRecords(with_an_empty_file)
    assert names(records) == ["0.tfrecord", "2.tfrecord"]
    for shard in range(2):
        dataset = records.dataset(4, num_shards=2, shard=shard)
        assert len(next(iter(dataset))[0]["token_ids"]) == 4
    with pytest.raises(ValueError, match="has 2 files of records, too few"):
        records.dataset(4, num_shards=3)


def test_the_length_of_a_dataset_is_known(with_an_empty_file):
    records = PretrainingRecords(with_an_empty_file)
    whole = [
        sum(1 for _ in tf.data.TFRecordDataset(str(file))) for file in records.files
    ]
    assert list(records.counts.values()) == whole
    dataset = records.dataset(7, training=False)
    assert dataset.cardinality() == len(list(dataset)) == -(-sum(whole) // 7)
    part = records.dataset(7, training=False, skip=2, num_shards=2, shard=1)
    assert part.cardinality() == len(list(part)) == -(-whole[1] // 7) - 2


@pytest.mark.parametrize("seed", [-1, 2**31])
def test_seeds(folder, seed):
    records = PretrainingRecords(folder)
    with pytest.raises(ValueError, match="`seed` should be from 0 to 2,147,483,647"):
        records.dataset(4, seed=seed)
    next(iter(records.dataset(4, seed=2**31 - 1)))


# === Labels with ## ===


@pytest.fixture
def marked(folder):
    """As albert_zh's generator writes: `##` before what does not begin a word."""
    (folder / "manifest.json").unlink()
    tokens = (folder / "vocab.txt").read_text().split("\n")[:-1]
    # The endings of words have each a token for labels.
    endings = tokens[25:45]
    text = "\n".join([*tokens, *(f"##{token}" for token in endings)])
    (folder / "vocab.txt").write_text(text + "\n")
    plain = []
    for file in sorted(folder.glob("*.tfrecord")):
        lengths = record_lengths(file)
        records = tf.data.TFRecordDataset(str(file)).batch(10**6)
        arrays = {
            x: y.numpy() for x, y in parse_records(next(iter(records)), lengths).items()
        }
        plain.append(unmask(arrays))
        labels = arrays["mask_ids"]
        is_ending = (labels >= 25) & (labels < 45)
        arrays["mask_ids"] = np.where(is_ending, labels - 25 + VOCABULARY, labels)
        write_records(file, arrays)
    return folder, np.concatenate(plain)


def unmasked(records, masks):
    parts = []
    for x, y, weights in records.dataset(16, masks, training=False):
        ids = x["token_ids"].numpy().copy()
        rows, slots = np.nonzero(weights["mlm_logits"])
        at = x["mask_positions"].numpy()[rows, slots]
        ids[rows, at] = y["mlm_logits"].numpy()[rows, slots]
        parts.append(ids)
    return sorted(map(bytes, np.concatenate(parts)))


def test_labels_with_the_mark_are_put_back_without(marked):
    folder, plain = marked
    records = PretrainingRecords(folder)
    masks = masks_of(records)
    assert masks.inner_label_ids is not None
    # Each token by itself, so that all labels are plain.
    lengths = {x: y for x, y in records.lengths.items() if x != "token_boundary"}
    records.lengths = lengths
    assert unmasked(records, masks) == sorted(map(bytes, plain))
    with pytest.warns(UserWarning, match="where words begin: single tokens"):
        wrong = records.masks(ngram=1, marked_labels=False)
    assert unmasked(records, wrong) != sorted(map(bytes, plain))


def test_plain_labels_are_found_to_be_so(folder):
    text = (folder / "vocab.txt").read_text()
    tokens = text.split("\n")[5:-1]
    (folder / "vocab.txt").write_text(text + "".join(f"##{x}\n" for x in tokens))
    (folder / "manifest.json").unlink()
    assert masks_of(PretrainingRecords(folder)).inner_label_ids is None
    write_manifest(folder, marked_labels=True)
    assert masks_of(PretrainingRecords(folder)).inner_label_ids is not None
