import warnings
from collections.abc import Callable, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import dense_head, head_dropout
from albert_tf.data.labels.tag_spellings import read_tags
from albert_tf.data.labels.tags import SCHEMES, tag_names
from albert_tf.models.tagging import Tagging, tags_of_spans
from albert_tf.models.task import AlbertTask
from albert_tf.models.temperature import check_temperature
from albert_tf.preprocessing.text_preprocessors import (
    AlbertTokenClassifierPreprocessor,
    refuse_pairs,
)
from albert_tf.trainers.batching import PADDING_TARGET
from albert_tf.trainers.examples import Column, Inputs
from albert_tf.trainers.head_choice import (
    other_heads,
    warn_of_new_head,
    warn_of_unnamed_outputs,
)
from albert_tf.trainers.prediction import Outputs, PredictedRows
from albert_tf.trainers.token_accuracy import TokenAccuracy
from albert_tf_lite.answers import entity_dicts
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import as_list

# Decoded together, padded to the longest.
TEXTS_AT_A_TIME = 64
# The learning rate as a multiple of that of other tasks. On 800 and 3,000 texts of the
# People's Daily, it gave 2 to 3 points of F1.
RATE = 2.5


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
        preprocessor: optional `AlbertTokenClassifierPreprocessor`.
        tags: optional list of strings, instead of `labels` and `scheme`: the tags in
            the order of the outputs, such as `["O", "B-PER", "I-PER"]`. `PER-B`,
            `b-per`, and `X` or `[CLS]` for outside are read with a warning; `O` may be
            repeated, or be missing in a model of words or parts of speech.
        dropout: float. Rate before the head, apart from the encoder's own.
        temperature: float. Divides the logits of the tags for the scores of entities;
            see `tune_temperature`.
        compile: bool. Compile with the defaults.

    Returns:
        Logits [batch, time, num_tags].

    Raises:
        AlbertError: if `labels` or `tags` are missing, repeated or no tags,
            `temperature` is not a positive number, or the preprocessor's vocabulary or
            `sequence_length` does not fit the backbone.

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
    pipeline_tag = "token-classification"
    summaries = ("finds the entities in a text", "识别文本中的命名实体")
    preprocessor_cls = AlbertTokenClassifierPreprocessor
    monitor = "f1"
    heads = ("token_classifier",)
    ignored_class = PADDING_TARGET
    exported_output = "logits"

    def __init__(
        self,
        backbone: AlbertBackbone,
        labels: Sequence[str] | None = None,
        scheme: str = "BIO",
        preprocessor: AlbertTokenClassifierPreprocessor | None = None,
        dropout: float = 0.1,
        tags: Sequence[str] | None = None,
        temperature: float = 1.0,
        **kwargs: Any,
    ):
        # === Config ===
        labels = [] if labels is None else list(map(str, as_list(labels, "labels")))
        tags = tag_names(labels, scheme) if tags is None else tags
        self.tags = list(map(str, as_list(tags, "tags")))
        self._tagging = Tagging(self.tags)
        for note in self._tagging.notes:
            warnings.warn(note, stacklevel=2)
        self.labels = self._tagging.labels
        self.scheme = self._tagging.scheme
        self.dropout = dropout
        self.temperature = temperature
        if labels and set(labels) != set(self.labels):
            raise AlbertError(
                f"`labels` are {listed(labels, 10)}, but `tags` are of "
                f"{listed(self.labels, 10)}. For a new head on a preset, call "
                "from_checkpoint(preset, labels=...)."
            )

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = head_dropout(backbone, dropout)
        self.tag_dense = dense_head(backbone, len(self.tags), "tag_logits")

        # === Functional Model ===
        hidden = backbone(backbone.input)["sequence_output"]
        outputs = self.tag_dense(self.output_dropout(hidden))
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @property
    def temperature(self) -> float:
        """The divisor of the logits before the softmax of the scores."""
        return self._temperature

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        self._temperature = check_temperature(temperature)

    @property
    def default_learning_rate(self) -> float:
        return RATE * super().default_learning_rate

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        """Return the arguments, and the head unless it is of the same tags."""
        count = checkpoint.num_classes("token_classifier")
        stored = checkpoint.head_config("token_classifier")
        stored_tags = stored.get("tags")
        tags = _wanted_tags(arguments)
        if not (tags or stored_tags):
            raise _missing_tags(checkpoint, count)
        if not tags or (stored_tags and _meanings(tags) == _meanings(stored_tags)):
            # The same tags in another order or spelling stay with their weights.
            tags = stored_tags
            has_head = count > 0
        elif stored_tags is None or "tags" in arguments:
            # They name the outputs of the head, if they are as many.
            has_head = len(tags) == count
        else:
            has_head = False
        if has_head:
            if stored_tags is None and "tags" not in arguments:
                warn_of_unnamed_outputs(checkpoint, "tags", tags, "tags")
            return {**stored, **arguments, "tags": tags}, []
        if count:
            warn_of_new_head(checkpoint, "token_classifier", tags)
        return {**arguments, "tags": tags}, ["token_classifier"]

    def default_metrics(self):
        return {"weighted_metrics": [TokenAccuracy(name="accuracy")]}

    def targets(self, x: Inputs, y: Column | None, packed=None) -> tf.RaggedTensor:
        """Return the tag of each token, int32 [windows, (tokens)]."""
        packed = packed or self.preprocessor.pack_texts(x)
        return tags_of_spans(self._tagging, x, y, packed)

    def examples_to_predict(self, x):
        # All windows of a text, which datasets to train on do not have.
        return super().examples_to_predict(x).in_memory()

    def predictions(self, x, packed, outputs):
        """Return a list of `(start, end, label)` per text; for ids the logits."""
        if packed is None:
            return outputs
        rows = PredictedRows(x, packed, outputs)
        spans = self.spans_of_rows(rows, self.temperature)
        return [[span[:3] for span in row] for row in spans]

    def predict_spans(
        self, x: Inputs, batch_size: int | None = None, verbose: str | int = "auto"
    ) -> list[list[tuple[int, int, str, float]]]:
        """Return the entities of texts with their scores.

        Args:
            x: list of strings, or a dataset of batches of strings.
            batch_size: optional int, by default more than 32 for short texts.
            verbose: 0 for silence, 1 for a progress bar; `"auto"` is 1 in most cases.

        Returns:
            A list per text of `(start, end, label, score)`, in the order of the text;
            the score is the mean probability of the tags of the entity.
        """
        rows = self.predict_rows(x, batch_size, verbose=verbose)
        return self.spans_of_rows(rows, self.temperature)

    def answers(self, x, batch_size=None):
        """Return `entity_group`, `word`, `start`, `end` and `score` of the entities."""
        rows = self.predict_rows(x, batch_size, verbose=0)
        return entity_dicts(rows.x, self.spans_of_rows(rows, self.temperature))

    def spans_of_rows(
        self, rows: PredictedRows, temperature: float
    ) -> list[list[tuple[int, int, str, float]]]:
        """Return the entities of predicted texts and their scores at a temperature."""
        packed: Any = rows.packed
        if packed is None:
            return []
        logits = packed.tokens.with_values(np.concatenate(rows.outputs))
        logits = packed.starts.with_values(packed.windows.merge(logits))
        spans = []
        for start in range(0, logits.nrows(), TEXTS_AT_A_TIME):
            some = slice(start, start + TEXTS_AT_A_TIME)
            columns = self._tagging.entities_in_graph(
                logits[some], packed.starts[some], packed.ends[some], temperature
            )
            of_texts = map(tf.RaggedTensor.to_list, columns)
            for starts, ends, labels, scores in zip(*of_texts, strict=True):
                names = [label.decode() for label in labels]
                spans.append(list(zip(starts, ends, names, scores, strict=True)))
        return spans

    def exported_settings(self):
        # Tags of one spelling, which every runtime reads.
        tags = self._tagging.tags[: len(self.tags)]
        own = {"tags": tags, "labels": list(self.labels)}
        own["stride"] = self.preprocessor and self.preprocessor.stride
        own["temperature"] = self.temperature
        return {**super().exported_settings(), **own}

    def postprocess(self, outputs: Outputs) -> dict[str, Any]:
        """Return `tags`, `tag_ids` and `probabilities` of each token, for ids."""
        tag_ids = tf.argmax(outputs, axis=-1, output_type=tf.int32)
        return {
            "tags": tf.gather(tf.constant(self.tags), tag_ids),
            "tag_ids": tag_ids,
            "probabilities": tf.nn.softmax(outputs / self.temperature),
        }

    def serve(self, texts: tuple[tf.Tensor, ...], call: Callable) -> dict[str, Any]:
        """Return `spans` [batch, entities, 2], and `labels` and `scores` of these.

        They are -1, empty and 0 after the last entity of a text.
        """
        refuse_pairs(texts)
        packed = self.preprocessor.pack_rows(texts[0])
        features = self.preprocessor.packer.pad(packed.tokens, packed.first_lengths)
        logits = packed.starts.with_values(packed.windows.merge(call(features)))
        start, end, labels, scores = self._tagging.entities_in_graph(
            logits, packed.starts, packed.ends, self.temperature
        )
        spans = tf.stack([start.to_tensor(-1), end.to_tensor(-1)], axis=-1)
        return {
            "spans": spans,
            "labels": labels.to_tensor(""),
            "scores": scores.to_tensor(0.0),
        }


def _wanted_tags(arguments):
    """Return the tags that arguments ask for; `None` if they do not."""
    labels, tags = arguments.get("labels"), arguments.get("tags")
    if tags is not None:
        return list(map(str, as_list(tags, "tags")))
    if labels is not None:
        return tag_names(labels, arguments.get("scheme", "BIO"))
    return None


def _meanings(tags):
    """Return what tags stand for, and whether they are labels without a prefix."""
    reading = read_tags(tags)
    return set(reading.tags.values()), reading.are_plain


def _missing_tags(checkpoint, count):
    """Return the error for a checkpoint whose tags are unknown."""
    if not count:
        return AlbertError(
            f"{checkpoint.path} has no token classifier. Give `labels=`, such as "
            f'["PER", "LOC"], to start with a new one.{other_heads(checkpoint)}'
        )
    hint = ""
    for scheme, prefixes in SCHEMES.items():
        labels, rest = divmod(count - 1, len(prefixes))
        if labels and not rest:
            hint = (
                f" If they are those of scheme={scheme!r} in its order, O first, give "
                f"`labels=`, a list of {labels}."
            )
            break
    return AlbertError(
        f"{checkpoint.path} does not name its {count} tags (LABEL_0, LABEL_1, ...). "
        f"Write them as id2label into its config, or give `tags=`, a list of {count} "
        f'in the order of the outputs, such as ["O", "B-PER", "I-PER", ...].{hint}'
    )
