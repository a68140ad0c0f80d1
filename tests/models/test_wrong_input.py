"""Wrong arguments, texts and labels of each task raise an error that names them."""

import functools

import pytest
import tensorflow as tf
from small_classifier import LABELS, TEXTS, small_backbone, small_classifier
from task_cases import CASES, PAIRS

from albert_tf import models

DATASET = tf.data.Dataset.from_tensor_slices((["天", "地"], [0, 1]))
BATCHES = DATASET.batch(2)
ONE = (["好"], ["好"])

# Message, task and method, arguments; a dict at the end is of keyword arguments.
METHODS = [
    ("7 texts and 6 labels", "text classifier.fit", TEXTS, LABELS[:-1]),
    ("is 2. Element 1 is 3", "text classifier.fit", ["好", "差"], [0, 3]),
    ("shapes .2,. and .1,.", "text classifier.fit", (["好", "差"], ["好"]), [0, 1]),
    ("Element 1 is nan", "text classifier.fit", ["好", float("nan")], [0, 1]),
    ("list of strings", "text classifier.fit", "好", [0]),
    ("are single texts. Expected batches", "text classifier.fit", DATASET),
    ("`y` is for lists of texts", "text classifier.fit", BATCHES, LABELS),
    ("bucket_by_length", "text classifier.fit", BATCHES, {"max_tokens": 64}),
    ("`max_tokens` must be at", "text classifier.predict", TEXTS, {"max_tokens": 0}),
    (
        *("pass one of.*batch_size=3", "text classifier.predict", TEXTS),
        {"batch_size": 3, "max_tokens": 64},
    ),
    ("`class_weight` is for", "regressor.fit", PAIRS, LABELS, {"class_weight": {}}),
    ("learns from lists. Received a dataset", "summarizer.fit", BATCHES),
    ("Article 0 has 1 sentences", "summarizer.fit", ["好。"], [[1, 0]]),
    ("Element 0 of `y` is 'x'", "question answering.fit", ONE, ["x"]),
    ("not contain its answer '差'", "question answering.fit", ONE, [(0, "差")]),
    ("positive int", "question answering.predict_dicts", ONE, {"top_k": None}),
    ("has 1 choices", "multiple choice.fit", (*ONE, [["好"]]), [1]),
    ("the texts themselves", "masked language model.fit", TEXTS, LABELS),
    ("Text 0 has 0 .MASK.", "masked language model.fill", "好"),
    ("Not in it: .'鑫'", "masked language model.fill", "[MASK]", {"targets": "鑫"}),
    ("'好', '好吃'", "spelling corrector.fit", ["好"], ["好吃"]),
    ("1 texts and 0 labels", "spelling corrector.fit", ["好"]),
    ("must be pairs of texts", "sentence order.fit", TEXTS, LABELS),
    ("In text 0, ", "token classifier.fit", ["好"], [[(0, 2, "PER")]]),
    ("learns from pairs of texts", "text embedder.fit", TEXTS, LABELS),
    ("no `sample_weight`", "text embedder.fit", PAIRS, LABELS, {"sample_weight": [1]}),
    ("a number for each pair", "text embedder.fit", PAIRS, ["好"] * 7),
    ("takes texts one by one", "text embedder.predict", PAIRS),
    ("`corpus` is empty", "text embedder.search", "好", []),
    ("`patience` must be an int", "early-exit classifier.exiting", 0),
]
# Each model is built once.
build = functools.cache(lambda name: CASES[name].build())


@pytest.mark.parametrize("row", METHODS, ids=[row[0] for row in METHODS])
def test_wrong_input_of_a_task_raises(row):
    message, name, *given = row
    options = given.pop() if isinstance(given[-1], dict) else {}
    task, method = name.split(".")
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(build(task), method)(*given, **options)


def explain(*args, **kwargs):
    return models.IntegratedGradients(build("text classifier"))(*args, **kwargs)


def windows(*args, **kwargs):
    return models.predict_windows(build("text classifier"), *args, **kwargs)


def distiller(student):
    return models.AlbertDistiller(build("text classifier"), student)


def zero_shot(labels, *args):
    return models.ZeroShotClassifier(small_classifier(labels=labels), *args)


def fit_ids_with_segmenter():
    masked_lm = CASES["masked language model"].build()
    masked_lm.preprocessor.segmenter = str.split
    ids = build("text classifier").preprocessor
    masked_lm.fit(BATCHES.map(lambda x, y: x).map(ids))


def classifier(kind, **options):
    return small_classifier(cls=getattr(models, f"Albert{kind}Classifier"), **options)


def tagger(**options):
    return models.AlbertTokenClassifier(small_backbone(), **options)


NLI = ["蕴含", "矛盾", "中立"]
CALLS = {
    "A segmenter needs the texts": fit_ids_with_segmenter,
    "one label per text": lambda: models.bucket_by_length(
        BATCHES, build("question answering").preprocessor
    ),
    '`combine` must be "mean" or "max"': lambda: windows(TEXTS, "sum"),
    "`texts` must be a list of single": lambda: windows(PAIRS),
    "`stride` must be between 1 and": lambda: windows(TEXTS, stride=28),
    "one string, or the tuple": lambda: explain(["好"]),
    "one of the classes": lambda: explain("好", target="x"),
    "takes ids, not texts": lambda: models.IntegratedGradients(
        models.AlbertTextClassifier(small_backbone(), 2)
    ),
    "`x` is empty": lambda: models.text_features(build("text classifier"), []),
    "Only an AlbertMultiLabelClassifier": lambda: models.tune_thresholds(
        build("text classifier"), TEXTS, LABELS
    ),
    "each of the 3 classes": lambda: classifier("MultiLabel", thresholds=[0.5]),
    "`pooling_mode` should be": lambda: classifier("Text", pooling_mode="sum"),
    "layers are all one function": lambda: classifier(
        "EarlyExit", sizes={"num_ffn_groups": 2}
    ),
    "`tags` are of ..PER": lambda: tagger(labels=["LOC"], tags=["O", "B-PER"]),
    "different, and O one of": lambda: tagger(tags=["B-PER", "I-PER"]),
    "backbone has no pooler": lambda: models.AlbertPretrainer(
        small_backbone(pooler=False)
    ),
    "classifiers of one kind": lambda: distiller(build("multi-label classifier")),
    "the same `num_classes`": lambda: distiller(small_classifier(2)),
    "share weights": lambda: distiller(build("text classifier")),
    "has no .. for the class": lambda: zero_shot(NLI, "好"),
    "`candidate_labels` must be": lambda: zero_shot(NLI).predict(TEXTS, "好"),
    "no label .*entailment=": lambda: zero_shot(None),
    "must return logits": lambda: models.ZeroShotClassifier(build("pair classifier")),
}


@pytest.mark.parametrize("message", CALLS)
def test_wrong_arguments_raise(message):
    with pytest.raises((ValueError, TypeError), match=message):
        CALLS[message]()
