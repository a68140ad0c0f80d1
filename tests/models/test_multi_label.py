"""A classifier whose texts have any number of classes."""

import numpy as np
import pytest
from small_classifier import TEXTS, call, predict, small_classifier

from albert_tf.models import AlbertTextClassifier

LABELS = ["坏", "中", "好"]
Y = [["坏", "好"], [], ["中"], ["坏"], ["坏", "中", "好"], ["好"], []]
HOT = np.array(
    [[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 0, 0], [1] * 3, [0, 0, 1], [0] * 3]
)


def build(**kwargs):
    return small_classifier(labels=LABELS, multi_label=True, **kwargs)


def test_the_loss_is_the_binary_cross_entropy_of_each_class():
    classifier = build()
    logits = predict(classifier, TEXTS).astype("float64")
    expected = np.mean(np.logaddexp(0, logits) - HOT * logits)
    loss = classifier.evaluate(TEXTS, Y, verbose=0)[0]
    assert loss == pytest.approx(expected, rel=1e-5)
    loss = build(activation="sigmoid", dropout=0).evaluate(TEXTS, HOT, verbose=0)[0]
    assert loss == pytest.approx(expected, rel=1e-4)


def test_answers_are_the_classes_above_their_thresholds():
    classifier = build(thresholds=[0.9, 0.5, 0.1])
    logits = predict(classifier, TEXTS)
    answers = classifier.answers(logits)
    probabilities = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(answers["probabilities"], probabilities, atol=1e-6)
    chosen = probabilities >= [0.9, 0.5, 0.1]
    assert chosen.any() and not chosen.all()
    assert np.array_equal(answers["chosen"], chosen)
    names = [[name.decode() for name in row] for row in answers["labels"].numpy()]
    assert names == np.where(chosen, LABELS, "").tolist()


def test_tuned_thresholds_separate_what_the_model_separates(tmp_path):
    classifier = build()
    logits = predict(classifier, TEXTS)
    # True is what each class is most certain of, wherever that lies.
    truth = logits >= np.sort(logits, axis=0)[[3, 5, 1], range(3)]
    assert not np.array_equal(truth, logits >= 0)
    classifier.tune_thresholds(TEXTS, truth, batch_size=2)
    assert np.array_equal(classifier.answers(logits)["chosen"], truth)

    classifier.save_to_preset(str(tmp_path))
    restored = AlbertTextClassifier.from_preset(str(tmp_path))
    assert restored.thresholds == classifier.thresholds
    answers = restored.answers(call(restored, TEXTS))
    assert np.array_equal(answers["chosen"], truth)
    # Another head has none of them.
    other = AlbertTextClassifier.from_preset(str(tmp_path), num_classes=2)
    assert other.thresholds is None and other.multi_label


@pytest.mark.slow
def test_it_learns_from_lists_of_names():
    classifier = build(sizes={"num_layers": 1}, dropout=0)
    classifier.compile(learning_rate=1e-2)
    before = classifier.evaluate(TEXTS, Y, return_dict=True, verbose=0)
    history = classifier.fit(TEXTS, Y, epochs=15, verbose=0).history
    after = classifier.evaluate(TEXTS, HOT, return_dict=True, verbose=0)
    assert after["loss"] < before["loss"] / 1.5
    assert before.keys() == history.keys() == {"loss", "pr_auc"}
    assert after["pr_auc"] > before["pr_auc"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.fit(TEXTS, Y, class_weight="balanced"), "one class each"),
        (lambda x: x.fit(TEXTS, ["坏"] * 7), r"write \['坏'\]"),
        (lambda x: build(thresholds=[0.5]), "each of the 3 classes. Received 1"),
        (
            lambda x: small_classifier().tune_thresholds(TEXTS, Y),
            "Only a model with multi_label=True",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(build())
