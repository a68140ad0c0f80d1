"""Models of KerasHub in this package, and ours there."""

import keras_hub
import pytest
from checkpoint_files import assert_near, assert_same_weights
from peer_models import ENGLISH, SIZES, inputs, random_backbone, randomise
from sentence_piece_reference import train_model

import albert_tf
from albert_tf.models import AlbertTextClassifier
from albert_tf.tokenizers import SentencePieceTokenizer

pytestmark = pytest.mark.peers

# num_layers, num_groups, num_inner_repetitions
KINDS = [(3, 1, 1), (4, 2, 2), (3, 3, 1)]


def groups_of(kind, *names):
    return {**dict.fromkeys(names, kind[1]), "num_inner_repetitions": kind[2]}


def peer(kind=KINDS[0], **kwargs):
    """A backbone of KerasHub whose every weight is random."""
    sizes = {**SIZES, "num_layers": kind[0], **groups_of(kind, "num_groups")}
    return randomise(keras_hub.models.AlbertBackbone(**{**sizes, **kwargs}))


def ours_of_kind(kind, **kwargs):
    groups = groups_of(kind, "num_attention_groups", "num_ffn_groups")
    return random_backbone(num_layers=kind[0], **groups, **kwargs)


def write(model, folder):
    albert_tf.save_checkpoint(model, folder, layout="kerashub")
    return str(folder)


def assert_same_outputs(model, other, given):
    ours, theirs = model(given), other(given)
    for name in ("sequence_output", "pooled_output"):
        assert_near(ours[name], theirs[name])


# === Their models, ours ===


@pytest.mark.parametrize("kind", KINDS)
def test_their_backbone_preset_and_keras_file(tmp_path, kind):
    theirs = peer(kind, dropout=0.15)
    theirs.save_to_preset(str(tmp_path / "preset"))
    theirs.save(tmp_path / "model.keras")
    for source in (theirs, tmp_path / "preset", tmp_path / "model.keras"):
        ours = albert_tf.load_checkpoint(source)
        assert isinstance(ours, albert_tf.models.AlbertBackbone)
        assert (ours.hidden_dropout, ours.attention_dropout) == (0.15, 0.15)
        for given in (inputs(), inputs(padded=False)):
            assert_same_outputs(ours, theirs, given)


def preprocessor_of_theirs(tokenizer):
    return keras_hub.models.AlbertTextClassifierPreprocessor(
        tokenizer, sequence_length=33
    )


def test_their_classifier_from_text_to_logits(tmp_path):
    tokenizer = keras_hub.tokenizers.AlbertTokenizer(train_model())
    backbone = peer(vocabulary_size=tokenizer.vocabulary_size(), num_segments=2)
    theirs = keras_hub.models.AlbertTextClassifier(
        backbone, num_classes=3, preprocessor=preprocessor_of_theirs(tokenizer)
    )
    randomise(theirs)
    theirs.save_to_preset(str(tmp_path))
    logits = theirs.predict(ENGLISH, verbose=0)
    for source in (theirs, tmp_path):
        ours = AlbertTextClassifier.from_checkpoint(source)
        assert_near(ours.predict(ENGLISH, verbose=0), logits)


# === Our models, theirs ===


@pytest.mark.parametrize("kind", KINDS)
def test_our_backbone_there_and_back(tmp_path, kind):
    ours = ours_of_kind(kind, hidden_dropout=0.1, attention_dropout=0.1)
    theirs = keras_hub.models.AlbertBackbone.from_preset(write(ours, tmp_path))
    assert isinstance(theirs, keras_hub.models.AlbertBackbone)
    assert_same_outputs(ours, theirs, inputs())
    loaded = albert_tf.load_checkpoint(tmp_path)
    assert_same_weights(loaded, ours)
    first, second = ({**x.get_config(), "name": None} for x in (loaded, ours))
    assert first == second


def test_our_classifier_from_text_to_logits(tmp_path):
    tokenizer = SentencePieceTokenizer(train_model())
    backbone = random_backbone(vocabulary_size=tokenizer.vocabulary_size())
    ours = randomise(AlbertTextClassifier.from_backbone(backbone, tokenizer, 3))
    folder = write(ours, tmp_path)
    tokenizer = keras_hub.tokenizers.AlbertTokenizer.from_preset(folder)
    # KerasHub's does no clean-up, of which this text needs none.
    expected = ours.preprocessor.tokenizer(ENGLISH).to_list()
    assert [list(map(int, ids)) for ids in tokenizer(ENGLISH)] == expected
    theirs = keras_hub.models.AlbertTextClassifier.from_preset(
        folder, preprocessor=preprocessor_of_theirs(tokenizer)
    )
    logits = theirs.predict(ENGLISH, verbose=0)
    assert_near(ours.predict(ENGLISH, verbose=0), logits)
