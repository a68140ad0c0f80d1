"""Base class of models in LiteRT and ONNX files."""

import base64
import json
import warnings
from typing import Any

import numpy as np

from albert_tf_lite.answers import TASKS, cosines_of, scores_of
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.packing import pack, pad, windows_of
from albert_tf_lite.sentence_piece import SentencePieceTokenizer
from albert_tf_lite.tagging import Tagging
from albert_tf_lite.word_piece import WordPieceTokenizer

# Name of the settings in a file. `albert_tf.export.description` lists their fields.
SETTINGS = "albert_tf.json"


class ExportedModel:
    """Base class of models in files: a subclass reads a file and runs its network.

    Attributes:
        task: string, such as `"text-classification"`.
        settings: dict, the labels and all else that the answers need.
        pairs: bool, whether it was trained on pairs of texts.
        tokenizer: `WordPieceTokenizer` or `SentencePieceTokenizer`.
    """

    def __init__(self, settings: str | bytes):
        self.settings: dict[str, Any] = json.loads(settings)
        self.task: str = self.settings["task"]
        if self.task not in TASKS:
            raise AlbertError(
                f"The file has the task {self.task!r}, which this albert_tf_lite does "
                f"not support. It supports {', '.join(TASKS)}."
            )
        self.pairs: bool = self.settings["pairs"]
        self.sequence_length: int = self.settings["sequence_length"]
        vocabulary = self.settings.pop("vocabulary")
        lowercase = self.settings["lowercase"]
        self.tokenizer: Any
        if isinstance(vocabulary, str):
            proto = base64.b64decode(vocabulary)
            self.tokenizer = SentencePieceTokenizer(proto, lowercase)
        else:
            self.tokenizer = WordPieceTokenizer(vocabulary, lowercase)
        tags = self.settings.get("tags")
        self._tagging = Tagging(tags) if tags else None

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Run the network.

        Args:
            features: `token_ids`, `segment_ids` and `padding_mask`, int32 arrays
                [batch, time].

        Returns:
            A float32 array [batch, units]; for a token classifier
            [batch, time, units].
        """
        raise NotImplementedError

    def predict(self, texts: Any, batch_size: int | None = None) -> dict[str, Any]:
        """Return the answers to texts as arrays.

        Args:
            texts: list of strings, or for pairs the tuple of two such lists.
            batch_size: optional int, examples per call of the network, by default 32.

        Returns:
            A dict of arrays, the first axis that of the texts: `label`, `label_id` and
            `probabilities`; for several labels `labels`, `chosen`, `probabilities`;
            `score`; `embedding`; `in_order`. For a token classifier `spans`, a list
            per text of (start, end, label, score).

        Raises:
            TypeError: if an element is not a string.
            AlbertError: if the number of lists or their lengths are wrong.
        """
        arrays = TASKS[self.task].arrays
        if arrays is None:
            return {"spans": self._spans(self._segments(texts)[0], batch_size)}
        return arrays(self.outputs(texts, batch_size), self.settings)

    def answers(
        self, texts: Any, batch_size: int | None = None, **options: Any
    ) -> list:
        """Return the answers as `albert_tf.pipeline` does, for JSON.

        Args:
            texts: as for `predict`; for an embedder also the tuple of two lists, whose
                vectors are compared.
            batch_size: as for `predict`.
            **options: `top_k` of classifiers.

        Returns:
            A list with an answer per text, a dict or a list of dicts.
        """
        if self.task == "text-embedding" and isinstance(texts, tuple):
            vectors = (self.outputs(part, batch_size) for part in texts)
            return scores_of(cosines_of(*vectors))
        found = self.predict(texts, batch_size)
        return TASKS[self.task].dicts(texts, found, self.settings, **options)

    def outputs(self, texts: Any, batch_size: int | None = None) -> np.ndarray:
        """Return the outputs [texts, units] of the network, if it has one per text."""
        segments = self._segments(texts)
        tokenized = [map(self.tokenizer.tokenize, part) for part in segments]
        rows = [self._pack(example) for example in zip(*tokenized, strict=True)]
        if truncated := sum(was_cut for _, _, was_cut in rows):
            warnings.warn(
                f"{truncated} of {len(rows)} texts are longer than the "
                f"{self.sequence_length} tokens that the file takes. They were "
                "truncated.",
                stacklevel=3,
            )
        outputs = self._run(rows, batch_size)
        return np.array(outputs, "float32").reshape(-1, self.settings["units"])

    def _segments(self, texts):
        """Return the one or two lists of strings of some texts."""
        segments = texts if isinstance(texts, tuple) else (texts,)
        allowed = TASKS[self.task].num_texts
        if len(segments) not in allowed:
            raise AlbertError(
                f"A model for {self.task} takes {' or '.join(map(str, allowed))} "
                f"list(s) of strings. Received {len(segments)}."
            )
        for segment in segments:
            if isinstance(segment, str) or not all(isinstance(x, str) for x in segment):
                raise TypeError(
                    f"`texts` must be a list of strings. Received: {segment!r:.80}"
                )
        lengths = [len(segment) for segment in segments]
        if len(set(lengths)) > 1:
            raise AlbertError(
                "The two lists of a pair must have the same length. Received "
                f"{lengths[0]} and {lengths[1]} texts."
            )
        return segments

    def _pack(self, example):
        cls_id, sep_id = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        return pack(example, cls_id, sep_id, self.sequence_length)

    def _run(self, rows, batch_size):
        """Return the output for each packed row, in input order."""
        batch_size = batch_size or 32
        outputs = [None] * len(rows)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            ids, first_lengths, _ = zip(*(rows[i] for i in batch), strict=True)
            pad_id = self.tokenizer.pad_token_id
            features = pad(ids, first_lengths, pad_id, self.sequence_length)
            for i, output in zip(batch, self.call(features), strict=True):
                outputs[i] = output
        return outputs

    def _spans(self, texts, batch_size):
        """Return the entities of each text; long texts are read in windows."""
        size = self.sequence_length - 2
        stride = min(self.settings["stride"] or max(size * 3 // 4, 1), size)
        tokenized = [self.tokenizer.tokenize_with_offsets(text) for text in texts]
        windows = [windows_of(len(ids), size, stride) for ids, _, _ in tokenized]
        rows = [
            self._pack([ids[window.start : window.end]])
            for (ids, _, _), parts in zip(tokenized, windows, strict=True)
            for window in parts
        ]
        outputs = iter(self._run(rows, batch_size))
        spans = []
        for (_, starts, ends), parts in zip(tokenized, windows, strict=True):
            # The tokens that each window decides, after [CLS].
            logits = [
                next(outputs)[1:][x.first - x.start : x.last - x.start] for x in parts
            ]
            spans.append(self._tagging.entities(np.concatenate(logits), starts, ends))
        return spans


def not_exported(path: Any) -> AlbertError:
    """Return the error for a file without settings."""
    return AlbertError(
        f"{path} is truncated, or was not written by albert_tf.export. Expected a file "
        "of albert_tf.export.litert (for LiteRTModel) or albert_tf.export.onnx (for "
        "OnnxModel)."
    )
