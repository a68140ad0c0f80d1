"""Attributions: the contribution of each character to a classifier's answer."""

import dataclasses
import warnings
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.backbone.traced_weights import TracedWeights
from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.preprocessing.segment_packer import warn_of_truncation
from albert_tf.preprocessing.texts import tokenize_with_offsets
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import check_integer, class_positions

# Points of the path per batch.
BATCH_SIZE = 32
MAX_DOUBLINGS = 3


@dataclasses.dataclass(frozen=True)
class Attributions:
    """The contribution of each character of a text to the probability of a class.

    Attributes:
        texts: tuple of the text, or of the two of a pair.
        values: tuple of a float64 array [characters] for each of these. Their sum is
            `output - baseline`, up to `error`.
        label: string, the class.
        output: float, its probability.
        baseline: float, its probability with `[PAD]` in place of each token.
        steps: int, the points of the path.
    """

    texts: tuple[str, ...]
    values: tuple[np.ndarray, ...]
    label: str
    output: float
    baseline: float
    steps: int

    @property
    def error(self) -> float:
        """The absolute error of the sum of the values."""
        total = sum(float(values.sum()) for values in self.values)
        return abs(total - (self.output - self.baseline))


class _Place(NamedTuple):
    """The tokens of a text in the packed row, and their characters in the text."""

    positions: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


class IntegratedGradients:
    """Contribution of each character to the probability of a class.

    The gradients of the probability with respect to the embedding of the tokens
    (position and segment included) are integrated on the straight path from a text of
    `[PAD]` tokens of the same length; `[CLS]` and `[SEP]` stay. The attribution of a
    token is divided evenly among its characters. Spaces and truncated characters get 0.

    Args:
        classifier: an `AlbertTextClassifier` that takes texts.

    Call arguments:
        text: string, or the tuple of two for a pair.
        target: optional class, in the form of `y` of `fit`; by default the most
            probable one.
        steps: int, points of the path (Gauss-Legendre quadrature).
        tolerance: float. If the error of the sum is larger, the number of steps is
            doubled, at most three times; then a warning is raised.

    Returns:
        An `Attributions`.

    Raises:
        TypeError: if `text` is not a string or two.
        AlbertError: if `target` is not a class, or the classifier has no preprocessor.

    Example:
    ```python
    explain = albert_tf.tools.IntegratedGradients(classifier)
    explained = explain("味道不错，就是太贵")
    dict(zip(explained.texts[0], explained.values[0]))
    ```

    Reference:
        [Axiomatic Attribution for Deep Networks](https://arxiv.org/abs/1703.01365),
        section 3; `tolerance` is about its axiom of completeness.
    """

    def __init__(self, classifier: AlbertTextClassifier):
        if classifier.preprocessor is None:
            raise AlbertError(
                "This classifier takes ids, not texts. Set its `preprocessor`."
            )
        self.classifier = classifier
        self._traced_weights = TracedWeights()
        self._trace()

    def _trace(self):
        # Once for texts of any length.
        self._traced_slopes = tf.function(self._slopes, reduce_retracing=True)

    def __call__(
        self,
        text: str | tuple[str, str],
        target: int | str | None = None,
        steps: int = 32,
        tolerance: float = 0.01,
    ) -> Attributions:
        steps = check_integer("steps", steps)
        texts = text if isinstance(text, tuple) else (text,)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(
                "`text` should be one string, or the tuple of two for a pair. "
                f"Received: {text!r}"
            )
        if self._traced_weights.update("slopes", self.classifier.weights):
            self._trace()
        features, places = self._tokens(texts)
        is_text = np.zeros(features["token_ids"].shape, bool)
        for place in places:
            is_text[:, place.positions] = True
        pad = self.classifier.preprocessor.tokenizer.pad_token_id
        blank = tf.where(is_text, pad, features["token_ids"])
        embed = self.classifier.backbone.embedding
        end = embed(features["token_ids"], features["segment_ids"])
        start = embed(blank, features["segment_ids"])
        both = self._probabilities(tf.concat([end, start], axis=0), features).numpy()
        chosen = self._target(target, both[0])
        output, baseline = both[:, chosen].astype("float64").tolist()
        label = self.classifier.class_names[chosen]
        for doubling in range(MAX_DOUBLINGS + 1):
            used = steps * 2**doubling
            of_tokens = self._path_integral(start, end - start, features, chosen, used)
            values = tuple(
                _spread(of_tokens, place, len(text))
                for text, place in zip(texts, places, strict=True)
            )
            answer = Attributions(texts, values, label, output, baseline, used)
            if answer.error <= tolerance:
                return answer
        warnings.warn(
            f"The sum of the attributions, {output - baseline:.4f}, is off by "
            f"{answer.error:.4f} after {used} steps. Pass more `steps`, or load the "
            "model in float32.",
            stacklevel=2,
        )
        return answer

    def _tokens(self, texts: tuple[str, ...]):
        """Return the packed features, and the `_Place` of each text."""
        preprocessor = self.classifier.preprocessor
        packer = preprocessor.packer
        segments, starts, ends = [], [], []
        for text in texts:
            ids, first, last = tokenize_with_offsets(preprocessor.tokenizer, [text])
            segments.append(ids)
            starts.append(first[0].numpy())
            ends.append(last[0].numpy())
        is_long = packer.full_lengths(segments) > packer.sequence_length
        warn_of_truncation(is_long, packer.limit)
        packed, first_lengths = packer.pack(segments)
        first, total = int(first_lengths[0]), int(packed.row_lengths()[0])
        # [CLS] first [SEP] second [SEP]; a second text without tokens is left out.
        bounds = ((1, first - 1), (first, max(total - 1, first)))
        places = []
        for number in range(len(texts)):
            low, high = bounds[number]
            # The rest of a text is truncated.
            kept = slice(high - low)
            places.append(
                _Place(np.arange(low, high), starts[number][kept], ends[number][kept])
            )
        return packer.pad(packed, first_lengths), places

    def _target(self, target: int | str | None, probabilities: np.ndarray) -> int:
        """Return the id of a class, by default of the most probable one."""
        if target is None:
            return int(probabilities.argmax())
        labels = self.classifier.labels or self.classifier.class_names
        return int(class_positions([target], labels, "target")[0])

    def _path_integral(self, start, change, features, target, steps):
        """Return the attribution of each token [time], by Gauss-Legendre quadrature."""
        points, weights = np.polynomial.legendre.leggauss(steps)
        points, weights = (points + 1) / 2, weights / 2
        total = np.zeros(change.shape[1:], "float64")
        for i in range(0, steps, BATCH_SIZE):
            some = tf.constant(points[i : i + BATCH_SIZE], change.dtype)
            slopes = self._traced_slopes(
                some, start, change, features, tf.constant(target)
            )
            slopes = tf.cast(slopes, tf.float64).numpy()
            total += np.tensordot(weights[i : i + BATCH_SIZE], slopes, axes=1)
        return (total * tf.cast(change[0], tf.float64).numpy()).sum(axis=-1)

    def _slopes(self, points, start, change, features, target):
        """Return the gradients at points of the path [points, time, hidden_dim]."""
        with tf.GradientTape() as tape:
            vectors = start + points[:, tf.newaxis, tf.newaxis] * change
            tape.watch(vectors)
            chosen = self._probabilities(vectors, features)[:, target]
        return tape.gradient(chosen, vectors)

    def _probabilities(self, vectors, features):
        """Return the probabilities for embeddings [rows, time, hidden_dim]."""
        classifier = self.classifier
        mask = tf.repeat(features["padding_mask"], tf.shape(vectors)[0], axis=0)
        *blocks, last = classifier.backbone.encoder_blocks
        states = [vectors]
        for block in blocks:
            states.append(block(states[-1], padding_mask=mask))
        # The pooler reads one position of the last layer.
        length = 1 if classifier.pooling_mode == "cls" else None
        states.append(last(states[-1], padding_mask=mask, output_length=length))
        return classifier.probabilities(classifier.classify_states(states, mask))


def _spread(of_tokens: np.ndarray, place: _Place, length: int) -> np.ndarray:
    """Divide the attributions of the row's tokens among the characters of a text."""
    values = np.zeros(length)
    starts, ends = place.starts, place.ends
    # A token without characters, such as SentencePiece's first one, gets the next.
    starts = np.where(starts == ends, np.minimum(starts, length - 1), starts)
    ends = np.maximum(ends, starts + 1)
    of_text = of_tokens[place.positions]
    for value, start, end in zip(of_text, starts, ends, strict=True):
        values[start:end] += value / (end - start)
    return values
