from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.tagged import tag_names
from albert_tf.models.batching import PADDING_TARGET
from albert_tf.models.from_checkpoint import warn_of_new_head
from albert_tf.models.tagging import TagAccuracy, Tagging, tags_of_spans
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing.task_preprocessors import (
    AlbertTokenClassifierPreprocessor,
    refuse_pairs,
)
from albert_tf.preprocessing.texts import texts_in_memory
from albert_tf_lite.answers import entities_of
from albert_tf_lite.errors import AlbertError

# Decoded together, padded to the longest.
TEXTS_AT_A_TIME = 64


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTokenClassifier(AlbertTask, keras_hub.models.Task):
    """ALBERT with a tag per token: entities with their place in the text.

    `fit` and `evaluate` take texts and their spans; `predict` returns spans for texts,
    and logits for ids. A span is `(start, end, label)`, in characters of the user's own
    string: `text[start:end]` is the entity. Texts longer than the model's positions are
    read in overlapping windows, and each token is decided by the window where it is
    farthest from the cuts.

    A `tf.data.Dataset` to train on has batches of texts and the tags of their
    characters, as positions in `tags`. Its texts are truncated, not read in windows.

    Args:
        backbone: an `AlbertBackbone`.
        labels: list of strings, the kinds of entities.
        scheme: `"BIO"` or `"BIOES"`, the tags of a label.
        preprocessor: an `AlbertTokenClassifierPreprocessor`, or `None` if the
            inputs are ids already.
        dropout: float. Rate between the encoder's output and the head.
        tags: optional list of strings, instead of `labels` and `scheme`: the tags in
            the order of the outputs, such as `["O", "B-PER", "I-PER"]`.
        compile: bool. Compile with the defaults.

    Returns:
        Logits [batch, time, num_tags].

    Raises:
        AlbertError: if `labels` or `tags` are missing, repeated or no tags, or the
            preprocessor's vocabulary or `sequence_length` does not fit the backbone.

    Example:
    ```python
    tagger = albert_tf.models.AlbertTokenClassifier.from_checkpoint(
        "albert_tiny_zh", labels=["PER", "LOC"]
    )
    tagger.fit(["小明去北京。"], [[(0, 2, "PER"), (3, 5, "LOC")]])
    tagger.predict(["小红在上海。"])  # [[(0, 2, "PER"), (3, 5, "LOC")]]
    ```

    Reference:
        [BERT](https://arxiv.org/abs/1810.04805), section 5.3; transformers
        `AlbertForTokenClassification`.
    """

    name_of_task = "token-classification"
    preprocessor_cls = AlbertTokenClassifierPreprocessor
    monitor = "f1"
    heads = ("token_classifier",)
    ignored_class = PADDING_TARGET

    def __init__(
        self,
        backbone: AlbertBackbone,
        labels: Sequence[str] | None = None,
        scheme: str = "BIO",
        preprocessor: AlbertTokenClassifierPreprocessor | None = None,
        dropout: float = 0.1,
        tags: Sequence[str] | None = None,
        **kwargs: Any,
    ):
        # === Config ===
        self._tagging = Tagging(tags or tag_names(labels or [], scheme))
        self.tags = self._tagging.tags
        self.labels = self._tagging.labels
        self.scheme = self._tagging.scheme
        self.dropout = dropout
        if labels and set(labels) != set(self.labels):
            raise AlbertError(
                f"`labels` are {list(labels)}, but `tags` are of {self.labels}. For a "
                "new head on a preset, call from_checkpoint(preset, labels=...)."
            )

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = self.head_dropout(dropout)
        self.tag_dense = self.dense_head(len(self.tags), "tag_logits")

        # === Functional Model ===
        hidden = backbone(backbone.input)["sequence_output"]
        outputs = self.tag_dense(self.output_dropout(hidden))
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        count = checkpoint.num_classes("token_classifier")
        found = checkpoint.head_config("token_classifier")
        labels, named = arguments.get("labels"), found.get("tags")
        tags = arguments.get("tags")
        tags = tags or (labels and tag_names(labels, arguments.get("scheme", "BIO")))
        if not (tags or named):
            problem = "does not name its tags" if count else "has no token classifier"
            raise AlbertError(
                f'{checkpoint.path} {problem}. Give `labels=`, such as ["PER", "LOC"].'
            )
        # The same tags in another order stay with their weights.
        if not tags or set(tags) == set(named or ()):
            tags = named
        is_renamed = named is None or "tags" in arguments
        if count and (tags is named or (is_renamed and len(tags) == count)):
            return {**found, **arguments, "tags": tags}, []
        if count:
            warn_of_new_head(checkpoint, "token_classifier", tags)
        return {**arguments, "tags": tags}, ["token_classifier"]

    def default_metrics(self):
        return {"weighted_metrics": [TagAccuracy(name="accuracy")]}

    # === Texts in ===

    def targets(self, x: Any, y: Any, packed=None) -> tf.RaggedTensor:
        """Return the tag of each token, int32 [windows, (tokens)]."""
        packed = packed or self.preprocessor.pack_texts(x)
        return tags_of_spans(self._tagging, x, y, packed)

    # === Entities out ===

    read_texts = staticmethod(texts_in_memory)

    def predictions(self, x, packed, outputs):
        """Return a list of `(start, end, label)` per text; for ids the logits."""
        if packed is None:
            return outputs
        return [[span[:3] for span in row] for row in self._spans(packed, outputs)]

    def predict_spans(
        self, x: Any, batch_size: int | None = None, verbose: str | int = "auto"
    ) -> list[list[tuple[int, int, str, float]]]:
        """Return the entities of texts with their scores.

        Args:
            x, batch_size, verbose: as for `predict`.

        Returns:
            A list per text of `(start, end, label, score)`, in the order of the text;
            the score is the mean probability of the tags of the entity.
        """
        _, packed, outputs = self.predict_rows(x, batch_size, verbose=verbose)
        return [] if packed is None else self._spans(packed, outputs)

    def predict_dicts(self, x, batch_size=None):
        """Return `entity_group`, `word`, `start`, `end` and `score` of the entities."""
        return entities_of(x, self.predict_spans(x, batch_size, verbose=0))

    def _spans(self, packed, outputs):
        logits = packed.tokens.with_values(np.concatenate(outputs))
        logits = packed.starts.with_values(packed.windows.merge(logits))
        spans = []
        for row in range(0, logits.nrows(), TEXTS_AT_A_TIME):
            rows = slice(row, row + TEXTS_AT_A_TIME)
            parts = (x[rows] for x in (logits, packed.starts, packed.ends))
            found = (x.to_list() for x in self._tagging.entities_in_graph(*parts))
            for start, end, label, score in zip(*found, strict=True):
                label = map(bytes.decode, label)
                spans.append(list(zip(start, end, label, score, strict=True)))
        return spans

    def exported_settings(self):
        return {
            "task": self.name_of_task,
            "output": "logits",
            "tags": list(self.tags),
            "stride": self.preprocessor.stride,
        }

    def answers(self, outputs: Any) -> dict[str, Any]:
        """Return `tags`, `tag_ids` and `probabilities` of each token, for ids."""
        tag_ids = tf.argmax(outputs, axis=-1, output_type=tf.int32)
        return {
            "tags": tf.gather(tf.constant(self.tags), tag_ids),
            "tag_ids": tag_ids,
            "probabilities": tf.nn.softmax(outputs),
        }

    def text_answers(self, texts: Any, call: Any) -> dict[str, Any]:
        """Return `spans` [batch, entities, 2], and `labels` and `scores` of these.

        They are -1, empty and 0 after the last entity of a text.
        """
        refuse_pairs(texts)
        preprocessor = self.preprocessor
        texts = preprocessor.pack_texts(texts[0])
        logits = call(preprocessor.packer.pad(texts.tokens, texts.first_lengths))
        logits = texts.starts.with_values(texts.windows.merge(logits))
        found = self._tagging.entities_in_graph(logits, texts.starts, texts.ends)
        start, end, labels, scores = (
            column.to_tensor(fill)
            for column, fill in zip(found, (-1, -1, "", 0.0), strict=True)
        )
        spans = tf.stack([start, end], axis=-1)
        return {"spans": spans, "labels": labels, "scores": scores}
