"""A model that predicts a number."""

import numpy as np
import pytest
from small_classifier import OTHERS, TEXTS, VOCABULARY, randomised, small_backbone

from albert_tf.models import AlbertTextRegressor

SCORES = [5.0, 0.0, 3.8, 2.5, 1.0, 4.2, 0.5]


def build(**kwargs):
    backbone = small_backbone(num_layers=1)
    return AlbertTextRegressor.from_backbone(backbone, VOCABULARY, **kwargs)


def test_one_number_per_pair_and_the_squared_error():
    regressor = randomised(build())
    x = (TEXTS, OTHERS)
    predicted = regressor.predict(x, verbose=0)
    assert predicted.shape == (7,) and np.ptp(predicted) > 0.01
    loss, mae = regressor.evaluate(x, SCORES, verbose=0)
    assert loss == pytest.approx(np.mean((predicted - SCORES) ** 2), rel=1e-5)
    assert mae == pytest.approx(np.mean(np.abs(predicted - SCORES)), rel=1e-5)


def test_a_head_for_another_range_is_a_new_one(tmp_path):
    regressor = randomised(build())
    scores = regressor.predict(TEXTS, verbose=0)
    assert not regressor.is_trained_for(TEXTS, scores)
    regressor.save_to_preset(str(tmp_path))
    loaded = AlbertTextRegressor.from_checkpoint(str(tmp_path))
    near = scores + 0.1 * np.ptp(scores) * np.resize([1, -1], len(scores))
    assert loaded.is_trained_for(TEXTS, near)
    # As high a correlation, and far off.
    assert not loaded.is_trained_for(TEXTS, near + 10)
    assert loaded.is_trained_for(100 * TEXTS, np.resize(near, 100 * len(TEXTS)))


def test_a_new_head_starts_from_the_mean():
    regressor = build()
    regressor.compile(learning_rate=1e-6)
    regressor.fit(TEXTS, np.add(SCORES, 100), epochs=1, verbose=0)
    assert float(regressor.output_dense.bias[0]) == pytest.approx(np.mean(SCORES) + 100)
