"""Losses and metrics of Keras have the right value, or are refused with the remedy."""

import dataclasses
import functools

import keras
import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from small_classifier import LABELS, TEXTS, call
from task_cases import CASES

from albert_tf import AlbertError

MULTI_HOT = CASES["multi-label classifier"].y
METRICS, LOSSES = keras.metrics, keras.losses


@functools.cache
def build(name, activation=None):
    """Return a task, always with the same weights and one instance per activation."""
    case = CASES[name]
    if activation:
        # A temperature divides logits.
        options = {**case.init_kwargs, "activation": activation, "temperature": 1.0}
        case = dataclasses.replace(case, init_kwargs=options)
    return case.build(num_layers=1)


def evaluate(name, y, activation=None, **options):
    task = build(name, activation) if activation else build(name)
    task.compile(**options)
    return task.evaluate(TEXTS, y, verbose=0, return_dict=True)


def probabilities(name):
    logits = call(build(name), TEXTS).astype("float64")
    return 1 / (1 + np.exp(-logits))


def test_metrics_of_several_outputs_are_given_by_output():
    reader, case = build("question answering"), CASES["question answering"]
    example = '"start_logits": .*, "end_logits": '
    # Keras would give the first of two to the end, in alphabetical order.
    for given in (["accuracy"], "accuracy", {"start": "accuracy"}, [["accuracy"], []]):
        for name in ("metrics", "weighted_metrics"):
            with pytest.raises(AlbertError, match=example):
                reader.compile(**{name: given})
    with pytest.raises(AlbertError, match=f"list of losses .* {{{example}"):
        reader.compile(loss=["sparse_categorical_crossentropy"] * 2)
    reader.compile(metrics={"end_logits": ["accuracy"]})
    found = reader.evaluate(case.x, case.y, verbose=0, return_dict=True)
    assert {x for x in found if "accuracy" in x} == {"end_logits_accuracy"}


def nested(values):
    """The same metrics in containers that Keras takes."""
    return [values, tuple(values), [list(values)]]


@pytest.mark.parametrize("activation", [None, "sigmoid"])
def test_names_are_right_for_logits_and_for_probabilities(activation):
    name = "multi-label classifier"
    shares = probabilities(name)
    # Many logits lie between 0 and 0.5.
    assert np.any((shares >= 0.5) & (shares < 0.62))
    chosen = shares >= 0.5
    loss = sklearn_metrics.log_loss(MULTI_HOT.ravel(), shares.ravel())
    expected = {
        "binary_accuracy": np.mean(chosen == MULTI_HOT),
        "precision": np.sum(chosen * MULTI_HOT) / np.sum(chosen),
        "Recall": np.sum(chosen * MULTI_HOT) / np.sum(MULTI_HOT),
        "bce": loss,
        "auc": sklearn_metrics.roc_auc_score(MULTI_HOT.ravel(), shares.ravel()),
    }
    given = evaluate(
        name,
        MULTI_HOT,
        activation,
        loss="bce",
        metrics=None,
        weighted_metrics=list(expected),
    )
    assert given == pytest.approx({"loss": loss, **expected}, abs=0.01)
    assert given["bce"] == pytest.approx(loss, abs=1e-4)
    metrics = [METRICS.binary_accuracy, LOSSES.binary_crossentropy]
    for container in nested(metrics):
        given = evaluate(name, MULTI_HOT, activation, metrics=container)
        assert given["binary_accuracy"] == pytest.approx(expected["binary_accuracy"])
        assert given["binary_crossentropy"] == pytest.approx(loss, abs=1e-4)


def test_metrics_of_ids_and_losses_by_name():
    name = "text classifier"
    logits = call(build(name), TEXTS).astype("float64")
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    loss = sklearn_metrics.log_loss(LABELS, shares)
    accuracy = np.mean(shares.argmax(axis=1) == LABELS)
    for option in ("crossentropy", "sparse_categorical_crossentropy"):
        own = [METRICS.SparseCategoricalCrossentropy(from_logits=True, name="own")]
        given = evaluate(name, LABELS, loss=option, metrics=["accuracy", *own])
        expected = {"loss": loss, "own": loss, "accuracy": accuracy}
        assert given == pytest.approx(expected, abs=1e-4)
    columns = np.eye(3)[LABELS]
    metrics = [METRICS.Precision(thresholds=0), METRICS.F1Score("macro"), "acc"]
    given = evaluate(name, columns, loss="categorical_crossentropy", metrics=metrics)
    assert given["loss"] == pytest.approx(loss, abs=1e-4)
    assert given["acc"] == pytest.approx(accuracy)
    f1 = sklearn_metrics.f1_score(LABELS, shares.argmax(axis=1), average="macro")
    assert given["f1_score"] == pytest.approx(f1, abs=1e-4)
    # Not the metrics of the last `compile`.
    assert evaluate(name, LABELS, metrics=None).keys() == {"loss"}


def test_the_accuracy_of_tokens_leaves_out_padding():
    task, case = build("token classifier"), CASES["token classifier"]
    expected = task.evaluate(case.x, case.y, verbose=0, return_dict=True)
    options = {"metrics": ["acc", METRICS.sparse_categorical_accuracy]}
    task.compile(loss="sparse_categorical_crossentropy", **options)
    given = task.evaluate(case.x, case.y, verbose=0, return_dict=True)
    accuracy = expected["accuracy"]
    assert given == pytest.approx(
        {
            "loss": expected["loss"],
            "acc": accuracy,
            "sparse_categorical_accuracy": accuracy,
        }
    )


LOGITS = "from_logits=True or threshold=0"
REFUSED = {
    "multi-label classifier": [
        (METRICS.Precision(), LOGITS),
        (METRICS.Recall, r"keras.metrics.Recall\(thresholds=0\)"),
        (METRICS.TruePositives(thresholds=[0.0, 0.5]), LOGITS),
        (METRICS.BinaryAccuracy(), r"keras.metrics.BinaryAccuracy\(threshold=0\)"),
        (METRICS.AUC(), r"keras.metrics.AUC\(from_logits=True\)"),
        (METRICS.F1Score(threshold=0.5), '.*activation="sigmoid"'),
        (METRICS.F1Score(), "one class per text"),
        (METRICS.PrecisionAtRecall(0.5), '.*activation="sigmoid"'),
        (METRICS.Accuracy(), "compares class ids"),
        ("accuracy", "several meanings"),
        ("sparse_categorical_accuracy", "one class per text"),
    ],
    "text classifier": [
        (METRICS.SparseCategoricalCrossentropy(), LOGITS),
        ("categorical_accuracy", "a column per class"),
        ({"class_name": "Precision", "config": {}}, "a column per class"),
    ],
    "token classifier": [
        (METRICS.SparseCategoricalAccuracy(), "that are -1"),
        (METRICS.SparseCategoricalCrossentropy(from_logits=True), "that are -1"),
    ],
    "masked language model": [("accuracy", "as `weighted_metrics`")],
    "regressor": [
        ("accuracy", "no classes"),
        (METRICS.BinaryCrossentropy(), LOGITS),
    ],
    "summarizer": [("binary_accuracy", "that are -1"), ("accuracy", "no classes")],
    "text embedder": [("mse", "are vectors")],
}
REFUSED_LOSSES = [
    ("text classifier", None, LOSSES.SparseCategoricalCrossentropy(), LOGITS),
    ("multi-label classifier", None, LOSSES.BinaryCrossentropy(), LOGITS),
    ("multi-label classifier", None, "kl_divergence", '.*activation="sigmoid"'),
    (
        "multi-label classifier",
        "sigmoid",
        LOSSES.BinaryCrossentropy(from_logits=True),
        "returns probabilities",
    ),
    ("token classifier", None, "mse", "that are -1"),
]


@pytest.mark.parametrize("name", REFUSED)
def test_metrics_that_would_be_wrong_are_refused(name):
    task = build(name)
    for metric, message in REFUSED[name]:
        with pytest.raises(AlbertError, match=message):
            task.compile(metrics=[[metric]])


def test_losses_that_would_be_wrong_are_refused():
    for name, activation, loss, message in REFUSED_LOSSES:
        with pytest.raises(AlbertError, match=message):
            task = build(name, activation) if activation else build(name)
            task.compile(loss=loss, metrics=None)
    sigmoid = build("multi-label classifier", "sigmoid")
    for metric in (METRICS.Precision(thresholds=0), METRICS.AUC(from_logits=True)):
        with pytest.raises(AlbertError, match="returns probabilities"):
            sigmoid.compile(metrics=[metric])
    classifier = build("text classifier")
    classifier.compile(loss="mse", metrics=None)
    with pytest.raises(AlbertError, match="reads a column per class"):
        classifier.fit(TEXTS, LABELS, verbose=0)
