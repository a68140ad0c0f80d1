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


def test_model_gives_sentence_pieces(tmp_path, proto):
    for name in ("30k-clean.model", "a.spm"):
        (tmp_path / name).write_bytes(proto)
    paths = (str(tmp_path / "30k-clean.model"), tmp_path / "a.spm")
    for given in (*paths, proto):
        tokenizer = load_tokenizer(given, lowercase=False)
        assert isinstance(tokenizer, SentencePieceTokenizer)
        assert tokenizer.proto == proto
        assert not tokenizer.lowercase


def test_text_file_gives_word_pieces(tmp_path):
    (tmp_path / "vocab").write_text("\n".join(TOKENS), encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path / "vocab")
    assert isinstance(tokenizer, WordPieceTokenizer)
    assert tokenizer.get_vocabulary() == TOKENS
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


def test_a_model_of_another_ending_is_told_to_end_in_model(tmp_path, proto):
    (tmp_path / "a.bin").write_bytes(proto)
    with pytest.raises(ValueError, match="a.bin' is not UTF-8.*must end in .model"):
        load_tokenizer(tmp_path / "a.bin")
