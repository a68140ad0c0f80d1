"""The defaults of `compile`, and the schedule of each `fit`."""

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

from albert_tf.training import WarmupLinearDecay


class Rates(keras.callbacks.Callback):
    """The learning rate that each step was taken with."""

    def on_train_begin(self, logs=None):
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


@pytest.fixture(scope="module")
def trained():
    """Fitted for 96 steps with the defaults, and what was seen of the fit."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 160)
    noise = [
        "".join(rng.choice(list("abc天地人"), rng.integers(0, 15))) for _ in labels
    ]
    texts = [
        text[:5] + "差好"[label] + text[5:]
        for text, label in zip(noise, labels, strict=True)
    ]
    keras.utils.set_random_seed(3)
    classifier = small_classifier(2, sizes={"num_layers": 1})
    classifier.compile(learning_rate=0.01)
    rates = Rates()
    history = classifier.fit(
        texts, labels, batch_size=10, epochs=6, callbacks=[rates], verbose=0
    ).history
    return classifier, texts, labels, history, rates.rates


@pytest.mark.traced
def test_default_training_learns_a_separable_task(trained):
    classifier, texts, labels, history, _ = trained
    assert history["accuracy"][0] < 0.9
    predicted = predict(classifier, texts).argmax(axis=1)
    assert np.mean(predicted == labels) > 0.95


def test_learning_rate_warms_up_and_decays_over_exactly_the_steps(trained):
    classifier, _, _, _, rates = trained
    assert len(rates) == 96
    np.testing.assert_allclose(rates[:9], 0.01 * np.arange(1, 10) / 9, rtol=1e-5)
    # From the peak at step 9 in equal parts to 0 after the last.
    falling = 0.01 * np.arange(87, 0, -1) / 88
    np.testing.assert_allclose(rates[9:], falling, rtol=1e-4)
    assert int(classifier.optimizer.iterations) == 96
    assert float(classifier.optimizer.learning_rate) == 0


@pytest.mark.traced
def test_a_training_step_is_traced_once():
    traced = []

    class Traced(keras.losses.Loss):
        def call(self, y_true, y_pred):
            traced.append(y_pred)
            return keras.losses.sparse_categorical_crossentropy(
                y_true, y_pred, from_logits=True
            )

    classifier = small_classifier(2, sizes={"num_layers": 1})
    classifier.compile(loss=Traced())
    texts, labels = ["天地", "差人"], [0, 1]
    classifier.fit(texts, labels, batch_size=2, epochs=2, verbose=0)
    # Of a list TensorFlow makes numbers of 32 bits, NumPy of 64.
    for y in (labels, np.array(labels)):
        dataset = tf.data.Dataset.from_tensor_slices((texts, y))
        classifier.fit(dataset.batch(2), epochs=2, verbose=0)
    assert len(traced) == 1


def test_a_clone_of_keras_computes_and_trains_the_same():
    classifier = small_classifier(2, sizes={"num_layers": 1})
    clone = keras.models.clone_model(classifier)
    clone.set_weights(classifier.get_weights())
    features = classifier.preprocessor(["天地", "差人"])
    np.testing.assert_allclose(clone(features), classifier(features), atol=1e-6)
    clone.fit(features, np.array([0, 1]), verbose=0)


def test_weights_of_16_bits_are_not_trained_in_vain():
    classifier = small_classifier(2, sizes={"num_layers": 1, "dtype": "bfloat16"})
    with pytest.raises(ValueError, match='dtype="mixed_bfloat16", which keeps'):
        classifier.fit(["天地", "差人"], [0, 1], verbose=0)
    classifier.compile("sgd")
    embeddings = classifier.backbone.token_embedding.embeddings
    before = np.array(embeddings)
    classifier.optimizer.learning_rate = 1
    classifier.fit(["天地", "差人"], [0, 1], epochs=2, verbose=0)
    assert (np.array(embeddings) != before).any()


def ids():
    ones = np.ones((7, 5), "int32")
    return {"token_ids": ones, "segment_ids": 0 * ones, "padding_mask": ones}


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({"x": TEXTS, "y": LABELS, "validation_split": 0.4, "batch_size": 3}, 2),
        ({"x": unequal_batches((TEXTS, LABELS), 4, 3), "epochs": 2}, 4),
        ({"x": TEXTS, "y": LABELS, "batch_size": 2, "steps_per_epoch": 3}, 3),
        ({"x": ids(), "y": np.array(LABELS), "batch_size": 2}, 4),
    ],
    ids=["split", "dataset", "steps_per_epoch", "ids"],
)
def test_schedule_is_as_long_as_the_fit(arguments, steps):
    classifier = small_classifier(sizes={"num_layers": 1})
    classifier.compile(learning_rate=0.25, run_eagerly=True)
    classifier.fit(**arguments, verbose=0)
    assert int(classifier.optimizer.iterations) == steps
    config = classifier.optimizer.get_config()["learning_rate"]["config"]
    assert config["total_steps"] == steps
    assert config["peak_learning_rate"] == 0.25


def test_texts_grouped_by_length_are_scheduled_by_the_steps_of_their_dataset():
    classifier = small_classifier(sizes={"num_layers": 1})
    classifier.compile(learning_rate=0.25, run_eagerly=True)
    dataset = unequal_batches((TEXTS, LABELS), 4, 3)
    classifier.fit(dataset, epochs=2, group_by_length=True, verbose=0)
    config = classifier.optimizer.get_config()["learning_rate"]["config"]
    assert config["total_steps"] == 4


def test_second_fit_starts_over():
    classifier = small_classifier(sizes={"num_layers": 1})
    classifier.compile(learning_rate=0.25, run_eagerly=True)
    rates = Rates()
    for _ in range(2):
        classifier.fit(
            TEXTS,
            LABELS,
            batch_size=4,
            callbacks=[rates],
            verbose=0,
        )
        assert int(classifier.optimizer.iterations) == 2
        np.testing.assert_allclose(rates.rates, [0.5 / 3, 0.25 / 3], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_dataset_of_unknown_length_trains_at_the_peak():
    classifier = small_classifier(sizes={"num_layers": 1})
    classifier.compile(learning_rate=0.25, run_eagerly=True)
    dataset = unequal_batches((TEXTS, LABELS), 4, 3).filter(lambda x, y: True)
    rates = Rates()
    classifier.fit(dataset, callbacks=[rates], verbose=0)
    assert set(rates.rates) == {0.25}


def test_default_rate_is_that_of_the_size():
    assert float(small_classifier().optimizer.learning_rate) == pytest.approx(1e-3)
    base = small_classifier(sizes={"hidden_dim": 400, "num_layers": 1})
    assert float(base.optimizer.learning_rate) == pytest.approx(3e-5)


def test_own_optimizer_is_kept_with_its_rate_and_state():
    classifier = small_classifier(sizes={"num_layers": 1})
    optimizer = keras.optimizers.SGD(0.25)
    classifier.compile(optimizer=optimizer, run_eagerly=True)
    for steps in (2, 4):
        classifier.fit(TEXTS, LABELS, batch_size=4, verbose=0)
        assert classifier.optimizer is optimizer
        assert int(optimizer.iterations) == steps
    assert float(optimizer.learning_rate) == 0.25


def test_own_loss_and_metrics_are_used():
    classifier = small_classifier(dropout=0.0)
    classifier.compile(
        loss=keras.losses.CategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.CategoricalAccuracy(name="hits")],
    )
    results = classifier.evaluate(TEXTS, np.eye(3)[LABELS], verbose=0, return_dict=True)
    losses = cross_entropy(call(classifier, TEXTS), LABELS)
    assert results["loss"] == pytest.approx(losses.mean(), abs=1e-5)
    assert set(results) == {"loss", "hits"}


def test_rate_beside_an_own_optimizer_is_refused():
    classifier = small_classifier()
    with pytest.raises(ValueError, match="your own optimizer"):
        classifier.compile(optimizer="adam", learning_rate=1e-3)


def test_keras_file_restores_all_without_warnings(trained, tmp_path):
    classifier, texts, _, _, _ = trained
    path = tmp_path / "classifier.keras"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Keras' own, on NumPy 2.
        warnings.simplefilter("ignore", DeprecationWarning)
        classifier.save(path)
        restored = keras.models.load_model(path)

    assert type(restored) is type(classifier)
    np.testing.assert_allclose(
        call(restored, texts[:9]), call(classifier, texts[:9]), atol=1e-6
    )
    pairs = zip(
        classifier.optimizer.variables, restored.optimizer.variables, strict=True
    )
    for saved, loaded in pairs:
        np.testing.assert_array_equal(loaded, saved, err_msg=saved.path)
    assert any(np.abs(saved).max() > 0 for saved in classifier.optimizer.variables[1:])
    # A further fit gets a schedule of its own with this peak.
    compiled = restored.get_compile_config()["optimizer"]["config"]
    assert compiled["task_settings"]["learning_rate"] == 0.01


def test_keras_file_restores_an_own_optimizer(tmp_path):
    classifier = small_classifier(sizes={"num_layers": 1})
    optimizer = keras.optimizers.SGD(0.25, momentum=0.5)
    classifier.compile(optimizer=optimizer, run_eagerly=True)
    classifier.fit(TEXTS, LABELS, verbose=0)
    path = tmp_path / "classifier.keras"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Keras' own, on NumPy 2.
        warnings.simplefilter("ignore", DeprecationWarning)
        classifier.save(path)
        restored = keras.models.load_model(path)
    assert isinstance(restored.optimizer, keras.optimizers.SGD)
    assert float(restored.optimizer.learning_rate) == 0.25
    for saved, loaded in zip(
        classifier.optimizer.variables, restored.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(loaded, saved, err_msg=saved.path)


@pytest.mark.traced
@pytest.mark.parametrize("as_list", [False, True])
def test_a_loss_that_does_not_fall_is_warned_of_once(as_list):
    classifier = small_classifier(2, sizes={"num_layers": 1}, dropout=0.0)
    classifier.compile(optimizer=keras.optimizers.SGD(0.0), run_eagerly=True)
    callback = keras.callbacks.LambdaCallback()
    options = {"callbacks": [callback] if as_list else callback, "verbose": 0}
    # All alike, so that the loss does not depend on the order.
    x, y = ["好"] * 18, [1] * 18
    with pytest.warns(UserWarning, match="has not fallen in the first epoch: 0.*0e.00"):
        classifier.fit(x, y, batch_size=2, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.fit(x, y, batch_size=2, verbose=0)


@pytest.mark.traced
@pytest.mark.parametrize(("rate", "texts"), [(0.0, 8), (0.01, 20)])
def test_a_short_epoch_or_a_loss_that_falls_is_not(rate, texts):
    classifier = small_classifier(2, sizes={"num_layers": 1}, dropout=0.0)
    classifier.compile(optimizer=keras.optimizers.Adam(rate), run_eagerly=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.fit(["好"] * texts, [1] * texts, batch_size=1, verbose=0)


def test_averages_and_accumulation_of_the_default_optimizer():
    classifier = small_classifier(sizes={"num_layers": 1}, dropout=0.0)
    options = {"ema_momentum": 0.9, "gradient_accumulation_steps": 2}
    classifier.compile(learning_rate=1e-2, run_eagerly=True, **options)
    seen = []

    class Seen(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            rate = float(self.model.optimizer.learning_rate)
            seen.append((np.array(self.model.output_dense.kernel), rate))

    # Four batches an epoch: two updates, at the rates of a schedule of eight.
    for _ in range(2):
        seen.clear()
        fit = {"batch_size": 2, "epochs": 2, "callbacks": [Seen()], "verbose": 0}
        classifier.fit(TEXTS, LABELS, **fit)
        kernels, rates = zip(*seen, strict=True)
        changed = [np.any(a != b) for a, b in itertools.pairwise(kernels)]
        assert changed == [True, False] * 3 + [True]
        schedule = WarmupLinearDecay(1e-2, 8, 0)
        expected = [float(schedule(i)) for i in range(1, 9)]
        assert rates == pytest.approx(expected, rel=1e-5)
        # From the first update on, after the second batch.
        average = kernels[1]
        for kernel in kernels[2:]:
            average = 0.9 * average + 0.1 * kernel
        # The averages, which Keras puts into the model in the end.
        np.testing.assert_allclose(classifier.output_dense.kernel, average, atol=1e-6)
    # From the weights, where the first step of all was not seen.
    seen.clear()
    classifier.fit(TEXTS, LABELS, initial_epoch=1, **fit)
    kernel = classifier.output_dense.kernel
    assert np.abs(kernel - seen[-1][0]).max() < np.abs(seen[-1][0]).max() / 10
    compiled = classifier.get_compile_config()["optimizer"]["config"]
    settings = compiled["task_settings"]
    assert {name: settings[name] for name in options} == options
    with pytest.raises(ValueError, match="`ema_momentum` goes with optimizer='auto'"):
        classifier.compile("sgd", ema_momentum=0.5)
