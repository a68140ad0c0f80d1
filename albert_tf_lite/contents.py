"""What an exported file holds besides the network: its settings and its vocabulary."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.sentence_piece import SentencePieceTokenizer
from albert_tf_lite.word_piece import WordPieceTokenizer

# Raised when files of before could not be read, or be read wrongly.
FORM = 1
SETTINGS = "albert_tf.json"
# By the kind of tokenizer, the name of the vocabulary.
VOCABULARIES = {"word_piece": "vocab.txt", "sentence_piece": "spiece.model"}


@dataclasses.dataclass(frozen=True)
class Contents:
    """Settings and vocabulary.

    Attributes:
        settings: dict that JSON can hold:
            `task`: string, one of `albert_tf_lite.answers.ANSWERS`; `pairs`: bool,
            whether it was trained on pairs of texts (older files do not say it);
            `tokenizer`: string, one of `VOCABULARIES`; `lowercase`: bool;
            `sequence_length`: int, most tokens of an example;
            `lengths`: list of ints, for LiteRT those there is a signature for;
            `output`: string, the name of the network's output; `units`: int, its width;
            and what the answers of the task read, such as `labels`.
        vocabulary: bytes, a vocab.txt or a SentencePiece model.
    """

    settings: dict[str, Any]
    vocabulary: bytes

    def files(self) -> dict[str, bytes]:
        """The contents by name, as they are written into a file."""
        settings = {"form": FORM, **self.settings}
        text = json.dumps(settings, ensure_ascii=False, indent=1)
        name = VOCABULARIES[self.settings["tokenizer"]]
        return {SETTINGS: text.encode(), name: self.vocabulary}

    @classmethod
    def of(cls, files: Mapping[str, bytes], source: Any) -> Contents:
        """The contents of what `files` gave.

        Args:
            files: bytes by name.
            source: what to call the file in errors.

        Raises:
            AlbertError: if something is missing, or of a later form.
        """
        if SETTINGS not in files:
            raise not_ours(source)
        settings = json.loads(files[SETTINGS])
        if settings["form"] != FORM:
            raise AlbertError(
                f"{source} has the form {settings['form']}, and this albert_tf_lite "
                f"reads form {FORM}. Use the one of the release that wrote the file."
            )
        name = VOCABULARIES[settings["tokenizer"]]
        if name not in files:
            raise AlbertError(f"{source} has lost its {name}. Export the model again.")
        return cls(settings, files[name])

    def build_tokenizer(self) -> WordPieceTokenizer | SentencePieceTokenizer:
        """The tokenizer of the vocabulary."""
        lowercase = self.settings["lowercase"]
        if self.settings["tokenizer"] == "sentence_piece":
            return SentencePieceTokenizer(self.vocabulary, lowercase)
        tokens = self.vocabulary.decode().removesuffix("\n").split("\n")
        return WordPieceTokenizer(tokens, lowercase)


def not_ours(source: Any) -> ValueError:
    """The error for a file that holds no settings of ours."""
    return AlbertError(
        f"{source} is cut short, or was not written by albert_tf.export: it says "
        "neither its task nor its vocabulary. Expected a file of "
        "albert_tf.export.litert (for LiteRTModel) or albert_tf.export.onnx (for "
        "OnnxModel)."
    )
