"""Optimizers and schedules: what decays, AdamW as Keras steps it, learning rates."""

import keras
import numpy as np
import pytest

from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.training import Lamb, scheduled_optimizer
from albert_tf.training.optimizers import AdamW

RATE = 0.5


def apply_zeros(optimizer, variables):
    """Apply zeros as gradients, which leaves the decay."""
    optimizer.apply([keras.ops.zeros(x.shape) for x in variables], variables)


@pytest.mark.parametrize(
    ("optimizer", "decayed"),
    [(scheduled_optimizer("adamw", RATE), 1 - RATE * 0.01), (Lamb(0.125), 0.875)],
)
def test_only_matrices_decay(optimizer, decayed):
    backbone = AlbertBackbone(
        20, 2, 4, 8, 12, 24, num_attention_groups=2, max_sequence_length=17
    )
    variables = AlbertPretrainer(backbone).trainable_variables
    for x in variables:
        x.assign(keras.ops.ones(x.shape))
    apply_zeros(optimizer, variables)
    vectors = {x.path for x in variables if x.path.endswith(("bias", "gamma", "beta"))}
    # Three tables; the kernels of projection, attention (2 x 2), feed-forward (2),
    # pooler, and of the heads (2).
    assert len(variables) - len(vectors) == 3 + 10
    for x in variables:
        expected = 1.0 if x.path in vectors else decayed
        assert np.unique(x.numpy()) == pytest.approx([expected]), x.path
    if isinstance(optimizer, Lamb):
        # Query, key and value have a ratio each.
        blocks = backbone.attention_blocks.values()
        fused = {block.query_key_value.kernel.path for block in blocks}
        assert len(fused) == 2
        assert optimizer._parts == [3 if x.path in fused else 1 for x in variables]


def test_biases_do_not_decay_after_saving_and_loading(tmp_path):
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    model.compile(scheduled_optimizer("adamw", RATE), loss="mse")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    bias = loaded.layers[-1].bias
    bias.assign([1.0, 1.0])
    apply_zeros(loaded.optimizer, loaded.trainable_variables)
    assert bias.numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "options",
    [
        {"gradient_accumulation_steps": 2},
        {"use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 3},
        {"amsgrad": True},
    ],
)
def test_it_steps_as_keras_adamw_does(options):
    """One fused kernel per variable computes the same as Keras' operations."""
    ended = []
    for optimizer in (AdamW, keras.optimizers.AdamW):
        rng = np.random.default_rng(0)
        optimizer = optimizer(1e-2, weight_decay=0.01, global_clipnorm=1.0, **options)
        # Decayed by both.
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


def test_rate_rises_for_a_tenth_of_the_steps_and_falls_to_zero():
    rate = scheduled_optimizer("adamw", 1e-3, total_steps=100)._learning_rate
    rates = [float(rate(step)) for step in range(101)]
    assert int(np.argmax(rates)) == 9
    assert max(rates) == pytest.approx(1e-3)
    assert (rates[0], rates[100]) == (pytest.approx(1e-4), 0.0)
    assert float(scheduled_optimizer("adamw", 1e-3).learning_rate) == pytest.approx(
        1e-3
    )
