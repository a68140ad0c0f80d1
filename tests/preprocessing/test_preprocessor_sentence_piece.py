"""The classifier's preprocessor with the tokenizer of the English models."""

import numpy as np
import pytest
from sentence_piece_reference import Reference, train_model

from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.text_classifier_preprocessor import check_fits
from albert_tf.tokenizers import SentencePieceTokenizer

PAD, CLS, SEP = 0, 2, 3
TEXTS = ["On 3 May 2018, the river", "", "Why?"]
OTHERS = ["Stones!", "the", ""]


@pytest.fixture(scope="module")
def proto():
    return train_model()


@pytest.fixture
def preprocessor(proto):
    tokenizer = SentencePieceTokenizer(proto)
    return AlbertTextClassifierPreprocessor(tokenizer, sequence_length=20)


@pytest.fixture(scope="module")
def backbone(proto):
    return AlbertBackbone(
        SentencePieceTokenizer(proto).vocabulary_size(),
        num_layers=1,
        num_heads=2,
        embedding_dim=4,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=20,
        embedding_projection="after_layer_norm",
    )


def packed(proto, first, second=None):
    ids = [CLS, *Reference(proto).ids(first), SEP]
    return ids + ([*Reference(proto).ids(second), SEP] if second else [])


def without_padding(features):
    rows = zip(features["token_ids"], features["padding_mask"], strict=True)
    return [np.array(ids)[np.array(mask) == 1].tolist() for ids, mask in rows]


def test_texts_and_pairs_are_packed(preprocessor, proto):
    features = preprocessor(TEXTS)
    assert without_padding(features) == [packed(proto, text) for text in TEXTS]
    features = preprocessor((TEXTS, OTHERS))
    assert without_padding(features) == [
        packed(proto, *pair) for pair in zip(TEXTS, OTHERS, strict=True)
    ]
    assert features["segment_ids"][0].numpy().sum() == len(packed(proto, "Stones!")) - 1


@pytest.mark.slow
def test_padding_is_the_tokenizers(proto):
    proto = train_model(pad_id=1, unk_id=0)
    preprocessor = AlbertTextClassifierPreprocessor(SentencePieceTokenizer(proto))
    features = preprocessor(TEXTS)
    padding = features["token_ids"].numpy()[features["padding_mask"].numpy() == 0]
    assert set(padding) == {1}


@pytest.mark.slow
def test_tokenizing_at_once_gives_what_calling_does(preprocessor):
    tokens, first_lengths, cut = preprocessor.tokenize_and_pack((TEXTS, OTHERS), 2)
    features = preprocessor.packer.pad(tokens, first_lengths)
    for name, expected in preprocessor((TEXTS, OTHERS)).items():
        np.testing.assert_array_equal(features[name], expected)
    assert cut == 0


def test_another_model_is_traced_anew(preprocessor):
    """Also one of the same tokens, for their scores may differ."""
    before = preprocessor.tokenize_and_pack(TEXTS)[0].to_list()
    other = train_model(model_type="bpe", vocab_size=150)
    preprocessor.tokenizer.set_proto(other)
    after = preprocessor.tokenize_and_pack(TEXTS)[0].to_list()
    assert after != before
    assert after == [packed(other, text) for text in TEXTS]


@pytest.mark.parametrize("what", ["preprocessor", "task"])
def test_preset_restores_the_tokenizer(preprocessor, backbone, proto, tmp_path, what):
    preset = str(tmp_path / "preset")
    if what == "preprocessor":
        backbone.save_to_preset(preset)
        preprocessor.save_to_preset(preset)
        restored = AlbertTextClassifierPreprocessor.from_preset(preset)
    else:
        task = AlbertTextClassifier(backbone, 2, preprocessor=preprocessor)
        task.save_to_preset(preset)
        restored = AlbertTextClassifier.from_preset(preset).preprocessor
    assert isinstance(restored.tokenizer, SentencePieceTokenizer)
    assert restored.tokenizer.proto == proto
    assert restored.sequence_length == 20
    assert without_padding(restored(TEXTS)) == [packed(proto, text) for text in TEXTS]


def test_model_file_of_another_checkpoint_is_refused(backbone):
    tokenizer = SentencePieceTokenizer(train_model(vocab_size=100))
    preprocessor = AlbertTextClassifierPreprocessor(tokenizer, sequence_length=20)
    with pytest.raises(ValueError, match=r"has \d+ tokens.*Use the spiece.model that"):
        check_fits(preprocessor, backbone)
