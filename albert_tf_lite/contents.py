"""Settings and vocabulary in an exported file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.sentence_piece import SentencePieceTokenizer
from albert_tf_lite.word_piece import WordPieceTokenizer

# Increased when older files can no longer be read.
FORM = 1
SETTINGS = "albert_tf.json"
# File name of the vocabulary by kind of tokenizer.
VOCABULARIES = {"word_piece": "vocab.txt", "sentence_piece": "spiece.model"}


@dataclasses.dataclass(frozen=True)
class Contents:
    """Settings and vocabulary of an exported file.

    Attributes:
        settings: dict of JSON values:
            `task`: string, one of `albert_tf_lite.answers.ANSWERS`; `pairs`: bool,
            whether it was trained on pairs of texts (missing in older files);
            `tokenizer`: string, one of `VOCABULARIES`; `lowercase`: bool;
            `sequence_length`: int, maximum number of tokens per example;
            `lengths`: list of ints, the signatures of a LiteRT file;
            `output`: string, the name of the network's output; `units`: int, its width;
            and what the answers of the task need, such as `labels`.
        vocabulary: bytes, a vocab.txt or a SentencePiece model.
    """

    settings: dict[str, Any]
    vocabulary: bytes

    def files(self) -> dict[str, bytes]:
        """Return the files to write, bytes by name."""
        settings = {"form": FORM, **self.settings}
        text = json.dumps(settings, ensure_ascii=False, indent=1)
        name = VOCABULARIES[self.settings["tokenizer"]]
        return {SETTINGS: text.encode(), name: self.vocabulary}

    @classmethod
    def of(cls, files: Mapping[str, bytes], source: Any) -> Contents:
        """Return the contents that `files` wrote.

        Args:
            files: bytes by name.
            source: name of the exported file in error messages.

        Raises:
            AlbertError: if a file is missing or has a later form.
        """
        if SETTINGS not in files:
            raise not_ours(source)
        settings = json.loads(files[SETTINGS])
        if settings["form"] != FORM:
            raise AlbertError(
                f"{source} has form {settings['form']}, but this albert_tf_lite reads "
                f"form {FORM}. Use the release that wrote the file."
            )
        name = VOCABULARIES[settings["tokenizer"]]
        if name not in files:
            raise AlbertError(f"{source} lacks its {name}. Export the model again.")
        return cls(settings, files[name])

    def build_tokenizer(self) -> WordPieceTokenizer | SentencePieceTokenizer:
        """Build the tokenizer of the vocabulary."""
        lowercase = self.settings["lowercase"]
        if self.settings["tokenizer"] == "sentence_piece":
            return SentencePieceTokenizer(self.vocabulary, lowercase)
        tokens = self.vocabulary.decode().removesuffix("\n").split("\n")
        return WordPieceTokenizer(tokens, lowercase)


def not_ours(source: Any) -> ValueError:
    """Return the error for a file without settings."""
    return AlbertError(
        f"{source} is cut short, or was not written by albert_tf.export: it has no "
        "settings and no vocabulary. Expected a file of albert_tf.export.litert (for "
        "LiteRTModel) or albert_tf.export.onnx (for OnnxModel)."
    )
