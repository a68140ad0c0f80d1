"""Batches of records: their sequences, segments, order, padding and masks."""

import dataclasses

import keras
import numpy as np
import pytest
from made_records import CLS, LENGTH, PAD, SEP, model, write
from scipy.special import log_softmax

from albert_tf.pretraining import PretrainingRecords
from albert_tf.pretraining.records.segment_pairs import ORDERS
from albert_tf.pretraining.training.batch_plan import BatchPlan
from albert_tf.pretraining.training.pretraining_batches import PretrainingBatches
from albert_tf.pretraining.training.pretraining_model import PretrainingModel
from albert_tf.pretraining.training.run import WIDTHS, BatchSettings
from albert_tf.pretraining.training.sequences import draw


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Records by order, and masked ones."""
    base = tmp_path_factory.mktemp("made")
    folders = {x: write(base / x, 60, 3, order=x) for x in ORDERS}
    folders["masked"] = write(base / "masked", 60, 3, masked=True)
    made = {name: PretrainingRecords(folder) for name, folder in folders.items()}
    # Made for sentence order.
    return made | {"nsp": PretrainingRecords(folders["sop"], order="nsp")}


def sequence(records, row):
    """The two segments of a sequence, as lists of tokens, and its document."""
    shard, start = records.shard[row], records.starts[row]
    middle, end = (start + x[row] for x in (records.second_starts, records.lengths))
    ids = records.shards[shard]["token_ids"].tolist()
    return ids[start:middle], ids[middle:end], (shard, records.documents[row])


@pytest.mark.parametrize("order", ORDERS)
def test_segments_follow_the_label(made, order):
    records = made[order]
    rows = np.arange(len(records))
    batch = draw(records, rows, LENGTH, np.random.default_rng(1))
    parts = [sequence(records, row) for row in rows]
    kinds = ORDERS[order] or ("next",)
    counts = np.bincount(batch["labels"], minlength=len(kinds))
    # Within five standard deviations.
    assert np.abs(counts - len(rows) / len(kinds)).max() < 2.5 * len(rows) ** 0.5
    for row in rows:
        first, second, document = parts[row]
        ids, end = batch["token_ids"][row].tolist(), batch["lengths"][row]
        middle = batch["second_starts"][row]
        assert ids[0] == CLS and ids[middle - 1] == ids[end - 1] == SEP
        assert set(ids[end:]) <= {PAD}
        segments = ids[1 : middle - 1], ids[middle : end - 1]
        kind = kinds[batch["labels"][row]]
        assert batch["has_order"][row] == bool(second)
        if kind == "other":
            assert segments[0] == first
            # Cut if the segment is longer than the true one.
            begins = [x[1][: len(segments[1])] for x in parts if x[2] != document]
            assert segments[1] in begins
        else:
            assert segments == ((first, second) if kind == "next" else (second, first))
        starts = batch["word_starts"][row]
        assert starts.sum() == end - 2 - bool(second) and not starts[0]


@pytest.mark.parametrize(
    ("name", "order", "message"),
    [
        ("none", "sop", "have one segment .order none. .* read with order sop. Make"),
        ("masked", "nsp", "hold labels .order sop. and cannot be read with order nsp"),
        ("sop", "SOP", "Unknown order 'SOP'. Known: .'sop', 'nsp'"),
    ],
)
def test_an_order_that_cannot_be_drawn_is_refused(made, name, order, message):
    with pytest.raises(ValueError, match=message):
        PretrainingRecords(made[name].folder, order)


def test_words_follow_their_tokens(made):
    records = PretrainingRecords(made["sop"].folder)
    random = np.random.default_rng(3)
    # Bits that differ from token to token.
    bits = [random.integers(0, 256, len(x["word_starts"])) for x in records.shards]
    bits = [array.astype("uint8") for array in bits]
    for shard, array in zip(records.shards, bits, strict=True):
        shard["word_starts"] = array
    batch = draw(records, np.arange(40), LENGTH, np.random.default_rng(1))
    for row in range(40):
        starts = np.unpackbits(bits[records.shard[row]])
        first = records.starts[row] + np.arange(records.lengths[row])
        halves = np.split(starts[first], [records.second_starts[row]])
        found = batch["word_starts"][row].astype(int).tolist()
        middle, end = batch["second_starts"][row], batch["lengths"][row]
        expected = halves if batch["labels"][row] == 0 else halves[::-1]
        assert found[1 : middle - 1] == expected[0].tolist()
        assert found[middle : end - 1] == expected[1].tolist()


def test_an_epoch_has_each_sequence_once_in_random_order():
    random = np.random.default_rng(0)
    lengths = random.integers(5, 200, 20_000)
    settings = BatchSettings(batch_tokens=2048, steps_per_call=2, seed=1)
    plan = BatchPlan(lengths, 200, settings)
    epochs = [
        [plan[x + y * plan.calls_per_epoch] for x in range(plan.calls_per_epoch)]
        for y in range(2)
    ]
    for calls in epochs:
        positions = np.concatenate([x.ravel() for _, x in calls])
        # The rest that fills no call is left out.
        assert len(set(positions)) == len(positions) > 0.98 * len(lengths)
        padding = sum(x.size * width for width, x in calls) / lengths[positions].sum()
        assert padding < 1.35
        for width, x in calls:
            assert x.shape == (2, 2048 // width) and width in (*WIDTHS, 200)
            assert lengths[x].max() <= width
        # Batches of TensorFlow end with the longest sequence.
        trimmed = sum(lengths[x].max(-1).sum() * x.shape[1] for _, x in calls)
        assert trimmed < 1.12 * lengths[positions].sum()
    assert not np.array_equal(epochs[0][0][1], epochs[1][0][1])
    one_width = dataclasses.replace(settings, padded_lengths=())
    assert {x for x, _ in BatchPlan(lengths, 200, one_width).epoch(0)} == {200}
    again = BatchPlan(lengths, 200, settings)
    assert np.array_equal(again[7].rows, plan[7].rows)
    other = BatchPlan(lengths, 200, dataclasses.replace(settings, seed=2))
    assert not np.array_equal(other[0].rows, plan[0].rows)
    with pytest.raises(ValueError, match="10 sequences are too few"):
        BatchPlan(lengths[:10], 200, settings)


def items(batches, numbers):
    return [batches[number] for number in numbers]


def equal(first, second):
    return all(np.array_equal(first[name], second[name]) for name in first)


def test_batches_depend_on_seed_and_number_alone(made):
    first, again, other = (
        PretrainingBatches(
            made["sop"], BatchSettings(batch_tokens=256, seed=seed), steps=8
        )
        for seed in (1, 1, 2)
    )
    for number in (0, 5, len(first) + 1):
        assert equal(first[number], again[number])
        assert not equal(first[number], other[number])
    assert (first[5]["seed"] == [1, 5]).all() and (first[4]["progress"] == 0.5).all()
    # Several processes share the sequences of each batch.
    halves = []
    for host in (0, 1):
        shared = BatchSettings(batch_tokens=512, seed=1, hosts=2, host=host)
        batches = PretrainingBatches(made["sop"], shared)
        halves.append(len(batches[3]["lengths"]))
    assert halves == 2 * [batches.plan[3].rows.shape[1] // 2]


def test_each_sequence_is_evaluated_once_with_the_same_masks(made):
    records = made["sop"]
    # Also fewer than one batch of a training.
    assert len(PretrainingBatches(records, BatchSettings(), training=False)) == 1
    settings = BatchSettings(batch_tokens=256)
    batches = PretrainingBatches(records, settings, training=False)
    read = items(batches, range(len(batches)))
    assert all(map(equal, read, items(batches, range(len(batches)))))
    assert sum(x["weights"].sum() for x in read) == len(records)
    tokens = sum((x["lengths"] * x["weights"]).sum() for x in read)
    assert tokens == (records.lengths + 2).sum() + sum(
        (x["has_order"] * x["weights"]).sum() for x in read
    )


# === In the model ===


def batch_of(records, size=150):
    batches = PretrainingBatches(records, BatchSettings(batch_tokens=size * LENGTH))
    return {name: values[:, 0] for name, values in batches[0].items()}


def test_losses_are_those_of_the_masked_tokens_and_the_order(made):
    pretrainer = model(layers=1)
    masks = made["sop"].masks(mask_selection_rate=0.3)
    step = PretrainingModel(keras.Model(pretrainer.input, pretrainer.output), masks)
    batch = batch_of(made["sop"], 17)
    batch["weights"][2] = 0
    features, masked = step.masked(batch)
    metrics = {x: float(y) for x, y in step(batch).items()}
    outputs = {x: np.asarray(y, "float64") for x, y in pretrainer(features).items()}
    weights = np.asarray(masked["mask_weights"]) * batch["weights"][:, None]
    logs = log_softmax(outputs["mlm_logits"], axis=-1)
    ids = np.asarray(masked["mask_ids"])
    own = np.take_along_axis(logs, ids[..., None], -1)[..., 0]
    assert metrics["mlm_logits_loss"] == pytest.approx(
        -(own * weights).sum() / weights.sum(), abs=1e-5
    )
    assert metrics["mlm_logits_count"] == weights.sum() > 20
    is_right = logs.argmax(-1) == ids
    assert metrics["mlm_logits_accuracy"] == pytest.approx(is_right[weights > 0].mean())
    logs = log_softmax(outputs["sop_logits"], axis=-1)
    own = logs[np.arange(len(logs)), batch["labels"]]
    counts = batch["weights"] * batch["has_order"]
    assert metrics["sop_logits_loss"] == pytest.approx(
        -(own * counts).sum() / counts.sum(), abs=1e-5
    )
    assert float(step.compute_loss(y_pred=step(batch))) == pytest.approx(
        metrics["mlm_logits_loss"] + metrics["sop_logits_loss"]
    )


def test_the_masked_share_falls_with_the_progress(made):
    masks = made["none"].masks(mask_selection_rate=(0.5, 0.1), ngram=1)
    step = PretrainingModel(model(0, layers=1), masks)
    batch = batch_of(made["none"])
    for progress in (0.0, 0.5, 1.0):
        batch["progress"][:] = progress
        _, masked = step.masked(batch)
        share = np.sum(masked["mask_weights"]) / (batch["lengths"] - 2).sum()
        assert share == pytest.approx(0.5 - 0.4 * progress, abs=0.02)


def test_masks_of_records_are_kept(made):
    records = made["masked"]
    features, masked = PretrainingModel(model(), None).masked(
        batch := batch_of(records)
    )
    ids = np.asarray(features["token_ids"]).astype(int)
    assert np.array_equal(ids, batch["token_ids"])
    row, slot = np.nonzero(masked["mask_weights"])
    ids[row, np.asarray(features["mask_positions"])[row, slot]] = np.asarray(
        masked["mask_ids"]
    )[row, slot]
    plain = PretrainingRecords(write(records.folder.parent / "plain", 60, 3))
    plain_rows = {bytes(sum(sequence(plain, x)[:2], [])) for x in range(len(plain))}
    for row in range(len(ids)):
        tokens = ids[row][~np.isin(ids[row], [CLS, SEP, PAD])]
        assert bytes(tokens.tolist()) in plain_rows
