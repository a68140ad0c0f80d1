"""The classifier: strings in, logits out; training, saving and what it refuses."""

import functools
import pathlib
import shutil
import warnings

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from small_classifier import (
    VOCABULARY,
    hand_padded,
    small_backbone,
    small_classifier,
)

import albert_tf
from albert_tf.models import AlbertTextClassifier
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"

# Lengths from nothing to more than a batch of neighbours has, not in order.
TEXTS = ["很好吃，我想你来吧", "", "差", "😀好", "太差了！" * 4, "不", "他 去 了吗"]
OTHERS = ["好", "不好", "", "你" * 9, "我想吃鸡蛋", "😀", "好" * 3]
LABELS = [2, 0, 1, 1, 0, 2, 0]
INVALID = b"\xff\xe5\xa5\xbd\xfe"  # The UTF-8 of 好 between bytes that are none.


@pytest.fixture(scope="module")
def classifier():
    return small_classifier()


@pytest.fixture(scope="module")
def expected(classifier):
    return predict(classifier, TEXTS)


@pytest.fixture(scope="module")
def frozen():
    """Trains at a rate of 0, so that the losses of a fit can be reckoned."""
    classifier = small_classifier(sizes={"num_layers": 1}, dropout=0.0)
    classifier.compile(optimizer=keras.optimizers.SGD(0.0))
    return classifier


@pytest.fixture(scope="module")
def logits(frozen):
    return {"texts": predict(frozen, TEXTS), "pairs": predict(frozen, (TEXTS, OTHERS))}


@pytest.fixture(scope="module")
def losses(logits):
    return {kind: cross_entropy(values, LABELS) for kind, values in logits.items()}


def predict(classifier, x, **kwargs):
    return classifier.predict(x, verbose=0, **kwargs)


def call(classifier, x):
    """As `predict`, without a graph."""
    return np.array(classifier(classifier.preprocessor(x), training=False))


def cross_entropy(logits, y):
    """The loss of each example, in NumPy."""
    logits = logits.astype("float64")
    log_sums = np.log(np.exp(logits).sum(axis=1))
    return log_sums - logits[np.arange(len(y)), y]


def unequal_batches(examples, *sizes):
    """A dataset whose batches have these sizes."""
    examples = tf.data.Dataset.from_tensor_slices(examples)
    starts = np.cumsum([0, *sizes[:-1]])
    batches = (
        examples.skip(start).take(size).batch(size)
        for start, size in zip(starts, sizes, strict=True)
    )
    return functools.reduce(tf.data.Dataset.concatenate, batches)


# --- From a checkpoint ---


@pytest.mark.parametrize("layout", ["google_v2", "google_early", "albert_zh_preln"])
def test_encoder_of_a_checkpoint_gives_the_outputs_of_the_original(layout):
    classifier = AlbertTextClassifier.from_checkpoint(
        GOLDEN / layout, num_classes=3, vocabulary=VOCABULARY
    )
    expected = np.load(GOLDEN / layout / "expected.npz")
    kernel, bias = map(np.array, (classifier.output_dense.weights))

    logits = classifier(
        {
            "token_ids": expected["input_ids"],
            "segment_ids": expected["segment_ids"],
            "padding_mask": expected["input_mask"],
        }
    )

    np.testing.assert_allclose(
        logits, expected["pooled_output"] @ kernel + bias, atol=1e-5
    )


def test_weights_of_a_checkpoint_are_read_and_its_positions_bound_the_texts():
    prefix = GOLDEN / "google_v2" / "model.ckpt-best"
    classifier = AlbertTextClassifier.from_checkpoint(
        str(prefix), num_classes=2, vocabulary=VOCABULARY, labels=["差评", "好评"]
    )
    reader = tf.train.load_checkpoint(str(prefix))
    np.testing.assert_array_equal(
        classifier.backbone.pooled_dense.kernel,
        reader.get_tensor("bert/pooler/dense/kernel"),
    )
    assert classifier.preprocessor.sequence_length == 64
    assert classifier.labels == ["差评", "好评"]
    assert call(classifier, ["好" * 62, "差"]).shape == (2, 2)


@pytest.mark.parametrize("beside", [True, False])
def test_vocabulary_is_read_from_a_file(beside, tmp_path):
    directory = tmp_path / "checkpoint"
    shutil.copytree(GOLDEN / "albert_zh_postln", directory)
    file = (directory if beside else tmp_path) / "vocab.txt"
    file.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")

    classifier = AlbertTextClassifier.from_checkpoint(
        directory, num_classes=2, vocabulary=None if beside else file
    )

    assert classifier.preprocessor.tokenizer.get_vocabulary() == VOCABULARY


def test_checkpoint_without_vocabulary_is_told_how_to_give_one():
    with pytest.raises(FileNotFoundError, match="google_v2.*`vocabulary=`"):
        AlbertTextClassifier.from_checkpoint(GOLDEN / "google_v2", num_classes=2)


def test_vocabulary_of_another_size_is_refused_with_both_sizes():
    with pytest.raises(ValueError, match="has 119 tokens, the model 120"):
        AlbertTextClassifier.from_checkpoint(
            GOLDEN / "google_v2", num_classes=2, vocabulary=VOCABULARY[:-1]
        )


def test_sequence_length_above_the_positions_is_refused_with_both():
    with pytest.raises(ValueError, match="sequence_length=30.*29 positions"):
        small_classifier(sequence_length=30)


# --- Predicting ---


def test_predictions_are_those_of_each_text_alone_in_order(classifier):
    texts = [*TEXTS, INVALID]
    alone = [classifier.predict_on_batch([text])[0] for text in texts]
    for batch_size in (None, 1, 3):
        together = predict(classifier, texts, batch_size=batch_size)
        assert together.dtype == np.float32
        np.testing.assert_allclose(together, alone, atol=1e-5)
        assert np.abs(np.diff(together[:, 0])).min() > 1e-3


def test_predictions_are_the_model_on_hand_padded_ids(classifier):
    texts = ["很好吃，我想你来吧", "", "差", "😀", "好" * 27]
    by_hand = [classifier(hand_padded(text))[0] for text in texts]
    np.testing.assert_allclose(predict(classifier, texts), by_hand, atol=1e-5)


def test_bytes_that_are_not_utf8_are_as_if_they_were_not_there(classifier):
    with_invalid, without = predict(classifier, [INVALID, "好"])
    np.testing.assert_allclose(with_invalid, without, atol=1e-6)


def test_pairs_are_predicted_in_order_and_in_two_segments(classifier):
    together = predict(classifier, (TEXTS, OTHERS), batch_size=3)
    pairs = zip(TEXTS, OTHERS, strict=True)
    alone = [call(classifier, ([first], [second]))[0] for first, second in pairs]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    by_hand = classifier(hand_padded("差", "好吃"))
    np.testing.assert_allclose(
        predict(classifier, (["差"], ["好吃"])), by_hand, atol=1e-5
    )


def test_pair_without_second_text_is_a_single_text(classifier, expected):
    paired = predict(classifier, (TEXTS, [""] * len(TEXTS)))
    np.testing.assert_allclose(paired, expected, atol=1e-5)


@pytest.mark.parametrize(
    "kind",
    [np.array, tf.constant, lambda texts: np.array(texts, dtype=object)],
    ids=["array", "tensor", "object array"],
)
def test_arrays_and_tensors_are_predicted_as_lists_are(classifier, expected, kind):
    np.testing.assert_allclose(predict(classifier, kind(TEXTS)), expected, atol=1e-6)


def test_dataset_of_batches_is_predicted_in_its_order(classifier, expected):
    dataset = unequal_batches(TEXTS, 3, 3, 1)
    np.testing.assert_allclose(predict(classifier, dataset), expected, atol=1e-5)


def test_dataset_of_pairs_is_predicted_in_its_order(classifier):
    dataset = unequal_batches(((TEXTS, OTHERS),), 4, 3)
    expected = predict(classifier, (TEXTS, OTHERS))
    np.testing.assert_allclose(predict(classifier, dataset), expected, atol=1e-5)


def test_ids_are_predicted_as_they_are(classifier, expected):
    features = classifier.preprocessor(TEXTS)
    np.testing.assert_allclose(predict(classifier, features), expected, atol=1e-5)


@pytest.mark.parametrize("empty", [[], np.array([], dtype=str), ([], [])])
def test_no_texts_have_no_predictions(classifier, empty):
    predictions = predict(classifier, empty)
    assert (predictions.shape, predictions.dtype) == ((0, 3), np.float32)


@pytest.mark.parametrize("text", ["很好", "", ("很好", "差")])
def test_one_string_instead_of_a_list_is_refused(classifier, text):
    with pytest.raises((TypeError, ValueError), match="list"):
        predict(classifier, text)


def test_other_than_strings_is_refused_by_position(classifier):
    with pytest.raises(TypeError, match="Element 1 is None"):
        predict(classifier, ["好", None])


def test_many_lengths_and_batches_are_traced_once():
    classifier = small_classifier(sizes={"num_layers": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count in (30, 17, 9):
            texts = ["好" * (i % 27) for i in range(count)]
            predict(classifier, texts, batch_size=2)
    assert classifier.predict_function.experimental_get_tracing_count() == 1


def test_texts_longer_than_the_model_are_cut_and_counted(classifier):
    texts = ["好" * 50, "差", "不" * 28, "好" * 27]
    with pytest.warns(UserWarning, match="2 of 4 texts are longer.*sequence_length=29"):
        predictions = predict(classifier, texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cut = predict(classifier, [text[:27] for text in texts])
    np.testing.assert_allclose(predictions, cut, atol=1e-5)


def test_softmax_gives_the_probabilities_of_the_logits(expected):
    probabilities = call(small_classifier(activation="softmax"), TEXTS)
    exponentials = np.exp(expected)
    np.testing.assert_allclose(
        probabilities, exponentials / exponentials.sum(axis=1, keepdims=True), atol=1e-5
    )


def test_half_precision_gives_float32_close_to_the_full(expected):
    half = small_classifier(sizes={"dtype": "mixed_bfloat16"})
    predictions = call(half, TEXTS)
    assert predictions.dtype == np.float32
    assert 0 < np.abs(predictions - expected).max() < 0.1


def test_checkpoint_is_read_in_half_precision():
    classifier = AlbertTextClassifier.from_checkpoint(
        GOLDEN / "google_v2",
        num_classes=2,
        vocabulary=VOCABULARY,
        dtype="mixed_bfloat16",
    )
    assert classifier.backbone.pooled_dense.compute_dtype == "bfloat16"
    assert classifier.backbone.pooled_dense.kernel.dtype == "float32"


# --- What a fit is given ---

IN_MEMORY = {
    "list": (TEXTS, LABELS),
    "tensor": (tf.constant(TEXTS), tf.constant(LABELS)),
    "pair of arrays": ((np.array(TEXTS), np.array(OTHERS)), np.array(LABELS)),
}


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_fit_takes_every_kind_of_list(frozen, losses, logits, kind):
    x, y = IN_MEMORY[kind]
    what = "pairs" if isinstance(x, tuple) else "texts"
    accuracy = np.mean(logits[what].argmax(axis=1) == LABELS)

    history = frozen.fit(x, y, batch_size=3, epochs=2, verbose=0).history

    assert history["loss"] == pytest.approx([losses[what].mean()] * 2, abs=1e-5)
    assert history["accuracy"] == pytest.approx([accuracy] * 2)
    assert frozen.pairs == (what == "pairs")


def test_evaluate_takes_lists_and_weights(frozen, losses):
    loss, _ = frozen.evaluate(TEXTS, LABELS, batch_size=2, verbose=0)
    assert loss == pytest.approx(losses["texts"].mean(), abs=1e-5)
    x, weights = (TEXTS, OTHERS), WEIGHTS.tolist()
    loss, _ = frozen.evaluate(x, LABELS, sample_weight=weights, verbose=0)
    assert loss == pytest.approx((losses["pairs"] * WEIGHTS).mean(), abs=1e-5)


@pytest.mark.parametrize("what", ["texts", "pairs"])
def test_fit_takes_and_validates_on_a_dataset_of_batches(frozen, losses, what):
    x = TEXTS if what == "texts" else (TEXTS, OTHERS)
    dataset = unequal_batches((x, LABELS), 4, 3)
    expected = losses[what].mean()

    history = frozen.fit(dataset, validation_data=dataset, verbose=0).history

    assert history["loss"] == pytest.approx([expected], abs=1e-5)
    assert history["val_loss"] == pytest.approx([expected], abs=1e-5)
    assert frozen.pairs == (what == "pairs")


WEIGHTS = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 0.25, 1.5])


def test_sample_weights_stay_with_their_texts(frozen, losses):
    history = frozen.fit(
        TEXTS, LABELS, sample_weight=WEIGHTS, batch_size=3, verbose=0
    ).history
    expected = (losses["texts"] * WEIGHTS).mean()
    assert history["loss"] == pytest.approx([expected], abs=1e-5)


def test_class_weights_weigh_the_examples_of_a_class(frozen, losses):
    weights = {0: 0.5, 1: 3.0, 2: 0.0}
    history = frozen.fit(
        TEXTS, LABELS, class_weight=weights, batch_size=3, verbose=0
    ).history
    expected = np.mean([weights[label] for label in LABELS] * losses["texts"])
    assert history["loss"] == pytest.approx([expected], abs=1e-5)


@pytest.mark.parametrize("weighted", [False, True], ids=["x, y", "x, y, weight"])
def test_validation_data_is_evaluated(frozen, losses, weighted):
    data = ((TEXTS, OTHERS), LABELS, WEIGHTS) if weighted else (TEXTS, LABELS)
    expected = losses["texts"].mean()
    if weighted:
        expected = (losses["pairs"] * WEIGHTS).mean()
    history = frozen.fit(
        TEXTS, LABELS, batch_size=3, validation_data=data, verbose=0
    ).history
    assert history["val_loss"] == pytest.approx([expected], abs=1e-5)


def test_validation_split_takes_the_last_examples(frozen, losses):
    x, y = IN_MEMORY["pair of arrays"]
    history = frozen.fit(
        x, y, sample_weight=WEIGHTS, validation_split=0.4, verbose=0
    ).history
    weighted = losses["pairs"] * WEIGHTS
    assert history["loss"] == pytest.approx([weighted[:4].mean()], abs=1e-5)
    assert history["val_loss"] == pytest.approx([weighted[4:].mean()], abs=1e-5)


def test_softmax_is_trained_on_the_loss_of_probabilities(losses):
    softmax = small_classifier(
        sizes={"num_layers": 1}, activation="softmax", dropout=0.0
    )
    loss = softmax.evaluate(TEXTS, LABELS, verbose=0)[0]
    assert loss == pytest.approx(losses["texts"].mean(), abs=1e-5)


def test_model_without_preprocessor_takes_ids(frozen, losses):
    features = frozen.preprocessor(TEXTS)
    features = {name: value.numpy() for name, value in features.items()}
    classifier = small_classifier(sizes={"num_layers": 1}, dropout=0.0)
    classifier.preprocessor = None
    results = classifier.evaluate(features, np.array(LABELS), verbose=0)
    assert results[0] == pytest.approx(losses["texts"].mean(), abs=1e-5)


def test_model_of_one_output_takes_scores_as_labels():
    classifier = small_classifier(1, sizes={"num_layers": 1})
    classifier.compile(loss="mse", metrics=[])
    scores = np.array([5, 0, 3, 1, 2, 4, 0])
    expected = np.mean((call(classifier, TEXTS)[:, 0] - scores) ** 2)
    loss = classifier.evaluate(TEXTS, scores, verbose=0)
    assert loss == pytest.approx(expected, rel=1e-4)


# --- What a fit refuses ---


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (TEXTS, LABELS[:-1], "7 texts and 6 labels"),
        ((TEXTS, OTHERS), [*LABELS, 1], "7 texts and 8 labels"),
        ([], [], "at least one.*0 texts and 0 labels"),
        (["好", "差"], [0, 3], "num_classes - 1, that is 2. Element 1 is 3"),
        (["好", "差"], [-1, 0], "Element 0 is -1"),
        (["好", "差"], ["好评", "差评"], r"must be numbers.*\['好评'"),
        (["好", "差"], [1, None], "must be numbers"),
        (["好", "差"], None, "`y`.* missing"),
        ((["好", "差"], ["好"]), [0, 1], "2 .*and 1 texts"),
    ],
)
def test_wrong_labels_are_refused_with_what_is_wrong(frozen, x, y, message):
    for method in (frozen.fit, frozen.evaluate):
        with pytest.raises(ValueError, match=message):
            method(x, y, verbose=0)


def test_wrong_validation_labels_are_refused(frozen):
    with pytest.raises(ValueError, match="2 texts and 1 labels"):
        frozen.fit(TEXTS, LABELS, validation_data=(["好", "差"], [0]), verbose=0)


def test_text_that_is_no_string_is_refused_by_position(frozen):
    with pytest.raises(TypeError, match="Element 1 is nan"):
        frozen.fit(["好", float("nan")], [0, 1], verbose=0)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_validation_split_of_nothing_or_all_is_refused(frozen, share):
    with pytest.raises(ValueError, match=f"between 0 and 1. Received: {share}"):
        frozen.fit(TEXTS, LABELS, validation_split=share, verbose=0)


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "b"], ["1", "2", 1]])
def test_labels_that_do_not_name_each_class_are_refused(labels):
    with pytest.raises(ValueError, match="each of the 3 classes, each differently"):
        AlbertTextClassifier(small_backbone(), 3, labels=labels)


# --- Training ---


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


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({"x": TEXTS, "y": LABELS, "validation_split": 0.4, "batch_size": 3}, 2),
        ({"x": unequal_batches((TEXTS, LABELS), 4, 3), "epochs": 2}, 4),
        ({"x": TEXTS, "y": LABELS, "batch_size": 2, "steps_per_epoch": 3}, 3),
    ],
    ids=["split", "dataset", "steps_per_epoch"],
)
def test_schedule_is_as_long_as_the_fit(arguments, steps):
    classifier = small_classifier(sizes={"num_layers": 1})
    classifier.compile(learning_rate=0.25, run_eagerly=True)
    classifier.fit(**arguments, verbose=0)
    assert int(classifier.optimizer.iterations) == steps
    config = classifier.optimizer.get_config()["learning_rate"]["config"]
    assert config["total_steps"] == steps
    assert config["peak_learning_rate"] == 0.25


def test_second_fit_begins_anew():
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
    assert float(small_classifier().optimizer.learning_rate) == pytest.approx(1e-4)
    base = small_classifier(sizes={"hidden_dim": 400, "num_layers": 1})
    assert float(base.optimizer.learning_rate) == pytest.approx(3e-5)


def test_biases_and_layer_norms_are_not_decayed():
    classifier = small_classifier()
    classifier.compile(learning_rate=0.5)
    variables = classifier.trainable_variables
    before = [np.array(variable) for variable in variables]

    classifier.optimizer.apply([tf.zeros_like(v) for v in variables], variables)

    decayed = 0
    for variable, old in zip(variables, before, strict=True):
        if variable.path.split("/")[-1] in ("bias", "gamma", "beta"):
            np.testing.assert_array_equal(variable, old, err_msg=variable.path)
        else:
            decayed += 1
            np.testing.assert_allclose(
                variable, old * (1 - 0.5 * 0.01), rtol=1e-5, err_msg=variable.path
            )
    assert 0 < decayed < len(variables)


def test_own_optimizer_is_kept_with_its_rate_and_state(frozen):
    optimizer = frozen.optimizer
    steps = int(optimizer.iterations)
    frozen.fit(TEXTS, LABELS, batch_size=4, verbose=0)
    assert frozen.optimizer is optimizer
    assert int(optimizer.iterations) == steps + 2
    assert float(optimizer.learning_rate) == 0


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


def test_half_precision_trains():
    classifier = small_classifier(sizes={"dtype": "mixed_bfloat16", "num_layers": 1})
    classifier.compile(run_eagerly=True)
    kernel = np.array(classifier.backbone.pooled_dense.kernel)
    history = classifier.fit(TEXTS, LABELS, batch_size=7, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert np.abs(classifier.backbone.pooled_dense.kernel - kernel).max() > 0


# --- Saving ---


def test_keras_file_restores_all_without_warnings(trained, tmp_path):
    classifier, texts, _, _, _ = trained
    path = tmp_path / "classifier.keras"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Keras' own, on NumPy 2.
        warnings.simplefilter("ignore", DeprecationWarning)
        classifier.save(path)
        restored = keras.models.load_model(path)

    assert type(restored) is AlbertTextClassifier
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
    compiled = restored.get_compile_config()
    assert (compiled["optimizer"], compiled["learning_rate"]) == ("auto", 0.01)


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


def test_configuration_keeps_every_argument():
    classifier = small_classifier(
        activation="softmax", dropout=0.25, labels=["坏", "中", "好"], pairs=True
    )
    restored = AlbertTextClassifier.from_config(classifier.get_config())
    config = restored.get_config()
    assert config["num_classes"] == 3
    assert config["activation"] == "softmax"
    assert config["dropout"] == 0.25
    assert config["labels"] == ["坏", "中", "好"]
    assert config["pairs"] is True
    assert restored.activation is keras.activations.softmax


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    classifier = small_classifier(sequence_length=17, labels=["坏", "中", "好"])
    directory = str(tmp_path_factory.mktemp("presets") / "classifier")
    classifier.save_to_preset(directory)
    return classifier, directory


def test_preset_restores_the_classifier_for_keras_hub_too(preset):
    classifier, directory = preset
    restored = keras_hub.models.TextClassifier.from_preset(directory)
    assert type(restored) is AlbertTextClassifier
    assert restored.labels == ["坏", "中", "好"]
    assert restored.preprocessor.sequence_length == 17
    np.testing.assert_allclose(
        call(restored, TEXTS), call(classifier, TEXTS), atol=1e-6
    )


def test_preset_gives_its_encoder_to_a_classifier_of_other_classes(preset):
    classifier, directory = preset
    restored = AlbertTextClassifier.from_preset(directory, num_classes=2)
    assert call(restored, TEXTS).shape == (7, 2)
    np.testing.assert_array_equal(
        restored.backbone.pooled_dense.kernel, classifier.backbone.pooled_dense.kernel
    )


def test_preset_gives_its_parts(preset):
    classifier, directory = preset
    backbone = albert_tf.models.AlbertBackbone.from_preset(directory)
    preprocessor = AlbertTextClassifierPreprocessor.from_preset(directory)
    features = preprocessor(["很好"])
    np.testing.assert_allclose(
        backbone(features)["pooled_output"],
        classifier.backbone(features)["pooled_output"],
        atol=1e-6,
    )
