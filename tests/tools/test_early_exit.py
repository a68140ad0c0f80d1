"""Texts leave the encoder early, independently of their batch."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax
from small_classifier import LABELS, TEXTS, small_classifier

import albert_tf
from albert_tf.models import AlbertTextClassifier
from albert_tf.tools import AlbertEarlyExitClassifier

LAYERS = 4
# Enough texts that some leave after every layer.
MANY = [text + more for text in TEXTS for more in ("", "好", "去！吃")]


def classifier(sizes=None, **kwargs):
    sizes = {"num_layers": LAYERS, "num_heads": 4, **(sizes or {})}
    model = small_classifier(cls=AlbertEarlyExitClassifier, sizes=sizes, **kwargs)
    # Larger kernels, so that the layers disagree.
    for weight in model.backbone.trainable_variables:
        if weight.name == "kernel":
            weight.assign(2 * weight)
    return model


@pytest.fixture(scope="module")
def model():
    return classifier()


def layer_outputs(model, texts):
    """Return the logits of each layer, [layers, texts, classes], from hidden states."""
    features = model.preprocessor(texts)
    states = model.backbone.with_intermediates()(features)["hidden_states"][1:]
    pooled = [model.backbone.pooled_dense(state[:, 0]) for state in states]
    return np.stack([model.output_dense(x) for x in pooled])


def exit_layer(patience, logits):
    """Return the layer (from 0) that a text leaves after, as PABEE defines it."""
    labels = logits.argmax(-1)
    for layer in range(patience, LAYERS - 1):
        if len(set(labels[layer - patience : layer + 1])) == 1:
            return layer
    return LAYERS - 1


def test_each_text_gets_the_output_of_its_exit_layer(model):
    outputs = layer_outputs(model, MANY).swapaxes(0, 1)
    for patience in (1, 2, LAYERS):
        left = [exit_layer(patience, rows) for rows in outputs]
        assert len(set(left)) > 1 or patience == LAYERS
        expected = [rows[layer] for rows, layer in zip(outputs, left, strict=True)]
        given = model.predict_early(MANY, patience, max_tokens=64)
        np.testing.assert_allclose(given, expected, atol=1e-5)
    assert model.predict_early([], 1).shape == (0, 3)


def test_training_adds_the_losses_of_all_layers():
    model = classifier(dropout=0.0)
    model.compile(keras.optimizers.SGD(0.0))
    logits = layer_outputs(model, TEXTS)
    losses = -np.log(softmax(logits, -1))[:, range(len(TEXTS)), LABELS].mean(1)
    weights = np.arange(1, LAYERS + 1)
    loss = model.evaluate(TEXTS, LABELS, verbose=0)[0]
    assert loss == pytest.approx(losses[-1], abs=1e-4)
    history = model.fit(TEXTS, LABELS, epochs=1, verbose=0).history
    assert history["loss"][0] == pytest.approx(losses @ weights / weights.sum(), 1e-4)
    accuracy = (logits[-1].argmax(-1) == LABELS).mean()
    assert history["accuracy"][0] == pytest.approx(accuracy)


@pytest.mark.slow
@pytest.mark.traced
def test_a_preset_and_a_saved_model_keep_early_exit(model, tmp_path):
    model.save_to_preset(str(tmp_path / "preset"))
    loaded = AlbertTextClassifier.from_preset(str(tmp_path / "preset"))
    assert isinstance(loaded, AlbertEarlyExitClassifier)
    expected = model.predict_early(TEXTS, 1)
    given = loaded.predict_early(TEXTS, 1)
    np.testing.assert_allclose(given, expected, atol=1e-6)
    albert_tf.export.saved_model(model, tmp_path / "1", early_exit=1)
    serve = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    answers = serve(text=tf.constant(TEXTS))
    probabilities = softmax(expected, -1)
    np.testing.assert_allclose(answers["probabilities"], probabilities, atol=1e-5)
