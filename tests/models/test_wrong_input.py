"""Wrong arguments, texts and labels of each task raise an error that names them."""

import functools

import pytest
import tensorflow as tf
from small_classifier import LABELS, TEXTS, small_backbone, small_classifier
from task_cases import CASES, PAIRS

from albert_tf import models
from albert_tf.models import bucket_by_length

# Each model is built once.
build = functools.cache(lambda name: CASES[name].build())
classifier = functools.partial(build, "text classifier")
DATASET = tf.data.Dataset.from_tensor_slices((["天", "地"], [0, 1]))


def fit(name, x, y=None, **options):
    """Return a function that fits the task of this name."""
    return lambda: build(name).fit(x, y, verbose=0, **options)


def explain(*args, **kwargs):
    return models.IntegratedGradients(classifier())(*args, **kwargs)


def with_segmenter():
    masked_lm = CASES["masked language model"].build()
    masked_lm.preprocessor.segmenter = str.split
    return masked_lm


def ids():
    """Return a dataset of texts without places of masks."""
    return DATASET.map(lambda x, y: x).batch(2).map(classifier().preprocessor)


fit_classifier = functools.partial(fit, "text classifier")
# By message, because several errors are of one method.
ERRORS = {
    # Texts and labels.
    "7 texts and 6 labels": fit_classifier(TEXTS, LABELS[:-1]),
    "num_classes - 1, that is 2. Element 1 is 3": fit_classifier(["好", "差"], [0, 3]),
    "shapes .2,. and .1,.": fit_classifier((["好", "差"], ["好"]), [0, 1]),
    "Element 1 is nan": fit_classifier(["好", float("nan")], [0, 1]),
    "list of strings": fit_classifier("好", [0]),
    "are single texts. Expected batches": fit_classifier(DATASET),
    "pass one of.*batch_size": fit_classifier(
        TEXTS, LABELS, batch_size=3, max_tokens=64
    ),
    "`max_tokens` must be at least 1": fit_classifier(TEXTS, LABELS, max_tokens=0),
    "`max_tokens` is for lists.*bucket_by_length": fit_classifier(
        DATASET.batch(2), max_tokens=64
    ),
    "`y` is for lists": fit_classifier(DATASET.batch(2), LABELS),
    "for tasks with one label per text": lambda: bucket_by_length(
        DATASET.batch(2), build("question answering").preprocessor
    ),
    "`class_weight` is for classifiers with one class": fit(
        "regressor", PAIRS, LABELS, class_weight={0: 1.0}
    ),
    "learns from lists. Received a dataset": fit("summarizer", DATASET.batch(2)),
    "An answer is .*Element 0 of `y` is 'x'": fit(
        "question answering", (["好"], ["好"]), ["x"]
    ),
    "does not contain its answer '差'": fit(
        "question answering", (["好"], ["好"]), [(0, "差")]
    ),
    "has 1 choices, counted from 0": fit(
        "multiple choice", (["好"], ["好"], [["好"]]), [1]
    ),
    "learns the texts themselves": fit("masked language model", TEXTS, LABELS),
    "A segmenter needs the texts": lambda: with_segmenter().fit(ids()),
    "differ in length: ..好', '好吃'": fit("spelling corrector", ["好"], ["好吃"]),
    "1 texts and 0 labels": fit("spelling corrector", ["好"]),
    "must be pairs of texts": fit("sentence order", TEXTS, LABELS),
    "Article 0 has 1 sentences": fit("summarizer", ["好。"], [[1, 0]]),
    "In text 0, ": fit("token classifier", ["好"], [[(0, 2, "PER")]]),
    "learns from pairs of texts": fit("text embedder", TEXTS, LABELS),
    "Pairs have no `sample_weight`": fit(
        "text embedder", PAIRS, LABELS, sample_weight=LABELS
    ),
    "`y` must be a number for each pair": fit("text embedder", PAIRS, ["好"] * 7),
    # Arguments of predictions.
    "takes texts one by one": lambda: build("text embedder").predict(PAIRS),
    "`corpus` is empty": lambda: build("text embedder").search("好", []),
    "`targets` should be tokens.*'鑫'": lambda: build("masked language model").fill(
        "[MASK]", targets="鑫"
    ),
    "Text 0 has 0 .MASK.": lambda: build("masked language model").fill("好"),
    "`top_k` must be a positive int": lambda: build("question answering").predict_dicts(
        (["好"], ["好"]), top_k=None
    ),
    "`patience` must be an int": lambda: build("early-exit classifier").exiting(0),
    '`combine` must be "mean" or "max"': lambda: models.predict_windows(
        classifier(), TEXTS, "sum"
    ),
    "`texts` must be a list of single texts": lambda: models.predict_windows(
        classifier(), PAIRS
    ),
    "`stride` must be between 1 and the 27": lambda: models.predict_windows(
        classifier(), TEXTS, stride=28
    ),
    "`x` is empty": lambda: models.text_features(classifier(), []),
    "Only an AlbertMultiLabelClassifier has": lambda: models.tune_thresholds(
        classifier(), TEXTS, LABELS
    ),
    # Models.
    "a number for each of the 3 classes": lambda: small_classifier(
        cls=models.AlbertMultiLabelClassifier, thresholds=[0.5]
    ),
    "`pooling_mode` should be one of": lambda: small_classifier(pooling_mode="sum"),
    "layers are all one function": lambda: small_classifier(
        cls=models.AlbertEarlyExitClassifier, sizes={"num_ffn_groups": 2}
    ),
    "`tags` are of ..PER": lambda: models.AlbertTokenClassifier(
        small_backbone(), labels=["LOC"], tags=["O", "B-PER"]
    ),
    "different, and O one of them": lambda: models.AlbertTokenClassifier(
        small_backbone(), tags=["B-PER", "I-PER"]
    ),
    "no pooler, which the sentence-order": lambda: models.AlbertPretrainer(
        small_backbone(pooler=False)
    ),
    "must be text classifiers of one kind": lambda: models.AlbertDistiller(
        classifier(), build("multi-label classifier")
    ),
    "must have the same `num_classes`": lambda: models.AlbertDistiller(
        classifier(), small_classifier(2)
    ),
    "share weights": lambda: models.AlbertDistiller(classifier(), classifier()),
    "has no .. for the class": lambda: models.ZeroShotClassifier(classifier(), "好"),
    "`candidate_labels` must be a list": lambda: models.ZeroShotClassifier(
        small_classifier(labels=["蕴含", "矛盾", "中立"])
    ).predict(TEXTS, "好"),
    "must return logits": lambda: models.ZeroShotClassifier(build("pair classifier")),
    "no label .*entailment.*entailment=": lambda: models.ZeroShotClassifier(
        small_classifier()
    ),
    "takes ids, not texts": lambda: models.IntegratedGradients(
        models.AlbertTextClassifier(small_backbone(), 2)
    ),
    "one string, or the tuple": lambda: models.IntegratedGradients(classifier())(
        ["好"]
    ),
    "one of the classes": lambda: models.IntegratedGradients(classifier())("好", "x"),
}


@pytest.mark.parametrize("message", ERRORS)
def test_wrong_input_raises(message):
    with pytest.raises((ValueError, TypeError), match=message):
        ERRORS[message]()
