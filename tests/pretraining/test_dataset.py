"""Records on disk: their manifest, damage, masks and batches."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from made_records import write

from albert_tf.pretraining import PretrainingRecords
from albert_tf.pretraining.records import write_records


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three files of records without a manifest, unmasked and masked."""
    base = tmp_path_factory.mktemp("made")
    return {
        masked: write(base / str(masked), documents=60, files=3, masked=masked)
        for masked in (False, True)
    }


# === Batches ===


def batches(records, count, **kwargs):
    return list(records.dataset(16, **kwargs).take(count))


def equal(first, second):
    pairs = zip(*map(tf.nest.flatten, (first, second)), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def texts(batches):
    """Sequences of batches with the masks replaced by their labels, as bytes."""
    rows = []
    for x, y, weights in batches:
        ids = x["token_ids"].numpy().copy()
        row, slot = np.nonzero(weights["mlm_logits"])
        positions = x["mask_positions"].numpy()[row, slot]
        ids[row, positions] = y["mlm_logits"].numpy()[row, slot]
        rows.extend(map(bytes, ids))
    return rows


def test_batches_depend_on_the_seed_and_can_be_skipped_to(made):
    records = PretrainingRecords(made[False])
    drawn = []
    for seed in (1, 2):
        # The global seed changes nothing.
        tf.random.set_seed(seed)
        drawn.append(batches(records, 5, seed=3))
    assert all(map(equal, *drawn))
    assert all(map(equal, drawn[0][3:], batches(records, 2, seed=3, skip=3)))
    assert not equal(drawn[0][0], batches(records, 1, seed=4)[0])


def test_masks_change_with_the_epoch_and_the_text_does_not(made):
    records = PretrainingRecords(made[False])
    whole = sum(records.counts.values())
    two = list(records.dataset(whole, seed=1).take(2))
    assert sorted(texts(two[:1])) == sorted(texts(two[1:]))
    masked = [sorted(map(bytes, x["token_ids"].numpy())) for x, _, _ in two]
    assert masked[0] != masked[1]


def test_batches_have_similar_lengths_and_little_padding(tmp_path):
    """Records of 1 to 40 tokens of text, some with a second segment."""
    random = np.random.default_rng(0)
    lengths = random.integers(3, 43, size=1000)
    position = np.arange(43)
    text = position < lengths[:, None]
    has_two = random.random(1000) < 0.5
    write_records(
        tmp_path / "0.tfrecord",
        {
            "token_ids": np.where(text, 5 + position, 0).astype("int32"),
            "padding_mask": text.astype("int32"),
            "segment_ids": (text & (position > 1) & has_two[:, None]).astype("int32"),
            "word_starts": text,
            "labels": has_two.astype("int32"),
        },
    )
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [chr(0x4E00 + i) for i in range(43)]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    window = list(PretrainingRecords(tmp_path).dataset(20, seed=1).take(32))
    masks = [x["padding_mask"].numpy() for x, _, _ in window]
    for mask in masks:
        assert mask.shape[1] == min(-(-mask.sum(1).max() // 4) * 4, 43)
    # Nearly half of the full sequences was padding.
    assert sum(mask.sum() for mask in masks) > 0.85 * sum(mask.size for mask in masks)
    for x, y, weights in window:
        assert x["mask_positions"].shape[1] == y["mlm_logits"].shape[1] == 8
        # One segment has no order.
        assert np.array_equal(weights["sop_logits"], y["sop_logits"])


def test_the_masked_share_falls_over_the_steps(made):
    records = PretrainingRecords(made[False])
    masks = records.masks(mask_selection_rate=(0.5, 0.1), ngram=1)
    steps, size = 6, 100

    def shares(**kwargs):
        return [
            np.count_nonzero(weights["mlm_logits"])
            / (x["padding_mask"].numpy().sum() - 3 * size)
            for x, _, weights in records.dataset(size, masks, **kwargs).take(steps)
        ]

    whole = shares(steps=steps)
    expected = [0.5 - 0.4 * step / steps for step in range(steps)]
    assert np.allclose(whole, expected, atol=0.02)
    # A resumed training continues the schedule.
    assert shares(steps=steps, skip=4)[:2] == whole[4:]
    assert np.allclose(shares(training=False)[:2], 0.1, atol=0.02)


def test_masks_of_the_records_are_kept_or_drawn(made):
    plain, masked = (PretrainingRecords(made[x]) for x in (False, True))
    kept, drawn, again = (
        list(masked.dataset(16, masks, training=False))
        for masks in (None, masked.masks(), masked.masks())
    )
    assert not equal(kept[0], drawn[0])
    # For dev, each record comes once with the same masks.
    assert all(map(equal, drawn, again))
    assert texts(kept) == texts(drawn) == texts(plain.dataset(16, training=False))


def test_incomplete_records_are_refused(made, tmp_path):
    with pytest.raises(FileNotFoundError, match="no records in"):
        PretrainingRecords(tmp_path)
    shutil.copytree(made[False], tmp_path, dirs_exist_ok=True)
    (tmp_path / "empty.tfrecord").touch()
    file = tmp_path / "1.tfrecord"
    records = PretrainingRecords(tmp_path)
    assert len(records.counts) == 3 and len(records.tokenizer.get_vocabulary()) > 5
    with pytest.raises(ValueError, match="3 files of records, too few.* among 4"):
        records.dataset(4, num_shards=4)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match="1.tfrecord is damaged"):
        PretrainingRecords(tmp_path)
    header = {"files": [], "settings": {}, "vocabulary": "vocab.txt"}
    (tmp_path / "manifest.json").write_text(json.dumps(header))
    with pytest.raises(ValueError, match="only a part of its records"):
        PretrainingRecords(tmp_path)
    (tmp_path / "old").mkdir()
    # Records of the original code lack words, and perhaps a vocabulary.
    examples = {"token_ids": np.ones((1, 8)), "padding_mask": np.ones((1, 8))}
    examples |= {"segment_ids": np.zeros((1, 8)), "labels": np.zeros(1)}
    write_records(tmp_path / "old" / "a.tfrecord", examples)
    with pytest.raises(ValueError, match="Masking needs a vocabulary in"):
        PretrainingRecords(tmp_path / "old").dataset(1)
    shutil.copy(tmp_path / "vocab.txt", tmp_path / "old")
    with pytest.warns(UserWarning, match="do not contain where words begin"):
        PretrainingRecords(tmp_path / "old").masks()


def test_processes_read_other_files(made):
    records = PretrainingRecords(made[False])
    # Three files for two processes.
    first, second = (
        texts(records.dataset(64, training=False, num_shards=2, shard=shard))
        for shard in range(2)
    )
    assert len(first) + len(second) == sum(records.counts.values())
    # A few sequences are short, and equal by chance.
    assert len({*first} & {*second}) < 3
    # Processes that train together need batches of one shape.
    (x, _, _), *_ = records.dataset(2, num_shards=3).take(1)
    assert x["token_ids"].shape == (2, records.sequence_length)
