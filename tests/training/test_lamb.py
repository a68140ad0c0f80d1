"""LAMB against the algorithm in NumPy, and wherever an optimizer of Keras is used."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.training import Lamb, WarmupLinearDecay

pytestmark = pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")

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


def applied(optimizer, value, *gradients, path="dense/kernel"):
    """A variable's value after a step with each gradient."""
    w = variable(path, value)
    for gradient in gradients:
        optimizer.apply([keras.ops.array(gradient, "float32")], [w])
    return w.numpy()


# === The algorithm ===


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
ZEROS = {"none": (), "weights": ("w",), "gradients": ("g",), "both": ("w", "g")}


@pytest.mark.parametrize("zeros", ZEROS)
def test_ten_steps_are_those_of_the_algorithm(zeros):
    rng = np.random.default_rng(3)
    start = {
        path: rng.normal(size=shape) * ("w" not in ZEROS[zeros])
        for path, (shape, _, _) in VARIABLES.items()
    }
    variables = [variable(path, w) for path, w in start.items()]
    expected = [
        LambByHand(start[path], excluded, parts)
        for path, (_, excluded, parts) in VARIABLES.items()
    ]
    optimizer = Lamb()
    for step in range(10):
        scale = 10.0 ** rng.integers(-3, 3) * ("g" not in ZEROS[zeros] or step > 6)
        gradients = [rng.normal(size=x.shape) * scale for x in variables]
        optimizer.apply([keras.ops.array(g, "float32") for g in gradients], variables)
        for ours, by_hand, gradient in zip(variables, expected, gradients, strict=True):
            by_hand.step(gradient)
            np.testing.assert_allclose(
                ours.numpy(), by_hand.w, rtol=2e-5, atol=1e-7, err_msg=ours.path
            )
    # They moved, other than from rounding.
    assert all(np.abs(x.numpy() - start[x.path]).max() > 1e-4 for x in variables)


def test_first_step_by_hand():
    # m = 0.1 * (2, -5), v = 0.001 * (4, 25), so m / sqrt(v) = (1, -1) * sqrt(10);
    # with 0.1 * (3, 4) of decay (3.46227766, -2.76227766), which is 4.42914 long.
    # (3, 4) is 5 long, so the ratio is 1.12888.
    optimizer = Lamb(0.5, weight_decay=0.1, epsilon=0.0)
    w = applied(optimizer, [3.0, 4.0], [2.0, -5.0])
    assert w == pytest.approx([3 - 1.95425, 4 + 1.55914], abs=1e-5)


def test_squares_of_half_precision_numbers_do_not_overflow():
    w = keras.Variable(np.full([4], 300.0), dtype="float16", name="kernel")
    Lamb(0.5).apply([keras.ops.full([4], 300.0, "float16")], [w])
    # 0.5 * 600 / 2 less, for the update points along the weights.
    assert w.numpy().tolist() == [150.0] * 4
    assert w.dtype == "float16"


# === Which variables ===


def test_only_matrices_of_an_albert_decay():
    """Without a gradient a step from ones takes an eighth of what decays."""
    backbone = AlbertBackbone(
        20, 2, 4, 8, 12, 24, num_attention_groups=2, max_sequence_length=17
    )
    variables = AlbertPretrainer(backbone).trainable_variables
    for x in variables:
        x.assign(keras.ops.ones(x.shape))
    optimizer = Lamb(0.125)
    optimizer.apply([keras.ops.zeros(x.shape) for x in variables], variables)
    whole = [x for x in variables if x.path.endswith(("bias", "gamma", "beta"))]
    # Three tables; the kernels of projection, attention (2 x 2), feed-forward (2),
    # pooler, and of the heads (2).
    assert len(variables) - len(whole) == 3 + 10
    is_whole = {x.path for x in whole}
    for x in variables:
        value = np.unique(x.numpy())
        assert value == pytest.approx([1.0 if x.path in is_whole else 0.875]), x.path
    # Query, key and value have a ratio each.
    blocks = backbone.attention_blocks.values()
    fused = {block.query_key_value.kernel.path for block in blocks}
    parts = [3 if x.path in fused else 1 for x in variables]
    assert len(fused) == 2 and optimizer._parts == parts


# === Configuration ===


CHANGED = {
    "learning_rate": 0.5,
    "beta_1": 0.8,
    "beta_2": 0.99,
    "epsilon": 1e-4,
    "weight_decay": 0.2,
    "name": "mine",
    "global_clipnorm": 1.0,
    "use_ema": True,
    "ema_momentum": 0.5,
    "ema_overwrite_frequency": 3,
    "loss_scale_factor": 2.0,
    "gradient_accumulation_steps": 4,
}


def test_config_comes_back():
    for arguments in ({}, CHANGED, {"weight_decay": None}):
        optimizer = Lamb(**arguments)
        config = optimizer.get_config()
        decay = arguments.get("weight_decay", DECAY) or 0
        assert {**config, **arguments, "weight_decay": decay} == config
        serialized = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
        again = keras.optimizers.deserialize(serialized)
        assert type(again) is Lamb and again.get_config() == config


# === Training, step by step as by hand ===


EXAMPLES, BATCH, EPOCHS = 32, 8, 3
SCHEDULE = {"peak_learning_rate": 0.1, "total_steps": 12, "warmup_steps": 4}
CASES = {
    "plain": {"learning_rate": 0.05},
    "clipped": {"learning_rate": 0.05, "global_clipnorm": 0.01},
    "accumulated": {
        "learning_rate": SCHEDULE,
        "gradient_accumulation_steps": 2,
    },
}


def optimizer_of(case):
    arguments = dict(CASES[case])
    if arguments["learning_rate"] is SCHEDULE:
        arguments["learning_rate"] = WarmupLinearDecay(**SCHEDULE)
    return Lamb(**arguments)


def data():
    rng = np.random.default_rng(5)
    x = rng.normal(size=[EXAMPLES, 4]).astype("float32")
    return x, (x @ rng.normal(size=[4, 2]) + 1.0).astype("float32")


def model_of(case):
    """Two layers, with a fused kernel, a bias, and a kernel."""
    inputs = keras.Input((4,))
    x = keras.layers.Dense(6, name="query_key_value")(inputs)
    outputs = keras.layers.Dense(2, use_bias=False, name="output")(x)
    model = keras.Model(inputs, outputs)
    rng = np.random.default_rng(6)
    model.set_weights([rng.normal(size=x.shape) for x in model.weights])
    model.compile(optimizer_of(case), loss="mse")
    return model


def fit(model, epochs=EPOCHS):
    """Train without shuffling; returns the weights."""
    options = {"batch_size": BATCH, "shuffle": False, "verbose": 0}
    model.fit(*data(), epochs=epochs, **options)
    return model.get_weights()


def fit_by_hand(case):
    arguments = CASES[case]
    start = model_of(case).get_weights()
    variables = [
        LambByHand(w, excluded, parts)
        for w, excluded, parts in zip(start, (0, 1, 0), (3, 1, 1), strict=True)
    ]
    every = arguments.get("gradient_accumulation_steps", 1)
    kept = []
    for step, (x, y) in enumerate(
        EPOCHS * list(zip(*map(batches, data()), strict=True))
    ):
        kept.append(gradients_by_hand(*(variable.w for variable in variables), x, y))
        if len(kept) < every:
            continue
        gradients = [np.mean(parts, 0) for parts in zip(*kept, strict=True)]
        kept = []
        length = np.sqrt(sum((g**2).sum() for g in gradients))
        most = arguments.get("global_clipnorm", np.inf)
        rate = arguments["learning_rate"]
        rate = rate if rate is not SCHEDULE else rate_by_hand(step + 1)
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.step(gradient * min(1.0, most / length), rate)
    return [variable.w for variable in variables]


def batches(array):
    return np.split(array.astype("float64"), EXAMPLES // BATCH)


def rate_by_hand(step):
    # Up in four steps of 0.025, then down in nine.
    return 0.1 * min(step / 4, (13 - step) / 9)


def gradients_by_hand(kernel, bias, output, x, y):
    hidden = x @ kernel + bias
    error = 2 * (hidden @ output - y) / y.size
    return x.T @ error @ output.T, (error @ output.T).sum(0), hidden.T @ error


def assert_as_by_hand(case, weights):
    start = model_of(case).get_weights()
    for ours, by_hand, first in zip(weights, fit_by_hand(case), start, strict=True):
        np.testing.assert_allclose(ours, by_hand, rtol=1e-4, atol=1e-5)
        assert np.abs(by_hand - first).max() > 0.05


@pytest.mark.parametrize("case", ["clipped", "accumulated"])
def test_fit(case):
    assert_as_by_hand(case, fit(model_of(case)))


def test_a_sparse_gradient_is_summed_row_by_row():
    """Keras' Embedding gives one on TensorFlow, with a row a token."""
    tokens = np.array([[1, 2, 1, 1], [2, 3, 3, 1]])
    target = np.random.default_rng(7).normal(size=[2, 4, 3])
    inputs = keras.Input((4,), dtype="int32")
    layer = keras.layers.Embedding(5, 3)
    model = keras.Model(inputs, layer(inputs))
    model.compile(Lamb(0.05), loss="mse")
    expected = LambByHand(layer.embeddings.numpy())
    model.fit(tokens, target, epochs=5, verbose=0)
    for _ in range(5):
        gradient = np.zeros([5, 3])
        error = 2 * (expected.w[tokens] - target) / target.size
        np.add.at(gradient, tokens, error)
        expected.step(gradient, 0.05)
    np.testing.assert_allclose(layer.embeddings.numpy(), expected.w, rtol=1e-4)


# === Saving ===


def test_training_resumes_after_saving_and_loading(tmp_path):
    case = "accumulated"
    model = model_of(case)
    fit(model, epochs=1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is Lamb
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations) > 0
    assert_as_by_hand(case, fit(loaded, epochs=EPOCHS - 1))


# === On JAX, in another process ===


def in_another_process(code, output, **environment):
    """Weights by case, of code that calls `write_weights`."""
    folder = str(pathlib.Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {folder!r}); import test_lamb; {code}"
    result = subprocess.run(
        [sys.executable, "-c", code, str(output)],
        capture_output=True,
        env={**os.environ, **environment},
        timeout=300,
    )
    assert result.returncode == 0, result.stderr.decode()
    with np.load(output) as file:
        return {
            case: [file[f"{case}/{i}"] for i in range(3)]
            for case in {name.split("/")[0] for name in file}
        }


def write_weights(cases):
    weights = {
        f"{case}/{i}": w for case in cases for i, w in enumerate(fit(model_of(case)))
    }
    np.savez(sys.argv[1], **weights)


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="jax is not installed")
def test_jax(tmp_path):
    code = "assert test_lamb.keras.backend.backend() == 'jax'; "
    code += "test_lamb.write_weights(test_lamb.CASES)"
    weights = in_another_process(code, tmp_path / "weights.npz", KERAS_BACKEND="jax")
    assert weights.keys() == CASES.keys()
    for case in weights:
        assert_as_by_hand(case, weights[case])
