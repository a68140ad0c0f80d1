"""Which tokenizer a vocabulary file is for."""

import pytest
from sentence_piece_reference import train_model

from albert_tf.tokenizers import (
    SentencePieceTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
)

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "好"]


@pytest.fixture(scope="module")
def proto():
    return train_model()


@pytest.mark.parametrize("name", ["30k-clean.model", "a.spm", "vocabulary", "v.txt"])
@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_model_file_gives_sentence_pieces(tmp_path, proto, name, kind):
    (tmp_path / name).write_bytes(proto)
    tokenizer = load_tokenizer(kind(tmp_path / name), lowercase=False)
    assert isinstance(tokenizer, SentencePieceTokenizer)
    assert tokenizer.proto == proto
    assert not tokenizer.lowercase


def test_content_of_a_model_gives_sentence_pieces(proto):
    assert isinstance(load_tokenizer(proto), SentencePieceTokenizer)


@pytest.mark.parametrize("name", ["vocab.txt", "vocab"])
@pytest.mark.parametrize("blank", ["", "\n"])
def test_text_file_gives_word_pieces(tmp_path, name, blank):
    # A file may begin with an empty row, as a model does with the same byte.
    (tmp_path / name).write_text(blank + "\n".join(TOKENS), encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path / name)
    assert isinstance(tokenizer, WordPieceTokenizer)
    assert tokenizer.get_vocabulary()[-5:] == TOKENS
    assert tokenizer.lowercase


def test_list_gives_word_pieces():
    tokenizer = load_tokenizer(TOKENS, lowercase=False)
    assert isinstance(tokenizer, WordPieceTokenizer)
    assert tokenizer.get_vocabulary() == TOKENS
    assert not tokenizer.lowercase


def test_released_files(assets):
    vocabulary = assets / "released" / "vocab"
    model = load_tokenizer(vocabulary / "30k-clean.model")
    assert isinstance(model, SentencePieceTokenizer)
    chinese = load_tokenizer(vocabulary / "vocab_chinese_google.txt")
    assert isinstance(chinese, WordPieceTokenizer)


def test_wrong_files_are_refused_by_the_one_they_are_for(tmp_path):
    for name, message in [("a.model", "SentencePiece model"), ("vocab.txt", "Vocab")]:
        with pytest.raises(FileNotFoundError, match=f"{message}.*does not exist"):
            load_tokenizer(tmp_path / name)
    (tmp_path / "b.model").write_text("\n".join(TOKENS), encoding="utf-8")
    with pytest.raises(ValueError, match="b.model' is text"):
        load_tokenizer(tmp_path / "b.model")
