"""LAMB against the algorithm in NumPy, and wherever an optimizer of Keras is used."""

import keras
import numpy as np
import pytest

from albert_tf.training import Lamb, WarmupLinearDecay

RATE, DECAY, BETA_1, BETA_2, EPSILON = 0.00176, 0.01, 0.9, 0.999, 1e-6


def lamb_by_hand(w, gradients, rates, excluded=False, parts=1):
    """The values of a variable after each step, by the algorithm in float64.

    An `excluded` variable is neither decayed nor adapted; one of several `parts` holds
    that many matrices side by side.
    """
    if parts > 1:
        split = (np.split(x, parts, axis=-1) for x in (w, *gradients))
        each = (lamb_by_hand(x, g, rates) for x, *g in zip(*split, strict=True))
        return [np.concatenate(x, axis=-1) for x in zip(*each, strict=True)]
    m, v, steps = 0.0, 0.0, []
    for g, rate in zip(gradients, rates, strict=True):
        m = BETA_1 * m + (1 - BETA_1) * g
        v = BETA_2 * v + (1 - BETA_2) * g**2
        update, ratio = m / (v**0.5 + EPSILON), 1.0
        if not excluded:
            update = update + DECAY * w
            lengths = [np.linalg.norm(np.ravel(x)) for x in (w, update)]
            ratio = lengths[0] / lengths[1] if all(lengths) else 1.0
        w = w - rate * ratio * update
        steps.append(w)
    return steps


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


def random_start(rng, steps, scale=1.0):
    """Random variables, and their gradients by step."""
    starts = [rng.normal(size=shape) * scale for shape, *_ in VARIABLES.values()]
    gradients = [[rng.normal(size=x.shape) for x in starts] for _ in range(steps)]
    return list(map(variable, VARIABLES, starts)), gradients


def assert_by_hand(variables, start, gradients, rates, found):
    """Assert the value of each variable after each step, or after the last."""
    for i, (_, excluded, parts) in enumerate(VARIABLES.values()):
        by_step = [step[i] for step in gradients]
        expected = lamb_by_hand(start[i], by_step, rates, excluded, parts)
        np.testing.assert_allclose(
            [step[i] for step in found],
            expected[-len(found) :],
            rtol=2e-5,
            atol=1e-6,
            err_msg=variables[i].path,
        )


def apply(optimizer, gradients, variables):
    optimizer.apply([keras.ops.array(g, "float32") for g in gradients], variables)
    return [x.numpy() for x in variables]


@pytest.mark.parametrize("has_zeros", [False, True])
def test_ten_steps_equal_the_algorithm(has_zeros):
    """Norms and the first gradients may be 0."""
    rng = np.random.default_rng(3)
    variables, gradients = random_start(rng, 10, scale=1 - has_zeros)
    start = [x.numpy() for x in variables]
    for step, parts in enumerate(gradients):
        scale = 10.0 ** rng.integers(-3, 3) * (not has_zeros or step > 6)
        gradients[step] = [g * scale for g in parts]
    optimizer = Lamb()
    found = [apply(optimizer, step, variables) for step in gradients]
    assert_by_hand(variables, start, gradients, [RATE] * 10, found)
    # They moved, other than from rounding.
    for last, first in zip(found[-1], start, strict=True):
        assert np.abs(last - first).max() > 1e-4


@pytest.mark.parametrize("every", [1, 2])
def test_clipping_accumulation_and_schedules(every):
    variables, gradients = random_start(np.random.default_rng(5), 12)
    start = [x.numpy() for x in variables]
    schedule = WarmupLinearDecay(0.1, total_steps=12, warmup_steps=4)
    options = {"gradient_accumulation_steps": 2} if every > 1 else {}
    optimizer = Lamb(schedule, global_clipnorm=0.01, **options)
    weights = [apply(optimizer, step, variables) for step in gradients]
    means = []
    for step in range(0, 12, every):
        mean = [
            np.mean(x, 0) for x in zip(*gradients[step : step + every], strict=True)
        ]
        length = np.sqrt(sum((g**2).sum() for g in mean))
        means.append([g * min(1.0, 0.01 / length) for g in mean])
    # Up in four steps of 0.025, then down in nine.
    rates = [0.1 * min(step / 4, (13 - step) / 9) for step in range(every, 13, every)]
    assert_by_hand(variables, start, means, rates, weights[-1:])
