"""The stage on labelled texts: records, losses, learning, resuming and refusals."""

import json
import signal
import sys

import keras
import numpy as np
import pytest
from made_records import LENGTH, VOCABULARY, write
from processes import run_python
from scipy.special import log_softmax

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints import open_checkpoint, save_checkpoint
from albert_tf.models import AlbertTextEmbedder
from albert_tf.models.task_of_checkpoint import build_model
from albert_tf.pretraining import (
    LabelledRecords,
    LabelledRun,
    LabelledSet,
    PretrainingRecords,
    build_heads,
    build_network,
    make_labelled_data,
    pretrain_labelled,
    read_heads,
)
from albert_tf.pretraining.labelled.head_files import write_heads
from albert_tf.pretraining.labelled.labelled_batches import LabelledBatches
from albert_tf.pretraining.labelled.labelled_model import LabelledModel
from albert_tf.pretraining.training.head_losses import attraction
from albert_tf.pretraining.training.network import backbone_of, features_of
from albert_tf.pretraining.training.run import BatchSettings
from albert_tf.training.optimizers import scheduled_optimizer

CHARACTERS = [chr(0x4E00 + i) for i in range(VOCABULARY - 5)]
TOPICS = ["体育", "财经", "科技"]
CLASSES, TAGS = "text-classification", "token-classification"
SPAN_ENDS = ("start_logits", "end_logits")


def made_sets():
    """Sets of texts of characters of one half or the other, on which labels depend."""
    random, count = np.random.default_rng(0), 60
    halves = [i % 3 > 0 for i in range(count)]
    texts = [
        "".join(random.choice(CHARACTERS[:20] if half else CHARACTERS[20:], size))
        for half, size in zip(halves, random.integers(3, 13, count), strict=True)
    ]
    reviews = ["好评" if half else "差评" for half in halves]
    first_topics = [TOPICS[half] for half in halves]
    last_topics = [TOPICS[1 + half] for half in halves]
    people = [[(0, 2, "PER")] if half else [] for half in halves]
    places = [[(1, 3, "LOC" if half else "PER")] for half in halves]
    pairs = (texts[1:] + texts[:1], texts)
    answers = [[(1, text[1:3])] for text in texts]
    return [
        LabelledSet("shops", "sentiment", CLASSES, texts, reviews, balanced=True),
        LabelledSet("a", "topics", CLASSES, texts[:30], first_topics[:30], TOPICS[:2]),
        LabelledSet("b", "topics", CLASSES, texts[:40], last_topics[:40], TOPICS[1:]),
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
    settings = BatchSettings(batch_tokens=32 * LENGTH, steps_per_call=2)
    batches = LabelledBatches(labelled, records, settings)
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

# A row of each kind, and two whose heads share an output layer.
ROWS = ["a", "shops", "alike", "people", "questions"]
WIDTH = 17


def padded(lengths, random):
    """Random texts as a part of a batch."""
    return {
        "token_ids": random.integers(5, VOCABULARY, (len(lengths), WIDTH), "int32"),
        "lengths": np.array(lengths, "int32"),
        "second_starts": np.array(lengths, "int32") // 2,
    }


def batch_by_hand(labelled):
    """Five labelled texts, two of text and two pairs of similar texts."""
    random = np.random.default_rng(3)
    names = [entry["set"] for entry in labelled.sets]
    tags = np.full((5, WIDTH), -1, "int32")
    tags[3, 1:8] = [0, 1, 2, 0, 0, -1, 1]
    targets = {
        "sets": np.array([names.index(row) for row in ROWS], "int32"),
        # The second topic after the two sentiments, and the second sentiment.
        "classes": np.array([3, 1, -1, -1, -1], "int32"),
        "scores": np.array([np.nan, np.nan, 2.5, np.nan, np.nan], "float32"),
        "tags": tags,
        "spans": np.array([[-1, -1]] * 4 + [[4, 6]], "int32"),
    }
    text = {
        "mask_positions": np.array([[1, 16], [5, 0]], "int32"),
        "mask_ids": np.array([[9, 30], [7, 0]], "int32"),
        "mask_weights": np.array([[1, 1], [1, 0]], "float32"),
        "labels": np.array([1, 0], "int32"),
        "has_order": np.array([1, 0], "float32"),
        "weights": np.ones(2, "float32"),
    }
    return {
        "labelled": padded([17, 9, 12, 10, 11], random) | targets,
        "text": padded([17, 8], random) | text,
        "pairs": padded([17, 5, 9, 6], random),
    }


@pytest.fixture(scope="module")
def stage_model(folder, tmp_path_factory):
    """A model whose heads differ, and the tasks that its heads become."""
    labelled, _ = opened(folder)
    model = LabelledModel(network(), labelled, None)
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(weight + random.normal(0, 0.1, weight.shape))
    output = tmp_path_factory.mktemp("heads")
    write_heads(labelled.heads, model.dense_heads, output)
    return labelled, model, build_heads(backbone_of(model.network), output)


def loss(logits, label):
    """Return the loss of one choice, 1 for a uniform guess."""
    logits = np.asarray(logits, "float64")
    return -log_softmax(logits)[label] / np.log(len(logits))


def test_losses_are_those_of_the_tasks_that_the_heads_become(stage_model):
    labelled, model, tasks = stage_model
    batch = batch_by_hand(labelled)
    texts = features_of(batch["labelled"])
    outputs = {name: task(texts) for name, task in tasks.items()}
    tag_logits = outputs["entities"][3]
    starts, ends = (np.array(outputs["answers"][x][4]) for x in SPAN_ENDS)
    text = batch["text"]
    positions = {"mask_positions": keras.ops.array(text["mask_positions"])}
    pretrained = model.network({**features_of(text), **positions})
    words, order = pretrained["mlm_logits"], pretrained["sop_logits"]
    embedder = AlbertTextEmbedder(backbone_of(model.network), pooling_mode="mean")
    vectors = np.array(embedder(features_of(batch["pairs"])))
    cosines = vectors[:2] @ vectors[2:].T / 0.05
    variance = np.var(np.arange(60) / 10)
    expected = {
        # Set a distinguishes the first two of three topics.
        "classes": [
            loss(outputs["topics"][0, :2], 1),
            loss(outputs["sentiment"][1], 1),
        ],
        "scores": [(float(outputs["similarity"][2, 0]) - 2.5) ** 2 / variance],
        # Set people has tags of persons alone, and no tag at place 6.
        "tags": [
            loss(tag_logits[place, :3], tag)
            for place, tag in ((1, 0), (2, 1), (3, 2), (4, 0), (5, 0), (7, 1))
        ],
        # A guess is one of all 17 places, padding included.
        "spans": [loss(starts, 4), loss(ends, 6)],
        "mlm_logits": [
            loss(words[0, 0], 9),
            loss(words[0, 1], 30),
            loss(words[1, 0], 7),
        ],
        "sop_logits": [loss(order[0], 1)],
        "pairs": [loss(line, i % 2) for i, line in enumerate([*cosines, *cosines.T])],
    }
    losses = model(batch)
    means = {name: np.mean(values) for name, values in expected.items()}
    for name, mean in means.items():
        assert float(losses[f"{name}_loss"]) == pytest.approx(mean, rel=1e-4), name
    rates = {"spans": 0.5, "scores": 0.3, "sop_logits": 0.3, "pairs": 0.3}
    total = sum(rates.get(name, 1.0) * mean for name, mean in means.items())
    assert float(model.compute_loss(y_pred=losses)) == pytest.approx(total, rel=1e-4)


def test_losses_of_biases_are_those_computed_by_hand(folder):
    """Without kernels, the outputs are the biases, whatever the text."""
    labelled, _ = opened(folder)
    model = LabelledModel(network(), labelled, None)
    for layer in model.dense_heads.values():
        layer.kernel.assign(np.zeros(layer.kernel.shape))
    # Probabilities of 1/8, 2/8 and 5/8; of the first two alone 1/3 and 2/3.
    model.dense_heads["topics"].bias.assign(np.log([1.0, 2.0, 5.0]))
    model.dense_heads["similarity"].bias.assign([3.5])
    batch = batch_by_hand(labelled)
    # The sentiment is a fair guess, of loss 1.
    losses = model(batch)
    topic = np.log(3 / 2) / np.log(2)
    variance = (60**2 - 1) / 12 / 100
    for name, expected, count in (
        ("classes", (topic + 1) / 2, 2),
        ("scores", 1 / variance, 1),
        ("tags", 1, 6),
        # One of the 11 tokens, of 17 places.
        ("spans", np.log(11) / np.log(17), 2),
    ):
        assert float(losses[f"{name}_loss"]) == pytest.approx(expected, rel=1e-4), name
        assert float(losses[f"{name}_count"]) == count


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
    """Write the losses of a batch, with the weights of weights.npz if there are any."""
    labelled, _ = opened(folder)
    model = LabelledModel(network(), labelled, None)
    if (folder / "weights.npz").exists():
        with np.load(folder / "weights.npz") as weights:
            for weight in model.weights:
                weight.assign(weights[weight.path])
    else:
        arrays = {weight.path: np.array(weight) for weight in model.weights}
        np.savez(folder / "weights.npz", **arrays)
    losses = model(batch_by_hand(labelled))
    output.write_text(json.dumps({name: float(x) for name, x in losses.items()}))


@pytest.mark.nightly
def test_losses_are_the_same_on_jax(folder):
    pytest.importorskip("jax", reason="jax is not installed")
    command = "import pathlib, sys; from test_labelled import *; "
    command += "write_losses(*map(pathlib.Path, sys.argv[1:]))"
    paths = ":".join(x for x in sys.path if x)
    losses = {}
    for backend in ("tensorflow", "jax"):
        file = folder / f"{backend}.json"
        environment = {"KERAS_BACKEND": backend, "PYTHONPATH": paths}
        run_python(command, folder, file, **environment)
        losses[backend] = json.loads(file.read_text())
    assert losses["jax"]["tags_count"] > 0 and losses["jax"]["spans_count"] > 0
    assert losses["jax"] == pytest.approx(losses["tensorflow"], abs=1e-4)


# === Training ===


def stage(folder, output, steps=4, callbacks=(), **settings):
    model = network()
    model.compile(scheduled_optimizer("adamw", 5e-3, ema_momentum=0.5))
    labelled, records = opened(folder)
    run = LabelledRun(
        steps=steps,
        interval=steps // 2,
        batch_tokens=16 * LENGTH,
        learning_rate=5e-3,
        **settings,
    )
    options = {"callbacks": callbacks, "verbose": 0}
    return pretrain_labelled(model, labelled, records, output, run, **options)


@pytest.mark.nightly
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


def test_the_heads_of_a_stage_are_named_heads_of_a_checkpoint(stage_model, tmp_path):
    labelled, model, tasks = stage_model
    backbone = backbone_of(model.network)
    save_checkpoint(backbone, tmp_path / "all", "albert_zh", heads=tasks)
    checkpoint = open_checkpoint(tmp_path / "all")
    assert sorted(checkpoint.named_heads) == sorted(labelled.heads)
    texts = features_of(batch_by_hand(labelled)["labelled"])
    for name, task in tasks.items():
        opened_task = build_model(checkpoint.with_head(name))
        assert opened_task.name_of_task == labelled.heads[name]["task"]
        found, expected = keras.tree.flatten(opened_task(texts)), task(texts)
        for array, other in zip(found, keras.tree.flatten(expected), strict=True):
            np.testing.assert_allclose(array, other, atol=1e-5)
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
