"""Wrong arguments, texts and labels of each task raise an error that names them."""

import functools
import pathlib

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from small_classifier import LABELS, TEXTS, small_backbone, small_classifier
from task_cases import CASES

from albert_tf import load_checkpoint, models, pipeline, preprocessing, tools
from albert_tf.layers import EncoderBlock
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf_lite.errors import AlbertError

MICRO = pathlib.Path(__file__).parents[2] / "examples" / "albert_micro_zh"
FRAME = pd.DataFrame({"好": [1], "坏": [0]})
DATASET = tf.data.Dataset.from_tensor_slices((["天", "地"], [0, 1]))
BATCHES = DATASET.batch(2)
STRINGS = tf.data.Dataset.from_tensor_slices((["天", "地"], ["天", "地"])).batch(2)
STRINGS_OF_PAIRS = STRINGS.map(lambda x, y: ((x, x), y))
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
    ("`epochs` must be an int", "text classifier.fit", TEXTS, LABELS, {"epochs": -1}),
    ("is for lists of", "text classifier.fit", BATCHES, {"validation_split": 0.2}),
    ("a dict of weights", "text classifier.fit", TEXTS, LABELS, {"class_weight": "x"}),
    ("counts the labels of lists", "text classifier.fit", BATCHES, BALANCED),
    ("is for classifiers with one", "regressor.fit", TEXTS, LABELS, BALANCED),
]
NAN = float("nan")
A, B = ["好"], ["差"]
# Labels in the wrong form: the message has the row, or the line that converts them.
METHODS += [
    ("Element 1 of `y` is missing: nan", "multi-label classifier.fit", A + B, [B, NAN]),
    ("Element 0 of `y.1.` is miss", "multi-label classifier.fit", A + B, [A, [NAN]]),
    (r"split\('\|'\) if name\]", "multi-label classifier.fit", A + B, ["好|坏", ""]),
    (r"\[\[name\] for name in y\]", "multi-label classifier.fit", A + B, A + A),
    (r"table\[labels\].to_numpy\(\)", "multi-label classifier.fit", A, FRAME),
    ("In text 1, .*nan", "token classifier.fit", A + B, [[], NAN]),
    (r"tags_to_spans\(tags\) for", "token classifier.fit", A, [["B-PER"]]),
    (r's\["start"\], s\["end"\]', "token classifier.fit", A, [[{"start": 0}]]),
    ("`y.1.` should be a list.*nan", "summarizer.fit", A + B, [[1], NAN]),
    ("y.0.` should.*A set has no order", "summarizer.fit", ["好。差。"], [{0, 1}]),
    (r'for x in row.split\("\|"\)', "summarizer.fit", ["好。差。"], ["1|0"]),
    (r"\(None, text\) for text in y", "question answering.fit", ONE, ["好"]),
    ("`y.0.` should.*A set has no", "question answering.fit", ONE, [{(0, "好")}]),
    ("Element 1 is 'x'", "regressor.fit", (A + B, A + B), [1.0, "x"]),
    ("Element 1 of `y` is missing: n", "regressor.fit", (A + B, A + B), [1.0, NAN]),
    ("Element 0 is inf", "text classifier.fit", A, [1], {"sample_weight": [np.inf]}),
    (r"value.split\('\|'\) for value in y", "text classifier.fit", A, ["好|坏"]),
    ("AlbertMultiLabelClassifier with y", "text classifier.fit", A, [{"好", "坏"}]),
    ("Pass a column", "text classifier.fit", A, FRAME),
    (r"pass sorted\(y\)", "text classifier.fit", A, {"好"}),
    ("strings.*as lists", "spelling corrector.fit", STRINGS),
    ("strings.*as `labels`", "pair classifier.fit", STRINGS_OF_PAIRS),
]
# Each integer argument, and the method that takes it.
INTEGERS = {
    "batch_size": "text classifier.predict",
    "max_tokens": "text classifier.predict",
    "epochs": "text classifier.fit",
    "patience": "early-exit classifier.predict_early",
    "n_best": "question answering.predict_n_best",
    "max_answer_length": "question answering.predict_n_best",
    "top_k": "masked language model.fill",
    "sentences": "summarizer.summarize",
    "max_characters": "summarizer.summarize",
}
# Each model is built once.
build = functools.cache(lambda name: CASES[name].build())


@pytest.mark.parametrize("row", METHODS, ids=[row[0] for row in METHODS])
def test_wrong_input_of_a_task_raises(row):
    message, name, *given = row
    options = given.pop() if isinstance(given[-1], dict) else {}
    task, method = name.split(".")
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(build(task), method)(*given, **options)


@pytest.mark.parametrize("name", INTEGERS)
def test_counts_are_integers(name):
    task, method = INTEGERS[name].split(".")
    texts = ONE if task == "question answering" else ["好[MASK]"]
    labels = [[0]] if name == "epochs" else []
    function = functools.partial(getattr(build(task), method), texts, *labels)
    for value in (-1, 1.5, True, "2", *([] if name == "epochs" else [0])):
        with pytest.raises(AlbertError, match=f"`{name}` must be an integer, .*: "):
            function(**{name: value})


def preprocessor(kind, **options):
    cls = getattr(preprocessing, f"Albert{kind}Preprocessor")
    return cls(WordPieceTokenizer(), **options)


LENGTHS = {
    "sequence_length": lambda x: classifier("Text", sequence_length=x),
    "stride": lambda x: tools.predict_windows(
        build("text classifier"), TEXTS, stride=x
    ),
    "stride of tags": lambda x: preprocessor("TokenClassifier", stride=x),
    "stride of questions": lambda x: preprocessor("QuestionAnswering", stride=x),
    "max_question_length": lambda x: preprocessor(
        "QuestionAnswering", max_question_length=x
    ),
    "top_k": lambda x: build("text embedder").search("好", TEXTS, top_k=x),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_and_strides_are_positive_integers(name):
    for value in (0, -1, 1.5, True):
        with pytest.raises(AlbertError, match=f"`{name.split()[0]}` must be an int"):
            LENGTHS[name](value)
    # NumPy's are integers.
    LENGTHS[name](np.int64(7))


def test_balanced_class_weights_are_those_of_the_labels(monkeypatch):
    seen = []

    def fit(model, x, class_weight, **options):
        seen.append(class_weight)

    monkeypatch.setattr(keras.Model, "fit", fit)
    task, y = build("text classifier"), [0, 0, 0, 1, 2, 2, 0]
    # n / (classes * count), of the labels to train on.
    task.fit(TEXTS, y, class_weight="balanced")
    names = [["坏", "中", "好"][i] for i in y]
    task.fit(TEXTS, names, class_weight="balanced", validation_split=0.2)
    assert seen[0] == pytest.approx({0: 7 / 12, 1: 7 / 3, 2: 7 / 6})
    assert seen[1] == pytest.approx({0: 5 / 9, 1: 5 / 3, 2: 5 / 3})


def test_labels_in_sets_and_columns_are_taken():
    one, several = build("text classifier"), build("multi-label classifier")
    given = [("坏",), {"好"}, frozenset(["中"])]
    assert one.targets(TEXTS[:3], given).tolist() == [0, 2, 1]
    given = [("坏", "好"), {"好"}, frozenset()]
    assert several.targets(TEXTS[:3], given).tolist() == [[1, 0, 1], [0, 0, 1], [0] * 3]
    scores = np.array([[0.5], [2.0], [1.0]])
    assert build("regressor").targets(TEXTS[:3], scores).tolist() == [0.5, 2.0, 1.0]
    first, second = (
        build("token classifier").targets(["好"], [spans]).to_list()
        for spans in ({(0, 1, "PER")}, [(0, 1, "PER")])
    )
    assert first == second


def explain(*args, **kwargs):
    return tools.IntegratedGradients(build("text classifier"))(*args, **kwargs)


def distiller(student):
    return tools.AlbertDistiller(build("text classifier"), student)


def classifier(kind, **options):
    return small_classifier(cls=getattr(models, f"Albert{kind}Classifier"), **options)


def early_exit_classifier(**options):
    return small_classifier(cls=tools.AlbertEarlyExitClassifier, **options)


CALLS = {
    "no pooler": lambda: small_backbone(pooler=False).pool(IDS),
    "one string, or the tuple": lambda: explain(["好"]),
    "of `target` are not among": lambda: explain("好", target="x"),
    "Only an AlbertMultiLabelClassifier": lambda: tools.tune_thresholds(
        build("text classifier"), TEXTS, LABELS
    ),
    "each of the 3 classes": lambda: classifier("MultiLabel", thresholds=[0.5]),
    "layers are all one function": lambda: early_exit_classifier(
        sizes={"num_ffn_groups": 2}
    ),
    "needs two classes or more.*num_classes=2.*AlbertTextRegressor": lambda: classifier(
        "Text", labels=["好评"], num_classes=1
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
    "no label .*entailment=": lambda: tools.ZeroShotClassifier(small_classifier()),
    "`vocab`. Did you mean `vocabulary`": lambda: (
        models.AlbertTextClassifier.from_checkpoint(MICRO, vocab="vocab.txt")
    ),
    "`vocab`. Did you mean .vocabulary": lambda: (
        models.AlbertTextClassifier.from_preset(f"{MICRO}:topics", vocab="vocab.txt")
    ),
    "Choose one: .*`head='sentiment'`. Pass `labels=` or `num_classes=` to": lambda: (
        models.AlbertTextClassifier.from_checkpoint(MICRO)
    ),
    "`num_classes=` or `labels=` .*Its named heads, to choose by `head=`": lambda: (
        models.AlbertMultiLabelClassifier.from_checkpoint(MICRO)
    ),
    "`vocab`. Its .* `vocabulary` is an argument of `from_checkpoint`": lambda: (
        load_checkpoint(MICRO, vocab="vocab.txt")
    ),
    "`poler`. Did you mean `pooler`": lambda: load_checkpoint(MICRO, poler=False),
    "no option vocab. Did you mean vocabulary": lambda: pipeline(
        "topic-classification", MICRO, head="topics", vocab="vocab.txt"
    ),
    "kinds of entities, without O": lambda: models.AlbertTokenClassifier(
        small_backbone(), labels=["O", "B-PER"]
    ),
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
