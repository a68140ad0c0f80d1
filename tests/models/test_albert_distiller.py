"""A student that learns to answer as its teacher."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax
from small_classifier import (
    LABELS,
    OTHERS,
    TEXTS,
    VOCABULARY,
    call,
    cross_entropy,
    predict,
    randomised,
    small_backbone,
    small_classifier,
)

from albert_tf.models import (
    AlbertDistiller,
    AlbertTextClassifier,
    AlbertTextRegressor,
)

CLASSES = {
    "logits": {},
    "probabilities": {"activation": "softmax", "pooling_mode": "mean"},
    "multi-label": {"multi_label": True},
    "multi-label probabilities": {"multi_label": True, "activation": "sigmoid"},
}
MULTI_HOT = np.array([[0, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]] + 3 * [[0, 1, 0]])

pytestmark = [
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]


def student_of(classes=CLASSES["logits"], **sizes):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, **sizes}
    return small_classifier(sizes=sizes, seed=1, dropout=0.0, **classes)


def evaluate(distiller, *data, **kwargs):
    return distiller.evaluate(*data, verbose=0, return_dict=True, **kwargs)


def divergence(teacher, student):
    """The Kullback-Leibler divergence of logits [..., classes], for each row."""
    logs = log_softmax(teacher, -1) - log_softmax(student, -1)
    return np.sum(softmax(teacher, -1) * logs, -1)


def two_classes(outputs):
    return np.stack([np.zeros_like(outputs), outputs], -1)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_loss_is_the_divergence_of_softened_probabilities(kind):
    multi_label = "multi" in kind
    teacher = small_classifier(**CLASSES[kind])
    student = student_of(CLASSES[kind])
    y = MULTI_HOT if multi_label else LABELS
    # As logits, whatever the models give.
    given = [call(model, TEXTS).astype("float64") for model in (teacher, student)]
    labelled = student.evaluate(TEXTS, y, verbose=0)[0]
    if "probabilities" in kind:
        given = [np.log(p / (1 - p)) if multi_label else np.log(p) for p in given]
    given = [two_classes(x) if multi_label else x for x in given]
    expected = 9 * divergence(given[0] / 3, given[1] / 3).mean()
    same = (given[0].argmax(-1) == given[1].argmax(-1)).mean()

    distiller = AlbertDistiller(teacher, student, 3.0, student_loss_weight=0.25)
    scores = evaluate(distiller, TEXTS)
    assert scores == {
        "loss": pytest.approx(expected, rel=1e-3),
        "agreement": pytest.approx(same),
    }
    scores = evaluate(distiller, TEXTS, y, batch_size=7)
    assert scores["loss"] == pytest.approx(0.75 * expected + 0.25 * labelled, rel=1e-3)


@pytest.mark.slow
def test_the_student_learns_what_the_teacher_says_of_unlabelled_texts(tmp_path):
    rng = np.random.default_rng(0)
    characters = VOCABULARY[5:60]
    texts = ["".join(rng.choice(characters, rng.integers(2, 12))) for _ in range(160)]
    teacher = small_classifier()
    # Its vocabulary is in another order: the teacher reads texts, not ids.
    vocabulary = VOCABULARY[:5] + VOCABULARY[:4:-1]
    backbone = small_backbone(num_layers=1, num_heads=2, hidden_dim=8)
    student = randomised(AlbertTextClassifier.from_backbone(backbone, vocabulary, 3), 1)
    before = [np.array(weight) for weight in teacher.weights]

    distiller = AlbertDistiller(teacher, student)
    distiller.compile(learning_rate=2e-2)
    untaught = evaluate(distiller, texts[128:])
    history = distiller.fit(
        texts[:128], validation_data=(texts[128:], None), epochs=5, verbose=0
    ).history
    taught = evaluate(distiller, texts[128:])
    assert taught["agreement"] > untaught["agreement"] + 0.2
    assert taught["loss"] < 0.7 * untaught["loss"]
    assert history["val_agreement"][-1] == pytest.approx(taught["agreement"])
    np.testing.assert_array_equal(
        predict(student, texts).argmax(-1) == predict(teacher, texts).argmax(-1),
        distiller.predict(texts, verbose=0).argmax(-1)
        == predict(teacher, texts).argmax(-1),
    )
    # The teacher is as it was, and trains as it did.
    assert all(map(np.array_equal, before, teacher.weights))
    assert len(teacher.trainable_variables) == len(teacher.weights)

    student.save_to_preset(str(tmp_path))
    loaded = AlbertTextClassifier.from_preset(str(tmp_path))
    np.testing.assert_allclose(predict(loaded, TEXTS), predict(student, TEXTS))
    assert student.evaluate(TEXTS, LABELS, verbose=0)[0] == pytest.approx(
        cross_entropy(predict(student, TEXTS), LABELS).mean(), rel=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["cls", "mean"])
def test_hidden_states_are_compared_layer_by_layer_without_padding(mode):
    teacher = small_classifier(sizes={"num_layers": 4})
    student = student_of(
        {"pooling_mode": mode}, num_layers=2, hidden_dim=12, num_heads=3
    )
    plain = AlbertDistiller(teacher, student)
    distiller = AlbertDistiller(teacher, student, hidden_state_weight=0.5)
    features = teacher.preprocessor(TEXTS)
    states = [
        np.array(model.backbone.with_intermediates()(features)["hidden_states"])
        for model in (teacher, student)
    ]
    tokens = np.array(features["padding_mask"]) > 0
    # The embedding, and of each two layers the second.
    difference = (states[0][::2] - states[1])[:, tokens]
    expected = evaluate(plain, TEXTS)["loss"] + 0.5 * np.mean(difference**2)
    scores = evaluate(distiller, TEXTS, batch_size=7)
    assert scores["loss"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_hidden_states_of_another_width_are_learned_through_a_map():
    teacher, student = small_classifier(), student_of()
    distiller = AlbertDistiller(teacher, student, hidden_state_weight=1.0)
    distiller.compile(learning_rate=2e-2)
    before = evaluate(distiller, (TEXTS, OTHERS))["loss"]
    distiller.fit((TEXTS, OTHERS), LABELS, epochs=3, batch_size=3, verbose=0)
    assert evaluate(distiller, (TEXTS, OTHERS))["loss"] < before
    assert student.pairs
    trained = {id(weight) for weight in distiller.trainable_variables}
    assert len(trained) == len(student.trainable_variables) + 1
    assert trained.isdisjoint(map(id, teacher.weights))


def test_what_does_not_fit_is_refused():
    teacher, student = small_classifier(labels=["坏", "中", "好"]), student_of()
    with pytest.raises(ValueError, match="same `num_classes`.*3 and 2"):
        AlbertDistiller(teacher, small_classifier(2))
    with pytest.raises(ValueError, match="same `labels`"):
        AlbertDistiller(teacher, small_classifier(labels=["好", "中", "坏"]))
    with pytest.raises(ValueError, match="student must be an AlbertTextClassifier"):
        AlbertDistiller(
            teacher, AlbertTextRegressor.from_backbone(small_backbone(), VOCABULARY)
        )
    with pytest.raises(ValueError, match="share weights"):
        AlbertDistiller(teacher, teacher)
    with pytest.raises(ValueError, match="student_loss_weight"):
        AlbertDistiller(teacher, student, student_loss_weight=2)
    distiller = AlbertDistiller(teacher, student)
    with pytest.raises(ValueError, match="sample_weight"):
        distiller.fit(TEXTS, LABELS, sample_weight=np.ones(7), verbose=0)
    short = small_classifier(sizes={"max_sequence_length": 20})
    with pytest.raises(ValueError, match="20 positions.*29 tokens"):
        AlbertDistiller(short, student, hidden_state_weight=1.0)
    vocabulary = VOCABULARY[:5] + VOCABULARY[:4:-1]
    other = AlbertTextClassifier.from_backbone(small_backbone(), vocabulary, 3)
    with pytest.raises(ValueError, match="token by token"):
        AlbertDistiller(teacher, other, hidden_state_weight=1.0)


# === R-Drop ===


@pytest.mark.parametrize("kind", ["logits", "multi-label"])
def test_r_drop_adds_the_divergence_of_two_passes(kind, monkeypatch):
    multi_label = kind != "logits"
    classifier = small_classifier(**CLASSES[kind])
    classifier.compile(r_drop=2.0)
    outputs = call(classifier, TEXTS)
    given = [outputs, 1.2 * outputs[::-1]]
    monkeypatch.setattr(type(classifier), "__call__", lambda *_, **__: given[1])
    y = MULTI_HOT if multi_label else np.array(LABELS)
    loss = float(classifier.compute_loss({}, y, given[0], training=True))
    plain = float(classifier.compute_loss({}, y, given[0], training=False))
    if multi_label:
        chances = [expit(x.astype("float64")) for x in given]
        losses = [-np.log(np.where(y, p, 1 - p)).mean() for p in chances]
        given = list(map(two_classes, given))
    else:
        losses = [cross_entropy(x, y).mean() for x in given]
    both = [divergence(*given).mean(), divergence(*given[::-1]).mean()]
    assert loss == pytest.approx(np.mean(losses) + 2 * np.mean(both), rel=1e-3)
    assert plain == pytest.approx(losses[0], rel=1e-3)


@pytest.mark.slow
def test_r_drop_trains_and_is_kept(tmp_path):
    classifier = small_classifier(dropout=0.3)
    classifier.compile(learning_rate=1e-2, r_drop=1.0)
    before = classifier.evaluate(TEXTS, LABELS, verbose=0)[0]
    classifier.fit(TEXTS, LABELS, batch_size=3, epochs=3, verbose=0)
    assert classifier.evaluate(TEXTS, LABELS, verbose=0)[0] < before
    again = AlbertTextClassifier.from_config(classifier.get_config())
    again.compile_from_config(classifier.get_compile_config())
    assert again.r_drop == 1.0
    with pytest.raises(ValueError, match="r_drop.*-1"):
        classifier.compile(r_drop=-1)
