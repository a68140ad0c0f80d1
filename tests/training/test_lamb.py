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
        bias_correction: bool.
        decay: float.
    """

    def __init__(self, w, excluded=False, parts=1, bias_correction=False, decay=DECAY):
        self.matrices = self._split(np.asarray(w, "float64"), parts)
        self.m, self.v = [0.0] * parts, [0.0] * parts
        self.excluded, self.bias_correction = excluded, bias_correction
        self.decay, self.steps = decay, 0

    def _split(self, array, parts):
        return np.split(array, parts, axis=-1) if parts > 1 else [array]

    @property
    def w(self):
        whole = len(self.matrices) == 1
        return self.matrices[0] if whole else np.concatenate(self.matrices, -1)

    def step(self, gradient, rate=RATE):
        self.steps += 1
        parts = len(self.matrices)
        for i, g in enumerate(self._split(np.asarray(gradient, "float64"), parts)):
            self.m[i] = BETA_1 * self.m[i] + (1 - BETA_1) * g
            self.v[i] = BETA_2 * self.v[i] + (1 - BETA_2) * g**2
            m, v, w = self.m[i], self.v[i], self.matrices[i]
            if self.bias_correction:
                m, v = m / (1 - BETA_1**self.steps), v / (1 - BETA_2**self.steps)
            update, ratio = m / (v**0.5 + EPSILON), 1.0
            if not self.excluded:
                update = update + self.decay * w
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


@pytest.mark.parametrize("bias_correction", [False, True], ids=["original", "paper"])
@pytest.mark.parametrize("zeros", ZEROS)
def test_ten_steps_are_those_of_the_algorithm(zeros, bias_correction):
    rng = np.random.default_rng(3)
    start = {
        path: rng.normal(size=shape) * ("w" not in ZEROS[zeros])
        for path, (shape, _, _) in VARIABLES.items()
    }
    variables = [variable(path, w) for path, w in start.items()]
    expected = [
        LambByHand(start[path], excluded, parts, bias_correction)
        for path, (_, excluded, parts) in VARIABLES.items()
    ]
    optimizer = Lamb(bias_correction=bias_correction)
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


@pytest.mark.parametrize("path", ["dense/bias", "layer_norm/gamma", "layer_norm/beta"])
def test_first_step_of_an_excluded_variable_by_hand(path):
    optimizer = Lamb(0.5, weight_decay=0.1, epsilon=0.0)
    w = applied(optimizer, [3.0, 4.0], [2.0, -5.0], path=path)
    assert w == pytest.approx([3 - 0.5 * 10**0.5, 4 + 0.5 * 10**0.5], abs=1e-5)


def test_first_step_with_bias_correction_is_of_length_one():
    optimizer = Lamb(0.5, weight_decay=None, epsilon=0.0, bias_correction=True)
    w = applied(optimizer, [3.0, 4.0], [2.0, -5.0], path="dense/bias")
    assert w == pytest.approx([2.5, 4.5], abs=1e-5)


def test_a_variable_of_zeros_gets_the_update_itself():
    optimizer = Lamb(0.5, epsilon=0.0)
    w = applied(optimizer, [0.0, 0.0], [2.0, -5.0])
    assert w == pytest.approx([-0.5 * 10**0.5, 0.5 * 10**0.5], abs=1e-5)


@pytest.mark.parametrize("decay", [0.0, None])
def test_nothing_moves_without_gradient_and_decay(decay):
    assert applied(Lamb(0.5, weight_decay=decay), [3.0], [0.0], [0.0]) == [3.0]


def test_decay_is_inside_the_ratio_and_nowhere_else():
    """Decay alone is as long as the weights, however little it is."""
    for decay in (0.01, 0.5):
        w = applied(Lamb(0.125, weight_decay=decay), [3.0, 4.0], [0.0, 0.0])
        assert w == pytest.approx([3 * 0.875, 4 * 0.875], abs=1e-6)


def test_squares_of_half_precision_numbers_do_not_overflow():
    w = keras.Variable(np.full([4], 300.0), dtype="float16", name="kernel")
    Lamb(0.5).apply([keras.ops.full([4], 300.0, "float16")], [w])
    # 0.5 * 600 / 2 less, for the update points along the weights.
    assert w.numpy().tolist() == [150.0] * 4
    assert w.dtype == "float16"


# === Which variables ===


def new_pretrainer(learning_rate, **kwargs):
    keras.utils.set_random_seed(0)
    backbone = AlbertBackbone(
        vocabulary_size=20,
        num_layers=2,
        num_heads=4,
        embedding_dim=8,
        hidden_dim=12,
        intermediate_dim=24,
        num_attention_groups=2,
        embedding_projection="after_layer_norm",
        max_sequence_length=17,
    )
    pretrainer = AlbertPretrainer(backbone)
    pretrainer.compile(Lamb(learning_rate, global_clipnorm=1.0), **kwargs)
    return pretrainer


@pytest.fixture(scope="module")
def pretrainer():
    return new_pretrainer(0.125, run_eagerly=True)


def batch():
    rng = np.random.default_rng(1)
    ids = rng.integers(20, size=[4, 9])
    x = {
        "token_ids": ids,
        "segment_ids": 0 * ids,
        "padding_mask": np.ones_like(ids),
        "mask_positions": rng.integers(9, size=[4, 2]),
    }
    y = {
        "mlm_logits": rng.integers(20, size=[4, 2]),
        "sop_logits": rng.integers(2, size=[4]),
    }
    return x, y


def moved_by_decay(model):
    """Each variable's value after a step without gradient from ones."""
    variables = model.trainable_variables
    for x in variables:
        x.assign(keras.ops.ones(x.shape))
    optimizer = Lamb.from_config(model.optimizer.get_config())
    optimizer.apply([keras.ops.zeros(x.shape) for x in variables], variables)
    return {x.path: np.unique(x.numpy()) for x in variables}


def test_only_matrices_of_an_albert_decay(pretrainer):
    values = moved_by_decay(pretrainer)
    whole = {path for path in values if path.endswith(("bias", "gamma", "beta"))}
    # Three tables; the kernels of projection, attention (2 x 2), feed-forward (2),
    # pooler, and of the heads (2).
    assert len(values) - len(whole) == 3 + 10
    for path, value in values.items():
        assert value == pytest.approx([1.0 if path in whole else 0.875]), path


def test_query_key_and_value_have_a_ratio_each(pretrainer):
    optimizer = Lamb()
    optimizer.build(pretrainer.trainable_variables)
    paths = [x.path for x in pretrainer.trainable_variables]
    blocks = pretrainer.backbone.attention_blocks.values()
    fused = {block.query_key_value.kernel.path for block in blocks}
    assert len(fused) == 2
    assert optimizer._parts == [3 if path in fused else 1 for path in paths]


def test_excluded_variables_may_be_chosen():
    moved = {
        path: applied(Lamb(0.125, exclude="first/kernel"), [1.0], [0.0], path=path)
        for path in ("first/kernel", "second/kernel", "second/bias")
    }
    assert moved == {"first/kernel": 1.0, "second/kernel": 0.875, "second/bias": 0.875}
    assert applied(Lamb(0.125, exclude=()), [1.0], [0.0], path="dense/bias") == 0.875


def test_fused_variables_may_be_chosen():
    gradient = [1.0, 1.0, 1.0, 1.0]
    start = [1.0, 1.0, 10.0, 10.0]
    for fused, parts in (({"kernel": 2}, 2), ({"kernel": 4}, 4), ({}, 1), (None, 1)):
        expected = LambByHand(start, parts=parts)
        expected.step(gradient)
        w = applied(Lamb(fused=fused), start, gradient)
        assert w == pytest.approx(expected.w, rel=1e-6)


def test_a_variable_that_cannot_be_divided_is_refused():
    message = r"dense/kernel holds 3 matrices .* its shape is \(2, 4\)"
    with pytest.raises(ValueError, match=message):
        Lamb(fused={"kernel": 3}).build([variable("dense/kernel", np.ones([2, 4]))])


def test_variables_of_tensorflow():
    import tensorflow as tf

    variables = [tf.Variable([1.0], name=name) for name in ("kernel", "bias")]
    Lamb(0.125).apply([tf.zeros([1])] * 2, variables)
    assert [x.numpy().tolist() for x in variables] == [[0.875], [1.0]]


# === Configuration ===


CHANGED = {
    "learning_rate": 0.5,
    "beta_1": 0.8,
    "beta_2": 0.99,
    "epsilon": 1e-4,
    "weight_decay": 0.2,
    "exclude": ["table$"],
    "fused": {"kernel": 2},
    "bias_correction": True,
    "name": "mine",
    "global_clipnorm": 1.0,
    "use_ema": True,
    "ema_momentum": 0.5,
    "ema_overwrite_frequency": 3,
    "loss_scale_factor": 2.0,
    "gradient_accumulation_steps": 4,
}


def test_defaults():
    config = Lamb().get_config()
    assert config["learning_rate"] == pytest.approx(0.00176)
    numbers = ("beta_1", "beta_2", "epsilon", "weight_decay")
    assert [config[name] for name in numbers] == [BETA_1, BETA_2, EPSILON, DECAY]
    assert config["bias_correction"] is False


@pytest.mark.parametrize(
    "arguments",
    [{}, CHANGED, {"clipnorm": 1.0}, {"clipvalue": 1.0}, {"weight_decay": None}],
    ids=["defaults", "all", "clipnorm", "clipvalue", "no_decay"],
)
def test_config_comes_back(arguments):
    optimizer = Lamb(**arguments)
    config = optimizer.get_config()
    expected = {**arguments, "weight_decay": arguments.get("weight_decay", DECAY) or 0}
    assert {name: config[name] for name in expected} == expected
    serialized = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    again = keras.optimizers.deserialize(serialized)
    assert type(again) is Lamb
    assert again.get_config() == config
    assert Lamb.from_config(config).get_config() == config


def test_config_of_a_schedule_comes_back():
    schedule = WarmupLinearDecay(0.7, total_steps=10, warmup_steps=3)
    again = Lamb.from_config(Lamb(schedule).get_config())
    assert type(again._learning_rate) is WarmupLinearDecay
    assert again._learning_rate.get_config() == schedule.get_config()


def test_an_unknown_argument_is_refused():
    with pytest.raises(ValueError, match="not recognized: {'decay_rate': 0.1}"):
        Lamb(decay_rate=0.1)


# === Training, step by step as by hand ===


EXAMPLES, BATCH, EPOCHS = 32, 8, 3
SCHEDULE = {"peak_learning_rate": 0.1, "total_steps": 12, "warmup_steps": 4}
CASES = {
    "plain": {"learning_rate": 0.05},
    "bias_correction": {"learning_rate": 0.05, "bias_correction": True},
    "schedule": {"learning_rate": SCHEDULE},
    "clipped": {"learning_rate": 0.05, "global_clipnorm": 0.01},
    "accumulated": {"learning_rate": 0.05, "gradient_accumulation_steps": 2},
    "accumulated_corrected": {
        "learning_rate": SCHEDULE,
        "gradient_accumulation_steps": 2,
        "bias_correction": True,
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


def model_of(case, dtype="float32", **kwargs):
    """Two layers, with a fused kernel, a bias, and a kernel."""
    inputs = keras.Input((4,))
    x = keras.layers.Dense(6, name="query_key_value", dtype=dtype)(inputs)
    outputs = keras.layers.Dense(2, use_bias=False, name="output", dtype=dtype)(x)
    model = keras.Model(inputs, outputs)
    rng = np.random.default_rng(6)
    model.set_weights([rng.normal(size=x.shape) for x in model.weights])
    model.compile(optimizer_of(case), loss="mse", **kwargs)
    return model


def fit(model, epochs=EPOCHS):
    """Train without shuffling; returns the weights."""
    options = {"batch_size": BATCH, "shuffle": False, "verbose": 0}
    model.fit(*data(), epochs=epochs, **options)
    return model.get_weights()


def fit_by_hand(case):
    arguments = CASES[case]
    start = model_of(case).get_weights()
    correction = arguments.get("bias_correction", False)
    variables = [
        LambByHand(w, excluded, parts, correction)
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


@pytest.mark.parametrize("case", CASES)
def test_fit(case):
    assert_as_by_hand(case, fit(model_of(case)))


@pytest.mark.parametrize("kwargs", [{"jit_compile": True}, {"run_eagerly": True}])
def test_fit_with_xla_and_without_a_graph(kwargs):
    assert_as_by_hand("plain", fit(model_of("plain", **kwargs)))


def test_mixed_bfloat16():
    model = model_of("plain", dtype="mixed_bfloat16")
    weights = fit(model)
    assert {x.dtype for x in model.optimizer.variables[2:]} == {"float32"}
    expected = fit_by_hand("plain")
    differences = [
        np.abs(ours - by_hand).max()
        for ours, by_hand in zip(weights, expected, strict=True)
    ]
    # Of gradients with eight bits, and so not exactly the same.
    assert 1e-5 < max(differences) < 0.05


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


def test_an_albert_learns():
    model = new_pretrainer(0.02)
    history = model.fit(*batch(), epochs=8, verbose=0).history["loss"]
    assert history[-1] < 0.9 * history[0]


# === Saving ===


@pytest.mark.parametrize("case", ["plain", "accumulated_corrected"])
def test_training_goes_on_after_saving_and_loading(tmp_path, case):
    model = model_of(case)
    fit(model, epochs=1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is Lamb
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations) > 0
    assert_as_by_hand(case, fit(loaded, epochs=EPOCHS - 1))


def test_an_albert_loaded_excludes_the_same(tmp_path, pretrainer):
    pretrainer.fit(*batch(), verbose=0)
    pretrainer.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is Lamb
    for kind in ("_is_excluded", "_parts"):
        of_both = [getattr(model.optimizer, kind) for model in (loaded, pretrainer)]
        assert of_both[0] == of_both[1]
    assert moved_by_decay(loaded) == moved_by_decay(pretrainer)


# === Other processes: two devices, and JAX ===


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


def write_weights_of_two_devices():
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert strategy.num_replicas_in_sync == 2
    with strategy.scope():
        write_weights(("plain", "bias_correction", "schedule"))


def test_two_devices(tmp_path):
    code = "test_lamb.write_weights_of_two_devices()"
    weights = in_another_process(code, tmp_path / "weights.npz")
    assert len(weights) == 3
    for case in weights:
        assert_as_by_hand(case, weights[case])


@pytest.mark.processes
@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="jax is not installed")
def test_jax(tmp_path):
    code = "assert test_lamb.keras.backend.backend() == 'jax'; "
    code += "test_lamb.write_weights(test_lamb.CASES)"
    weights = in_another_process(code, tmp_path / "weights.npz", KERAS_BACKEND="jax")
    assert weights.keys() == CASES.keys()
    for case in weights:
        assert_as_by_hand(case, weights[case])
