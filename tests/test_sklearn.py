"""`albert_tf.sklearn.TextClassifier` as an estimator of scikit-learn."""

import importlib
import pickle
import sys

import numpy as np
import pandas
import pytest
from processes import run_python
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import estimator_checks
from small_classifier import OTHERS, TEXTS, small_classifier
from tiers import few

import albert_tf
from albert_tf import AlbertError
from albert_tf.sklearn import TextClassifier

# Texts of one of two characters, which a small model learns to tell apart.
X = [mark * count for count in range(1, 7) for mark in "好差"]
Y = ["yes" if "好" in text else "no" for text in X]
# Those of scikit-learn that pass no numbers as texts.
CHECKS = [
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_estimators_unfitted,
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "preset"
    sizes = {"num_layers": 1, "max_sequence_length": 12}
    small_classifier(2, sizes, labels=["no", "yes"]).save_to_preset(str(folder))
    return str(folder)


@pytest.fixture
def classifier(checkpoint):
    options = {"learning_rate": 0.02, "sequence_length": 12, "random_state": 0}
    return TextClassifier(checkpoint, epochs=8, batch_size=4, **options)


def test_it_keeps_the_interface_of_scikit_learn(classifier):
    with pytest.warns(match="Can't test estimator TextClassifier which requires"):
        estimator_checks.check_estimator(classifier)
    for check in CHECKS:
        check("TextClassifier", classifier)
    copy = clone(classifier.set_params(epochs=5))
    assert copy.get_params() == classifier.get_params() and copy.epochs == 5
    with pytest.raises(NotFittedError):
        copy.predict(X)


@pytest.mark.slow
def test_it_learns_and_stays_the_same_in_a_pickle(classifier):
    assert classifier.fit(X, Y) is classifier
    assert classifier.classes_.tolist() == ["no", "yes"]
    assert classifier.score(X, Y) == 1
    probabilities = classifier.predict_proba(X)
    logits = classifier.model_.predict(X, verbose=0).astype("float64")
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5)
    pickled = pickle.dumps(classifier)
    copy = pickle.loads(pickled)
    np.testing.assert_allclose(copy.predict_proba(X), probabilities, rtol=1e-6)
    # The weights of the model, without the moments of the optimizer.
    assert len(pickled) < 2 * 4 * classifier.model_.count_params() + 100_000
    # Each training starts from the checkpoint, with the same random numbers.
    again = clone(classifier).fit(np.array(X), pandas.Series(Y, index=range(9, 21)))
    np.testing.assert_allclose(again.predict_proba(X), probabilities, rtol=1e-4)
    assert albert_tf.pipeline(path=again.model_)("好")["label"] == "yes"


@pytest.mark.nightly
def test_a_pickle_predicts_in_another_process(classifier, tmp_path):
    classifier.fit(X, Y)
    file = tmp_path / "classifier.pickle"
    file.write_bytes(pickle.dumps(classifier))
    script = f"""
import pickle
with open({str(file)!r}, "rb") as file:
    print(*pickle.load(file).predict({X!r}))
"""
    assert run_python(script).split() == Y


KINDS_OF_LABELS = [[False, True], [2, 10], [1.0, -1.0], ["10", "9"]]


@pytest.mark.parametrize("labels", few(KINDS_OF_LABELS, [[2, 10]]), ids=str)
def test_labels_of_any_type(classifier, labels):
    y = np.array([labels[label == "yes"] for label in Y])
    classifier.set_params(epochs=1).fit(X, y)
    np.testing.assert_array_equal(classifier.classes_, np.unique(y))
    predicted = classifier.predict(X)
    assert predicted.dtype == y.dtype and set(predicted.tolist()) <= set(labels)


@pytest.mark.slow
def test_pairs_are_tables_of_two_columns(classifier):
    y = [0, 1, 0, 1, 0, 1, 0]
    table = pandas.DataFrame({"first": TEXTS, "second": OTHERS})
    classifier.set_params(epochs=1).fit(table, y)
    assert classifier.model_.pairs
    pairs = list(zip(TEXTS, OTHERS, strict=True))
    expected = classifier.predict_proba(table)
    np.testing.assert_allclose(classifier.predict_proba(pairs), expected, rtol=1e-5)
    logits = classifier.model_.predict((TEXTS, OTHERS), verbose=0)
    np.testing.assert_array_equal(expected.argmax(1), logits.argmax(1))


@pytest.mark.nightly
def test_texts_of_weight_0_teach_nothing(classifier):
    wrong = ["no" if label == "yes" else "yes" for label in Y]
    weights = [1.0] * len(X) + [0.0] * len(X)
    classifier.fit(X + X, Y + wrong, sample_weight=weights)
    assert classifier.score(X, Y) == 1


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, Y[1:], "same number of examples"),
        (X, ["yes"] * len(X), "needs two classes or more"),
        (X, [None, *Y[1:]], "Element 0 of `y` is missing"),
        (X, np.arange(len(X)) / 3, "Unknown label type: continuous"),
        (np.full([2, 3], "好"), Y[:2], "table of two columns. Received: ndarray of th"),
        ([1, 2], Y[:2], "should hold strings. Element 0 is 1"),
        ("好", ["yes"], "must be a list of strings"),
    ],
)
def test_wrong_input_raises(classifier, x, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        classifier.fit(x, y)


@pytest.mark.slow
def test_the_tools_of_scikit_learn(classifier):
    classifier.set_params(epochs=1)
    scores = cross_val_score(classifier, X, Y, cv=2, scoring="neg_log_loss")
    assert scores.shape == (2,) and np.isfinite(scores).all()
    search = GridSearchCV(classifier, {"epochs": [1, 8]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"epochs": 8}
    calibrated = CalibratedClassifierCV(classifier, method="temperature", cv=2)
    probabilities = calibrated.fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.slow
def test_cleanlab_finds_a_wrong_label(classifier):
    reason = "cleanlab is not installed"
    classification = pytest.importorskip("cleanlab.classification", reason=reason)
    filters = pytest.importorskip("cleanlab.filter", reason=reason)
    given = ["no", *Y[1:]]
    out_of_sample = cross_val_predict(
        classifier, X, given, cv=2, method="predict_proba"
    )
    labels = np.array([label == "yes" for label in given]).astype(int)
    found = filters.find_label_issues(labels, out_of_sample)
    assert found[0] and found.sum() == 1
    cleaned = classification.CleanLearning(
        classifier.set_params(epochs=1), cv_n_folds=2
    )
    cleaned.fit(np.array(X), labels, label_issues=found)
    assert cleaned.predict_proba(np.array(X)).shape == (len(X), 2)


def test_without_scikit_learn_the_error_names_the_command(monkeypatch):
    monkeypatch.delitem(sys.modules, "albert_tf.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(AlbertError, match="pip install 'albert-tf\\[evaluation\\]'"):
        importlib.import_module("albert_tf.sklearn")
