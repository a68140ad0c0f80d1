"""`finetune --unlabelled`: texts without labels are learned before the labels."""

import json

import numpy as np
import pytest
from command_line import as_options, refused, run, write_start
from small_classifier import VOCABULARY, small_backbone, small_classifier
from test_tasks import CASES

import albert_tf
from albert_tf.checkpoints import save_checkpoint
from albert_tf.evaluation import calibration
from albert_tf.models import (
    AlbertMaskedLM,
    AlbertSpellingCorrector,
    AlbertTextClassifier,
)
from albert_tf_cli.commands import finetune_own_labels
from albert_tf_cli.tasks import Examples, classification

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* dev examples"),
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]
LABELLED = "label\ttext\n好\t很好\n差\t很差\n好\t好吃\n差\t不好吃\n"
DEV = "label\ttext\n好\t想吃鸡蛋\n差\t太差了\n"
# The second is one of dev, with another space, and one occurs twice.
TEXTS = "我想吃鸡蛋\n 太差了\n你来天地\n你来天地\n"
PAIRS = "text\ttext_b\tlabel\n很好\t好\t1\n很差\t好\t0\n好吃\t很好吃\t1\n"


def finetune(folder, *options, **others):
    files = {"train": folder / "train.tsv", "dev": folder / "dev.tsv"}
    files |= {"output": folder / "model", "epochs": 1, "learning_rate": 0.01}
    return run("finetune", *as_options(**{**files, **others}), *options)


def write(folder, train=LABELLED, dev=DEV):
    (folder / "train.tsv").write_text(train, "utf-8")
    (folder / "dev.tsv").write_text(dev, "utf-8")
    return write_start(folder)


def test_texts_without_labels_are_learned_before_those_with_labels(
    tmp_path, monkeypatch
):
    # The model learns its answers of all texts.
    monkeypatch.setattr(classification, "SURE", 0.0)
    start = write(tmp_path)
    texts = tmp_path / "texts.txt"
    texts.write_text(TEXTS, "utf-8")
    # The encoder stays as it is after these texts.
    result = finetune(tmp_path, *start, unlabelled=texts, freeze="encoder")
    printed = " ".join(result.stdout.split())
    assert "3 examples without labels" in printed and "1 left out" in printed
    model = tmp_path / "model"
    metrics = json.loads((model / "metrics.json").read_text("utf-8"))
    # Two without labels and four of train.
    assert metrics["adaptation"]["texts"] == 6
    assert metrics["adaptation"]["left_out"] == 1
    assert not (model / "adapted" / ".training").exists()
    own_labels = metrics["own_labels"]
    assert own_labels["examples"] == 2
    assert "Learning 2 examples with labels of the model's own" in printed
    kept = "after" if own_labels["kept"] else "before"
    assert metrics["dev"] == own_labels[f"dev {kept}"]
    assert not (model / "own_labels").exists()
    # Another task starts from the adapted checkpoint.
    adapted = albert_tf.models.AlbertTextRegressor.from_checkpoint(model / "adapted")
    trained = albert_tf.models.AlbertTextClassifier.from_preset(model)
    weights = zip(
        adapted.backbone.get_weights(), trained.backbone.get_weights(), strict=True
    )
    for one, other in weights:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("content", "count"),
    [
        pytest.param(
            "text\ttext_b\n天地\t上下\n你来\t我来\n", 2, marks=pytest.mark.slow
        ),
        pytest.param("天地\t上下\n你来\t我来\n", 2, marks=pytest.mark.nightly),
    ],
)
def test_pairs_without_labels_are_read_as_predict_reads_them(tmp_path, content, count):
    start = write(tmp_path, PAIRS, PAIRS)
    texts = tmp_path / "pairs.txt"
    texts.write_text(content, "utf-8")
    printed = finetune(tmp_path, *start, unlabelled=texts).stdout
    assert f"{count} examples without labels" in " ".join(printed.split())


CONTEXTS = "左右上下的中文。\n你前来见我。\n"
# Files of --unlabelled by task; a choice and the question of the last are in dev.
UNLABELLED = {
    "multi-label": CONTEXTS,
    "regression": "左右\t上下\n你来\t我来\n",
    "token-classification": CONTEXTS,
    "question-answering": CONTEXTS,
    "multiple-choice": "左右上下。\t谁\t好\t中\n",
    "text-embedding": "左右\t上下\n你来\t我来\n",
    "spelling-correction": CONTEXTS,
    "summarization": CONTEXTS,
}
# The others run in the nightly tests.
OFTEN = "token-classification"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.slow if name == OFTEN else pytest.mark.nightly
        )
        for name in UNLABELLED
    ],
)
def test_each_task_starts_from_the_adapted_weights(name, tmp_path):
    data, texts = tmp_path / CASES[name].file, tmp_path / "texts.txt"
    data.write_text(CASES[name].content, "utf-8")
    texts.write_text(UNLABELLED[name], "utf-8")
    files = {"train": data, "dev": data, "unlabelled": texts}
    # It has a pooler, which some tasks leave out.
    start = AlbertMaskedLM.from_backbone(small_backbone(), VOCABULARY)
    start.save_to_preset(tmp_path / "start")
    start = ("--checkpoint", tmp_path / "start")
    # An embedder has no head that could be trained alone.
    finetune(tmp_path, *start, task=name, **{**files, "learning_rate": 1e-12})
    adapted = AlbertMaskedLM.from_preset(tmp_path / "model/adapted")
    model = albert_tf.pipeline(name, tmp_path / "model").model
    for layer in model.backbone.layers:
        weights = adapted.backbone.get_layer(layer.name).get_weights()
        for one, other in zip(layer.get_weights(), weights, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)


def test_wrong_use_of_unlabelled_is_refused(tmp_path):
    start = write(tmp_path)
    texts = tmp_path / "texts.txt"
    texts.write_text("太差了\n", "utf-8")
    files = as_options(
        train=tmp_path / "train.tsv",
        dev=tmp_path / "dev.tsv",
        output=tmp_path / "model",
    )
    command = ("finetune", *files, *start)
    assert "1 are texts of dev or test" in refused(*command, "--unlabelled", texts)
    assert "Pass both" in refused(*command, "--minutes", 1)
    missing = refused(*command, "--unlabelled", tmp_path / "none.txt")
    assert "none.txt" in missing


@pytest.mark.parametrize(
    ("lost", "gained", "is_kept"),
    # The deviation by chance of 4 differing answers is 2, that of 16 is 4.
    [(0, 0, True), (1, 0, True), (3, 1, True), (4, 0, False), (11, 5, False)],
)
def test_a_model_of_own_labels_may_be_worse_by_chance(
    lost, gained, is_kept, monkeypatch
):
    dev = Examples([*range(40)], ["好"] * 40)
    answers = {
        "before": ["好"] * 20 + ["差"] * 20,
        "after": ["差"] * lost + ["好"] * (20 + gained - lost) + ["差"] * (20 - gained),
    }
    task = classification.TextClassification
    monkeypatch.setattr(task, "predict", lambda self, x, *_: {"label": answers[x]})
    assert task().is_as_good("after", "before", dev, None) == is_kept


@pytest.mark.slow
def test_a_round_of_own_labels_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(classification, "SURE", 0.0)
    # The first text is left out for the temperature.
    monkeypatch.setattr(calibration, "MIN_EXAMPLES", 1)
    start = write(tmp_path)
    texts = tmp_path / "texts.txt"
    texts.write_text(TEXTS, "utf-8")
    finetune(tmp_path, *start, unlabelled=texts, output=tmp_path / "whole")

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(finetune_own_labels, "train_model", interrupted)
        with pytest.raises(SystemExit, match="130"):
            finetune(tmp_path, *start, unlabelled=texts)
    finetune(tmp_path, *start, unlabelled=texts)
    whole, resumed = (
        albert_tf.models.AlbertTextClassifier.from_preset(tmp_path / name)
        for name in ("whole", "model")
    )
    for one, other in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert whole.temperature == resumed.temperature
    metrics = [
        json.loads((tmp_path / name / "metrics.json").read_text("utf-8"))
        for name in ("whole", "model")
    ]
    assert metrics[0]["own_labels"] == metrics[1]["own_labels"]
    assert metrics[0]["own_labels"]["examples"] == 1


@pytest.mark.nightly
def test_a_head_for_the_same_labels_is_mentioned(tmp_path):
    write(tmp_path)
    texts, start = tmp_path / "texts.txt", tmp_path / "start"
    texts.write_text(TEXTS, "utf-8")
    filler = AlbertMaskedLM.from_backbone(small_backbone(), VOCABULARY)
    mood = AlbertTextClassifier.from_backbone(
        filler.backbone, VOCABULARY, 2, labels=["差", "好"]
    )
    mood.compile(learning_rate=0.01)
    mood.fit(["很好", "很差"] * 8, ["好", "差"] * 8, epochs=9, verbose=0)
    save_checkpoint(filler, start, "albert_zh", heads={"mood": mood})
    files = {"train": tmp_path / "train.tsv", "dev": tmp_path / "dev.tsv"}
    files |= {"checkpoint": start, "epochs": 1}
    plain = run("finetune", *as_options(**files, output=tmp_path / "plain"))
    assert "lower than" in plain.stdout
    with pytest.warns(UserWarning, match="Compare the scores with a training without"):
        result = run(
            "finetune",
            *as_options(**files, unlabelled=texts, output=tmp_path / "model"),
        )
    # Not lower for these few examples.
    assert "lower than" not in result.stdout


def test_a_checkpoint_without_masked_words_is_refused(tmp_path):
    write(tmp_path)
    texts, start = tmp_path / "texts.txt", tmp_path / "start"
    texts.write_text(TEXTS, "utf-8")
    save_checkpoint(small_classifier(2), start, "albert_zh")
    files = {"train": tmp_path / "train.tsv", "dev": tmp_path / "dev.tsv"}
    files |= {"checkpoint": start, "unlabelled": texts, "output": tmp_path / "model"}
    printed = refused("finetune", *as_options(**files))
    assert "has no masked language model head" in printed
    with pytest.raises(ValueError, match="has no masked language model head"):
        AlbertSpellingCorrector.from_checkpoint(start)
