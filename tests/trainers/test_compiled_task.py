"""The defaults of `compile`, and the learning rate schedule of each `fit`."""

import itertools
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_classifier import (
    LABELS,
    TEXTS,
    call,
    cross_entropy,
    predict,
    small_classifier,
    unequal_batches,
)

from albert_tf.models import AlbertTextClassifier
from albert_tf.training import WarmupLinearDecay, fine_tuning_epochs

ONE_LAYER = {"num_layers": 1}


class Rates(keras.callbacks.Callback):
    """Record the learning rate of each step."""

    def on_train_begin(self, logs=None):
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


def save_and_load(classifier, path):
    """Save and load a `.keras` file without any warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Raised by Keras itself on NumPy 2.
        warnings.simplefilter("ignore", DeprecationWarning)
        classifier.save(path)
        restored = keras.models.load_model(path)
    for saved, loaded in zip(
        classifier.optimizer.variables, restored.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(loaded, saved, err_msg=saved.path)
    return restored


@pytest.mark.traced
def test_the_defaults_learn_a_separable_task(tmp_path):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 160)
    noise = [
        "".join(rng.choice([*"abc天地人"], size)) for size in rng.integers(15, size=160)
    ]
    texts = [x[:5] + "差好"[y] + x[5:] for x, y in zip(noise, labels, strict=True)]
    keras.utils.set_random_seed(3)
    classifier = small_classifier(2, sizes=ONE_LAYER)
    classifier.compile(learning_rate=0.01)
    options = {"batch_size": 10, "epochs": 6, "callbacks": [rates := Rates()]}
    classifier.fit(texts, labels, verbose=0, **options)
    assert np.mean(predict(classifier, texts).argmax(axis=1) == labels) > 0.95

    # The rate warms up to the peak at step 9 and falls to 0 after the last step.
    assert len(rates.rates) == int(classifier.optimizer.iterations) == 96
    rising, falling = np.split(np.array(rates.rates), [9])
    np.testing.assert_allclose(rising, 0.01 * np.arange(1, 10) / 9, rtol=1e-5)
    np.testing.assert_allclose(falling, 0.01 * np.arange(87, 0, -1) / 88, rtol=1e-4)
    assert float(classifier.optimizer.learning_rate) == 0

    restored = save_and_load(classifier, tmp_path / "classifier.keras")
    given, expected = call(restored, texts[:9]), call(classifier, texts[:9])
    np.testing.assert_allclose(given, expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.traced
def test_a_training_step_is_traced_once():
    traced = []

    class Traced(keras.losses.Loss):
        def call(self, y_true, y_pred):
            traced.append(y_pred)
            return keras.losses.sparse_categorical_crossentropy(
                y_true, y_pred, from_logits=True
            )

    classifier = small_classifier(2, sizes=ONE_LAYER)
    classifier.compile(loss=Traced())
    texts, labels = ["天地", "差人"], [0, 1]
    classifier.fit(texts, labels, batch_size=2, epochs=2, verbose=0)
    # TensorFlow converts a list to 32 bits, NumPy to 64.
    for y in (labels, np.array(labels)):
        dataset = tf.data.Dataset.from_tensor_slices((texts, y))
        classifier.fit(dataset.batch(2), epochs=2, verbose=0)
    assert len(traced) == 1


def test_the_schedule_has_as_many_steps_as_the_fit():
    classifier = small_classifier(sizes=ONE_LAYER)
    classifier.compile(learning_rate=0.25)
    many = {"x": TEXTS * 300, "y": LABELS * 300}
    # Each fit starts over.
    for arguments, steps in (
        # By default, three epochs of so many examples, here of two batches.
        ({**many, "validation_split": 0.1, "batch_size": 1000}, 6),
        ({"x": unequal_batches((TEXTS, LABELS), 4, 3), "epochs": 2}, 4),
        # Batches of 1, 3 and 3 texts.
        ({"x": TEXTS, "y": LABELS, "max_tokens": 40, "epochs": 1}, 3),
    ):
        classifier.fit(**arguments, verbose=0)
        assert int(classifier.optimizer.iterations) == steps
        config = classifier.optimizer.get_config()["learning_rate"]["config"]
        assert (config["total_steps"], config["peak_learning_rate"]) == (steps, 0.25)


def test_few_examples_are_trained_for_more_epochs():
    found = [fine_tuning_epochs(examples) for examples in (0, 5, 500, 1500, 10**6)]
    assert found == [30, 30, 9, 3, 3]


def test_few_examples_of_known_labels_have_a_lower_rate(tmp_path):
    small_classifier(sizes=ONE_LAYER, labels=["甲", "乙", "丙"]).save_to_preset(
        str(tmp_path)
    )

    def peak(labels=("丙", "甲", "乙"), **options):
        classifier = AlbertTextClassifier.from_checkpoint(
            str(tmp_path), labels=list(labels)
        )
        classifier.compile(**options)
        return classifier, classifier.peak_learning_rate(7)

    usual = small_classifier().default_learning_rate
    classifier, rate = peak()
    assert rate == pytest.approx(usual * 7 / 4500)
    assert classifier.peak_learning_rate(450) == pytest.approx(usual / 10)
    # A dataset may have any number of examples.
    assert classifier.peak_learning_rate(800) == usual
    assert classifier.peak_learning_rate(None) == usual
    classifier.fit(TEXTS, LABELS, batch_size=7, epochs=1, verbose=0)
    config = classifier.optimizer.get_config()["learning_rate"]["config"]
    assert config["peak_learning_rate"] == pytest.approx(rate)
    with pytest.warns(UserWarning, match="new head"):
        assert peak(labels=["甲", "乙", "丁"])[1] == usual
    assert peak(learning_rate=usual)[1] == usual


def test_an_own_optimizer_is_kept_with_its_rate_and_state(tmp_path):
    # The default optimizer cannot train these weights.
    classifier = small_classifier(sizes={**ONE_LAYER, "dtype": "bfloat16"})
    with pytest.raises(ValueError, match='dtype="mixed_bfloat16", which keeps'):
        classifier.fit(TEXTS, LABELS, verbose=0)
    optimizer = keras.optimizers.SGD(0.25, momentum=0.5)
    classifier.compile(optimizer=optimizer)
    classifier.fit(TEXTS, LABELS, batch_size=4, epochs=1, verbose=0)
    assert classifier.optimizer is optimizer and int(optimizer.iterations) == 2
    restored = save_and_load(classifier, tmp_path / "classifier.keras")
    assert float(restored.optimizer.learning_rate) == 0.25
    with pytest.raises(ValueError, match="your own optimizer"):
        classifier.compile(optimizer="adam", learning_rate=1e-3)


def test_an_own_loss_and_metrics_are_used():
    classifier = small_classifier(dropout=0.0)
    hits = keras.metrics.CategoricalAccuracy(name="hits")
    classifier.compile(loss="categorical_crossentropy", metrics=[hits])
    results = classifier.evaluate(TEXTS, np.eye(3)[LABELS], verbose=0, return_dict=True)
    losses = cross_entropy(call(classifier, TEXTS), LABELS)
    expected = pytest.approx(losses.mean(), abs=1e-5)
    assert results == {"loss": expected, "hits": results["hits"]}


def test_averages_and_accumulation_of_the_default_optimizer():
    classifier = small_classifier(sizes=ONE_LAYER, dropout=0.0)
    options = {"ema_momentum": 0.9, "gradient_accumulation_steps": 2}
    classifier.compile(learning_rate=1e-2, **options)
    seen = []

    class Seen(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            rate = float(self.model.optimizer.learning_rate)
            seen.append((np.array(self.model.output_dense.kernel), rate))

    # Four batches per epoch: two updates, at the rates of a schedule of eight.
    fit = {"batch_size": 2, "epochs": 2, "callbacks": [Seen()], "verbose": 0}
    classifier.fit(TEXTS, LABELS, **fit)
    kernels, rates = zip(*seen, strict=True)
    changed = [np.any(a != b) for a, b in itertools.pairwise(kernels)]
    assert changed == [True, False] * 3 + [True]
    schedule = WarmupLinearDecay(1e-2, 8, 0)
    assert rates == pytest.approx([float(schedule(i)) for i in range(1, 9)], rel=1e-5)
    # Averaged from the first update on, which follows the second batch.
    average = kernels[1]
    for kernel in kernels[2:]:
        average = 0.9 * average + 0.1 * kernel
    # Keras puts the averages into the model at the end.
    np.testing.assert_allclose(classifier.output_dense.kernel, average, atol=1e-6)
    # A fit that starts at a later epoch averages from the weights, not from 0.
    seen.clear()
    classifier.fit(TEXTS, LABELS, initial_epoch=1, **fit)
    kernel = classifier.output_dense.kernel
    assert np.abs(kernel - seen[-1][0]).max() < np.abs(seen[-1][0]).max() / 10
