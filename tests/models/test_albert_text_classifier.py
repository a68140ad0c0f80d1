"""The classifier: checkpoints, its head, its labels, its presets."""

import inspect
import pathlib
import shutil

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from small_classifier import (
    LABELS,
    TEXTS,
    VOCABULARY,
    call,
    cross_entropy,
    predict,
    small_backbone,
    small_classifier,
)

from albert_tf.models import AlbertTextClassifier

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"

# Lengths from nothing to more than a batch of neighbours has, not in order.


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


def test_its_arguments_are_in_the_signature_of_from_checkpoint():
    parameters = inspect.signature(AlbertTextClassifier.from_checkpoint).parameters
    assert {"path", "vocabulary", "num_classes", "labels", "dropout"} < set(parameters)
    assert parameters["dropout"].default == 0.1
    assert not {"backbone", "preprocessor"} & set(parameters)


def test_mean_pooling_reads_the_tokens_and_not_the_padding():
    classifier = small_classifier(pooling_mode="mean")
    kernel, bias = map(np.array, classifier.output_dense.weights)
    features = classifier.preprocessor(tf.constant(TEXTS))
    hidden = np.array(classifier.backbone(features)["sequence_output"])
    lengths = np.array(features["padding_mask"]).sum(1)
    means = [row[:n].mean(0) for row, n in zip(hidden, lengths, strict=True)]

    np.testing.assert_allclose(
        predict(classifier, TEXTS), np.stack(means) @ kernel + bias, atol=1e-5
    )
    with pytest.raises(ValueError, match="should be one of .*mean.* Received: 'sum'"):
        small_classifier(pooling_mode="sum")


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


def test_checkpoint_is_read_in_half_precision():
    classifier = AlbertTextClassifier.from_checkpoint(
        GOLDEN / "google_v2",
        num_classes=2,
        vocabulary=VOCABULARY,
        dtype="mixed_bfloat16",
    )
    assert classifier.backbone.pooled_dense.compute_dtype == "bfloat16"
    assert classifier.backbone.pooled_dense.kernel.dtype == "float32"


# --- Outputs and labels ---


def test_softmax_gives_the_probabilities_of_the_logits():
    expected = predict(small_classifier(), TEXTS)
    probabilities = call(small_classifier(activation="softmax"), TEXTS)
    exponentials = np.exp(expected)
    np.testing.assert_allclose(
        probabilities, exponentials / exponentials.sum(axis=1, keepdims=True), atol=1e-5
    )


def test_softmax_is_trained_on_the_loss_of_probabilities():
    logits = predict(small_classifier(sizes={"num_layers": 1}), TEXTS)
    losses = cross_entropy(logits, LABELS)
    softmax = small_classifier(
        sizes={"num_layers": 1}, activation="softmax", dropout=0.0
    )
    loss = softmax.evaluate(TEXTS, LABELS, verbose=0)[0]
    assert loss == pytest.approx(losses.mean(), abs=1e-5)


@pytest.mark.parametrize("name", ["sparse_categorical_crossentropy", "auto"])
def test_a_loss_by_its_name_takes_the_logits_that_the_model_gives(name):
    classifier = small_classifier(2)
    classifier.compile(loss=name)
    assert classifier.loss.get_config()["from_logits"]
    with pytest.raises(ValueError, match=r"shape \(2, 2\)\. Of one-hot rows give"):
        classifier.fit(["天", "地"], [[0, 1], [1, 0]], verbose=0)
    classifier.compile(loss="categorical_crossentropy")
    expected = keras.losses.CategoricalCrossentropy(from_logits=True)
    logits = np.array([[1.0, -2], [3, 0.5]], "float32")
    assert classifier.loss(np.eye(2), logits) == expected(np.eye(2), logits)


def test_a_dataset_without_batches_is_refused():
    dataset = tf.data.Dataset.from_tensor_slices((["天", "地"], [0, 1]))
    with pytest.raises(ValueError, match="one text at a time. Expected batches"):
        small_classifier(2).fit(dataset, verbose=0)


def test_model_of_one_output_takes_scores_as_labels():
    classifier = small_classifier(1, sizes={"num_layers": 1})
    classifier.compile(loss="mse", metrics=[])
    scores = np.array([5, 0, 3, 1, 2, 4, 0])
    expected = np.mean((call(classifier, TEXTS)[:, 0] - scores) ** 2)
    loss = classifier.evaluate(TEXTS, scores, verbose=0)
    assert loss == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "b"], ["1", "2", 1]])
def test_labels_that_do_not_name_each_class_are_refused(labels):
    with pytest.raises(ValueError, match="each of the 3 classes, each differently"):
        AlbertTextClassifier(small_backbone(), 3, labels=labels)


def test_answers_are_labels_and_probabilities_of_predictions():
    classifier = small_classifier(labels=["坏", "中", "好"])
    logits = predict(classifier, TEXTS)
    answers = classifier.answers(logits)
    best = logits.argmax(axis=1)
    assert answers["label_id"].numpy().tolist() == best.tolist()
    assert [x.decode() for x in answers["label"].numpy()] == ["坏中好"[i] for i in best]
    losses = -np.log(answers["probabilities"].numpy()[range(7), LABELS])
    np.testing.assert_allclose(losses, cross_entropy(logits, LABELS), atol=1e-5)


# --- Presets ---


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
