"""`class_weight` of `fit`, and names of classes as labels."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.utils.class_weight import compute_class_weight
from small_classifier import LABELS, TEXTS, call, small_classifier

from albert_tf.models.class_weights import class_weights

NAMES = ["坏", "中", "好"]


def test_balanced_is_as_in_scikit_learn():
    y = np.array([0, 0, 0, 2, 2])
    weights = class_weights("balanced", y, NAMES)
    expected = compute_class_weight("balanced", classes=np.array([0, 2]), y=y)
    assert [weights[0], weights[2]] == pytest.approx(list(expected))


def test_names_and_ids():
    assert class_weights({"好": 3, 0: 2}, None, NAMES) == {0: 2.0, 1: 1.0, 2: 3.0}


@pytest.mark.parametrize("weights", [{"差": 1}, {3: 1}])
def test_a_class_that_is_not_there(weights):
    with pytest.raises(ValueError, match="not among"):
        class_weights(weights, None, NAMES)


def test_balanced_needs_the_classes():
    for given in ("balanced", "equal"):
        y = None if given == "balanced" else np.array([0])
        with pytest.raises(ValueError, match='a dict, or "balanced"'):
            class_weights(given, y, NAMES)


def fitted(y, **kwargs):
    classifier = small_classifier(labels=NAMES, dropout=0, sizes={"num_layers": 1})
    classifier.compile(keras.optimizers.SGD(0.1))
    classifier.fit(TEXTS, y, batch_size=7, verbose=0, **kwargs)
    return call(classifier, TEXTS)


def test_a_fit_with_weights_and_names_is_that_with_a_weight_a_text():
    weights = {"坏": 2.0, "好": 0.5}
    named = fitted([NAMES[i] for i in LABELS], class_weight=weights)
    by_text = fitted(LABELS, sample_weight=[[2.0, 1.0, 0.5][i] for i in LABELS])
    np.testing.assert_allclose(named, by_text, atol=1e-6)
    assert np.abs(named - fitted(LABELS)).max() > 1e-3


@pytest.mark.slow
def test_names_in_a_dataset_are_those_of_a_list():
    classifier = small_classifier(labels=NAMES, sizes={"num_layers": 1})
    names = [NAMES[i] for i in LABELS]
    expected = classifier.evaluate(TEXTS, names, verbose=0)
    assert expected == classifier.evaluate(TEXTS, LABELS, verbose=0)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, names)).batch(3)
    given = classifier.evaluate(dataset, verbose=0)
    assert given == pytest.approx(expected, abs=1e-5)
    classifier.fit(dataset, validation_data=dataset, group_by_length=True, verbose=0)
    unknown = tf.data.Dataset.from_tensor_slices((["好"], ["差"])).batch(1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not among the classes"):
        classifier.evaluate(unknown, verbose=0)
