"""Which characters of a text speak for an answer."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.models.pass_through import pass_through
from albert_tf.preprocessing.texts import tokenize_with_offsets
from albert_tf_lite.errors import AlbertError

# Points of the path that are computed at a time.
BATCH_SIZE = 32
# The number of points is doubled so often before a sum that is off is let pass.
MOST_DOUBLINGS = 3


@dataclasses.dataclass(frozen=True)
class Attributions:
    """What each character of a text adds to the probability of a class.

    Attributes:
        texts: tuple of the text, or of the two of a pair.
        values: tuple of a float64 array [characters] for each of these. Their sum is
            `output - baseline`, but for `error`.
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
        """By how much the sum of the values differs from what it should be."""
        total = sum(float(values.sum()) for values in self.values)
        return abs(total - (self.output - self.baseline))


class IntegratedGradients:
    """Integrated gradients of a classifier, for several texts; traced once.

    See `integrated_gradients`, which is this for one text.

    Args:
        classifier: an `AlbertTextClassifier` that takes texts.
    """

    def __init__(self, classifier: Any):
        if classifier.preprocessor is None:
            raise AlbertError(
                "This classifier takes ids, not texts. Give it a `preprocessor`."
            )
        self.classifier = classifier
        embedding = classifier.backbone.embedding
        inputs = {
            name: keras.Input((None,), dtype=x.dtype, name=name)
            for name, x in classifier.input.items()
        }
        # In the place of the ids, their embeddings.
        width, dtype = classifier.backbone.hidden_dim, embedding.compute_dtype
        inputs["token_ids"] = keras.Input((None, width), dtype=dtype, name="token_ids")
        self._from_embedding = pass_through(classifier, embedding, inputs)
        ids = tf.TensorSpec([1, None], tf.int32)
        vectors = tf.TensorSpec([1, None, width], dtype)
        signature = [tf.TensorSpec([None], dtype), vectors, vectors]
        signature += [dict.fromkeys(inputs, ids), tf.TensorSpec([], tf.int32)]
        self._slopes = tf.function(self._eager_slopes, input_signature=signature)

    def __call__(
        self,
        text: str | tuple[str, str],
        target: int | str | None = None,
        steps: int = 32,
        tolerance: float = 0.01,
    ) -> Attributions:
        """See `integrated_gradients`."""
        texts = text if isinstance(text, tuple) else (text,)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(
                "`text` should be one string, or the tuple of two for a pair. "
                f"Received: {text!r}"
            )
        features, places = self._tokens(texts)
        is_text = np.zeros(features["token_ids"].shape, bool)
        is_text[:, np.concatenate([place for place, _, _ in places])] = True
        pad = self.classifier.preprocessor.tokenizer.pad_token_id
        blank = tf.where(is_text, pad, features["token_ids"])
        embed = self.classifier.backbone.embedding
        end = embed(features["token_ids"], features["segment_ids"])
        start = embed(blank, features["segment_ids"])
        both = self._probabilities(tf.concat([end, start], axis=0), features).numpy()
        target = self._target(target, both[0])
        output, baseline = both[:, target].astype("float64").tolist()
        names = self.classifier.class_names
        for doubling in range(MOST_DOUBLINGS + 1):
            used = steps * 2**doubling
            of_tokens = self._path_integral(start, end - start, features, target, used)
            values = tuple(
                _spread(of_tokens[positions], starts, ends, len(text))
                for text, (positions, starts, ends) in zip(texts, places, strict=True)
            )
            found = Attributions(texts, values, names[target], output, baseline, used)
            if found.error <= tolerance:
                return found
        warnings.warn(
            f"The sum of the attributions, {output - baseline:.4f}, is off by "
            f"{found.error:.4f} after {used} steps. Give more `steps`, or load the "
            "model in float32.",
            stacklevel=2,
        )
        return found

    def _tokens(self, texts):
        """The packed features; for each text the places of its tokens, and offsets."""
        preprocessor = self.classifier.preprocessor
        found = [tokenize_with_offsets(preprocessor.tokenizer, [x]) for x in texts]
        packed, (first,) = preprocessor.packer.pack([ids for ids, _, _ in found])
        first, total = int(first), int(packed.row_lengths()[0])
        # [CLS] first [SEP] second [SEP]; a second text without tokens is left out.
        bounds = ((1, first - 1), (first, max(total - 1, first)))
        places = [
            (np.arange(low, high), *(x[0].numpy()[: high - low] for x in offsets))
            for (low, high), (_, *offsets) in zip(bounds, found, strict=False)
        ]
        features = preprocessor.packer.pad(packed, tf.constant([first], tf.int64))
        return features, places

    def _target(self, target, probabilities):
        names = self.classifier.class_names
        if target is None:
            return int(probabilities.argmax())
        if isinstance(target, str) and target in names:
            return names.index(target)
        if isinstance(target, (int, np.integer)) and 0 <= target < len(names):
            return int(target)
        raise AlbertError(
            f"`target` should be one of the classes {names}, or its position. "
            f"Received: {target!r}"
        )

    def _path_integral(self, start, change, features, target, steps):
        """The attribution of each token [time]: Gauss-Legendre over the path."""
        points, weights = np.polynomial.legendre.leggauss(steps)
        points, weights = (points + 1) / 2, weights / 2
        total = np.zeros(change.shape[1:], "float64")
        for i in range(0, steps, BATCH_SIZE):
            some = tf.constant(points[i : i + BATCH_SIZE], change.dtype)
            slopes = self._slopes(some, start, change, features, tf.constant(target))
            slopes = tf.cast(slopes, tf.float64).numpy()
            total += np.tensordot(weights[i : i + BATCH_SIZE], slopes, axes=1)
        return (total * tf.cast(change[0], tf.float64).numpy()).sum(axis=-1)

    def _eager_slopes(self, points, start, change, features, target):
        """The gradients at points of the path [points, time, hidden_dim]."""
        with tf.GradientTape() as tape:
            vectors = start + points[:, tf.newaxis, tf.newaxis] * change
            tape.watch(vectors)
            rows = self._probabilities(vectors, features)
            chosen = tf.gather(rows, target, axis=1)
        return tape.gradient(chosen, vectors)

    def _probabilities(self, vectors, features):
        """Those of each row of embeddings [rows, time, hidden_dim]."""
        rows = tf.shape(vectors)[0]
        inputs = {name: tf.repeat(x, rows, axis=0) for name, x in features.items()}
        outputs = self._from_embedding({**inputs, "token_ids": vectors}, training=False)
        return self.classifier.answers(outputs)["probabilities"]


def integrated_gradients(
    classifier: Any,
    text: str | tuple[str, str],
    target: int | str | None = None,
    steps: int = 32,
    tolerance: float = 0.01,
) -> Attributions:
    """What each character of a text adds to the probability of a class.

    The gradients of the probability by the embedding of the tokens (position and
    segment included) are integrated on the straight path from a text of `[PAD]` tokens
    of the same length; `[CLS]` and `[SEP]` stay. What a token gets is divided evenly
    among the characters it was made of. Spaces and what was cut off get 0.

    Args:
        classifier: an `AlbertTextClassifier` that takes texts.
        text: string, or the tuple of two for a pair.
        target: optional int or string, the class; by default the most probable one.
        steps: int, points of the path (Gauss-Legendre quadrature).
        tolerance: float. While the sum is off by more than this, the number of steps is
            doubled, three times at most; then a warning says so.

    Returns:
        An `Attributions`.

    Raises:
        TypeError: if `text` is no string.
        AlbertError: if `target` is no class.

    Example:
    ```python
    found = albert_tf.models.integrated_gradients(classifier, "味道不错，就是太贵")
    dict(zip(found.texts[0], found.values[0]))
    ```

    Reference:
        [Axiomatic Attribution for Deep Networks](https://arxiv.org/abs/1703.01365),
        section 3; its axiom of completeness is what `tolerance` is about.
    """
    return IntegratedGradients(classifier)(text, target, steps, tolerance)


def _spread(of_tokens, starts, ends, length):
    """What tokens got, on the characters [length] they were made of."""
    values = np.zeros(length)
    for value, start, end in zip(of_tokens, starts, ends, strict=True):
        # A token of no characters, such as SentencePiece's first one.
        if start == end:
            start = min(start, length - 1)
            end = start + 1
        values[start:end] += value / (end - start)
    return values
