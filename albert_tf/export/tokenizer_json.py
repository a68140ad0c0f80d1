"""Write a tokenizer as `tokenizer.json`, the format of Hugging Face's `tokenizers`.

Character classes are written out, so that all programs that read the file agree: each
has the Unicode data of another year.
"""

import base64
import functools
import itertools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer
from albert_tf.tokenizers.word_piece_tokenizer import UNSPACED
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.sentence_piece import SPACE_PIECE, comma_parts
from albert_tf_lite.word_piece import IDEOGRAPHS, strips_accents

# A control character, which cleaned text does not contain.
_UNREACHABLE = "\x02"
_UNIGRAM = 1


def tokenizer_json(
    tokenizer: WordPieceTokenizer | SentencePieceTokenizer,
    sequence_length: int,
    decodes: bool = True,
) -> dict[str, Any]:
    """Return the content of a `tokenizer.json` with the ids of a tokenizer.

    Args:
        tokenizer: a WordPiece or SentencePiece tokenizer.
        sequence_length: int. Longer texts are truncated.
        decodes: bool. Declare the special tokens, so that decoders skip them. Their
            names in a text then are special tokens, too.
    """
    if isinstance(tokenizer, SentencePieceTokenizer):
        fields, decodes = _sentence_piece(tokenizer), True
    else:
        fields = _word_piece(tokenizer)
    special = tokenizer.special_tokens if decodes else []
    added = [_added_token(tokenizer, token, special=True) for token in special]
    added += [
        _added_token(tokenizer, token, normalized=any_case)
        for token, any_case in tokenizer.added_tokens.items()
    ]
    return {
        "version": "1.0",
        "truncation": {
            "direction": "Right",
            "strategy": "LongestFirst",
            "stride": 0,
            "max_length": sequence_length,
        },
        "padding": None,
        "added_tokens": sorted(added, key=lambda x: x["id"]),
        **fields,
        "post_processor": _template(tokenizer),
    }


def _added_token(tokenizer, token, special=False, normalized=False):
    return {
        "id": tokenizer.token_to_id(token),
        "content": token,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": normalized,
        "special": special,
    }


def _template(tokenizer):
    """Return the template `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`."""
    cls, sep = tokenizer.cls_token, tokenizer.sep_token

    def special(name, segment):
        return {"SpecialToken": {"id": name, "type_id": segment}}

    def text(name, segment):
        return {"Sequence": {"id": name, "type_id": segment}}

    single = [special(cls, 0), text("A", 0), special(sep, 0)]
    tokens = {
        name: {"id": name, "ids": [tokenizer.token_to_id(name)], "tokens": [name]}
        for name in (cls, sep)
    }
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), special(sep, 1)],
        "special_tokens": tokens,
    }


# === WordPiece ===


def _word_piece(tokenizer: WordPieceTokenizer) -> dict[str, Any]:
    normalizers = [_replace(_is_dropped, "")]
    # In the order of the original.
    if tokenizer.lowercase:
        normalizers.append({"type": "Lowercase"})
    if strips_accents(tokenizer.lowercase, tokenizer.strip_accents):
        normalizers += [{"type": "NFD"}, _replace(_is_accent, "")]
    ideographs = IDEOGRAPHS if tokenizer.tokenize_chinese_chars else ()
    words = _codes(_is_punctuation).union(*ideographs)
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                _split(f"{_class(_codes(_is_space))}+", "Removed"),
                _split(_class(words), "Isolated"),
            ],
        },
        "model": {
            "type": "WordPiece",
            "unk_token": tokenizer.unk_token,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": tokenizer.max_input_chars_per_word,
            # The original keeps the last row of a repeated token.
            "vocab": {x: i for i, x in enumerate(tokenizer.get_vocabulary())},
        },
        "decoder": _word_decoder(),
    }


def _word_decoder():
    """Return a decoder without spaces between Chinese characters."""
    wide = re.sub(r"\\x\{(\w+)\}", lambda x: chr(int(x[1], 16)), UNSPACED)
    gap = {"Regex": f"(?<=[{wide}]) (?=[{wide}])"}
    decoders = [
        {"type": "WordPiece", "prefix": "##", "cleanup": False},
        {"type": "Fuse"},
        {"type": "Replace", "pattern": gap, "content": ""},
    ]
    return {"type": "Sequence", "decoders": decoders}


def _is_space(character):
    return character in "\t\n\r" or unicodedata.category(character)[0] == "Z"


def _is_dropped(character):
    is_control = unicodedata.category(character) in ("Cc", "Cf")
    return character == "\ufffd" or (is_control and character not in "\t\n\r")


def _is_accent(character):
    return unicodedata.category(character) == "Mn"


def _is_punctuation(character):
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character)[0] == "P"


# === SentencePiece ===


def _sentence_piece(tokenizer: SentencePieceTokenizer) -> dict[str, Any]:
    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    model.ParseFromString(tokenizer.proto)
    if model.trainer_spec.model_type != _UNIGRAM:
        raise AlbertError(
            "A tokenizer.json is written for SentencePiece models of the type unigram, "
            "as those of the releases. Use albert_tf.export.onnx or saved_model."
        )
    spaces = f"{_class(_codes(str.isspace))}+"
    normalizers = [
        {"type": "Replace", "pattern": {"Regex": spaces}, "content": " "},
        {"type": "NFKD"},
        _replace(unicodedata.combining, ""),
    ]
    if tokenizer.lowercase:
        normalizers.append({"type": "Lowercase"})
    rules = model.normalizer_spec.precompiled_charsmap
    if rules:
        rules = base64.b64encode(rules).decode()
        normalizers.append({"type": "Precompiled", "precompiled_charsmap": rules})
    normalizers += [
        {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "},
        {"type": "Strip", "strip_left": True, "strip_right": True},
    ]
    metaspace = {
        "type": "Metaspace",
        "replacement": SPACE_PIECE,
        "prepend_scheme": "always",
        "split": False,
    }
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": tokenizer.unk_token_id,
            "vocab": _scored_pieces(tokenizer, model),
            "byte_fallback": False,
        },
        "decoder": metaspace,
    }


def _scored_pieces(tokenizer, model):
    """Return the pieces and their scores; a number and a comma are never one piece."""
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(tokenizer.proto)
    scored = []
    for row in model.pieces:
        piece = row.piece
        if len(comma_parts(processor, piece)) > 1:
            piece += _UNREACHABLE
        scored.append([piece, row.score])
    return scored


# === Character classes ===


def _replace(is_member, content):
    pattern = {"Regex": f"{_class(_codes(is_member))}+"}
    return {"type": "Replace", "pattern": pattern, "content": content}


def _split(pattern, behavior):
    pattern = {"Regex": pattern}
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False}


@functools.cache
def _codes(is_member: Callable[[str], Any]) -> set[int]:
    """Return the code points of the characters for which a function is true."""
    # JSON has no halves of surrogate pairs.
    codes = itertools.chain(range(0xD800), range(0xE000, sys.maxunicode + 1))
    return {code for code in codes if is_member(chr(code))}


def _class(codes: Iterable[int]) -> str:
    """Return a class of a regular expression, with the characters themselves.

    Engines differ in how they write the numbers of characters.
    """
    codes = set(codes)
    starts = sorted(code for code in codes if code - 1 not in codes)
    ends = sorted(code for code in codes if code + 1 not in codes)
    return f"[{''.join(map(_range, starts, ends))}]"


def _range(start, end):
    if start == end:
        return _character(start)
    return f"{_character(start)}-{_character(end)}"


def _character(code):
    return chr(code) if code > 0x7F else f"\\x{code:02x}"
