"""Questions and choices: heads of PyTorch transformers, and how it reads answers."""

import numpy as np
import pytest
from peer_models import (
    SIZES,
    TOLERANCE,
    inputs,
    largest_difference,
    random_backbone,
    randomise,
    same_weights,
)
from test_transformers import (
    KINDS,
    KINDS_AND_FORMATS,
    load,
    peer,
    run,
    save,
    vocabulary,
)

import albert_tf
from albert_tf.models import AlbertMultipleChoice, AlbertQuestionAnswering
from albert_tf.models.answer_spans import best_spans

pytestmark = pytest.mark.peers

NAMES = ("start_logits", "end_logits")
CHOICES = 4


def choice_inputs():
    """[batch, choices, time], of unlike lengths."""
    parts = [inputs(seed) for seed in range(CHOICES)]
    return {name: np.stack([x[name] for x in parts], axis=1) for name in parts[0]}


def assert_spans_agree(ours, theirs, model_inputs):
    ours, theirs = ours(model_inputs), run(theirs, model_inputs)
    is_token = model_inputs["padding_mask"] == 1
    for name in NAMES:
        expected = getattr(theirs, name).numpy()[is_token]
        assert (
            largest_difference(np.asarray(ours[name])[is_token], expected) < TOLERANCE
        )


@pytest.mark.parametrize("kind, file_format", KINDS_AND_FORMATS)
def test_their_question_answering(tmp_path, kind, file_format):
    theirs = peer("AlbertForQuestionAnswering", kind)
    ours = AlbertQuestionAnswering.from_checkpoint(
        save(theirs, tmp_path, file_format), vocabulary=vocabulary()
    )
    assert_spans_agree(ours, theirs, inputs())


def test_our_question_answering(tmp_path):
    ours = randomise(AlbertQuestionAnswering(random_backbone(pooler=False)))
    albert_tf.save_checkpoint(ours, tmp_path / "there", "huggingface")
    theirs = load("AlbertForQuestionAnswering", tmp_path / "there")
    assert_spans_agree(ours, theirs, inputs())
    back = AlbertQuestionAnswering.from_checkpoint(
        tmp_path / "there", vocabulary=vocabulary()
    )
    assert same_weights(ours, back)


@pytest.mark.parametrize("kind", KINDS)
def test_their_multiple_choice(tmp_path, kind):
    theirs = peer("AlbertForMultipleChoice", kind)
    ours = AlbertMultipleChoice.from_checkpoint(
        save(theirs, tmp_path), vocabulary=vocabulary()
    )
    expected = run(theirs, choice_inputs()).logits
    assert expected.shape == (3, CHOICES)
    assert largest_difference(ours(choice_inputs()), expected) < TOLERANCE


def test_their_multiple_choice_of_a_config_that_does_not_say_so(tmp_path):
    folder = save(peer("AlbertForMultipleChoice"), tmp_path, "bin")
    with pytest.warns(UserWarning, match="does not name AlbertForMultipleChoice"):
        AlbertMultipleChoice.from_checkpoint(folder, vocabulary=vocabulary())


def test_our_multiple_choice(tmp_path):
    ours = randomise(AlbertMultipleChoice(random_backbone()))
    albert_tf.save_checkpoint(ours, tmp_path / "there", "huggingface")
    theirs = load("AlbertForMultipleChoice", tmp_path / "there")
    expected = run(theirs, choice_inputs()).logits
    assert largest_difference(ours(choice_inputs()), expected) < TOLERANCE
    back = AlbertMultipleChoice.from_checkpoint(
        tmp_path / "there", vocabulary=vocabulary()
    )
    assert same_weights(ours, back)


def test_answers_are_read_as_their_pipeline_does():
    """Its question answering is gone from version 5; that of documents reads alike."""
    module = pytest.importorskip("transformers.pipelines.document_question_answering")
    backbone = random_backbone(pooler=False)
    model = AlbertQuestionAnswering.from_backbone(backbone, vocabulary())
    rng = np.random.default_rng(0)
    characters = np.array(vocabulary()[5:25])
    contexts = ["".join(rng.choice(characters, n)) for n in rng.integers(1, 18, 200)]
    questions = ["".join(rng.choice(characters, n)) for n in rng.integers(0, 9, 200)]
    windowed = model.preprocessor.pack_texts((questions, contexts))
    assert len(windowed) == 200 and SIZES["max_sequence_length"] == 33
    lengths = windowed.tokens.row_lengths().numpy()
    logits = {
        name: [rng.normal(0, 3, length).astype("float32") for length in lengths]
        for name in NAMES
    }
    ours = best_spans(windowed, logits, n_best=5, max_answer_length=6)
    for i, (scores, firsts, lasts, null) in enumerate(zip(*ours, strict=True)):
        before = int(windowed.first_lengths[i])
        # 1 for what cannot be in an answer, but [CLS].
        p_mask = np.ones([1, lengths[i]], "int64")
        p_mask[0, 0] = p_mask[0, before:-1] = 0
        starts, ends, expected, least = module.select_starts_ends(
            *(logits[name][i][None] for name in NAMES),
            p_mask,
            np.ones_like(p_mask),
            top_k=5,
            handle_impossible_answer=True,
            max_answer_len=6,
        )
        # It gives [CLS], too, with a probability of 0.
        is_span = expected > 0
        starts, ends, expected = (x[is_span] for x in (starts, ends, expected))
        count = len(expected)
        np.testing.assert_allclose(np.exp(scores[:count]), expected, rtol=1e-4)
        assert np.exp(null) == pytest.approx(least, rel=1e-4)
        tokens = windowed.starts[i].numpy(), windowed.ends[i].numpy()
        assert firsts[:count].tolist() == tokens[0][starts - before].tolist()
        assert lasts[:count].tolist() == tokens[1][ends - before].tolist()
