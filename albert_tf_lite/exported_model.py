"""What a LiteRT and an ONNX file have in common: texts in, answers out."""

from __future__ import annotations

import os
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf_lite.answers import ANSWERS, TEXTS_OF_AN_EXAMPLE, TOKEN_CLASSIFICATION
from albert_tf_lite.contents import Contents
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.packing import pack, pad
from albert_tf_lite.plain_answers import PLAIN_ANSWERS, cosines_of, scores_of
from albert_tf_lite.tagging import Tagging
from albert_tf_lite.windows import windows_of


class ExportedModel:
    """A model in a file that answers texts.

    A subclass opens the file and runs the network (`call`).

    Args:
        contents: `Contents` of the file.

    Attributes:
        task: string, such as `"text-classification"`.
        settings: dict, see `Contents`.
        pairs: bool, whether it was trained on pairs of texts.
        tokenizer: `WordPieceTokenizer` or `SentencePieceTokenizer`.
    """

    # Examples that the network is given at a time.
    batch_size = 32

    def __init__(self, contents: Contents):
        self.settings = contents.settings
        self.task = self.settings["task"]
        self.pairs = self.settings.get("pairs", False)
        if self.task not in ANSWERS:
            raise AlbertError(
                f"The file is of the task {self.task!r}, which this albert_tf_lite "
                f"does not know. It knows {', '.join(ANSWERS)}."
            )
        self.tokenizer = contents.build_tokenizer()
        self.sequence_length = self.settings["sequence_length"]
        self._tagging = None
        if self.task == TOKEN_CLASSIFICATION:
            self._tagging = Tagging(self.settings["tags"])

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Run the network.

        Args:
            features: `token_ids`, `segment_ids` and `padding_mask`, int32 arrays
                [batch, time].

        Returns:
            A float32 array [batch, units], or of a token classifier
            [batch, time, units].
        """
        raise NotImplementedError

    def predict(self, texts: Any) -> dict[str, Any]:
        """The answers to texts.

        Args:
            texts: list of strings, or for pairs the tuple of two such lists.

        Returns:
            A dict of arrays, the first axis that of the texts: for a classifier
            `label`, `label_id` and `probabilities`; of several labels a text `labels`,
            `chosen` and `probabilities`; `score`; `embedding`; `in_order`. For a token
            classifier `spans`, a list for each text of (start, end, label, score),
            where `text[start:end]` is the entity.

        Raises:
            TypeError: if something is no string.
            AlbertError: if the two lists of pairs are of unequal lengths, or the task
                takes no pairs, or only pairs.
        """
        if self._tagging:
            return {"spans": self._spans(self._segments(texts)[0])}
        return ANSWERS[self.task](self.outputs(texts), self.settings)

    def answers(self, texts: Any, **options: Any) -> list:
        """The answers as dicts of plain Python, which JSON can hold.

        Args:
            texts: as for `predict`; of an embedder also the tuple of two lists, whose
                vectors are compared.
            **options: `top_k` of classifiers.

        Returns:
            A list, for each text what `albert_tf.pipeline` gives for the task: `label`
            and `score`, or a list of such; `entity_group`, `word`, `start`, `end` and
            `score` of each entity; `embedding`.

        Raises:
            TypeError, ValueError: as `predict`, or for an option.
        """
        if self.task == "text-embedding" and isinstance(texts, tuple):
            return scores_of(cosines_of(*map(self.outputs, texts)))
        answers = PLAIN_ANSWERS[self.task]
        return answers(texts, self.predict(texts), self.settings, **options)

    def outputs(self, texts: Any) -> np.ndarray:
        """What the network gives for texts, of one output a text.

        Args:
            texts: as for `predict`.

        Returns:
            A float32 array [texts, units].

        Raises:
            TypeError, ValueError: as `predict`.
        """
        outputs = self._outputs(self._pack(self._segments(texts)))
        return np.array(outputs, "float32").reshape(-1, self.settings["units"])

    def _segments(self, texts):
        """The one or two lists of strings."""
        segments = texts if isinstance(texts, tuple) else (texts,)
        allowed = TEXTS_OF_AN_EXAMPLE.get(self.task, (1, 2))
        if len(segments) not in allowed:
            expected = " or ".join(
                {1: "a list of strings", 2: "the tuple of two lists of strings"}[count]
                for count in allowed
            )
            raise AlbertError(
                f"A model for {self.task} takes {expected}. Received {len(segments)} "
                f"{'list' if len(segments) == 1 else 'lists'}."
            )
        segments = [_as_strings(segment) for segment in segments]
        lengths = [len(segment) for segment in segments]
        if len(set(lengths)) > 1:
            raise AlbertError(
                "The two lists of a pair must have the same length. Received "
                f"{lengths[0]} and {lengths[1]} texts."
            )
        return segments

    def _pack(self, segments):
        """The ids of each example, and how many are of its first text."""
        tokenized = [map(self.tokenizer.tokenize, texts) for texts in segments]
        packed = [self._pack_one(example) for example in zip(*tokenized, strict=True)]
        cut = sum(was_cut for _, _, was_cut in packed)
        if cut:
            warnings.warn(
                f"{cut} of {len(packed)} texts are longer than the "
                f"{self.sequence_length} tokens that the file is for, and were cut; "
                "what follows was not read.",
                stacklevel=4,
            )
        return [(ids, first_length) for ids, first_length, _ in packed]

    def _pack_one(self, example):
        cls_id, sep_id = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        return pack(example, cls_id, sep_id, self.sequence_length)

    def _outputs(self, rows):
        """What the network gives for each row, without padding, in their order."""
        outputs = [None] * len(rows)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            ids, first_lengths = zip(*(rows[i] for i in batch), strict=True)
            pad_id = self.tokenizer.pad_token_id
            features = pad(ids, first_lengths, pad_id, self.sequence_length)
            for i, output in zip(batch, self.call(features), strict=True):
                outputs[i] = output[: len(rows[i][0])] if self._tagging else output
        return outputs

    def _spans(self, texts):
        """The entities of each text; long ones are read in windows."""
        size = self.sequence_length - 2
        stride = self.settings["stride"] or max(size * 3 // 4, 1)
        tokenized = [self.tokenizer.tokenize_with_offsets(text) for text in texts]
        windows = [
            windows_of(len(ids), size, min(stride, size)) for ids, _, _ in tokenized
        ]
        rows = [
            self._pack_one([ids[window.start : window.end]])[:2]
            for (ids, _, _), cut in zip(tokenized, windows, strict=True)
            for window in cut
        ]
        outputs = iter(self._outputs(rows))
        spans = []
        for (_, starts, ends), cut in zip(tokenized, windows, strict=True):
            # After [CLS], the tokens that each window decides.
            logits = [
                next(outputs)[1:][
                    window.first - window.start : window.last - window.start
                ]
                for window in cut
            ]
            spans.append(self._tagging.entities(np.concatenate(logits), starts, ends))
        return spans


def existing_file(path: str | os.PathLike) -> pathlib.Path:
    """The path of a file, which must be there."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist or is no file. Expected what albert_tf.export "
            "wrote."
        )
    return path


def _as_strings(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, (str, bytes)):
        raise TypeError(
            f"`texts` should be a list of strings, not one. Received: {texts!r}"
        )
    strings = []
    for position, text in enumerate(texts):
        if isinstance(text, bytes):
            text = text.decode("utf-8", "ignore")
        if not isinstance(text, str):
            raise TypeError(
                f"`texts` should hold strings. Element {position} is {text!r} of type "
                f"{type(text).__name__}."
            )
        strings.append(text)
    return strings
