"""Classifiers: checkpoints, outputs, several classes per text, weights, windows."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.utils.class_weight import compute_class_weight
from small_classifier import (
    LABELS,
    TEXTS,
    VOCABULARY,
    call,
    cross_entropy,
    predict,
    small_classifier,
)

from albert_tf import AlbertError, pipeline, save_checkpoint
from albert_tf.checkpoints.heads import label_fields
from albert_tf.models import (
    AlbertMultiLabelClassifier,
    AlbertTextClassifier,
    AlbertTextRegressor,
    bucket_by_length,
)
from albert_tf.tools import (
    ZeroShotClassifier,
    class_weights,
    predict_windows,
    tune_thresholds,
)

NAMES = ["坏", "中", "好"]
ONE_LAYER = {"num_layers": 1}
# The layout of transformers has a place for such models only.
GOOGLE = {"embedding_projection": "after_layer_norm"}


def multi_label(**kwargs):
    return small_classifier(cls=AlbertMultiLabelClassifier, labels=NAMES, **kwargs)


def test_answers_softmax_and_its_loss():
    classifier = small_classifier(labels=NAMES)
    logits = predict(classifier, TEXTS)
    answers = classifier.postprocess(logits)
    best = logits.argmax(axis=1)
    assert answers["label_id"].numpy().tolist() == best.tolist()
    assert [x.decode() for x in answers["label"].numpy()] == [NAMES[i] for i in best]
    exponentials = np.exp(logits)
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)
    softmax = small_classifier(activation="softmax", dropout=0.0)
    np.testing.assert_allclose(call(softmax, TEXTS), expected, atol=1e-5)
    loss = softmax.evaluate(TEXTS, LABELS, verbose=0)[0]
    assert loss == pytest.approx(cross_entropy(logits, LABELS).mean(), abs=1e-5)


def test_multi_label_thresholds_are_inclusive_tuned_and_saved(tmp_path):
    classifier = multi_label(thresholds=[0.9, 0.5, 0.1])
    logits = predict(classifier, TEXTS)
    # Exactly at the threshold of 0.5.
    logits[1, 1] = 0.0
    answers = classifier.postprocess(logits)
    probabilities = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(answers["probabilities"], probabilities, atol=1e-6)
    chosen = probabilities >= [0.9, 0.5, 0.1]
    assert chosen.any() and not chosen.all() and chosen[1, 1]
    assert np.array_equal(answers["chosen"], chosen)
    names = [[name.decode() for name in row] for row in answers["labels"].numpy()]
    assert names == np.where(chosen, NAMES, "").tolist()

    # The texts with the highest logits have the class.
    logits = predict(classifier, TEXTS)
    truth = logits >= np.sort(logits, axis=0)[[3, 5, 1], range(3)]
    tune_thresholds(classifier, TEXTS, truth, batch_size=2)
    assert np.array_equal(classifier.postprocess(logits)["chosen"], truth)
    classifier.save_to_preset(str(tmp_path))
    restored = AlbertMultiLabelClassifier.from_preset(str(tmp_path))
    assert restored.thresholds == classifier.thresholds
    # A new head has none.
    other = AlbertMultiLabelClassifier.from_preset(str(tmp_path), num_classes=2)
    assert other.thresholds is None


@pytest.mark.nightly
def test_labels_are_values_in_every_form_of_data(tmp_path):
    labels = [10, 0, 5]
    y, names = [labels[i] for i in LABELS], [NAMES[i] for i in LABELS]
    numbered, named, by_text, unweighted = (
        small_classifier(labels=x, dropout=0, sizes=ONE_LAYER)
        for x in (labels, NAMES, NAMES, NAMES)
    )
    # Nothing is learned.
    numbered.compile(keras.optimizers.SGD(0.0))
    options = {"verbose": 0, "return_dict": True}
    expected = named.evaluate(TEXTS, LABELS, **options)
    words = tf.data.Dataset.from_tensor_slices((TEXTS, names)).batch(7)
    assert named.evaluate(words, **options) == pytest.approx(expected, abs=1e-5)
    texts = tf.data.Dataset.from_tensor_slices((TEXTS, y)).batch(7)
    ids = texts.map(numbered.preprocessor)
    batches = bucket_by_length(texts, numbered.preprocessor)
    for data in ((TEXTS, np.array(y, float)), (texts,), (ids,), (batches,)):
        dev = data if len(data) > 1 else data[0]
        history = numbered.fit(*data, validation_data=dev, verbose=0, epochs=1).history
        found = {name: history[f"val_{name}"][0] for name in expected}
        assert found == pytest.approx(expected, abs=1e-5)
        assert history["accuracy"][0] == pytest.approx(expected["accuracy"])
    weights = class_weights(y, labels)
    balanced = compute_class_weight("balanced", classes=np.array(labels), y=y)
    assert weights == pytest.approx(dict(zip(labels, balanced, strict=True)))
    fits = (
        (numbered, y, {"class_weight": weights}),
        (named, LABELS, {"class_weight": class_weights(names, NAMES)}),
        (by_text, names, {"sample_weight": [weights[label] for label in y]}),
        (unweighted, LABELS, {}),
    )
    for model, given, more in fits:
        model.compile(keras.optimizers.SGD(0.1))
        model.fit(TEXTS, given, batch_size=7, epochs=1, verbose=0, **more)
    first, *others, plain = (call(model, TEXTS) for model, *_ in fits)
    for other in others:
        np.testing.assert_allclose(first, other, atol=1e-6)
    assert np.abs(first - plain).max() > 1e-4

    # Presets keep the values, and weights follow labels in another order.
    numbered.save_to_preset(path := str(tmp_path))
    cls = AlbertTextClassifier
    assert cls.from_preset(path).labels == labels
    for load in (cls.from_preset, cls.from_checkpoint):
        reordered = load(path, labels=np.array([0, 5, 10]))
        moved = call(reordered, TEXTS)[:, [2, 0, 1]]
        np.testing.assert_allclose(moved, call(numbered, TEXTS), atol=1e-6)
    with pytest.raises(ValueError, match="in another order"):
        numbered.postprocess(call(numbered, TEXTS), labels=["0", "5", "10"])


def test_names_are_given_to_unnamed_outputs_with_a_warning(tmp_path):
    classifier = small_classifier(2, sizes=GOOGLE)
    save_checkpoint(classifier, tmp_path / "folder", layout="huggingface")
    classifier.save_to_preset(tmp_path / "preset")
    message = r"does not name its classes. Its 2 outputs are read as \['坏', '好'\]"
    for load, name in (("from_checkpoint", "folder"), ("from_preset", "preset")):
        load = getattr(AlbertTextClassifier, load)
        with pytest.warns(UserWarning, match=message) as caught:
            named = load(tmp_path / name, labels=["坏", "好"])
        assert len(caught) == 1 and named.labels == ["坏", "好"]
        np.testing.assert_array_equal(predict(named, TEXTS), predict(classifier, TEXTS))
        # Their own names, in their order.
        for labels in ([0, 1], ["LABEL_0", "LABEL_1"]):
            load(tmp_path / name, labels=labels)


def test_a_head_with_one_output_has_the_task_that_the_user_names(tmp_path):
    """transformers reads it as a score, and its pipeline as the logit of a label."""
    options = {"labels": ["广告"], "sizes": GOOGLE}
    one = small_classifier(1, cls=AlbertMultiLabelClassifier, **options)
    one.output_dense.bias.assign([9.0])
    save_checkpoint(one, tmp_path, layout="huggingface")
    (answer,) = pipeline(tmp_path)("好")
    assert answer["label"] == "广告"
    with pytest.raises(AlbertError, match="multi-label classifier of one class"):
        AlbertTextRegressor.from_checkpoint(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text("utf-8"))
    del config["problem_type"]
    file.write_text(json.dumps(config | label_fields(1)), "utf-8")
    for task in (None, "text-classification"):
        with pytest.raises(AlbertError, match="one output.* Name its task: regression"):
            pipeline(task, tmp_path)
    with pytest.raises(AlbertError, match="one output.* Name its task: regression"):
        AlbertTextClassifier.from_checkpoint(tmp_path)
    score = pipeline("regression", tmp_path)("好")["score"]
    (label,) = pipeline("multi-label", tmp_path)("好")
    assert label["score"] == answer["score"]
    assert label["score"] == pytest.approx(1 / (1 + np.exp(-score)), abs=1e-6)


def test_a_long_text_is_the_mean_or_maximum_of_its_windows():
    classifier = small_classifier(sequence_length=12)
    long = "".join(VOCABULARY[5:41])
    # 36 characters: 10 per window, one every 5 characters, the last at the end.
    pieces = [long[start : start + 10] for start in (*range(0, 30, 5), 26)]
    for windows, combine in (("mean", np.mean), ("max", np.max)):
        options = {"batch_size": 3, "verbose": 0}
        given = predict_windows(classifier, ["好", long, ""], windows, **options)
        expected = combine(call(classifier, pieces), axis=0)
        np.testing.assert_allclose(given[1], expected, atol=1e-5)
        short = call(classifier, ["好", ""])
        np.testing.assert_allclose(given[[0, 2]], short, atol=1e-5)


def test_zero_shot_probabilities_are_those_of_entailment():
    candidates = ["好吃", "天地", "中文多少"]
    classifier = small_classifier(labels=["中立", "Contradiction", "蕴含"])
    # Larger logits, so that the classes differ.
    kernel = classifier.output_dense.kernel
    kernel.assign(kernel * 20)
    model = ZeroShotClassifier(classifier, "我想{}了")
    assert (model.entailment_id, model.contradiction_id) == (2, 1)
    found = model.predict(TEXTS, candidates, batch_size=4)
    each = model.predict(TEXTS, candidates, multi_label=True)
    for text, row, alone in zip(TEXTS, found, each, strict=True):
        pairs = ([text] * 3, [f"我想{x}了" for x in candidates])
        powers = np.exp(call(classifier, pairs).astype("float64"))
        assert row == pytest.approx(powers[:, 2] / powers[:, 2].sum(), abs=1e-5)
        expected = powers[:, 2] / powers[:, 1:].sum(axis=1)
        assert alone == pytest.approx(expected, abs=1e-5)
    assert np.ptp(found, axis=0).min() > 1e-3
    assert model.predict([], candidates).shape == (0, 3)
