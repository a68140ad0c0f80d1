"""Lists of strings in: what `fit`, `evaluate` and `predict` take and refuse."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_classifier import (
    LABELS,
    OTHERS,
    TEXTS,
    call,
    cross_entropy,
    hand_padded,
    predict,
    small_classifier,
    unequal_batches,
)

INVALID = b"\xff\xe5\xa5\xbd\xfe"  # The UTF-8 of 好 between bytes that are none.
WEIGHTS = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 0.25, 1.5])


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
    classifier.compile(optimizer=keras.optimizers.SGD(0.0), run_eagerly=True)
    return classifier


@pytest.fixture(scope="module")
def logits(frozen):
    return {"texts": predict(frozen, TEXTS), "pairs": predict(frozen, (TEXTS, OTHERS))}


@pytest.fixture(scope="module")
def losses(logits):
    return {kind: cross_entropy(values, LABELS) for kind, values in logits.items()}


# --- Predicting ---


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


def test_arrays_and_tensors_are_predicted_as_lists_are(classifier, expected):
    for texts in (np.array(TEXTS), tf.constant(TEXTS), np.array(TEXTS, dtype=object)):
        np.testing.assert_allclose(predict(classifier, texts), expected, atol=1e-6)


def test_ids_are_predicted_as_they_are(classifier, expected):
    features = classifier.preprocessor(TEXTS)
    np.testing.assert_allclose(predict(classifier, features), expected, atol=1e-5)


@pytest.mark.parametrize("text", ["很好", ("很好", "差")])
def test_one_string_instead_of_a_list_is_refused(classifier, text):
    with pytest.raises((TypeError, ValueError), match="list"):
        predict(classifier, text)


def test_other_than_strings_is_refused_by_position(classifier):
    with pytest.raises(TypeError, match="Element 1 is None"):
        predict(classifier, ["好", None])


@pytest.mark.traced
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


def test_fit_takes_and_validates_on_a_dataset_of_batches(frozen, losses):
    dataset = unequal_batches((TEXTS, LABELS), 4, 3)
    expected = losses["texts"].mean()

    history = frozen.fit(dataset, validation_data=dataset, verbose=0).history

    assert history["loss"] == pytest.approx([expected], abs=1e-5)
    assert history["val_loss"] == pytest.approx([expected], abs=1e-5)
    assert not frozen.pairs


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


def test_validation_data_is_evaluated_with_its_weights(frozen, losses):
    data = ((TEXTS, OTHERS), LABELS, WEIGHTS)
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


def test_model_without_preprocessor_takes_ids(frozen, losses):
    features = frozen.preprocessor(TEXTS)
    features = {name: value.numpy() for name, value in features.items()}
    classifier = small_classifier(sizes={"num_layers": 1}, dropout=0.0)
    classifier.preprocessor = None
    results = classifier.evaluate(features, np.array(LABELS), verbose=0)
    assert results[0] == pytest.approx(losses["texts"].mean(), abs=1e-5)


# The last batch is not as large, and the weights tell the examples apart.
def test_a_dataset_in_batches_by_length_keeps_labels_and_weights(frozen, losses):
    dataset = unequal_batches(((TEXTS, OTHERS), LABELS, WEIGHTS), 3, 3, 1)
    expected = (losses["pairs"] * WEIGHTS).mean()
    history = frozen.fit(
        dataset, validation_data=dataset, group_by_length=True, verbose=0
    ).history
    assert history["loss"] == pytest.approx([expected], abs=1e-5)
    assert history["val_loss"] == pytest.approx([expected], abs=1e-5)


@pytest.mark.parametrize("pairs", [False, True])
def test_ids_leave_pairs_as_they_were(frozen, pairs):
    frozen.pairs = pairs
    features = dict(frozen.preprocessor((TEXTS, OTHERS)))
    dataset = tf.data.Dataset.from_tensor_slices((features, LABELS)).batch(4)
    frozen.fit(dataset, verbose=0)
    assert frozen.pairs == pairs
    frozen.fit(features, np.array(LABELS), verbose=0)
    assert frozen.pairs == pairs


# --- Batches of so many tokens ---


def batch_shapes(model, method, *args, **kwargs):
    """The shapes of the ids that the model was called with."""
    shapes, call = [], model.call

    def spy(inputs, *args, **kwargs):
        shapes.append(tuple(inputs["token_ids"].shape))
        return call(inputs, *args, **kwargs)

    model.call = spy
    try:
        return shapes, method(*args, verbose=0, **kwargs)
    finally:
        model.call = call


def test_a_token_budget_changes_no_answer_and_no_loss(frozen, losses, logits):
    shapes, outputs = batch_shapes(frozen, frozen.predict, TEXTS, max_tokens=64)
    np.testing.assert_allclose(outputs, logits["texts"], atol=1e-5)
    # Two texts of 18 and 19 tokens are padded to 24 each.
    assert sorted(shapes) == [(1, 24), (6, 16)] or sum(x for x, _ in shapes) == 7
    assert all(rows * time <= 64 for rows, time in shapes)
    x, options = (TEXTS, OTHERS), {"max_tokens": 64, "sample_weight": WEIGHTS}
    shapes, scores = batch_shapes(frozen, frozen.evaluate, x, LABELS, **options)
    assert scores[0] == pytest.approx((losses["pairs"] * WEIGHTS).mean(), abs=1e-5)
    history = frozen.fit(x, LABELS, validation_split=0.4, verbose=0, **options).history
    weighted = losses["pairs"] * WEIGHTS
    assert history["loss"] == pytest.approx([weighted[:4].mean()], abs=1e-5)
    assert history["val_loss"] == pytest.approx([weighted[4:].mean()], abs=1e-5)


def test_a_token_budget_of_a_dataset_by_length(frozen, losses):
    dataset = unequal_batches((TEXTS, LABELS), 4, 3)
    options = {"group_by_length": True, "max_tokens": 48}
    shapes, scores = batch_shapes(frozen, frozen.evaluate, dataset, **options)
    assert scores[0] == pytest.approx(losses["texts"].mean(), abs=1e-5)
    assert all(rows * time <= 48 for rows, time in shapes) and len(shapes) > 2
    history = frozen.fit(dataset, validation_data=dataset, **options, verbose=0).history
    assert history["loss"] == pytest.approx([losses["texts"].mean()], abs=1e-5)


def test_the_learning_rate_falls_to_the_steps_of_a_token_budget():
    classifier = small_classifier(sizes={"num_layers": 1})
    classifier.compile(learning_rate=1e-3, run_eagerly=True)
    shapes, _ = batch_shapes(
        *(classifier, classifier.fit, TEXTS, LABELS), max_tokens=64, epochs=3
    )
    assert classifier._scheduled_steps == len(shapes)


def test_a_token_budget_where_there_can_be_none_is_refused(frozen):
    with pytest.raises(ValueError, match="give one of them.*batch_size=3"):
        frozen.predict(TEXTS, batch_size=3, max_tokens=64)
    with pytest.raises(ValueError, match="1 at least. Received: 0"):
        frozen.fit(TEXTS, LABELS, max_tokens=0)
    features = dict(frozen.preprocessor(TEXTS))
    dataset = unequal_batches((TEXTS, LABELS), 4, 3)
    for x in (features, dataset):
        with pytest.raises(ValueError, match="as lists, or `fit` a dataset of strings"):
            frozen.evaluate(x, max_tokens=64)


# --- What a fit refuses ---


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (TEXTS, LABELS[:-1], "7 texts and 6 labels"),
        ([], [], "at least one.*0 texts and 0 labels"),
        (["好", "差"], [0, 3], "num_classes - 1, that is 2. Element 1 is 3"),
        (["好", "差"], ["好评", "差评"], r"must be numbers.*\['好评'"),
        (["好", "差"], None, "`y`.* missing"),
        ((["好", "差"], ["好"]), [0, 1], "shapes .2,. and .1,."),
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


def test_validation_split_of_all_is_refused(frozen):
    with pytest.raises(ValueError, match="between 0 and 1. Received: 1.0"):
        frozen.fit(TEXTS, LABELS, validation_split=1.0, verbose=0)
