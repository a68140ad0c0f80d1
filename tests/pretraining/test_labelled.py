"""The stage on labelled texts: records, losses, learning, resuming and refusals."""

import json
import signal
import sys

import keras
import numpy as np
import pytest
from albert_tf.pretraining.labelled_records import LabelledBatches
from albert_tf.pretraining.step import attraction
from made_records import LENGTH, VOCABULARY, write
from processes import run_python
from scipy.special import log_softmax

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints import open_checkpoint, save_checkpoint
from albert_tf.models.task_of_checkpoint import build_model
from albert_tf.pretraining import (
    LabelledRecords,
    LabelledSet,
    PretrainingRecords,
    build_heads,
    build_network,
    make_labelled_data,
    pretrain_labelled,
    read_heads,
)
from albert_tf.pretraining.labelled import LabelledModel, write_heads
from albert_tf.pretraining.training.network import backbone_of, features_of
from albert_tf.training.optimizers import scheduled_optimizer

CHARACTERS = [chr(0x4E00 + i) for i in range(VOCABULARY - 5)]
TOPICS = ["体育", "财经", "科技"]
CLASSES, TAGS = "text-classification", "token-classification"


def made_sets():
    """Sets of texts of characters of one half or the other, on which labels depend."""
    draw, count = np.random.default_rng(0), 60
    halves = [i % 3 > 0 for i in range(count)]
    texts = [
        "".join(draw.choice(CHARACTERS[:20] if half else CHARACTERS[20:], size))
        for half, size in zip(halves, draw.integers(3, 13, count), strict=True)
    ]
    a, b = ([TOPICS[i + half] for half in halves] for i in (0, 1))
    people = [[(0, 2, "PER")] if half else [] for half in halves]
    places = [[(1, 3, "LOC" if half else "PER")] for half in halves]
    pairs, answers = (texts[1:] + texts[:1], texts), [[(1, x[1:3])] for x in texts]
    return [
        LabelledSet(
            *(
                "shops",
                "sentiment",
                CLASSES,
                texts,
                ["差评好评"[2 * x :][:2] for x in halves],
            ),
            balanced=True,
        ),
        LabelledSet("a", "topics", CLASSES, texts[:30], a[:30], TOPICS[:2]),
        LabelledSet("b", "topics", CLASSES, texts[:40], b[:40], TOPICS[1:]),
        LabelledSet("alike", "similarity", "regression", pairs, np.arange(60) / 10),
        LabelledSet("people", "entities", TAGS, texts, people, ["PER"]),
        LabelledSet("places", "entities", TAGS, texts, places),
        LabelledSet("questions", "answers", "question-answering", pairs, answers),
    ]


def write_data(folder, *names, masked=False):
    write(folder / "records", 60, 1, masked=masked)
    sets = made_sets()
    return make_labelled_data(
        [x for x in sets if not names or x.name in names],
        folder / "labelled",
        folder / "records" / "vocab.txt",
        LENGTH,
        pairs=sets[3].x,
    )


def opened(folder):
    return LabelledRecords(folder / "labelled"), PretrainingRecords(folder / "records")


def network():
    keras.utils.set_random_seed(1)
    sizes = {"num_layers": 2, "num_heads": 4, "embedding_dim": 32}
    sizes |= {"hidden_dim": 48, "intermediate_dim": 96, "max_sequence_length": LENGTH}
    return build_network(AlbertBackbone(VOCABULARY, **sizes, normalize_first=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    write_data(folder, masked=True)
    return folder


# === Records and batches ===


def test_records_hold_texts_and_labels(folder):
    records, _ = opened(folder)
    assert records.heads["entities"]["tags"] == [
        "O",
        "B-PER",
        "I-PER",
        "B-LOC",
        "I-LOC",
    ]
    assert records.heads["topics"]["labels"] == TOPICS
    rows = {
        x["set"]: np.flatnonzero(records.set == i)[1]
        for i, x in enumerate(records.sets)
    }
    shops = made_sets()[0]
    texts, targets = records.texts, records.targets
    start, length = texts["starts"][rows["shops"]], texts["lengths"][rows["shops"]]
    ids = texts["token_ids"][start + 1 : start + length - 1]
    assert "".join(CHARACTERS[i - 5] for i in ids) == shops.x[1]
    # 好评 and 差评, then three topics.
    assert [targets["classes"][rows[x]] for x in ("shops", "a", "b", "alike")] == [
        0,
        3,
        4,
        -1,
    ]
    assert targets["scores"][rows["alike"]] == np.float32(0.1)
    start = texts["starts"][rows["places"]]
    assert targets["tags"][start : start + 5].tolist()[:4] == [-1, 0, 3, 4]
    first, last = targets["spans"][rows["questions"]]
    middle = texts["second_starts"][rows["questions"]]
    assert (first, last) == (middle + 1, middle + 2)
    # 好评 twice as frequent, a set as often as the root of its size.
    own = records.weights[records.set == 0]
    good = records.targets["classes"][records.set == 0] == 0
    assert own[good].sum() == pytest.approx(own[~good].sum())
    shares = np.bincount(records.set, records.weights) / len(records)
    roots = np.sqrt([40, 30, 40, 60, 60, 60, 60])
    assert shares == pytest.approx(roots / roots.sum())


def test_each_batch_has_labelled_texts_text_and_pairs(folder):
    labelled, records = opened(folder)
    batches = LabelledBatches(labelled, records, 32 * LENGTH, steps_per_call=2)
    item = batches[0]
    counts = [item[x]["token_ids"].shape[:2] for x in ("labelled", "text", "pairs")]
    assert counts == [(32, 2), (8, 2), (4, 2)]
    for x, y in zip(*map(keras.tree.flatten, (item, batches[0])), strict=True):
        np.testing.assert_array_equal(x, y)
    lengths = {len(batches.plan.epoch(i)) for i in range(20)}
    assert len(lengths) == 1
    # The second of a pair follows the first in the records.
    pairs = labelled.pairs
    texts = [
        tuple(pairs["token_ids"][start : start + length])
        for start, length in zip(pairs["starts"], pairs["lengths"], strict=True)
    ]
    known = set(zip(texts[::2], texts[1::2], strict=True))
    for ids, lengths in zip(
        *(item["pairs"][x].swapaxes(0, 1) for x in ("token_ids", "lengths")),
        strict=True,
    ):
        a, b, c, d = (tuple(x[:n]) for x, n in zip(ids, lengths, strict=True))
        assert {(a, c), (b, d)} <= known


# === Losses ===


def hand_batch(labelled, rows):
    """Three labelled texts, two of text and two pairs, of 17 tokens at most."""
    draw = np.random.default_rng(3)

    def features(lengths):
        shape = len(lengths), 17
        return {
            "token_ids": draw.integers(5, VOCABULARY, shape).astype("int32"),
            "lengths": np.array(lengths, "int32"),
            "second_starts": np.array(lengths, "int32") // 2,
        }

    names = [x["set"] for x in labelled.sets]
    y = {"sets": np.array([names.index(x) for x in rows], "int32")}
    y["classes"] = np.array([{"a": 3, "shops": 1}.get(x, -1) for x in rows], "int32")
    y["scores"] = np.array([2.5 if x == "alike" else np.nan for x in rows], "float32")
    y["spans"] = np.array(
        [[4, 6] if x == "questions" else [-1, -1] for x in rows], "int32"
    )
    y["tags"] = np.full((3, 17), -1, "int32")
    if "people" in rows:
        y["tags"][rows.index("people"), 1:8] = [0, 1, 2, 0, 0, -1, 1]
    text = features([17, 8])
    text |= {"mask_positions": np.array([[1, 16], [5, 0]], "int32")}
    text |= {"mask_ids": np.array([[9, 30], [7, 0]], "int32")}
    text |= {"mask_weights": np.array([[1.0, 1], [1, 0]], "float32")}
    text |= {"labels": np.array([1, 0], "int32"), "weights": np.ones(2, "float32")}
    text |= {"has_order": np.array([1.0, 0], "float32")}
    lengths = [17, 9, 12]
    return {
        "labelled": features(lengths) | y,
        "text": text,
        "pairs": features([17, 5, 9, 6]),
    }


def numpy_losses(model, labelled, batch):
    """The losses of one text, token or pair after the other."""
    encoded = []
    for part in batch.values():
        place = np.arange(17)
        is_token = place < part["lengths"][:, None]
        x = {"token_ids": part["token_ids"], "padding_mask": is_token.astype("int32")}
        is_second = is_token & (place >= part["second_starts"][:, None])
        x["segment_ids"] = is_second.astype("int32")
        found = model.network.layers[3](x)
        encoded.append((*map(np.array, found.values()), is_token))
    weights = {x.path: np.array(x) for x in model.weights}
    losses = {}

    def add(name, logits, y, allowed=None):
        kept = np.arange(len(logits)) if allowed is None else np.array(allowed)
        logs = log_softmax(logits[kept].astype("float64"))
        loss = -logs[kept.tolist().index(y)] / np.log(len(kept))
        losses.setdefault(name, []).append(loss)

    def head(kind, name, x):
        path = f"{kind}/{name}"
        return x @ weights[f"{path}/kernel"] + weights[f"{path}/bias"]

    (hidden, _, is_token), (text, first, _), (others, _, are_tokens) = encoded
    y = batch["labelled"]
    for i, length in enumerate(y["lengths"]):
        mean = hidden[i, :length].mean(axis=0)
        name = labelled.sets[y["sets"][i]]["set"]
        if name == "a":
            # The first two of three topics.
            add("classes", head("classes", "topics", mean), y["classes"][i] - 2, [0, 1])
        elif name == "shops":
            add("classes", head("classes", "sentiment", mean), y["classes"][i])
        elif name == "people":
            for j in np.flatnonzero(y["tags"][i] >= 0):
                logits = head("tags", "entities", hidden[i, j])
                add("tags", logits, y["tags"][i, j], [0, 1, 2])
        elif name == "questions":
            logits = head("spans", "answers", hidden[i])
            for j in (0, 1):
                kept = np.where(is_token[i], logits[:, j], -1e9)
                add("spans", kept, y["spans"][i, j])
        else:
            error = head("scores", "similarity", mean)[0] - y["scores"][i]
            variance = np.var(np.arange(60) / 10)
            losses["scores"] = [error**2 / variance]
    y = batch["text"]
    logits = model.network.get_layer("mlm_logits")(text, y["mask_positions"])
    for i, j in ((0, 0), (0, 1), (1, 0)):
        add("mlm_logits", np.array(logits)[i, j], y["mask_ids"][i, j])
    order = first[0] @ weights["sop_logits/kernel"] + weights["sop_logits/bias"]
    add("sop_logits", order, 1)
    vectors = [x[y].mean(axis=0) for x, y in zip(others, are_tokens, strict=True)]
    vectors = np.array([x / np.linalg.norm(x) for x in vectors])
    cosines = vectors[:2] @ vectors[2:].T / 0.05
    for i in (0, 1):
        add("pairs", cosines[i], i)
        add("pairs", cosines[:, i], i)
    return {name: np.mean(values) for name, values in losses.items()}


@pytest.mark.parametrize(
    "rows", [("a", "people", "questions"), ("alike", "shops", "people")]
)
def test_losses_are_those_of_numpy(folder, rows):
    labelled, _ = opened(folder)
    model = LabelledModel(network(), labelled, None)
    draw = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(weight + draw.normal(0, 0.1, weight.shape))
    batch = hand_batch(labelled, rows)
    found, expected = model(batch), numpy_losses(model, labelled, batch)
    for name in model.heads:
        loss = expected.get(name, 0.0)
        assert float(found[f"{name}_loss"]) == pytest.approx(loss, rel=1e-4), name
    rates = {"spans": 0.5, "scores": 0.3, "sop_logits": 0.3, "pairs": 0.3}
    total = sum(rates.get(name, 1.0) * loss for name, loss in expected.items())
    assert float(model.compute_loss(y_pred=found)) == pytest.approx(total, rel=1e-4)


def test_a_pair_that_is_drawn_twice_is_no_negative_of_itself():
    draw = np.random.default_rng(0)
    texts = np.array([[1], [2], [1], [3], [4], [3]])
    vectors = draw.normal(size=(5, 4))[texts[:, 0]]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    logits = unit[:3] @ unit[3:].T / 0.05
    logits[[0, 2], [2, 0]] = -np.inf
    sums = np.log(np.exp(logits).sum(0)) + np.log(np.exp(logits).sum(1))
    expected = np.mean(sums - 2 * np.diag(logits)) / 2 / np.log(3)
    found = attraction(vectors.astype("float32"), texts)
    assert float(found["pairs_loss"]) == pytest.approx(expected, rel=1e-4)


def write_losses(folder, output):
    """Write the losses of the first batch, with the weights of weights.npz if any."""
    labelled, records = opened(folder)
    model = LabelledModel(network(), labelled, None)
    batches = LabelledBatches(labelled, records, 256 * LENGTH)
    batches._trims = False
    if (folder / "weights.npz").exists():
        with np.load(folder / "weights.npz") as weights:
            for x in model.weights:
                x.assign(weights[x.path])
    else:
        np.savez(folder / "weights.npz", **{x.path: np.array(x) for x in model.weights})
    found = model(keras.tree.map_structure(lambda x: x[:, 0], batches[0]))
    output.write_text(json.dumps({x: float(y) for x, y in found.items()}))


@pytest.mark.nightly
def test_losses_are_the_same_on_jax(folder):
    pytest.importorskip("jax", reason="jax is not installed")
    command = "import pathlib, sys; from test_labelled import *; "
    command += "write_losses(*map(pathlib.Path, sys.argv[1:]))"
    paths = ":".join(x for x in sys.path if x)
    found = []
    for backend in ("tensorflow", "jax"):
        file = folder / f"{backend}.json"
        environment = {"KERAS_BACKEND": backend, "PYTHONPATH": paths}
        run_python(command, folder, file, **environment)
        found.append(json.loads(file.read_text()))
    assert found[0]["tags_count"] > 0 and found[0]["spans_count"] > 0
    assert found[1] == pytest.approx(found[0], abs=1e-4)


# === Training ===


def stage(folder, output, steps=4, **options):
    model = network()
    model.compile(scheduled_optimizer("adamw", 5e-3, ema_momentum=0.5))
    options = {"interval": steps // 2, "verbose": 0, "learning_rate": 5e-3, **options}
    tokens = 16 * LENGTH
    return pretrain_labelled(model, *opened(folder), output, steps, tokens, **options)


@pytest.mark.slow
@pytest.mark.traced
def test_two_sets_are_learned(tmp_path):
    write_data(tmp_path, "shops", "people")
    done = stage(tmp_path, tmp_path / "out", 160, steps_per_call=4)
    last = {name: values[-1] for name, values in done["history"].items()}
    assert last["classes_accuracy"] > 0.9 and last["tags_loss"] < 0.15
    assert "spans_loss" not in last and "scores_accuracy" not in last
    heads = read_heads(tmp_path / "out")
    assert heads["sentiment"]["kernel"].shape == (48, 2)
    assert heads["sentiment"]["pooling_mode"] == "mean"
    assert heads["entities"]["tags"] == ["O", "B-PER", "I-PER"]


@pytest.mark.slow
def test_an_interrupted_stage_ends_with_the_same_weights(folder, tmp_path):
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            signal.raise_signal(signal.SIGTERM)

    whole = stage(folder, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt, match="at step 1 of 4"):
        stage(folder, tmp_path / "cut", callbacks=[Interrupt()])
    cut = stage(folder, tmp_path / "cut")
    assert whole["history"].keys() == cut["history"].keys()
    for name, values in whole["history"].items():
        assert cut["history"][name] == pytest.approx(values, rel=1e-5)
    first, second = (read_heads(tmp_path / x) for x in ("whole", "cut"))
    for name, head in first.items():
        for kind in ("kernel", "bias"):
            np.testing.assert_allclose(head[kind], second[name][kind], atol=1e-6)
    with pytest.raises(ValueError, match="another training .*shares.0: 0.25, now 0.5"):
        stage(folder, tmp_path / "cut", shares=(0.5, 0.0625))


def test_the_heads_of_a_stage_are_named_heads_of_a_checkpoint(folder, tmp_path):
    labelled, _ = opened(folder)
    model = LabelledModel(network(), labelled, None)
    for i, weight in enumerate(model.weights):
        weight.assign(weight + np.random.default_rng(i).normal(0, 0.1, weight.shape))
    write_heads(model, tmp_path)
    backbone = backbone_of(model.network)
    heads = build_heads(backbone, tmp_path)
    save_checkpoint(backbone, tmp_path / "all", "albert_zh", heads=heads)
    features = features_of(hand_batch(labelled, ("a", "alike", "people"))["labelled"])
    hidden = np.array(backbone(features)["sequence_output"])
    mask = np.array(features["padding_mask"])[..., None]
    mean = (hidden * mask).sum(axis=1) / mask.sum(axis=1)
    weights = {x.path: np.array(x) for x in model.weights}
    checkpoint = open_checkpoint(tmp_path / "all")
    assert sorted(checkpoint.named_heads) == sorted(labelled.heads)
    for kind, joint in model.joint.items():
        for name in joint.parts:
            task = build_model(checkpoint.with_head(name))
            assert task.name_of_task == labelled.heads[name]["task"]
            kernel, bias = (weights[f"{kind}/{name}/{x}"] for x in ("kernel", "bias"))
            x = mean if kind in ("classes", "scores") else hidden
            found, expected = task(features), x @ kernel + bias
            if kind == "spans":
                found = np.stack([*found.values()], axis=-1)
                expected = np.where(mask, expected, -1e9)
            np.testing.assert_allclose(found, expected, atol=1e-5)
    assert build_model(checkpoint.with_head("similarity")).pairs
    assert build_model(checkpoint.with_head("topics")).labels == TOPICS


# === Mistakes ===


def test_sets_that_do_not_fit_are_refused(folder, tmp_path):
    def wrong(*sets):
        make_labelled_data(
            sets, tmp_path / "x", folder / "records" / "vocab.txt", LENGTH
        )

    shops, a, *_, questions = made_sets()
    for sets, message in (
        ([], "no labelled sets"),
        (
            [shops, LabelledSet("b", "sentiment", TAGS, [], [])],
            "b is for token-.* of texts, but",
        ),
        (
            [LabelledSet("b", "c", CLASSES, ["丁"], ["d"])],
            "'c' needs at least two classes",
        ),
        ([LabelledSet("b", "c", CLASSES, a.x, a.y, TOPICS[1:])], "b: .*体育"),
        ([LabelledSet("b", "c", CLASSES, a.x, a.y, TOPICS, True)], "b lacks a class"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong(*sets)
    for arguments, message in (
        (("b", "c", "multi-label", [], []), "unknown task 'multi-label'"),
        (("b", "c/d", CLASSES, [], []), "no slash"),
        (("b", "c", CLASSES, [], [], ["d"]), "at least two classes"),
    ):
        with pytest.raises(ValueError, match=message):
            LabelledSet(*arguments)


def test_other_records_are_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="holds labelled texts"):
        PretrainingRecords(folder / "labelled")
    with pytest.raises(ValueError, match="holds text without labels"):
        LabelledRecords(folder / "records")
    with pytest.raises(FileNotFoundError, match="pretrain-data --labelled"):
        LabelledRecords(tmp_path)
    vocabulary = folder / "records" / "vocab.txt"
    with pytest.raises(ValueError, match="other settings.*texts"):
        make_labelled_data(made_sets()[:1], folder / "labelled", vocabulary, LENGTH)
