"""Question answering: windows, targets, best spans, no answer, files, errors."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from small_classifier import CHARACTERS, VOCABULARY, randomised, small_backbone

from albert_tf.models import AlbertQuestionAnswering

LONG = "很好吃，我想你来吧。𠮷太差了！不 去 吗？" * 4
QUESTIONS = ["好吗？", "谁", "", "你" * 40, "哪"]
CONTEXTS = [LONG, "我想😀吃ﬁ鸡\ud800蛋", "中文 天地", "他去了" * 9, ""]
ODD = "aé　ﬁΣ한北我想，。 \t\n\0\u200b\u0301Ａ😀👨🏽𠮷\ud800"


@pytest.fixture(scope="module")
def model():
    backbone = small_backbone(pooler=False)
    return randomised(AlbertQuestionAnswering.from_backbone(backbone, VOCABULARY))


def best(model, x, **options):
    return [answers[0] for answers in model.predict_n_best(x, 1, verbose=0, **options)]


def test_targets_are_the_tokens_of_the_answer(model):
    answers = [(11, "太差了"), (2, "😀吃"), None, (3, "他去"), ""]
    # The nearest place counts.
    given = [(12, "太差了"), *answers[1:]]
    with pytest.warns(UserWarning, match="1 of 5 answers do not stand at"):
        targets = model.targets((QUESTIONS, CONTEXTS), given)
    contexts = model.preprocessor.pack_texts((QUESTIONS, CONTEXTS))
    with_answer = set()
    for row, (first, last) in enumerate(zip(*targets.values(), strict=True)):
        example = int(contexts.windows.texts[row])
        if first == 0:
            assert last == 0
            continue
        shift = int(contexts.windows.starts[row] - contexts.first_lengths[row])
        start, text = answers[example]
        assert contexts.starts[example, first + shift] == start
        assert contexts.ends[example, last + shift] == start + len(text)
        with_answer.add(example)
    assert with_answer == {0, 1, 3}


def brute_force(model, question, context, most):
    """Return the probability of every span, by loops over windows and tokens."""
    x = [question], [context]
    contexts = model.preprocessor.pack_texts(x)
    logits = model.predict_rows(x, verbose=0)[2]
    starts, ends = contexts.starts[0].numpy(), contexts.ends[0].numpy()
    spans, null = {}, 1.0
    for row in range(len(contexts)):
        before = int(contexts.first_lengths[row])
        count = int(contexts.windows.ends[row] - contexts.windows.starts[row])
        shift = int(contexts.windows.starts[row]) - before
        read = [0, *range(before, before + count)]
        first, last = (
            dict(zip(read, softmax(logits[name][row][read]), strict=True))
            for name in ("start_logits", "end_logits")
        )
        null = min(null, first[0] * last[0])
        for a, b in itertools.product(read[1:], read[1:]):
            if a <= b < a + most:
                span = starts[a + shift], ends[b + shift]
                spans[span] = max(spans.get(span, 0), first[a] * last[b])
    return spans, null


@pytest.mark.parametrize("most", [1, 4])
def test_the_best_spans_are_those_of_a_search(model, most):
    x = QUESTIONS[:4], CONTEXTS[:4]
    options = {"max_answer_length": most, "null_threshold": 0.0}
    ranked = model.predict_n_best(x, 6, verbose=0, **options)
    for question, context, answers in zip(*x, ranked, strict=True):
        spans, null = brute_force(model, question, context, most)
        scores = sorted([*spans.values(), null], reverse=True)[:6]
        given = [answer["score"] for answer in answers]
        np.testing.assert_allclose(given, scores, rtol=1e-4)
        for answer in answers:
            place = answer["start"], answer["end"]
            expected = spans[place] if answer["answer"] else null
            assert answer["score"] == pytest.approx(expected, rel=1e-4)


@settings(max_examples=10)
@given(
    contexts=st.lists(
        st.text(st.one_of(st.sampled_from(ODD + CHARACTERS), st.characters())),
        min_size=50,
        max_size=50,
    ),
    seed=st.integers(0, 2**32 - 1),
)
def test_answers_in_500_random_contexts_are_slices(model, contexts, seed):
    """Spans of random logits start and end with a token."""
    rng = np.random.default_rng(seed)
    x = ["好"] * len(contexts), contexts
    packed = model.preprocessor.pack_texts(x)
    outputs = {
        name: [rng.normal(size=n).astype("float32") for n in packed.lengths]
        for name in ("start_logits", "end_logits")
    }
    places = packed.starts.to_list(), packed.ends.to_list()
    answers = model.predictions(x, packed, outputs)
    for context, answer, starts, ends in zip(contexts, answers, *places, strict=True):
        assert context[answer["start"] : answer["end"]] == answer["answer"]
        if answer["answer"]:
            assert answer["start"] in starts and answer["end"] in ends


def test_the_null_threshold(model):
    x = QUESTIONS[:4], CONTEXTS[:4]
    always = best(model, x, null_threshold=None)
    never = best(model, x, null_threshold=-1e9)
    assert all(answer["answer"] for answer in always)
    assert {(x["answer"], x["start"], x["end"]) for x in never} == {("", 0, 0)}
    scores = [[row["score"] for row in rows] for rows in (never, always)]
    margins = np.log(scores[0]) - np.log(scores[1])
    for threshold in [*(margins - 1e-3), *(margins + 1e-3)]:
        given = best(model, x, null_threshold=threshold)
        for margin, answer, found in zip(margins, always, given, strict=True):
            expected = "" if margin > threshold else answer["answer"]
            assert found["answer"] == expected
