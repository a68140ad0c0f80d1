"""LAMB against the algorithm in NumPy, and wherever an optimizer of Keras is used."""

import keras
import numpy as np
import pytest

from albert_tf.training import Lamb, WarmupLinearDecay

RATE, DECAY, BETA_1, BETA_2, EPSILON = 0.00176, 0.01, 0.9, 0.999, 1e-6


class LambByHand:
    """The algorithm for one variable, in float64.

    Args:
        w: array, its first value.
        excluded: bool, whether it is neither decayed nor adapted.
        parts: int, matrices it holds side by side.
    """

    def __init__(self, w, excluded=False, parts=1):
        self.matrices = self._split(np.asarray(w, "float64"), parts)
        self.m, self.v = [0.0] * parts, [0.0] * parts
        self.excluded = excluded

    def _split(self, array, parts):
        return np.split(array, parts, axis=-1) if parts > 1 else [array]

    @property
    def w(self):
        whole = len(self.matrices) == 1
        return self.matrices[0] if whole else np.concatenate(self.matrices, -1)

    def step(self, gradient, rate=RATE):
        parts = len(self.matrices)
        for i, g in enumerate(self._split(np.asarray(gradient, "float64"), parts)):
            self.m[i] = BETA_1 * self.m[i] + (1 - BETA_1) * g
            self.v[i] = BETA_2 * self.v[i] + (1 - BETA_2) * g**2
            m, v, w = self.m[i], self.v[i], self.matrices[i]
            update, ratio = m / (v**0.5 + EPSILON), 1.0
            if not self.excluded:
                update = update + DECAY * w
                lengths = [np.linalg.norm(np.ravel(x)) for x in (w, update)]
                ratio = lengths[0] / lengths[1] if all(lengths) else 1.0
            self.matrices[i] = w - rate * ratio * update


def variable(path, value):
    scope, name = path.split("/")
    with keras.name_scope(scope):
        return keras.Variable(np.asarray(value, "float32"), name=name)


# Path to shape, whether it is excluded, and how many matrices it holds.
VARIABLES = {
    "embedding/table": ((7, 4), False, 1),
    "dense/kernel": ((4, 6), False, 1),
    "dense/bias": ((6,), True, 1),
    "convolution/kernel": ((2, 3, 4), False, 1),
    "query_key_value/kernel": ((5, 12), False, 3),
    "query_key_value/bias": ((12,), True, 1),
    "layer_norm/gamma": ((3,), True, 1),
    "layer_norm/beta": ((3,), True, 1),
    "model/scale": ((), False, 1),
}


def variables_and_by_hand(rng, scale=1.0):
    """Random variables, and each by hand."""
    pairs = []
    for path, (shape, excluded, parts) in VARIABLES.items():
        start = rng.normal(size=shape) * scale
        pairs.append((variable(path, start), LambByHand(start, excluded, parts)))
    return zip(*pairs, strict=True)


def assert_equal(variables, by_hand):
    for ours, expected in zip(variables, by_hand, strict=True):
        np.testing.assert_allclose(
            ours.numpy(), expected.w, rtol=2e-5, atol=1e-6, err_msg=ours.path
        )


@pytest.mark.parametrize("has_zeros", [False, True])
def test_ten_steps_equal_the_algorithm(has_zeros):
    """Norms and the first gradients may be 0."""
    rng = np.random.default_rng(3)
    variables, by_hand = variables_and_by_hand(rng, scale=1 - has_zeros)
    start = [x.numpy() for x in variables]
    optimizer = Lamb()
    for step in range(10):
        scale = 10.0 ** rng.integers(-3, 3) * (not has_zeros or step > 6)
        gradients = [rng.normal(size=x.shape) * scale for x in variables]
        optimizer.apply([keras.ops.array(g, "float32") for g in gradients], variables)
        for expected, gradient in zip(by_hand, gradients, strict=True):
            expected.step(gradient)
        assert_equal(variables, by_hand)
    # They moved, other than from rounding.
    for ours, first in zip(variables, start, strict=True):
        assert np.abs(ours.numpy() - first).max() > 1e-4


# === What Keras adds to optimizers ===


@pytest.mark.parametrize("every", [1, 2])
def test_clipping_accumulation_and_schedules(every):
    rng = np.random.default_rng(5)
    variables, by_hand = variables_and_by_hand(rng)
    schedule = WarmupLinearDecay(0.1, total_steps=12, warmup_steps=4)
    options = {"gradient_accumulation_steps": 2} if every > 1 else {}
    optimizer = Lamb(schedule, global_clipnorm=0.01, **options)
    kept = []
    for step in range(1, 13):
        kept.append([rng.normal(size=x.shape) for x in variables])
        optimizer.apply([keras.ops.array(g, "float32") for g in kept[-1]], variables)
        if len(kept) < every:
            continue
        gradients = [np.mean(parts, 0) for parts in zip(*kept, strict=True)]
        kept = []
        length = np.sqrt(sum((g**2).sum() for g in gradients))
        share = min(1.0, 0.01 / length)
        # Up in four steps of 0.025, then down in nine.
        rate = 0.1 * min(step / 4, (13 - step) / 9)
        for expected, gradient in zip(by_hand, gradients, strict=True):
            expected.step(gradient * share, rate)
    assert_equal(variables, by_hand)
