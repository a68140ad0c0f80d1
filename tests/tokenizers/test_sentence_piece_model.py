"""The model file: reading it, what is said about the wrong ones, and saving it."""

import copy
import json
import os
import pickle

import keras
import pytest
import tensorflow as tf
from sentence_piece_reference import Reference, train_model

from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer

SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def proto():
    return train_model()


@pytest.fixture(scope="module")
def tokenizer(proto):
    return SentencePieceTokenizer(proto)


class TestPieces:
    def test_strings_instead_of_ids(self, proto):
        tokenizer = SentencePieceTokenizer(proto, dtype="string")
        for pieces in (tokenizer(["~~é", ""]), tokenizer.tokenize(["~~é", ""])):
            # The piece of an unknown token is its text.
            assert pieces.to_list() == [["▁".encode(), b"~~", b"e"], []]


class TestDetokenize:
    def test_control_pieces_are_left_out_and_unknown_ones_stay(self, tokenizer):
        text = "the (river) ran, on 3 may 2018, ahead"
        ids = tokenizer(text).numpy().tolist()
        packed = [2, *ids, 3, 1, 4, 0, 0]
        expected = f"{text}<unk>"
        assert tokenizer.detokenize(packed).numpy().decode() == expected
        function = tf.function(tokenizer.detokenize)
        assert function(tf.constant([packed]))[0].numpy().decode() == expected

    def test_batches(self, tokenizer):
        ids = tokenizer(["The  river", "", "It's 1,000, (a)"])
        expected = ["the river", "", "it's 1,000, (a)"]
        for batch in (ids, ids.to_list(), ids.to_tensor(), ids.to_tensor().numpy()):
            texts = [text.decode() for text in tokenizer.detokenize(batch).numpy()]
            assert texts == expected
        assert tokenizer.detokenize([]).numpy() == b""


class TestModel:
    def test_path_or_bytes(self, proto, tokenizer, tmp_path):
        path = tmp_path / "b"
        path.write_bytes(proto)
        for given in (path, str(path), proto):
            other = SentencePieceTokenizer(given)
            assert other.proto == proto
            assert other.get_vocabulary() == tokenizer.get_vocabulary()
            assert other("a b").numpy().tolist() == tokenizer("a b").numpy().tolist()

    def test_released_model(self, assets):
        vocabulary = assets / "released" / "vocab"
        tokenizer = SentencePieceTokenizer(vocabulary / "30k-clean.model")
        rows = (vocabulary / "30k-clean.vocab").read_text(encoding="utf-8").split("\n")
        tokens = [row.split("\t")[0] for row in rows if row]
        assert tokenizer.get_vocabulary() == tokens
        assert tokenizer.vocabulary_size() == 30000
        assert tokenizer.special_tokens == SPECIAL
        assert tokenizer.special_token_ids == [0, 1, 2, 3, 4]

    def test_special_tokens_by_name(self):
        tokenizer = SentencePieceTokenizer(
            train_model(control_symbols=["[SEP]", "[CLS]"], pad_id=1, unk_id=0)
        )
        assert tokenizer.cls_token_id == 3
        assert tokenizer.sep_token_id == 2
        assert tokenizer.pad_token_id == 1
        assert tokenizer.unk_token_id == 0
        assert tokenizer.mask_token_id is None
        assert tokenizer.special_tokens == ["<pad>", "<unk>", "[CLS]", "[SEP]"]
        assert tokenizer("~").numpy().tolist()[-1:] == [0]

    def test_missing_file(self, tmp_path):
        for path in (tmp_path / "no.model", tmp_path):
            with pytest.raises(FileNotFoundError, match=f"'{path}' does not exist"):
                SentencePieceTokenizer(path)

    @pytest.mark.slow
    def test_wrong_type(self):
        with pytest.raises(TypeError, match=r"path .* or its content as bytes.*PAD"):
            SentencePieceTokenizer(["[PAD]"])

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"[PAD]\n[UNK]\n",
            "<pad>\t0\n▁the\t-3.5\n".encode(),
            b"\x00\x01\x02\xff",
        ],
        ids=["empty", "vocab.txt", "vocab", "bytes"],
    )
    def test_no_model(self, tmp_path, content):
        message = "is text, empty or damaged.*use WordPieceTokenizer"
        path = tmp_path / "spiece.model"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"spiece.model'.* {message}"):
            SentencePieceTokenizer(path)
        with pytest.raises(ValueError, match=f"given as bytes.* {message}"):
            SentencePieceTokenizer(content)

    def test_model_cut_short_anywhere_is_refused(self, proto, tokenizer):
        text = "the river ran, 2018, é"
        for size in [*range(1, 20), *range(20, len(proto) - 40, 499)]:
            with pytest.raises(ValueError, match="damaged|cut short|lacks"):
                SentencePieceTokenizer(proto[:size])
        # At the very end are settings that tokenizing does not need.
        for size in range(len(proto) - 40, len(proto), 7):
            try:
                short = SentencePieceTokenizer(proto[:size])
            except ValueError:
                continue
            assert short(text).numpy().tolist() == tokenizer(text).numpy().tolist()

    def test_model_of_pieces_alone_is_refused(self, proto):
        # Cut where a piece ends, it is a model, of another vocabulary.
        end = 0
        while proto[end] == 0x0A:
            end += 2 + proto[end + 1]
        with pytest.raises(ValueError, match=f"{end} bytes, is cut short"):
            SentencePieceTokenizer(proto[:end])

    @pytest.mark.parametrize(
        "arguments, message",
        [
            ({"control_symbols": ["[CLS]"]}, r"lacks \[SEP\]; its"),
            ({"pad_id": -1}, r"lacks <pad>; its .*control_symbols="),
        ],
    )
    def test_model_without_special_tokens(self, arguments, message):
        if arguments == {"pad_id": -1}:
            arguments["unk_id"] = 0
        with pytest.raises(ValueError, match=f"given as bytes {message}"):
            SentencePieceTokenizer(train_model(**arguments))

    def test_no_model_yet(self, proto, tmp_path):
        tokenizer = SentencePieceTokenizer()
        assert tokenizer.cls_token_id is None
        assert tokenizer.proto is None
        for use in (
            lambda: tokenizer.tokenize(["a"]),
            lambda: tokenizer.tokenize_with_offsets(["a"]),
            lambda: tokenizer.detokenize([1]),
            lambda: tokenizer.save_original(tmp_path),
            tokenizer.get_vocabulary,
            tokenizer.vocabulary_size,
            lambda: tokenizer.special_tokens,
        ):
            with pytest.raises(ValueError, match="no vocabulary yet.*set_proto"):
                use()
        assert list(tmp_path.iterdir()) == []
        tokenizer.set_proto(proto)
        assert tokenizer.cls_token_id == 2
        assert tokenizer("the").shape == (1,)


class TestSaving:
    @pytest.fixture
    def original(self, proto, tmp_path):
        path = tmp_path / "30k.model"
        path.write_bytes(proto)
        return SentencePieceTokenizer(path, lowercase=False, dtype="int64", name="en")

    def check(self, restored, proto):
        assert isinstance(restored, SentencePieceTokenizer)
        assert restored.proto == proto
        assert restored.lowercase is False
        assert restored.name == "en"
        ids = restored("The é 2018,")
        assert ids.numpy().tolist() == Reference(proto, False).ids("The é 2018,")
        assert ids.dtype == tf.int64

    def test_config_and_assets(self, original, proto, tmp_path):
        config = original.get_config()
        assert str(tmp_path) not in json.dumps(config)
        restored = SentencePieceTokenizer.from_config(config)
        assert original.file_assets == ["vocabulary.spm"]
        original.save_assets(tmp_path)
        restored.load_assets(tmp_path)
        self.check(restored, proto)

    @pytest.mark.slow
    def test_serialize(self, original, proto):
        config = keras.saving.serialize_keras_object(original)
        assert config["registered_name"] == "albert_tf>SentencePieceTokenizer"
        restored = keras.saving.deserialize_keras_object(config)
        restored.set_proto(proto)
        self.check(restored, proto)

    def test_preset(self, original, proto, tmp_path):
        preset = str(tmp_path / "preset")
        original.save_to_preset(preset)
        assert os.path.exists(f"{preset}/assets/tokenizer/vocabulary.spm")
        os.remove(tmp_path / "30k.model")
        self.check(SentencePieceTokenizer.from_preset(preset), proto)
        assert SentencePieceTokenizer.from_preset(preset, lowercase=True).lowercase
        with pytest.raises(ValueError, match="SentencePieceTokenizer.from_preset()"):
            WordPieceTokenizer.from_preset(preset)

    @pytest.mark.slow
    def test_original_file(self, original, proto, tmp_path):
        assert original.original_file_name == "spiece.model"
        path = original.save_original(tmp_path)
        assert path == str(tmp_path / "spiece.model")
        assert (tmp_path / "spiece.model").read_bytes() == proto

    @pytest.mark.slow
    def test_original_file_of_word_pieces(self, tmp_path):
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "", "\u2028", "中"]
        tokenizer = WordPieceTokenizer(tokens)
        assert tokenizer.original_file_name == "vocab.txt"
        assert tokenizer.save_original(tmp_path) == str(tmp_path / "vocab.txt")
        content = (tmp_path / "vocab.txt").read_bytes().decode()
        assert content == "".join(f"{token}\n" for token in tokens)
        assert WordPieceTokenizer(tmp_path / "vocab.txt").get_vocabulary() == tokens

    @pytest.mark.slow
    def test_pickle_and_copy(self, original, proto):
        self.check(pickle.loads(pickle.dumps(original)), proto)
        self.check(copy.deepcopy(original), proto)
