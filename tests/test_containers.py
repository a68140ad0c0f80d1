"""Texts and labels in any container mean what they mean in a list: by position."""

import collections.abc
import functools

import keras
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf
from lite_tasks import needs_onnx, write_onnx
from small_classifier import VOCABULARY, small_classifier
from task_cases import CASES
from tiers import few

import albert_tf_lite
import zh
from albert_tf import data, evaluation, tools
from albert_tf.checkpoints import prune_vocabulary
from albert_tf.pipelines import TaskPipeline
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.trainers.batching import BatchOptions
from albert_tf.trainers.examples import read_examples
from albert_tf.trainers.labels import check_class_names, class_ids

TEXTS, OTHERS = ["很好吃，我想", "差", "他 去", "太差了！"], ["好", "", "你们", "不"]
MASKED = [f"{text}[MASK]" for text in TEXTS]
NAMES, IDS, NUMBERS = ["差", "好", "好", "差"], [0, 1, 1, 0], [0.5, 2.0, 1.0, 4.0]
TRUTH = [1, 1, 0, 0]
LISTS = [["好", "不"], ["你"], ["好", "差", "不"], ["我", "他"]]
SPANS = [[(0, 2, "PER")], [], [(0, 1, "LOC")], []]


class Column(collections.abc.Sequence):
    """Like a column of a Hugging Face data set, which is no list and no array."""

    def __init__(self, values):
        self.values = list(values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        return self.values[key]


def series(values):
    """Return a Series in which each position is the label of another."""
    index = range(len(values))[::-1]
    return pd.Series(np.array([*values, None], object)[:-1], index=index)


def rows(values):
    """Return the column of a table without its first rows."""
    return pd.DataFrame({"x": [values[0], values[0], *values]})[2:]["x"]


OF_LISTS = {"Series": series, "rows of a table": rows, "column": Column}
CONTAINERS = {
    **OF_LISTS,
    "generator": iter,
    "array": np.array,
    "NumPy values": lambda x: list(np.array(x)),
    "tensor": tf.constant,
    "Index": pd.Index,
    "categorical": lambda x: series(x).astype("category"),
    "nullable": lambda x: series(x).convert_dtypes(),
    "Arrow in pandas": lambda x: series(x).convert_dtypes(dtype_backend="pyarrow"),
    "Arrow": lambda x: pa.chunked_array([pa.array(x)]),
}
# Those that differ most; the others are tested every night where models run.
FEW = {name: CONTAINERS[name] for name in ("Series", "tensor")}
OTHERS_THAN_FEW = {x: y for x, y in CONTAINERS.items() if x not in (*FEW, "generator")}
REST = pytest.param(OTHERS_THAN_FEW, marks=pytest.mark.nightly)


def plain(value):
    """Return nested tensors, arrays and lists as lists."""
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    value = value.to_list() if isinstance(value, tf.RaggedTensor) else value
    return np.asarray(value).tolist() if hasattr(value, "__array__") else value


def check(function, containers):
    """Check that a function of a container gives the same for all of them."""
    expected = plain(function(list))
    for name, container in containers.items():
        assert plain(function(container)) == expected, name


# === Training and prediction of each task ===

# A text, a pair, lists in an example, and other labels.
KINDS = ("text classifier", "token classifier", "question answering")
KINDS += ("multiple choice", "summarizer")
KINDS = few([x for x, case in CASES.items() if case.takes_texts], KINDS)


@pytest.mark.parametrize("containers", [FEW, REST])
@pytest.mark.parametrize("name", KINDS)
def test_fit_and_predict_read_any_container(name, containers):
    case = CASES[name].without_dropout()
    task = case.build(num_layers=1)
    # Nothing is learned, so that losses and answers are those of the data.
    task.compile(optimizer=keras.optimizers.SGD(0.0))
    options = {"validation_split": 0.4, "epochs": 1, "shuffle": False, "verbose": 0}

    def losses_and_answers(container):
        wrap = functools.partial(wrapped, container)
        x = tuple(map(wrap, case.x)) if isinstance(case.x, tuple) else wrap(case.x)
        other = case.train_x
        other = tuple(map(wrap, other)) if isinstance(other, tuple) else wrap(other)
        y, weights = wrap(case.y), wrap([0.5, 2.0, 1.0, 4.0, 3.0, 0.0, 9.0])
        if name == "text embedder":
            # Its pairs have no weights.
            weights = None
        history = task.fit(other, y, sample_weight=weights, **options).history
        losses = [history["val_loss"]]
        # A training draws other masks each time.
        if name != "masked language model":
            losses.append(history["loss"])
        return [losses, task.predict(x, verbose=0)]

    check(losses_and_answers, containers)


def wrapped(container, values):
    """Return values in a container, if it can hold them."""
    is_nested = values is not None and not isinstance(values[0], (str, int, float))
    if values is None or (is_nested and container not in OF_LISTS.values()):
        return values
    return container(values)


# === Functions of texts and labels ===


def of_class(name):
    return functools.cache(CASES[name].build)


embedder, filler = of_class("text embedder"), of_class("masked language model")
early, several = of_class("early-exit classifier"), of_class("multi-label classifier")


@functools.cache
def classifier(**options):
    return small_classifier(2, labels=("entailment", "contradiction"), **options)


def distilled(c):
    distiller = tools.AlbertDistiller(classifier(), classifier(seed=1))
    examples = read_examples(c(TEXTS), c(IDS))
    return list(distiller._batches(examples, BatchOptions(batch_size=4)))


def tuned(c):
    tools.tune_thresholds(several(), c(TEXTS), [["坏"], ["中"], ["好"], ["坏", "好"]])
    return several().thresholds


def scores(name, *columns, **options):
    """Return a function that scores columns in a container."""
    function = getattr(evaluation, name)
    return lambda c: function(*(wrapped(c, x) for x in columns), **options)


PAIR = ([f"{x}。" for x in TEXTS], TEXTS)
WORDS = WordPieceTokenizer(VOCABULARY)
# Each runs a model.
OF_MODELS = {
    "encode_text": lambda c: embedder().encode_text(c(TEXTS), verbose=0),
    "search": lambda c: embedder().search("差", c(TEXTS), 3),
    "search vectors": lambda c: embedder().search(
        "差", list(embedder().encode_text(c(TEXTS), verbose=0)), 3
    ),
    "search for several": lambda c: embedder().search(c(OTHERS), TEXTS, 1),
    "fill": lambda c: filler().fill(c(MASKED), 2, targets=c(["好", "差"])),
    "pseudo_perplexity": lambda c: filler().pseudo_perplexity(c(TEXTS)),
    "correct": lambda c: of_class("spelling corrector")().correct(c(TEXTS)),
    "summarize": lambda c: of_class("summarizer")().summarize(c(TEXTS), verbose=0),
    "spans": lambda c: of_class("token classifier")().predict_spans(
        c(TEXTS), verbose=0
    ),
    "order": lambda c: of_class("sentence order")().sentence_order(c(TEXTS), c(OTHERS)),
    "windows": lambda c: tools.predict_windows(classifier(), c(TEXTS), verbose=0),
    "early": lambda c: early().predict_early(c(TEXTS), 1),
    "zero-shot": lambda c: tools.ZeroShotClassifier(classifier()).answers(
        c(TEXTS), candidate_labels=c(["好", "天地"])
    ),
    "pipeline": lambda c: TaskPipeline(classifier(), classifier())(c(TEXTS)),
    "pipeline of fields": lambda c: TaskPipeline(embedder(), embedder())(
        {"text": c(TEXTS), "text_pair": c(OTHERS)}
    ),
    "distiller": distilled,
    "tune_thresholds": tuned,
    "prune_vocabulary": lambda c: prune_vocabulary(classifier(), c(TEXTS))[
        1
    ].get_vocabulary(),
    "choices": lambda c: of_class("multiple choice")().answers(
        (c(TEXTS), c(OTHERS), wrapped(c, LISTS))
    ),
}
FUNCTIONS = {
    "labels": lambda c: check_class_names(c(["差", "好"]), 2),
    "names as y": lambda c: class_ids(TEXTS, c(NAMES), 2, ["差", "好"]),
    "class_weights": lambda c: tools.class_weights(c(NAMES), c(["差", "好"])),
    "tokenizer": lambda c: WORDS(c(TEXTS)),
    "preprocessor": lambda c: classifier().preprocessor((c(TEXTS), c(OTHERS))),
    "class_names": lambda c: data.class_names(c(NAMES)),
    "tags_to_spans": lambda c: data.tags_to_spans(c(["B-A", "I-A", "O"])),
    "class_names of numbers": lambda c: data.class_names(c(NUMBERS)),
    "contrastive_pairs": lambda c: data.contrastive_pairs(c(TEXTS), c(NAMES), 2),
    "segment": lambda c: zh.segment(c(TEXTS), list),
    "accuracy of names": scores("classification_scores", NAMES, NAMES[::-1]),
    "report of names": scores(
        "classification_report", NAMES, NAMES, labels=["差", "好"]
    ),
    "report of ids": scores("classification_report", IDS, TRUTH, labels=["差", "好"]),
    "regression": scores("regression_scores", NUMBERS, IDS),
    "spelling": scores("spelling_scores", TEXTS, TEXTS, TEXTS),
    "rouge": scores("rouge_scores", TEXTS, TEXTS[::-1]),
    "oracle": scores("oracle_labels", TEXTS, reference="差，他去"),
    "mistakes": lambda c: evaluation.worst_mistakes(np.full((4, 2), 0.5), c(IDS)),
    "calibration": lambda c: evaluation.calibration_scores(c(IDS), np.eye(4)[:, :2]),
    "answers": scores("squad_scores", TEXTS, LISTS),
    "entities": scores("entity_scores", SPANS, SPANS[::-1]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_read_any_container(name):
    check(FUNCTIONS[name], CONTAINERS)


# One for each way to read texts, except those that end in `predict`.
SLOW = ("fill", "correct", "spans", "order", "pipeline of fields", "tune_thresholds")
SLOW += ("distiller", "zero-shot", "prune_vocabulary", "choices")


@pytest.mark.parametrize(
    ("name", "containers"),
    [
        *(
            pytest.param(
                x,
                FEW,
                marks=pytest.mark.slow if x in SLOW else pytest.mark.nightly,
                id=f"{x} of few",
            )
            for x in OF_MODELS
        ),
        *(
            pytest.param(x, OTHERS_THAN_FEW, marks=pytest.mark.nightly, id=x)
            for x in OF_MODELS
        ),
    ],
)
def test_models_read_any_container(name, containers):
    check(OF_MODELS[name], containers)


@needs_onnx
def test_exported_files_read_any_container(tmp_path):
    model = write_onnx(classifier(), tmp_path / "model.onnx")
    answer = albert_tf_lite.pipeline(tmp_path / "model.onnx")
    functions = model.predict, model.answers, answer
    check(lambda c: [function(c(TEXTS)) for function in functions], CONTAINERS)


TABLE = pd.DataFrame({"text": TEXTS, "label": NAMES})
REFUSED = {
    "a DataFrame. Pass a column, such as table": TABLE,
    "a Table. Pass a column": pa.table({"text": TEXTS}),
    "(Received|is) a dict": {"text": TEXTS},
    "Received a set": {"好"},
    "Element 1 .* nan": ["好", float("nan")],
    "Element 1 .* <NA>": pd.Series(["好", pd.NA], dtype=object),
}


@pytest.mark.parametrize("message", REFUSED)
def test_tables_and_missing_texts_are_refused(message):
    given = REFUSED[message]
    functions = [data.contrastive_pairs, evaluation.rouge_scores, classifier().fit]
    functions.append(lambda x, y: classifier().predict(x))
    for function in functions:
        with pytest.raises((TypeError, ValueError), match=message):
            function(given, given)
