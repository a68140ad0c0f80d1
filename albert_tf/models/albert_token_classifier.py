import warnings
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.heads import dense_head, head_dropout
from albert_tf.data.tagged import SCHEMES, check_spans, prefixes_of, tag_names
from albert_tf.data.tags import read_tags
from albert_tf.models.batching import PADDING_TARGET
from albert_tf.models.from_checkpoint import (
    other_heads,
    warn_of_new_head,
    warn_of_unnamed_outputs,
)
from albert_tf.models.keras_metrics import TagAccuracy
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing.segment_packer import WindowedTexts
from albert_tf.preprocessing.text_preprocessors import (
    AlbertTokenClassifierPreprocessor,
    refuse_pairs,
)
from albert_tf.preprocessing.texts import check_count, texts_in_memory
from albert_tf_lite import tagging as lite
from albert_tf_lite.answers import entity_dicts
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import as_list, as_texts

# Decoded together, padded to the longest.
TEXTS_AT_A_TIME = 64
# Below any sum of log-probabilities that a text could have.
_NEVER = -1e9


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
        backbone, dropout, compile: as for `AlbertTextClassifier`.
        labels: list of strings, the kinds of entities.
        scheme: `"BIO"` or `"BIOES"`, the tags of a label.
        preprocessor: optional `AlbertTokenClassifierPreprocessor`.
        tags: optional list of strings, instead of `labels` and `scheme`: the tags in
            the order of the outputs, such as `["O", "B-PER", "I-PER"]`. `PER-B`,
            `b-per`, and `X` or `[CLS]` for outside are read with a warning; `O` may be
            repeated, or be missing in a model of words or parts of speech.

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

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        count = checkpoint.num_classes("token_classifier")
        found = checkpoint.head_config("token_classifier")
        labels, named = arguments.get("labels"), found.get("tags")
        tags = arguments.get("tags")
        if tags is not None:
            tags = list(map(str, as_list(tags, "tags")))
        elif labels is not None:
            tags = tag_names(labels, arguments.get("scheme", "BIO"))
        if not (tags or named):
            raise _missing_tags(checkpoint, count)
        # The same tags in another order or spelling stay with their weights.
        if not tags or (named and _meanings(tags) == _meanings(named)):
            tags = named
        is_renamed = named is None or "tags" in arguments
        if count and (tags is named or (is_renamed and len(tags) == count)):
            if named is None and "tags" not in arguments:
                warn_of_unnamed_outputs(checkpoint, "tags", tags, "tags")
            return {**found, **arguments, "tags": tags}, []
        if count:
            warn_of_new_head(checkpoint, "token_classifier", tags)
        return {**arguments, "tags": tags}, ["token_classifier"]

    def default_metrics(self):
        return {"weighted_metrics": [TagAccuracy(name="accuracy")]}

    def targets(self, x: Any, y: Any, packed=None) -> tf.RaggedTensor:
        """Return the tag of each token, int32 [windows, (tokens)]."""
        packed = packed or self.preprocessor.pack_texts(x)
        return tags_of_spans(self._tagging, x, y, packed)

    def read_texts(self, x):
        return texts_in_memory(x)

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

    def answers(self, x, batch_size=None):
        """Return `entity_group`, `word`, `start`, `end` and `score` of the entities."""
        x = as_texts(x)
        return entity_dicts(x, self.predict_spans(x, batch_size, verbose=0))

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
        # Tags of one spelling, which every runtime reads.
        tags = self._tagging.tags[: len(self.tags)]
        own = {"tags": tags, "labels": list(self.labels)}
        own["stride"] = self.preprocessor and self.preprocessor.stride
        return {**super().exported_settings(), **own}

    def postprocess(self, outputs: Any) -> dict[str, Any]:
        """Return `tags`, `tag_ids` and `probabilities` of each token, for ids."""
        tag_ids = tf.argmax(outputs, axis=-1, output_type=tf.int32)
        return {
            "tags": tf.gather(tf.constant(self.tags), tag_ids),
            "tag_ids": tag_ids,
            "probabilities": tf.nn.softmax(outputs),
        }

    def serve(self, texts: Any, call: Any) -> dict[str, Any]:
        """Return `spans` [batch, entities, 2], and `labels` and `scores` of these.

        They are -1, empty and 0 after the last entity of a text.
        """
        refuse_pairs(texts)
        preprocessor = self.preprocessor
        texts = preprocessor.pack_rows(texts[0])
        logits = call(preprocessor.packer.pad(texts.tokens, texts.first_lengths))
        logits = texts.starts.with_values(texts.windows.merge(logits))
        found = self._tagging.entities_in_graph(logits, texts.starts, texts.ends)
        start, end, labels, scores = (
            column.to_tensor(fill)
            for column, fill in zip(found, (-1, -1, "", 0.0), strict=True)
        )
        spans = tf.stack([start, end], axis=-1)
        return {"spans": spans, "labels": labels, "scores": scores}


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


class Tagging(lite.Tagging):
    """The tags of a task, with the rules of the NumPy runtime as TensorFlow ops.

    `tags` are `O`, and for each label a prefix of BIO, BIOES (BMES, BILOU) or IO, a
    hyphen and the label, in the order of the outputs; or other spellings of these,
    which `notes` name.
    """

    def __init__(self, tags: Sequence[str]):
        reading = read_tags(tags)
        meant = [reading.tags[tag] for tag in tags]
        if reading.are_plain and lite.OUTSIDE not in meant:
            prefixed = (str([f"{x}-{tag}" for tag in tags[:3]]) for x in "IS")
            as_runs, as_tokens = (text[:-1] + ", ...]" for text in prefixed)
            raise AlbertError(
                f"The tags {list(tags)[:3]} ... have no prefix, and none is O. Pass "
                f"tags={as_runs} if neighbours with the same tag are one entity, or "
                f"tags={as_tokens} if each token is one."
            )
        super().__init__(meant)
        self.notes = reading.notes
        self._ids: dict[tuple[str, str], int] = {}
        for number, pair in enumerate(self.pairs):
            first = self._ids.setdefault(pair, number)
            if first != number and pair[0] != lite.OUTSIDE:
                raise AlbertError(
                    f"The tags {tags[first]!r} and {tags[number]!r} mean the same. The "
                    f"tags should be different. Received: {list(tags)}"
                )
        self.is_outside = np.array([prefix == lite.OUTSIDE for prefix, _ in self.pairs])
        rows = [[lite.continues(a, b) for b in self.pairs] for a in self.pairs]
        self._continued = np.array(rows)
        self.labels = list(dict.fromkeys(label for _, label in self.pairs if label))
        closed = any(prefix in "ES" for prefix, _ in self.pairs)
        self.scheme = "BIOES" if closed else "BIO"

    def ids_of(self, label: str, length: int) -> list[int]:
        """Return the tags of an entity of `length` tokens."""

        def tag(prefix):
            # Some taggers do not have all prefixes.
            options = ((other, label) for other in (prefix, *"IBSE"))
            return next(self._ids[x] for x in options if x in self._ids)

        return list(map(tag, prefixes_of(length, self.scheme)))

    def entities_in_graph(
        self, logits: tf.RaggedTensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor
    ) -> tuple[tf.RaggedTensor, ...]:
        """Return start, end, label and score, ragged [texts, (entities)], in a graph.

        `logits` are [texts, (tokens), tags]; `starts` and `ends` are the characters of
        each token. Tokens without any are left out.
        """
        has_text = starts.with_values(starts.values < ends.values)
        parts = (logits, starts, ends)
        logits, starts, ends = (tf.ragged.boolean_mask(x, has_text) for x in parts)
        scores = tf.cast(logits.values, tf.float32)
        # Small numbers, whose sums over a long text keep the differences.
        scores -= tf.reduce_max(scores, axis=-1, keepdims=True)
        if not self.has_outside:
            scores = tf.pad(scores, [[0, 0], [0, 1]], constant_values=_NEVER)
        lengths = logits.row_lengths()
        scores_of_texts = logits.with_values(scores).to_tensor()
        is_token = tf.sequence_mask(lengths, tf.shape(scores_of_texts)[1])
        # Outside before and after the text, so that it begins and ends by the rules.
        outside = tf.one_hot(self.outside, len(self.tags), 0.0, _NEVER)
        forced = tf.where(is_token[..., tf.newaxis], scores_of_texts, outside)
        edge = tf.zeros([tf.shape(forced)[0], 1, 1]) + outside
        rule = tf.constant(np.where(self.allowed, 0, _NEVER), tf.float32)
        tags = viterbi(tf.concat([edge, forced, edge], axis=1), rule)[:, 1:-1]
        text = logits.value_rowids()
        tags = tf.RaggedTensor.from_tensor(tags, lengths).values
        pairs = tf.stack([tags[:-1], tags[1:]], axis=1)
        joined = tf.gather_nd(self._continued, pairs) & (text[:-1] == text[1:])
        inside = ~tf.gather(tf.constant(self.is_outside), tags)
        begins = inside & ~tf.pad(joined, [[1, 0]])[: tf.size(tags)]
        first = tf.where(begins)[:, 0]
        last = tf.where(inside & ~tf.pad(joined, [[0, 1]])[: tf.size(tags)])[:, 0]
        chosen = tf.gather(tf.nn.softmax(scores), tags, batch_dims=1)
        number = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        score = tf.math.segment_mean(
            tf.boolean_mask(chosen, inside), tf.boolean_mask(number, inside)
        )
        labels = tf.constant([label for _, label in self.pairs])
        columns = (
            tf.gather(starts.values, first),
            tf.gather(ends.values, last),
            tf.gather(labels, tf.gather(tags, first)),
            score,
        )
        return tuple(
            tf.RaggedTensor.from_value_rowids(
                x, tf.gather(text, first), starts.nrows(), validate=False
            )
            for x in columns
        )


@tf.function(
    input_signature=[
        tf.TensorSpec([None, None, None], tf.float32),
        tf.TensorSpec([None, None], tf.float32),
    ]
)
def viterbi(scores: tf.Tensor, transitions: tf.Tensor) -> tf.Tensor:
    """Return the classes [batch, time] with the highest sum of scores.

    `transitions` are added where the second class follows the first.
    """
    first, rest = scores[:, 0], tf.transpose(scores[:, 1:], [1, 0, 2])

    def forward(state, step):
        best, _ = state
        paths = best[:, :, tf.newaxis] + transitions
        best = tf.reduce_max(paths, axis=1) + step
        # Only differences count, and sums over a long text would lose them.
        best -= tf.reduce_max(best, axis=-1, keepdims=True)
        return best, tf.argmax(paths, axis=1, output_type=tf.int32)

    best, came_from = tf.scan(forward, rest, (first, tf.zeros_like(first, tf.int32)))
    last = tf.argmax(best[-1], axis=-1, output_type=tf.int32)
    before = tf.scan(
        lambda tag, came_from: tf.gather(came_from, tag, batch_dims=1),
        came_from,
        last,
        reverse=True,
    )
    return tf.transpose(tf.concat([before, [last]], axis=0))


def tags_of_spans(
    tagging: Tagging, x: Any, y: Any, texts: WindowedTexts
) -> tf.RaggedTensor:
    """Return the tag of each token, int32 [windows, (tokens)], for lists of spans.

    It is `PADDING_TARGET` where there is no text, or another window decides.
    """
    strings = as_texts(x)
    y = check_count(strings, y)
    starts, ends = texts.starts.values.numpy(), texts.ends.values.numpy()
    tags = np.where(starts < ends, tagging.outside, PADDING_TARGET).astype("int32")
    splits = texts.starts.row_splits.numpy()
    inexact = []
    for number, (text, spans) in enumerate(zip(strings, y, strict=True)):
        tokens = np.arange(splits[number], splits[number + 1])
        tokens = tokens[starts[tokens] < ends[tokens]]
        first_of, last_of = starts[tokens], ends[tokens]
        free = 0
        try:
            spans = check_spans(spans, len(text), tagging.labels)
        except AlbertError as error:
            raise AlbertError(f"In text {number}, {error}") from None
        for start, end, label in spans:
            # The tokens with characters in the span, but for those of the span before.
            first = max(free, int(np.searchsorted(last_of, start, side="right")))
            free = max(first, int(np.searchsorted(first_of, end)))
            if first < free:
                tags[tokens[first:free]] = tagging.ids_of(label, free - first)
            if first == free or first_of[first] < start or last_of[free - 1] > end:
                inexact.append(text[start:end])
    if inexact:
        warnings.warn(
            f"{len(inexact)} spans begin or end within a token or hold none, such as "
            f"{inexact[0]!r}. They are learned as the tokens they touch.",
            stacklevel=5,
        )
    if not tagging.has_outside and (tags == tagging.outside).any():
        token = int(np.argmax(tags == tagging.outside))
        number = int(np.searchsorted(splits, token, side="right")) - 1
        raise AlbertError(
            f"In text {number}, {strings[number][starts[token] : ends[token]]!r} has "
            "no span, and the model has no tag O. Each character needs one of the "
            f"labels {tagging.labels}."
        )
    windows = texts.windows
    tags = windows.of_windows(tf.constant(tags))
    is_decided = windows.are_decided().values
    tags = tags.with_values(tf.where(is_decided, tags.values, PADDING_TARGET))
    edge = tf.fill([tags.nrows(), 1], PADDING_TARGET)
    return tf.concat([edge, tags, edge], axis=1)
