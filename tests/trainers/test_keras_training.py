"""Trainings as Keras scripts write them: resumed, in callbacks, by batch, with LoRA."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from processes import run_python
from small_classifier import LABELS, TEXTS, predict, small_classifier
from task_cases import CASES

from albert_tf.layers.attend import LONG
from albert_tf.layers.attend import attend as attend_by_hand
from albert_tf.layers.fused_gelu import fused_gelu
from albert_tf.models import AlbertTextClassifier
from albert_tf.tools import AlbertEarlyExitClassifier, IntegratedGradients
from albert_tf.training.fine_tuning import FineTuning, fine_tune
from albert_tf_lite.errors import AlbertError

ONE_LAYER = {"num_layers": 1}
FIT = {"batch_size": 4, "epochs": 4, "shuffle": False, "verbose": 0}


class Rates(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


def new_classifier(**compiled):
    classifier = small_classifier(sizes=ONE_LAYER, dropout=0.0)
    classifier.compile(**compiled)
    return classifier


def weights_differ(first, second):
    pairs = zip(first.get_weights(), second.get_weights(), strict=True)
    return max(np.abs(a - b).max() for a, b in pairs)


# === Resuming ===


@pytest.mark.parametrize(
    "compiled",
    [
        {},
        pytest.param(
            {"ema_momentum": 0.9, "gradient_accumulation_steps": 3},
            marks=pytest.mark.slow,
        ),
        pytest.param({"optimizer": "own"}, marks=pytest.mark.nightly),
    ],
)
def test_a_keras_file_resumes_as_one_training(tmp_path, compiled):
    def compiled_classifier():
        options = dict(compiled)
        if options:
            schedule = keras.optimizers.schedules.CosineDecay(1e-2, 8)
            if options.get("optimizer"):
                options["optimizer"] = keras.optimizers.Adam(schedule)
        classifier = new_classifier(**options)
        # As with the head of a checkpoint: `fit` lowers the default rate.
        classifier.starts_trained = True
        return classifier

    path = tmp_path / "after-{epoch}.keras"
    checkpoints = keras.callbacks.ModelCheckpoint(path)
    whole, resumed = Rates(), Rates()
    first = compiled_classifier()
    first.fit(TEXTS, LABELS, callbacks=[whole, checkpoints], **FIT)
    second = keras.models.load_model(tmp_path / "after-2.keras")
    second.fit(TEXTS, LABELS, callbacks=[resumed], initial_epoch=2, **FIT)
    assert len(whole.rates) == 8
    np.testing.assert_allclose(resumed.rates, whole.rates[4:], rtol=1e-6)
    assert weights_differ(first, second) < 1e-5
    if "optimizer" in compiled:
        return
    # A plain `fit` starts over, at the rate that the first one had.
    again = Rates()
    second.fit(TEXTS, LABELS, callbacks=[again], **FIT)
    np.testing.assert_allclose(again.rates, whole.rates, rtol=1e-6)


def test_a_resumed_fit_without_its_state_warns():
    classifier = new_classifier(learning_rate=0.25)
    with pytest.warns(UserWarning, match="have 4 steps, but the optimizer has made 0"):
        classifier.fit(
            TEXTS, LABELS, callbacks=[rates := Rates()], initial_epoch=2, **FIT
        )
    np.testing.assert_allclose(rates.rates, 0.25 * np.arange(4, 0, -1) / 9, rtol=1e-5)


# The first fit has four steps, the second six.
FITS_ON_JAX = """
import keras
import numpy as np
from small_classifier import LABELS, TEXTS, small_classifier

rates = []
record = keras.callbacks.LambdaCallback(
    on_train_batch_begin=lambda batch, logs: rates.append(
        float(model.optimizer.learning_rate)
    )
)
model = small_classifier(sizes={"num_layers": 1}, dropout=0.0)
model.compile(learning_rate=1e-2)
losses = []
for epochs in (2, 3):
    options = {"epochs": epochs, "batch_size": 4, "callbacks": [record], "verbose": 0}
    losses += model.fit(TEXTS, LABELS, **options).history["loss"]
expected = [*np.arange(4, 0, -1) / 5, *np.arange(6, 0, -1) / 7]
np.testing.assert_allclose(rates, 1e-2 * np.array(expected), rtol=1e-5)
assert losses[-1] < losses[0]
before = np.array(model.output_dense.kernel)
model.train_on_batch(TEXTS, LABELS)
assert np.abs(np.array(model.output_dense.kernel) - before).max() > 1e-3
"""


@pytest.mark.nightly
def test_each_fit_has_its_schedule_on_jax():
    pytest.importorskip("jax")
    run_python(FITS_ON_JAX, KERAS_BACKEND="jax")


# === Callbacks ===


@pytest.mark.nightly
def test_callbacks_evaluate_and_predict_as_after_the_fit():
    names = ["坏", "中", "好"]
    classifier = small_classifier(sizes=ONE_LAYER, labels=names)
    classifier.compile(learning_rate=1e-2)
    y = [names[i] for i in LABELS]
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, y)).batch(3)
    ids = tf.data.Dataset.zip(
        dataset.map(lambda x, _: x).map(classifier.preprocessor),
        dataset.map(lambda _, y: y),
    )
    recorded = []

    class Scores(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            scores = [
                self.model.evaluate(*data, verbose=0, return_dict=True)["loss"]
                for data in ((TEXTS, y), (dataset,), (ids,))
            ]
            logits = self.model.predict(TEXTS, verbose=0)
            recorded.append((logs["val_loss"], *scores, logits))

        def on_train_end(self, logs=None):
            recorded.append(self.model.evaluate(dataset, verbose=0)[0])

    for validation in (ids, (TEXTS, y), dataset):
        recorded.clear()
        classifier.fit(
            TEXTS,
            y,
            epochs=2,
            validation_data=validation,
            callbacks=[Scores()],
            verbose=0,
        )
        for expected, *scores, _ in recorded[:2]:
            assert scores == pytest.approx([expected] * 3, rel=1e-4)
        assert recorded[2] == pytest.approx(recorded[1][0], rel=1e-4)
        np.testing.assert_allclose(
            recorded[1][-1], predict(classifier, TEXTS), atol=1e-5
        )


def test_a_callback_that_trains_the_model_is_refused():
    classifier = new_classifier()

    class Trains(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.fit(TEXTS, LABELS, epochs=1, verbose=0)

    with pytest.raises(AlbertError, match="A callback trains the model"):
        classifier.fit(TEXTS, LABELS, callbacks=[Trains()], epochs=1, verbose=0)
    # The refused training does not block the next one.
    classifier.fit(TEXTS, LABELS, epochs=1, verbose=0)


# === Single batches ===


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if i % 5 == 0 else pytest.mark.nightly)
        for i, name in enumerate(CASES)
    ],
)
def test_a_single_batch_of_texts(name):
    case = CASES[name]
    task = case.build(num_layers=1)
    x = case.train_x
    scores = task.test_on_batch(x, case.y, return_dict=True)
    whole = task.evaluate(x, case.y, batch_size=64, verbose=0, return_dict=True)
    assert scores["loss"] == pytest.approx(whole["loss"], rel=1e-4)
    before = task.get_weights()
    task.fit(x, case.y, epochs=1, verbose=0)
    # The rate of the fit has fallen to 0.
    after = task.get_weights()
    task.train_on_batch(x, case.y)
    changed = zip(after, task.get_weights(), strict=True)
    assert any(np.any(a != b) for a, b in changed) and len(before) == len(after)
    found = keras.tree.flatten(task.predict_on_batch(case.x))
    expected = keras.tree.flatten(task.predict(case.x, verbose=0))
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, str):
            assert one == other
        else:
            np.testing.assert_allclose(one, other, atol=1e-5)
    with pytest.raises(TypeError, match="is a dataset, but one batch"):
        task.train_on_batch(case.dataset())


def test_weights_of_a_single_batch():
    classifier = new_classifier(learning_rate=0.0)
    losses = [
        classifier.train_on_batch(TEXTS, LABELS, **options)[0]
        for options in (
            {"class_weight": {0: 0.0, 1: 1.0, 2: 0.0}},
            {"sample_weight": [float(label == 1) for label in LABELS]},
            {},
        )
    ]
    assert losses[0] == pytest.approx(losses[1]) and losses[0] != losses[2]
    with pytest.raises(ValueError, match="has no examples"):
        classifier.train_on_batch([], [])


# === Changed weights ===


@pytest.mark.nightly
@pytest.mark.traced
def test_no_function_keeps_the_weights_of_its_trace():
    sizes = {"num_layers": 2}
    model = small_classifier(cls=AlbertEarlyExitClassifier, sizes=sizes, dropout=0.0)
    explain = IntegratedGradients(model)

    def outputs():
        values = explain(TEXTS[0], target=1, steps=2, tolerance=9.0).values[0]
        return predict(model, TEXTS), model.predict_early(TEXTS, 2), values

    outputs()
    model.backbone.enable_lora(2)
    for weight in model.backbone.trainable_weights:
        weight.assign(np.full(weight.shape, 0.3))
    logits, early, values = outputs()
    expected = np.array(model(model.preprocessor(TEXTS), training=False))
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    # No layer is left before the last one confirms its class twice.
    np.testing.assert_allclose(early, expected, atol=1e-5)
    fresh = IntegratedGradients(model)(TEXTS[0], target=1, steps=2, tolerance=9.0)
    np.testing.assert_allclose(values, fresh.values[0], atol=1e-6)
    # LoRA trains without another `compile`, and what is frozen later stays.
    fit = {"epochs": 1, "verbose": 0}
    model.fit(TEXTS, LABELS, **fit)
    for weight in model.backbone.trainable_weights:
        weight.trainable = False
    before = model.backbone.get_weights()
    model.fit(TEXTS, LABELS, **fit)
    pairs = zip(before, model.backbone.get_weights(), strict=True)
    assert all(np.array_equal(*pair) for pair in pairs)


def test_a_frozen_backbone_has_frozen_lora(tmp_path):
    model = new_classifier()
    model.backbone.enable_lora(2)
    model.compile(learning_rate=1e-2)
    head = [model.output_dense.kernel, model.output_dense.bias]
    assert [x.name for x in model.trainable_weights] == [
        "lora_kernel_a",
        "lora_kernel_b",
        "kernel",
        "bias",
    ]
    # Traced before, in graphs.
    model.fit(TEXTS, LABELS, epochs=1, verbose=0)
    model.backbone.trainable = False
    assert list(map(id, model.trainable_weights)) == list(map(id, head))
    before = model.backbone.get_weights(), [np.array(x) for x in head]
    model.fit(TEXTS, LABELS, epochs=1, verbose=0)
    for old, new in zip(before[0], model.backbone.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert all(np.any(old != new) for old, new in zip(before[1], head, strict=True))
    model.save(tmp_path / "a.keras")
    model.save_to_preset(tmp_path / "preset")
    for loaded in (
        keras.models.load_model(tmp_path / "a.keras"),
        AlbertTextClassifier.from_preset(str(tmp_path / "preset")),
    ):
        assert [x.name for x in loaded.trainable_weights] == ["kernel", "bias"]


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_freezing_restores_what_was_frozen(tmp_path, is_interrupted):
    model = new_classifier(ema_momentum=0.9)
    model.backbone.enable_lora(2)
    # Of a frozen backbone the user trains one part.
    model.backbone.trainable = False
    model.backbone.attention_blocks[0, 0].trainable = True
    model.compile(learning_rate=1e-2)
    before = [weight.trainable for weight in model.backbone.weights]
    values = model.backbone.get_weights()
    assert 0 < sum(before) < len(before)
    data = (TEXTS, LABELS)

    class Interrupt(keras.callbacks.Callback):
        def on_test_begin(self, logs=None):
            if is_interrupted:
                raise KeyboardInterrupt

    arguments = (model, data, data, tmp_path / "out")
    training = FineTuning(epochs=1, freeze="encoder")
    options = {"options": training, "callbacks": [Interrupt()]}
    if is_interrupted:
        with pytest.raises(KeyboardInterrupt):
            fine_tune(*arguments, **options)
    else:
        fine_tune(*arguments, **options)
    assert [weight.trainable for weight in model.backbone.weights] == before
    assert not model.backbone.trainable
    for old, new in zip(values, model.backbone.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_an_interrupted_fit_takes_averages_out_of_the_model():
    model = new_classifier(ema_momentum=0.9)
    kernels = []

    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            kernels.append(np.array(self.model.output_dense.kernel))

        def on_test_begin(self, logs=None):
            raise KeyboardInterrupt

    swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(
            TEXTS,
            LABELS,
            validation_data=(TEXTS, LABELS),
            callbacks=[swap, Interrupt()],
            **FIT,
        )
    np.testing.assert_allclose(model.output_dense.kernel, kernels[-1], atol=1e-6)


def test_averages_are_the_weights_while_the_loss_scale_skips_all_updates():
    sizes = {**ONE_LAYER, "dtype": "mixed_float16"}
    model = small_classifier(sizes=sizes, dropout=0.0)
    model.compile(ema_momentum=0.9)
    # No gradient is finite at such a scale.
    model.optimizer.initial_scale = 1e30
    before = model.get_weights()
    swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
    model.fit(TEXTS, LABELS, callbacks=[swap], **FIT)
    assert int(model.optimizer.iterations) == 0
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_clone_model_is_refused():
    classifier = small_classifier(sizes=ONE_LAYER)
    with pytest.raises(AlbertError, match="cannot clone AlbertTextClassifier.*copy"):
        keras.models.clone_model(classifier)
    copy = type(classifier).from_config(classifier.get_config())
    copy.preprocessor = classifier.preprocessor
    copy.set_weights(classifier.get_weights())
    found, expected = predict(copy, TEXTS), predict(classifier, TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


# === Second gradients ===


def second_gradients(function, inputs):
    with tf.GradientTape() as outer:
        outer.watch(inputs)
        with tf.GradientTape() as inner:
            inner.watch(inputs)
            loss = tf.reduce_sum(tf.sin(function(*inputs)))
        first = inner.gradient(loss, inputs)
        penalty = tf.add_n([tf.reduce_sum(x * x) for x in first])
    return first + outer.gradient(penalty, inputs)


@pytest.mark.traced
@pytest.mark.parametrize(
    "in_graph", [False, pytest.param(True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("length", [6, LONG])
def test_second_gradients_equal_those_of_plain_operations(in_graph, length):
    rng = np.random.default_rng(3)
    inputs = [tf.constant(rng.normal(size=(2, 2, length, 3))) for _ in range(3)]
    blocked = tf.constant(np.where(rng.random((2, 1, 1, length)) < 0.3, -9.0, 0.0))

    def plain(query, key, value):
        scores = tf.matmul(query, key, transpose_b=True) + blocked
        return tf.matmul(tf.nn.softmax(scores), value)

    def ours(query, key, value):
        return attend_by_hand(query, key, value, blocked)

    def plain_gelu(x):
        return keras.activations.gelu(x, approximate=True)

    for function, other, given in (
        (ours, plain, inputs),
        (fused_gelu, plain_gelu, [inputs[0][:, :, :6]]),
    ):
        # In the closure, because TensorFlow would unwrap a function as argument.
        find = functools.partial(second_gradients, function)
        if in_graph:
            find = tf.function(find, autograph=False)
        for one, two in zip(find(given), second_gradients(other, given), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.slow
@pytest.mark.traced
@pytest.mark.parametrize(
    "options",
    [{}, {"run_eagerly": True}, {"jit_compile": True}, {"dtype": "mixed_bfloat16"}],
)
def test_a_train_step_of_ones_own_takes_a_gradient_penalty(options):
    class Penalty(AlbertTextClassifier):
        def train_step(self, data):
            x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
            table = self.backbone.token_embedding.embeddings
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    loss = self.compute_loss(x, y, self(x, training=True))
                gradient = tf.convert_to_tensor(inner.gradient(loss, table.value))
                penalty = tf.reduce_sum(gradient * gradient)
                total = loss + 0.5 * penalty
            weights = self.trainable_variables
            gradients = outer.gradient(total, [x.value for x in weights])
            self.optimizer.apply_gradients(zip(gradients, weights, strict=True))
            return {"loss": loss, "penalty": penalty}

    options = dict(options)
    sizes = {**ONE_LAYER, "dtype": options.pop("dtype", "float32")}
    model = small_classifier(cls=Penalty, sizes=sizes, dropout=0.0)
    model.compile(optimizer=keras.optimizers.AdamW(1e-4), **options)
    history = model.fit(TEXTS, LABELS, epochs=1, verbose=0).history
    assert np.isfinite(history["loss"]).all() and history["penalty"][0] > 0
