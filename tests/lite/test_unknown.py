"""Texts that the vocabulary does not cover are named once per call."""

import contextlib
import warnings

import pytest
from lite_tasks import TASKS, needs_onnx, small_task, write_onnx
from sentence_piece_reference import english_classifier
from small_classifier import VOCABULARY, small_classifier
from task_cases import CASES
from tiers import few

import albert_tf
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.tools import predict_windows
from albert_tf_lite.unknown import (
    TruncatedTextsWarning,
    UnknownTokensWarning,
    warn_of_unknown,
)

# One token per character. The vocabulary lacks 這, 個 and 們.
TRADITIONAL = ["很好這", "不太差個", "們是們我們一的"]
ADVICE = "If they are Traditional Chinese, convert .* with OpenCC"


@contextlib.contextmanager
def unknown_tokens():
    """Yield a list that gets the warnings about unknown tokens."""
    found: list = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    kind = UnknownTokensWarning
    found += [str(x.message) for x in caught if issubclass(x.category, kind)]


def replaced(x, new):
    """Return texts, in tuples and lists, with other characters for unknown ones."""
    if isinstance(x, str):
        return x.replace("😀", new).replace("吗", new) + new
    return type(x)(replaced(part, new) for part in x)


# A task per text, one per token and one of pairs.
QUICK = ("text classifier", "token classifier", "question answering")


@pytest.mark.parametrize(
    "name",
    few([x for x, case in CASES.items() if case.takes_texts], QUICK),
)
def test_every_task_warns_once_per_call(name):
    task, x = CASES[name].build(num_layers=1), CASES[name].x
    with unknown_tokens() as found:
        task.predict(replaced(x, "好"), verbose=0)
        assert not found
    with unknown_tokens() as found:
        task.predict(replaced(x, "這"), verbose=0)
    (message,) = found
    assert "are [UNK], most often for" in message and "這" in message


@needs_onnx
@pytest.mark.parametrize("name", few(TASKS, ("labels", "tags", "questions", "choices")))
def test_exported_models_and_pipelines_warn_alike(name, tmp_path):
    task, x = small_task(name)
    model, x = write_onnx(task, tmp_path / "model.onnx"), replaced(x, "這")
    rows = list(zip(*x, strict=True)) if isinstance(x, tuple) else x
    calls = (
        lambda: model.predict(x),
        lambda: albert_tf.pipeline(model.task, task)(rows),
        lambda: albert_tf.pipeline(model.task, task, engine="onnx")(rows),
    )
    messages = []
    for call in calls:
        with unknown_tokens() as found:
            call()
        messages += found
    assert len(messages) == 3
    # Keras counts the tokens that are left of long texts.
    names = {message.partition("are [UNK]")[2] for message in messages}
    assert len(names) == 1


# Question 0 has 11 tokens, one more than half of a window of 24 leaves.
LONG_QUESTIONS = (["好" * 11, "好" * 10, "很"], ["不太差" * 20, "好", "好"])
LONG_CHOICES = (["好" * 30, "好"], ["很", "很"], [["不", "太"], ["差", "了"]])


@needs_onnx
@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("questions", LONG_QUESTIONS, "1 of 3 texts have a question that is longer"),
        ("choices", LONG_CHOICES, "1 of 2 texts are longer than"),
    ],
)
def test_keras_and_exported_models_count_truncated_texts_alike(
    name, x, expected, tmp_path
):
    task, _ = small_task(name)
    model = write_onnx(task, tmp_path / "model.onnx")
    y = [None, None, (0, "好")] if name == "questions" else [0, 0]
    calls = [lambda: task.predict(x, verbose=0), lambda: model.predict(x)]
    calls += [lambda: albert_tf.pipeline(task.name_of_task, task)(rows_of(x))]
    if name == "questions":
        calls.append(lambda: task.targets(x, y))
    for call in calls:
        with pytest.warns(TruncatedTextsWarning) as found:
            call()
        (message,) = (str(x.message) for x in found)
        assert message.startswith(expected) and message.endswith("truncated.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task.predict(tuple(part[1:] for part in x), verbose=0)
        model.predict(tuple(part[1:] for part in x))


def test_a_truncated_sentence_of_an_article_is_counted():
    summarizer = CASES["summarizer"].build(num_layers=1)
    length = summarizer.preprocessor.sequence_length
    articles = ["很好。" + "好" * length + "。不好。", "很好。" * length]
    with pytest.warns(TruncatedTextsWarning, match="^1 of 2 texts have a sentence"):
        summarizer.predict(articles, verbose=0)


def rows_of(x):
    return list(zip(*x, strict=True))


def test_the_share_the_characters_and_the_remedy():
    task = small_classifier(2)
    embedder = CASES["text embedder"].build()
    x, y = TRADITIONAL, [0, 1, 1]
    # 們 3, 這 1 and 個 1, of 14 characters.
    expected = f"^35.7% of the tokens of 3 texts are .* 們, 這, 個. {ADVICE}"
    for call in (
        lambda: task.fit(x, y, epochs=1, verbose=0),
        lambda: task.evaluate(x, y, verbose=0),
        lambda: predict_windows(task, x, verbose=0),
        lambda: embedder.encode_text(x, verbose=0),
    ):
        with pytest.warns(UnknownTokensWarning, match=expected):
            call()
    pairs = albert_tf.pipeline("text-embedding", embedder)
    with unknown_tokens() as found:
        pairs(list(zip(x, x, strict=True)))
    assert len(found) == 1 and "of 6 texts" in found[0]


def test_how_many_are_too_many():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    for unknown, tokens, is_warned in (
        (0, 0, False),
        (0, 9, False),
        (1, 2, True),
        (1, 3, False),
        (2, 3, True),
        (2, 39, True),
        (2, 40, False),
        (50, 1000, False),
        (51, 1000, True),
    ):
        with unknown_tokens() as found:
            warn_of_unknown(unknown, tokens, lambda: ["這"], tokenizer)
        assert bool(found) == is_warned


def test_the_remedy_suits_vocabulary_and_texts():
    unused = [f"[unused{i}]" for i in range(120, 21_128)]
    tokenizer, english = WordPieceTokenizer(VOCABULARY), english_classifier()
    for tokens, text, remedy in (
        (
            tokenizer,
            "這個",
            "use a checkpoint with the 21,128 tokens of the releases",
        ),
        (WordPieceTokenizer(VOCABULARY + unused), "這個", "with OpenCC.$"),
        (tokenizer, "мир 這", "Use a checkpoint whose vocabulary covers the texts"),
        (english.preprocessor.tokenizer, "不太差", "Use a Chinese checkpoint"),
    ):
        with pytest.warns(UnknownTokensWarning, match=remedy):
            warn_of_unknown(3, 3, lambda text=text: [text], tokens)
    with pytest.warns(UnknownTokensWarning, match="Use a Chinese checkpoint"):
        albert_tf.pipeline(path=english)("不太差")
