"""Models of KerasHub in this package, and ours there."""

import keras
import keras_hub
import numpy as np
import pytest
from peer_models import (
    ENGLISH,
    GOLDEN,
    SIZES,
    TOLERANCE,
    golden,
    inputs,
    largest_difference,
    random_backbone,
    randomise,
    same_weights,
    sentence_piece_proto,
)

import albert_tf
from albert_tf.checkpoints import CheckpointError
from albert_tf.models import AlbertPretrainer, AlbertTextClassifier
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import SentencePieceTokenizer

pytestmark = pytest.mark.peers

# num_layers, num_groups, num_inner_repetitions
KINDS = [(3, 1, 1), (4, 2, 2), (3, 3, 1)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *(chr(0x4E00 + i) for i in range(115))]
OUTPUTS = ["sequence_output", "pooled_output"]


def peer(kind=KINDS[0], seed=0, **kwargs):
    """A backbone of KerasHub whose every weight is random."""
    num_layers, num_groups, num_inner_repetitions = kind
    arguments = {
        **SIZES,
        "num_layers": num_layers,
        "num_groups": num_groups,
        "num_inner_repetitions": num_inner_repetitions,
        **kwargs,
    }
    return randomise(keras_hub.models.AlbertBackbone(**arguments), seed)


def ours_of_kind(kind, **kwargs):
    num_layers, num_groups, num_inner_repetitions = kind
    return random_backbone(
        num_layers=num_layers,
        num_attention_groups=num_groups,
        num_ffn_groups=num_groups,
        num_inner_repetitions=num_inner_repetitions,
        **kwargs,
    )


def write(model, folder):
    albert_tf.save_checkpoint(model, folder, layout="kerashub")
    return str(folder)


def same_outputs(model, other, model_inputs):
    ours, theirs = model(model_inputs), other(model_inputs)
    return all(largest_difference(ours[x], theirs[x]) < TOLERANCE for x in OUTPUTS)


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
            assert same_outputs(ours, theirs, given)


def test_loading_copies_the_weights():
    theirs = peer()
    ours = albert_tf.load_checkpoint(theirs)
    before = ours.pooled_dense.bias.numpy()
    theirs.pooled_dense.bias.assign(keras.ops.zeros(SIZES["hidden_dim"]))
    assert np.array_equal(ours.pooled_dense.bias.numpy(), before)


def test_their_classifier():
    theirs = keras_hub.models.AlbertTextClassifier(
        peer((4, 2, 2)), num_classes=3, preprocessor=None
    )
    randomise(theirs)
    ours = AlbertTextClassifier.from_checkpoint(theirs, vocabulary=VOCABULARY)
    assert ours.num_classes == 3
    assert largest_difference(ours(inputs()), theirs(inputs())) < TOLERANCE


def test_their_masked_language_model_has_an_encoder_only():
    # Its LayerNorm has an epsilon of 1e-5, and there is no sentence-order head.
    theirs = keras_hub.models.AlbertMaskedLM(peer(), preprocessor=None)
    ours = albert_tf.load_checkpoint(theirs)
    assert same_outputs(ours, theirs.backbone, inputs())
    with pytest.raises(CheckpointError):
        AlbertPretrainer.from_checkpoint(theirs)


def english_classifier_of_theirs():
    tokenizer = keras_hub.tokenizers.AlbertTokenizer(sentence_piece_proto())
    preprocessor = keras_hub.models.AlbertTextClassifierPreprocessor(
        tokenizer, sequence_length=20
    )
    backbone = peer(vocabulary_size=tokenizer.vocabulary_size(), num_segments=2)
    return randomise(
        keras_hub.models.AlbertTextClassifier(
            backbone, num_classes=3, preprocessor=preprocessor
        )
    )


def test_their_classifier_from_text_to_logits(tmp_path):
    theirs = english_classifier_of_theirs()
    theirs.save_to_preset(str(tmp_path))
    logits = theirs.predict(ENGLISH, verbose=0)
    for source in (theirs, tmp_path):
        ours = AlbertTextClassifier.from_checkpoint(source)
        assert largest_difference(ours.predict(ENGLISH, verbose=0), logits) < TOLERANCE


# === Our models, theirs ===


@pytest.mark.parametrize("kind", KINDS)
def test_our_backbone_there_and_back(tmp_path, kind):
    ours = ours_of_kind(kind, hidden_dropout=0.1, attention_dropout=0.1)
    theirs = keras_hub.models.AlbertBackbone.from_preset(write(ours, tmp_path))
    assert isinstance(theirs, keras_hub.models.AlbertBackbone)
    assert same_outputs(ours, theirs, inputs())
    loaded = albert_tf.load_checkpoint(tmp_path)
    assert same_weights(loaded, ours)
    first, second = ({**x.get_config(), "name": None} for x in (loaded, ours))
    assert first == second


@pytest.mark.parametrize("name", ["google_v2", "google_groups"])
def test_the_original_graphs_outputs_in_keras_hub(tmp_path, name):
    golden_inputs, expected = golden(name)
    folder = write(albert_tf.load_checkpoint(GOLDEN / name), tmp_path)
    theirs = keras_hub.models.AlbertBackbone.from_preset(folder)(golden_inputs)
    for output in OUTPUTS:
        assert largest_difference(theirs[output], expected[output]) < TOLERANCE


def classifier_of_ours(preprocessor=None, **kwargs):
    model = AlbertTextClassifier(
        random_backbone(**kwargs), 3, preprocessor=preprocessor
    )
    return randomise(model)


def test_our_classifier(tmp_path):
    ours = classifier_of_ours()
    folder = write(ours, tmp_path)
    theirs = keras_hub.models.AlbertTextClassifier.from_preset(
        folder, preprocessor=None
    )
    assert theirs.num_classes == 3
    assert largest_difference(ours(inputs()), theirs(inputs())) < TOLERANCE


def test_our_classifier_from_text_to_logits(tmp_path):
    tokenizer = SentencePieceTokenizer(sentence_piece_proto())
    preprocessor = AlbertTextClassifierPreprocessor(tokenizer, sequence_length=20)
    ours = classifier_of_ours(preprocessor, vocabulary_size=tokenizer.vocabulary_size())
    folder = write(ours, tmp_path)
    tokenizer = keras_hub.tokenizers.AlbertTokenizer.from_preset(folder)
    # KerasHub's does no clean-up, of which this text needs none.
    expected = ours.preprocessor.tokenizer(ENGLISH).to_list()
    assert [list(map(int, ids)) for ids in tokenizer(ENGLISH)] == expected
    theirs = keras_hub.models.AlbertTextClassifier.from_preset(
        folder,
        preprocessor=keras_hub.models.AlbertTextClassifierPreprocessor(
            tokenizer, sequence_length=20
        ),
    )
    logits = theirs.predict(ENGLISH, verbose=0)
    assert largest_difference(ours.predict(ENGLISH, verbose=0), logits) < TOLERANCE


# === Refusals ===


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding_projection": "before_layer_norm"}, "embedding_projection"),
        ({"activation": "gelu"}, "activation"),
        ({"num_attention_groups": 2, "num_ffn_groups": 2}, "divisible"),
        (
            {"hidden_dropout": 0.1, "attention_dropout": 0.2},
            "hidden_dropout=0.1 and attention_dropout=0.2",
        ),
    ],
)
def test_a_model_keras_hub_cannot_hold(tmp_path, changes, message):
    with pytest.raises(CheckpointError, match=message):
        write(random_backbone(**changes), tmp_path / "saved")
    assert not list(tmp_path.iterdir())


def test_pretraining_heads_have_no_place(tmp_path):
    model = AlbertPretrainer(random_backbone())
    with pytest.raises(CheckpointError, match="masked_lm_head.*sop_head"):
        write(model, tmp_path / "saved")


def test_another_model_of_keras_hub_is_refused():
    model = keras_hub.models.BertBackbone(120, 2, 2, 12, 20)
    with pytest.raises(CheckpointError, match="is not an ALBERT"):
        albert_tf.load_checkpoint(model)
