"""Wrong arguments, texts and labels of each task raise an error that names them."""

import functools
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_classifier import LABELS, TEXTS, small_backbone, small_classifier
from task_cases import CASES

from albert_tf import models
from albert_tf.layers import EncoderBlock
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import WordPieceTokenizer

MICRO = pathlib.Path(__file__).parents[2] / "examples" / "albert_micro_zh"
DATASET = tf.data.Dataset.from_tensor_slices((["天", "地"], [0, 1]))
BATCHES = DATASET.batch(2)
ONE = (["好"], ["好"])
IDS = {x: tf.zeros([2, 8], tf.int32) for x in ("token_ids", "padding_mask")}
WEIGHTS = {"class_weight": {3: 1.0}}
BALANCED = {"class_weight": "balanced"}
PLATEAU = {"callbacks": [keras.callbacks.ReduceLROnPlateau()]}

# Message, task and method, arguments; a dict at the end is of keyword arguments.
METHODS = [
    ("7 texts and 6 labels", "text classifier.fit", TEXTS, LABELS[:-1]),
    ("is 2. Element 1 is 3", "text classifier.fit", ["好", "差"], [0, 3]),
    ("Element 1 is nan", "text classifier.fit", ["好", float("nan")], [0, 1]),
    ("list of strings", "text classifier.fit", "好", [0]),
    ("are single texts. Expected batches", "text classifier.fit", DATASET),
    (r"=keras.optimizers.AdamW\(0.001", "text classifier.fit", TEXTS, LABELS, PLATEAU),
    ("bucket_by_length", "text classifier.fit", BATCHES, {"max_tokens": 64}),
    ("Article 0 has 1 sentences", "summarizer.fit", ["好。"], [[1, 0]]),
    ("not contain its answer '差'", "question answering.fit", ONE, [(0, "差")]),
    ("has 1 choices", "multiple choice.fit", (*ONE, [["好"]]), [1]),
    ("Pass the texts of", "multiple choice.fit", (*ONE, [["1", "2", "3"]]), [1]),
    ("'吃'. Expected one of", "multiple choice.fit", (*ONE, [["好", "差"]]), ["吃"]),
    ("`class_weight` must lie", "text classifier.fit", TEXTS, LABELS, WEIGHTS),
    ("the texts themselves", "masked language model.fit", TEXTS, LABELS),
    ("Text 0 has 0 .MASK.", "masked language model.fill", "好"),
    ("'好', '好吃'", "spelling corrector.fit", ["好"], ["好吃"]),
    ("must be pairs of texts", "sentence order.fit", TEXTS, LABELS),
    ("In text 0, ", "token classifier.fit", ["好"], [[(0, 2, "PER")]]),
    (r"\(None, 9\), but.*None, 8\)", "token classifier.fit", IDS, np.zeros((2, 9))),
    ("is a generator.*from_generator", "text classifier.fit", (x for x in [BATCHES])),
    ("learns from pairs of texts", "text embedder.fit", TEXTS, LABELS),
    ("All pairs have the score 1,", "text embedder.fit", (ONE[0] * 2,) * 2, [1, 1]),
    ("Expected vectors of", "text embedder.similarity", "好", "差"),
    ("`batch_size` must be", "text classifier.fit", TEXTS, LABELS, {"batch_size": 0}),
    ("`epochs` must not be", "text classifier.fit", TEXTS, LABELS, {"epochs": -1}),
    ("is for lists of", "text classifier.fit", BATCHES, {"validation_split": 0.2}),
    ("a dict of weights", "text classifier.fit", TEXTS, LABELS, BALANCED),
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


def distiller(student):
    return models.AlbertDistiller(build("text classifier"), student)


def classifier(kind, **options):
    return small_classifier(cls=getattr(models, f"Albert{kind}Classifier"), **options)


CALLS = {
    "no pooler": lambda: small_backbone(pooler=False).pool(IDS),
    "one string, or the tuple": lambda: explain(["好"]),
    "of `target` are not among": lambda: explain("好", target="x"),
    "Only an AlbertMultiLabelClassifier": lambda: models.tune_thresholds(
        build("text classifier"), TEXTS, LABELS
    ),
    "each of the 3 classes": lambda: classifier("MultiLabel", thresholds=[0.5]),
    "layers are all one function": lambda: classifier(
        "EarlyExit", sizes={"num_ffn_groups": 2}
    ),
    "the same `num_classes`": lambda: distiller(small_classifier(2)),
    "name each of the 3 classes": lambda: setattr(
        small_classifier(labels=["a", "b", "c"]), "labels", ["a", "b"]
    ),
    "holds booleans, but the classes are": lambda: small_classifier(
        2, labels=["好评", "差评"]
    ).fit(TEXTS, [True] * 7),
    "This model takes pairs of texts": lambda: small_classifier(pairs=True).predict(
        TEXTS
    ),
    "the peak of the schedule": lambda: small_classifier().compile(
        learning_rate=keras.optimizers.schedules.CosineDecay(1e-3, 10)
    ),
    "share weights": lambda: distiller(build("text classifier")),
    "no label .*entailment=": lambda: models.ZeroShotClassifier(small_classifier()),
    "`num_clases`. Did you mean `num_classes`": lambda: (
        models.AlbertTextClassifier.from_checkpoint(f"{MICRO}:topics", num_clases=2)
    ),
    "`seq_length`. Did you mean `sequence_length`": lambda: classifier(
        "Text", seq_length=9
    ),
    "`num_groups`. Did you mean `num_ffn_groups`": lambda: small_backbone(num_groups=1),
    "`lower_case`. Did you mean `lowercase`": lambda: WordPieceTokenizer(lower_case=0),
    "`pad`. Its arguments: .'tokenizer'": lambda: AlbertTextClassifierPreprocessor(
        WordPieceTokenizer(), pad=1
    ),
    "`dropout`. Did you mean `hidden_dropout`": lambda: EncoderBlock(
        intermediate_dim=8, num_heads=2, dropout=0.1
    ),
}


@pytest.mark.parametrize("message", CALLS)
def test_wrong_arguments_raise(message):
    with pytest.raises((ValueError, TypeError), match=message):
        CALLS[message]()
