from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.tags import tag_names
from albert_tf.models.tag_spans import TagAccuracy, spans_of_logits, tags_of_spans
from albert_tf.models.tagging import Tagging
from albert_tf.models.task import AlbertTask
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.models.token_outputs import PADDING_TARGET
from albert_tf.preprocessing.examples import is_pair
from albert_tf.preprocessing.token_classifier_preprocessor import (
    AlbertTokenClassifierPreprocessor,
    WindowedTexts,
    refuse_pairs,
)
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTokenClassifier(FitsTexts, AlbertTask, keras_hub.models.Task):
    """ALBERT with a tag for each token: entities with their place in the text.

    `fit` and `evaluate` take texts and their spans; `predict` gives spans of texts, and
    logits of ids. A span is `(start, end, label)`, in characters of the user's own
    string: `text[start:end]` is the entity. Texts longer than the model's positions are
    read in windows that overlap, and each token is decided by the window where it is
    farthest from where the text was cut.

    A `tf.data.Dataset` to train on has batches of texts and the tags of their
    characters, positions in `tags`, as `albert_tf.data.spans_to_tags` names them. Its
    texts are cut to the `sequence_length` of the preprocessor.

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

    preprocessor_cls = AlbertTokenClassifierPreprocessor
    heads = ("token_classifier",)

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

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = keras.layers.Dropout(
            dropout, dtype=backbone.compute_dtype, name="output_dropout"
        )
        self.tag_dense = self.dense_head(len(self.tags), "tag_logits")

        # === Functional Model ===
        hidden = backbone(backbone.input)["sequence_output"]
        outputs = self.tag_dense(self.output_dropout(hidden))
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        count = checkpoint.num_classes("token_classifier")
        found = checkpoint.head_config("token_classifier")
        named = found.pop("tags", None)
        labels, scheme = arguments.get("labels"), arguments.get("scheme", "BIO")
        wanted = arguments.get("tags") or (labels and tag_names(labels, scheme))
        if wanted is None and named is None:
            what = "does not name its tags" if count else "has no token classifier"
            raise AlbertError(
                f'{checkpoint.path} {what}. Give `labels=`, such as ["PER", "LOC"].'
            )
        same = wanted is None or set(wanted) == set(named or ())
        unnamed = named is None or "tags" in arguments
        if count and (same or (unnamed and len(wanted) == count)):
            tags = named if same else wanted
            return {**found, **arguments, "tags": tags}, []
        if count:
            warnings.warn(
                f"The token classifier of {checkpoint.path} tells {count} tags apart, "
                f"{named or 'without names'}, and not {wanted}: the model begins with "
                "a new one, with random weights.",
                stacklevel=4,
            )
        return {**arguments, "tags": wanted}, ["token_classifier"]

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        model = super().from_preset(preset, load_weights, **kwargs)
        labels = kwargs.get("labels") or model.labels
        scheme = kwargs.get("scheme") or model.scheme
        if (set(labels), scheme) != (set(model.labels), model.scheme):
            raise AlbertError(
                f"{preset} has a head for {model.labels} in {model.scheme}. To begin "
                "with a new one call from_checkpoint(preset, labels=...)."
            )
        return model

    def default_loss(self):
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=PADDING_TARGET
        )

    def default_metrics(self):
        return {"weighted_metrics": [TagAccuracy(name="accuracy")]}

    # === Texts in ===

    @property
    def text_inputs(self):
        return ("text",)

    def _takes_texts(self, x):
        refuse_pairs(x)
        return isinstance(x, WindowedTexts) or super()._takes_texts(x)

    def _bucketed(self, x, batch_size=None):
        if isinstance(x, tf.data.Dataset) and isinstance(x.element_spec, tuple):
            raise AlbertError(
                "A token classifier cannot group a labelled dataset by length. Give "
                "lists, which always are, or leave out `group_by_length`."
            )
        return super()._bucketed(x, batch_size)

    def targets(self, x: Any, y: Any) -> tf.RaggedTensor:
        """The tag of each token, int32 [windows, (tokens)], special tokens included.

        It is `PADDING_TARGET` where another window decides the token.
        """
        return tags_of_spans(self._tagging, x, y, self.preprocessor.windows(x))

    def _examples(self, x, *labels):
        texts = x if isinstance(x, WindowedTexts) else self.preprocessor.windows(x)
        if labels:
            y, *weights = labels
            # With an axis for the tokens, as the losses have one.
            weights = [
                tf.gather(weight, texts.windows.texts)[:, tf.newaxis]
                for weight in weights
            ]
            labels = (tags_of_spans(self._tagging, x, y, texts), *weights)
        return texts.tokens, texts.first_lengths, *labels

    # === Entities out ===

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        scores: bool = False,
        **kwargs: Any,
    ) -> list:
        """The entities of texts.

        Args:
            x: list of strings, or a dataset of batches of strings; or ids, as
                `keras.Model.predict` takes them.
            batch_size: optional int, more than 32 by default where texts are short.
            scores: bool. Give `(start, end, label, score)`, where the score is the mean
                probability of the tags of the entity.
            **kwargs: passed on to `keras.Model.predict`.

        Returns:
            A list for each text of `(start, end, label)`, in the order of the text;
            of ids an array of logits [tokens, num_tags] for each example.
        """
        if isinstance(x, tf.data.Dataset) and is_pair(x) is False:
            # What stands beside the texts is not for predicting.
            batches = (x[0] if isinstance(x, tuple) else x for x in x)
            x = [text for batch in batches for text in batch.numpy()]
        if not self._takes_texts(x):
            return super().predict(x, batch_size=batch_size, **kwargs)
        texts = self.preprocessor.windows(x)
        logits = super().predict(texts, batch_size=batch_size, **kwargs)
        if not logits:
            return []
        lengths = [len(window) for window in logits]
        logits = tf.RaggedTensor.from_row_lengths(np.concatenate(logits), lengths)
        columns = 4 if scores else 3
        entities = spans_of_logits(self._tagging, texts, logits)
        return [[entity[:columns] for entity in row] for row in entities]

    def answers(self, outputs: Any) -> dict[str, Any]:
        """`tags`, `tag_ids` and `probabilities` of each token: of ids, where there is
        no text to find entities in.

        Args:
            outputs: float tensor [batch, time, num_tags], logits.
        """
        tag_ids = tf.argmax(outputs, axis=-1, output_type=tf.int32)
        return {
            "tags": tf.gather(tf.constant(self.tags), tag_ids),
            "tag_ids": tag_ids,
            "probabilities": tf.nn.softmax(outputs),
        }

    def text_answers(self, texts: Any, call: Any) -> dict[str, Any]:
        """The entities of texts, of long ones, too: `spans` [batch, entities, 2], where
        each starts and ends, `labels` and `scores` [batch, entities].

        Where a text has fewer entities than another, they are -1, empty and 0.
        """
        refuse_pairs(texts)
        preprocessor = self.preprocessor
        ids, *offsets = preprocessor.tokenizer.tokenize_with_offsets(texts[0])
        texts = preprocessor.cut(ids, *(tf.cast(x, tf.int32) for x in offsets))
        logits = call(preprocessor.packer.pad(texts.tokens, texts.first_lengths))
        logits = texts.starts.with_values(texts.windows.merge(logits))
        found = self._tagging.entities(logits, texts.starts, texts.ends)
        start, end, labels, scores = (
            column.to_tensor(fill)
            for column, fill in zip(found, (-1, -1, "", 0.0), strict=True)
        )
        spans = tf.stack([start, end], axis=-1)
        return {"spans": spans, "labels": labels, "scores": scores}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "labels": list(self.labels),
            "scheme": self.scheme,
            "dropout": self.dropout,
            "tags": list(self.tags),
        }
