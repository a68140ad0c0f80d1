"""Hugging Face directories: weights of PyTorch, their config and tokenizer."""

import functools
import json
import os
import pathlib
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from albert_tf.checkpoints.config import (
    read_config,
    tokenizer_arguments,
    tokenizer_config,
)
from albert_tf.checkpoints.formats import Files, torch_files
from albert_tf.checkpoints.layout import CheckpointError, name_damage
from albert_tf.checkpoints.layouts import HUGGINGFACE
from albert_tf.extras import import_extra
from albert_tf.files import write_json
from albert_tf.tokenizers import WordPieceTokenizer, load_tokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf.writing_errors import writing_errors
from albert_tf_lite.errors import listed

# The key of the sizes in the metadata of the weights.
_CONFIG = "albert_tf.config"
_TOKENIZER = "tokenizer.json"
_TOKENIZER_CONFIG = "tokenizer_config.json"
_ADDED = "added_tokens.json"
# Where transformers differs from the original code.
_DEFAULTS = {"max_input_chars_per_word": 100}
# Fields of a tokenizer_config.json by those of the normalizer in a tokenizer.json.
_NORMALIZER = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "tokenize_chinese_chars",
}


# Errors by values of other types in a file.
_WRONG_VALUES = (TypeError, ValueError, LookupError, AttributeError)

# In files of PyTorch.
find, files_of = torch_files.find, torch_files.files_of


def open_files(path: pathlib.Path) -> Files:
    """Open a model saved by transformers, by a file of weights or an index of them."""
    weights = torch_files.open_weights(path)
    tokenizer = _TokenizerFiles(path.parent)
    with name_damage(weights.path, ValueError, RecursionError, TypeError):
        stored_config = dict(json.loads(weights.metadata.get(_CONFIG, "{}")))
    return Files(
        path=weights.path,
        folders=[path.parent],
        shapes=weights.shapes,
        read=weights.read,
        layouts=(HUGGINGFACE,),
        check_unchanged=weights.check_unchanged,
        stored_config=stored_config,
        config_patterns=("config.json",),
        vocabulary_patterns=("vocab*.txt", "*.model", _TOKENIZER),
        tokenizer_settings=tokenizer.settings,
        load_tokenizer=tokenizer.load,
    )


class _AddedToken(NamedTuple):
    """A token beside the vocabulary; `any_case` finds it in text of any case."""

    id: int
    text: str
    any_case: bool

    @classmethod
    def of(cls, number: int, row: dict[str, Any]) -> "_AddedToken":
        """Return a token from its row in a file of transformers.

        Raises:
            TypeError: if the id or the text is none.
        """
        text, any_case = row["content"], row.get("normalized", True)
        is_id = type(number) is int and number >= 0
        if not is_id or not isinstance(text, str) or not text:
            raise TypeError(f"the id {number!r:.80} and the text {text!r:.80}")
        return cls(number, text, bool(any_case))


class _TokenizerFiles:
    """The files of a tokenizer in a folder, read when they are needed."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def settings(self, config: dict[str, Any], source: str) -> dict[str, Any]:
        """Return the arguments of the tokenizer; `config` is that of the model."""
        given, whole = self._fields[_TOKENIZER_CONFIG], self._fields[_TOKENIZER]
        fields: dict[str, Any] = dict(_DEFAULTS)
        with name_damage(self.folder / _TOKENIZER, *_WRONG_VALUES):
            for name, value in whole.get("model", {}).items():
                if name in _DEFAULTS:
                    fields[name] = value
            normalizer = whole.get("normalizer") or {}
            # The classes for BERT read these from tokenizer_config.json alone.
            if "Bert" not in str(given.get("tokenizer_class")):
                for name, field in _NORMALIZER.items():
                    if name in normalizer:
                        fields[field] = normalizer[name]
        fields.update(given or config)
        # transformers keeps them apart.
        fields.pop("added_tokens", None)
        return tokenizer_arguments(fields, str(self.folder / _TOKENIZER_CONFIG))

    @functools.cached_property
    def _fields(self) -> dict[str, dict[str, Any]]:
        paths = [self.folder / name for name in (_TOKENIZER, _TOKENIZER_CONFIG, _ADDED)]
        return {x.name: read_config(x) if x.exists() else {} for x in paths}

    def load(
        self, vocabulary: str | os.PathLike | bytes | list[str], **settings: Any
    ) -> TextTokenizer:
        """Return the tokenizer of a vocabulary, with the added tokens of the folder."""
        if isinstance(vocabulary, pathlib.Path) and vocabulary.name == _TOKENIZER:
            # transformers 5 writes no other vocabulary.
            vocabulary = _word_pieces(vocabulary)
        tokenizer = load_tokenizer(vocabulary, **settings)
        is_pieces = not isinstance(tokenizer, WordPieceTokenizer)
        if is_pieces and self._fields[_TOKENIZER_CONFIG].get("keep_accents"):
            warnings.warn(
                f"{self.folder / _TOKENIZER_CONFIG} has keep_accents=true. Accents "
                "are stripped here, as in the original code.",
                stacklevel=4,
            )
        return self._with_added_tokens(tokenizer)

    def _with_added_tokens(self, tokenizer: TextTokenizer) -> TextTokenizer:
        """Return a tokenizer that finds the added tokens of the folder."""
        added = [
            token
            for token in self._added_tokens()
            if token.text not in tokenizer.special_tokens
        ]
        if not added:
            return tokenizer
        vocabulary = tokenizer.get_vocabulary()
        # Added tokens after the vocabulary have no row in it yet.
        for token in added:
            if token.id == len(vocabulary):
                vocabulary.append(token.text)
        are_placed = all(
            token.id < len(vocabulary) and vocabulary[token.id] == token.text
            for token in added
        )
        if are_placed and isinstance(tokenizer, WordPieceTokenizer):
            any_case = {token.text: token.any_case for token in added}
            return tokenizer.with_settings(vocabulary=vocabulary, added_tokens=any_case)
        warnings.warn(
            f"{self.folder} has added tokens {listed([x.text for x in added])}, with "
            f"ids from {added[0].id} on. They are read as ordinary text. Expected ids "
            f"from {tokenizer.vocabulary_size()} on, after those of a vocab.txt.",
            stacklevel=5,
        )
        return tokenizer

    def _added_tokens(self) -> list[_AddedToken]:
        """Return the added tokens in the order of their ids."""
        tokens: dict[int, _AddedToken] = {}
        with name_damage(self.folder / _TOKENIZER, *_WRONG_VALUES):
            for row in self._fields[_TOKENIZER].get("added_tokens", []):
                tokens[row["id"]] = _AddedToken.of(row["id"], row)
        with name_damage(self.folder / _ADDED, *_WRONG_VALUES):
            for text, number in self._fields[_ADDED].items():
                token = _AddedToken.of(number, {"content": text})
                tokens.setdefault(token.id, token)
        with name_damage(self.folder / _TOKENIZER_CONFIG, *_WRONG_VALUES):
            rows = self._fields[_TOKENIZER_CONFIG].get("added_tokens_decoder", {})
            for number, row in rows.items():
                tokens[int(number)] = _AddedToken.of(int(number), row)
        return [tokens[number] for number in sorted(tokens)]


def _word_pieces(path: pathlib.Path) -> list[str]:
    """Return the tokens of a `tokenizer.json`, by id."""
    with name_damage(path, *_WRONG_VALUES):
        model = read_config(path).get("model", {})
        ids = model.get("vocab", {})
        is_numbered = set(ids.values()) == set(range(len(ids)))
    if model.get("type") != "WordPiece" or not is_numbered:
        raise CheckpointError(
            f"{path} holds no WordPiece tokenizer with an id for each token. Put the "
            "vocab.txt or spiece.model beside it, or pass it with `vocabulary=`."
        )
    return sorted(ids, key=lambda token: ids[token])


# === Writing ===


def write_model(
    directory: pathlib.Path,
    tensors: Iterable[tuple[str, Any]],
    config: dict[str, Any],
) -> None:
    """Write pairs of name and array as `model.safetensors`.

    It also holds the sizes in the config, because tensors of shared layers fit models
    of any number of layers and heads.
    """
    sizes = {name: config[name] for name in HUGGINGFACE.config_fields}
    arrays = {name: np.ascontiguousarray(value) for name, value in tensors}
    metadata = {"format": "pt", _CONFIG: json.dumps(sizes)}
    path = directory / torch_files.WEIGHTS
    library = import_extra("safetensors.numpy")
    with writing_errors(path, import_extra("safetensors").SafetensorError):
        library.save_file(arrays, path, metadata)
    _sort_metadata(path)


def _sort_metadata(path: pathlib.Path) -> None:
    """Sort the metadata of a file, which the library writes in random order.

    The files of equal models are equal.
    """
    with open(path, "r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        if len(text) <= length:
            file.seek(8)
            file.write(text.ljust(length))


def ignored_fields(tokenizer: TextTokenizer) -> dict[str, Any]:
    """Return the settings in a `tokenizer_config.json` that transformers ignores."""
    fields = tokenizer_config(tokenizer, **_DEFAULTS)
    return {name: x for name, x in fields.items() if name in _DEFAULTS}


def write_tokenizer(
    directory: pathlib.Path, tokenizer: TextTokenizer, max_length: int
) -> dict[str, int]:
    """Write a tokenizer for `AutoTokenizer`; return config fields of special tokens.

    Without `tokenizer_class` transformers builds a SentencePiece tokenizer for any
    ALBERT, and every word of a `vocab.txt` is unknown.
    """
    tokenizer.save_original(directory)
    classes = {"vocab.txt": "BertTokenizer", "spiece.model": "AlbertTokenizer"}
    fields = tokenizer_config(tokenizer, **_DEFAULTS)
    added = fields.pop("added_tokens", {})
    if added:
        fields["added_tokens_decoder"] = {
            str(tokenizer.token_to_id(token)): {
                "content": token,
                "normalized": any_case,
                **dict.fromkeys(("lstrip", "rstrip", "single_word", "special"), False),
            }
            for token, any_case in added.items()
        }
    config = {
        "tokenizer_class": classes[str(tokenizer.original_file_name)],
        "do_lower_case": tokenizer.lowercase,
        **fields,
        "model_max_length": max_length,
        **{
            f"{name}_token": getattr(tokenizer, f"{name}_token")
            for name in ("unk", "sep", "pad", "cls", "mask")
        },
    }
    write_json(directory / _TOKENIZER_CONFIG, config)
    return {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
