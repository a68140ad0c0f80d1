"""Classes in words, against their definition computed by hand."""

import numpy as np
import pytest
from small_classifier import TEXTS, call, small_classifier

from albert_tf.models import ZeroShotClassifier

LABELS = ["中立", "Contradiction", "蕴含"]
CANDIDATES = ["好吃", "天地", "中文多少"]


@pytest.fixture(scope="module")
def classifier():
    classifier = small_classifier(labels=LABELS)
    # Far apart, for the mean of a class to say nothing.
    kernel, bias = classifier.output_dense.weights
    kernel.assign(kernel * 20)
    return classifier


def logits_by_hand(classifier, text, template="我想{}了"):
    pairs = ([text] * 3, [template.replace("{}", x) for x in CANDIDATES])
    return call(classifier, pairs).astype("float64")


def test_the_classes_share_a_probability(classifier):
    model = ZeroShotClassifier(classifier, "我想{}了")
    found = model.predict(TEXTS, CANDIDATES, batch_size=4)
    assert found.shape == (len(TEXTS), 3)
    for row, text in zip(found, TEXTS, strict=True):
        entailed = np.exp(logits_by_hand(classifier, text)[:, 2])
        assert row == pytest.approx(entailed / entailed.sum(), abs=1e-5)
    # A test of something: texts and classes differ.
    assert np.ptp(found, axis=0).min() > 1e-3 and np.ptp(found, axis=1).min() > 1e-3


def test_each_class_by_itself(classifier):
    model = ZeroShotClassifier(classifier, "我想{}了")
    found = model.predict(TEXTS, CANDIDATES, multi_label=True)
    for row, text in zip(found, TEXTS, strict=True):
        both = np.exp(logits_by_hand(classifier, text)[:, 1:])
        assert row == pytest.approx(both[:, 1] / both.sum(axis=1), abs=1e-5)
    single = model.predict(TEXTS, CANDIDATES[1:2])
    assert single == pytest.approx(found[:, 1:2], abs=1e-6)
    assert model.predict([], CANDIDATES).shape == (0, 3)


def test_labels_are_found_by_name(classifier):
    model = ZeroShotClassifier(classifier)
    assert (model.entailment_id, model.contradiction_id) == (2, 1)
    model = ZeroShotClassifier(classifier, entailment="中立", contradiction="蕴含")
    assert (model.entailment_id, model.contradiction_id) == (0, 2)


def test_refusals(classifier):
    with pytest.raises(ValueError, match=r"no label for entailment.*entailment=\.\.\."):
        ZeroShotClassifier(small_classifier())
    with pytest.raises(ValueError, match="no label for contradiction"):
        ZeroShotClassifier(classifier, contradiction="无")
    with pytest.raises(ValueError, match="has no {}"):
        ZeroShotClassifier(classifier, "我想")
    with pytest.raises(ValueError, match="should give logits"):
        ZeroShotClassifier(small_classifier(labels=LABELS, activation="softmax"))
    with pytest.raises(ValueError, match="should be a list"):
        ZeroShotClassifier(classifier).predict(TEXTS, "好吃")
