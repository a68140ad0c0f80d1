import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models import AlbertBackbone
from albert_tf.training import adamw, fine_tuning_learning_rate
from albert_tf.training.optimizers import AdamW

RATE = 0.5


def small_backbone():
    backbone = AlbertBackbone(
        vocabulary_size=20,
        num_layers=2,
        num_heads=4,
        embedding_dim=16,
        hidden_dim=48,
        intermediate_dim=96,
        embedding_projection="after_layer_norm",
        max_sequence_length=17,
    )
    for variable in backbone.weights:
        variable.assign(keras.ops.ones(variable.shape))
    return backbone


def after_a_step_of_nothing(optimizer, variables):
    optimizer.apply([keras.ops.zeros(x.shape) for x in variables], variables)
    return {x.path: np.unique(x.numpy()) for x in variables}


def is_decayed(path):
    return not path.endswith(("/bias", "/gamma", "/beta"))


def test_only_matrices_decay():
    variables = small_backbone().trainable_variables
    values = after_a_step_of_nothing(adamw(RATE), variables)
    decayed = [path for path in values if is_decayed(path)]
    # Three tables; the kernels of projection, attention (2), feed-forward (2), pooler.
    assert len(decayed) == 3 + 6
    assert len(values) == 9 + 12
    for path, value in values.items():
        expected = 1.0 - RATE * 0.01 if is_decayed(path) else 1.0
        assert value == pytest.approx([expected]), path


def test_biases_do_not_decay_after_saving_and_loading(tmp_path):
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    model.compile(adamw(RATE), loss="mse")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    bias = loaded.layers[-1].bias
    bias.assign([1.0, 1.0])
    after_a_step_of_nothing(loaded.optimizer, loaded.trainable_variables)
    assert bias.numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_accumulation_steps": 2},
        {"use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 3},
        {"amsgrad": True},
    ],
)
def test_it_steps_as_keras_adamw_does(options):
    """Whose one kernel a variable is another than Keras' operations."""
    ended = []
    for optimizer in (AdamW, keras.optimizers.AdamW):
        rng = np.random.default_rng(0)
        optimizer = optimizer(1e-2, weight_decay=0.01, global_clipnorm=1.0, **options)
        # What both decay.
        variables = [
            keras.Variable(rng.normal(size=shape).astype("float32"), name="kernel")
            for shape in ((5, 7), (3,))
        ]
        for _ in range(7):
            gradients = [rng.normal(size=x.shape) for x in variables]
            gradients = [keras.ops.cast(x, "float32") for x in gradients]
            optimizer.apply(gradients, variables)
        ended.append([x.numpy() for x in variables])
    for found, expected in zip(*ended, strict=True):
        # 7 steps of 1e-2; each rounds in the last of 24 bits.
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_repeated_rows_of_a_sparse_gradient_are_summed():
    tables = [keras.Variable(np.ones((4, 2)), name="table") for _ in range(2)]
    rows = tf.IndexedSlices(
        tf.ones((3, 2)), tf.constant([1, 1, 2]), tf.constant([4, 2])
    )
    AdamW(0.1).apply([rows], tables[:1])
    AdamW(0.1).apply([tf.convert_to_tensor(rows)], tables[1:])
    np.testing.assert_array_equal(*tables)


def test_gradients_are_clipped_together():
    """A long gradient moves the weights as the same direction of length 1 does."""
    moved = {}
    for scale in (1.0, 100.0):
        kernel = keras.Variable(np.zeros(2, "float32"), name="kernel")
        bias = keras.Variable(np.zeros(1, "float32"), name="bias")
        optimizer = adamw(RATE)
        for factor in (1.0, scale, scale):
            gradients = np.float32([0.6, 0.0]) * factor, np.float32([0.8]) * factor
            optimizer.apply([keras.ops.array(x) for x in gradients], [kernel, bias])
        moved[scale] = np.concatenate([kernel.numpy(), bias.numpy()])
    assert np.abs(moved[1.0]).max() > 1.0
    assert moved[100.0] == pytest.approx(moved[1.0], abs=1e-6)


def test_rate_rises_for_a_tenth_of_the_steps_and_falls_to_zero():
    rate = adamw(1e-3, total_steps=100)._learning_rate
    rates = [float(rate(step)) for step in range(101)]
    assert int(np.argmax(rates)) == 9
    assert max(rates) == pytest.approx(1e-3)
    assert rates[0] == pytest.approx(1e-4)
    assert rates[100] == 0.0


def test_rate_is_constant_without_a_number_of_steps():
    optimizer = adamw(1e-3)
    variable = keras.Variable(np.zeros(1, "float32"), name="bias")
    for _ in range(3):
        assert float(optimizer.learning_rate) == pytest.approx(1e-3)
        optimizer.apply([keras.ops.ones(1)], [variable])


def test_larger_models_learn_more_slowly():
    rates = {
        128: 1e-3,
        256: 5e-4,
        312: 1e-4,
        384: 1e-4,
        768: 3e-5,
        1024: 3e-5,
        2048: 1e-5,
    }
    assert {x: fine_tuning_learning_rate(x) for x in rates} == rates
    random = {x: fine_tuning_learning_rate(x, random_weights=True) for x in rates}
    assert random == {**rates, 312: 3e-4, 384: 3e-4}
