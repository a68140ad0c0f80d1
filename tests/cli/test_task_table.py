"""The tasks of the command line besides text classification."""

import json
import shutil

import pytest
from sklearn.metrics import f1_score
from small_classifier import VOCABULARY
from typer.testing import CliRunner

import albert_tf_cli
from albert_tf.models import AlbertTextClassifier, AlbertTextRegressor
from albert_tf_cli.task_table import TASKS, task_of

MULTI_LABEL = "label\ttext\n" + "好|吃\t好吃\n\t天地\n吃\t想吃鸡蛋\n好\t很好\n" * 4
REGRESSION = "你好,你好吗,5\n你好,天地,0.5\n好吃,很好吃,4\n鸡蛋,左右,0\n" * 4
REGRESSION = "text_a,text_b,score\n" + REGRESSION


def run(*arguments, code=0, **kwargs):
    command = [str(argument) for argument in arguments]
    result = CliRunner().invoke(albert_tf_cli.app, command, **kwargs)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    config = {
        "attention_probs_dropout_prob": 0.0,
        "hidden_act": "relu",
        "hidden_dropout_prob": 0.0,
        "embedding_size": 8,
        "hidden_size": 12,
        "intermediate_size": 20,
        "max_position_embeddings": 32,
        "num_attention_heads": 2,
        "num_hidden_groups": 1,
        "num_hidden_layers": 1,
        "inner_group_num": 1,
        "type_vocab_size": 2,
        "vocab_size": len(VOCABULARY),
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "labels.tsv").write_text(MULTI_LABEL, "utf-8")
    (folder / "scores.csv").write_text(REGRESSION, "utf-8")
    return folder


def finetune(folder, task, file, *options):
    output = folder / task
    result = run(
        *("finetune", "--task", task, "--train", folder / file, "--dev", folder / file),
        *("--config", folder / "config.json", "--vocab", folder / "vocab.txt"),
        *("--output", output, "--epochs", 2, "--learning-rate", 0.01, *options),
    )
    return output, result.stdout, json.loads((output / "metrics.json").read_text())


@pytest.fixture(scope="module")
def multi_label(folder):
    return finetune(
        folder, "multi-label", "labels.tsv", "--test", folder / "labels.tsv"
    )


@pytest.fixture(scope="module")
def regression(folder):
    return finetune(folder, "regression", "scores.csv", "--dropout", 0)


def test_multi_label_keeps_labels_and_tuned_thresholds(multi_label):
    output, printed, metrics = multi_label
    assert printed.startswith("2 classes: 吃, 好. train 16, dev 16, test 16 texts")
    model = AlbertTextClassifier.from_preset(str(output))
    assert model.multi_label and model.labels == metrics["classes"] == ["吃", "好"]
    assert len(model.thresholds) == 2 and model.thresholds != [0.5, 0.5]
    assert len(metrics["history"]["val_micro_f1"]) == 2
    best = metrics["dev"]["micro_f1"]
    assert best == max(metrics["history"]["val_micro_f1"])
    # The same examples, with the thresholds that were written.
    assert metrics["test"]["micro_f1"] == best
    assert " ".join(printed.split()).count(f" micro_f1 {best:.4f}") >= 2
    assert metrics["settings"]["task"] == "multi-label"
    assert (output / "history.png").stat().st_size > 1000


def test_multi_label_scores_and_answers(multi_label, folder):
    output, _, metrics = multi_label
    report = json.loads(run("evaluate", output, folder / "labels.tsv", "--json").stdout)
    lines = run(
        "predict", output, "--json", input="好吃\n天地\n想吃鸡蛋\n很好\n"
    ).stdout
    answers = [json.loads(line) for line in lines.splitlines()]
    chosen = [{label["label"] for label in answer} for answer in answers]
    truth, predicted = [], []
    labels = ["吃", "好"]
    for line in MULTI_LABEL.strip("\n").split("\n")[1:]:
        given, text = line.split("\t")
        truth.append([name in given.split("|") for name in labels])
        index = ["好吃", "天地", "想吃鸡蛋", "很好"].index(text)
        predicted.append([name in chosen[index] for name in labels])
    assert report["micro_f1"] == pytest.approx(
        f1_score(truth, predicted, average="micro", zero_division=0)
    )
    printed = run("evaluate", output, folder / "labels.tsv").stdout
    assert "micro avg" in printed and "exact match" in printed
    (line,) = run("predict", output, "好吃").stdout.splitlines()
    names, scores, text = line.split("\t")
    assert set(filter(None, names.split("|"))) == chosen[0] and text == "好吃"
    assert len(list(filter(None, scores.split("|")))) == len(chosen[0])


@pytest.mark.slow
def test_regression(regression, folder):
    output, printed, metrics = regression
    assert printed.startswith("train 16, dev 16 pairs")
    model = AlbertTextRegressor.from_preset(str(output))
    assert model.pairs and model.dropout == 0
    best = max(metrics["history"]["val_spearman"])
    assert f"dev spearman {best:.4f}" in " ".join(printed.split())
    report = json.loads(run("evaluate", output, folder / "scores.csv", "--json").stdout)
    assert report == pytest.approx({x: metrics["dev"][x] for x in report}, abs=1e-6)
    assert report.keys() == {"pearson", "spearman", "mse"}

    x = (["你好", "鸡蛋"], ["你好吗", "左右"])
    expected = model.predict(x, verbose=0)
    lines = run("predict", output, input="你好\t你好吗\n鸡蛋\t左右\n").stdout
    assert lines.splitlines() == [
        f"{score:.4f}\t{one}\t{other}"
        for score, one, other in zip(expected, *x, strict=True)
    ]
    lines = run("predict", output, "--json", "你好\t你好吗").stdout
    assert json.loads(lines)["score"] == pytest.approx(float(expected[0]), abs=1e-5)


@pytest.mark.slow
def test_export_names_what_is_answered(multi_label, regression, tmp_path):
    for (output, *_), names in (
        (multi_label, "takes text and gives labels, chosen, probabilities"),
        (regression, "takes text, text_b and gives score"),
    ):
        printed = run("export", output, tmp_path / output.name).stdout
        assert names in " ".join(printed.split())


def test_the_labels_of_levels_are_scored_by_level(folder, tmp_path):
    output = tmp_path / "levels"
    data = "label\ttext\n体育/足球\t好吃\n体育/篮球\t天地\n财经/股票\t很好\n"
    (tmp_path / "a.tsv").write_text(data, "utf-8")
    run(
        *("finetune", "--train", tmp_path / "a.tsv", "--dev", tmp_path / "a.tsv"),
        *("--config", folder / "config.json", "--vocab", folder / "vocab.txt"),
        *("--output", output, "--epochs", 1),
    )
    report = json.loads(run("evaluate", output, tmp_path / "a.tsv", "--json").stdout)
    first, second = report["levels"]
    assert first["accuracy"] >= second["accuracy"] == report["accuracy"]
    assert "level 2: accuracy" in run("evaluate", output, tmp_path / "a.tsv").stdout


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        ("multi-label", "label\ttext\n\t好\n\t坏\n", "No text of .* has a label"),
        ("regression", "score\ttext\n1\t好\nx\t坏\n", "a.tsv: The label 'x' of"),
    ],
)
def test_labels_that_are_not_of_the_task(folder, tmp_path, task, content, message):
    file = tmp_path / "a.tsv"
    file.write_text(content, "utf-8")
    arguments = ["finetune", "--task", task, "--train", str(file), "--dev", str(file)]
    arguments += ["--output", str(tmp_path / "model")]
    result = CliRunner().invoke(albert_tf_cli.app, arguments)
    assert isinstance(result.exception, ValueError)
    with pytest.raises(ValueError, match=message):
        raise result.exception
    assert not (tmp_path / "model").exists()


def test_a_model_is_of_the_task_that_fixes_most():
    assert task_of("AlbertTextClassifier", {"multi_label": True}).name == "multi-label"
    for config in ({"multi_label": False}, {}):
        found = task_of("AlbertTextClassifier", config)
        assert found.name == "text-classification"
    assert task_of("AlbertPretrainer", {}) is None
    assert list(TASKS)[0] == "text-classification"


def test_a_preset_of_no_task_is_refused(multi_label, tmp_path):
    folder = shutil.copytree(multi_label[0], tmp_path / "model")
    task = json.loads((folder / "task.json").read_text())
    (folder / "task.json").write_text(json.dumps({**task, "class_name": "Other"}))
    result = CliRunner().invoke(albert_tf_cli.app, ["predict", str(folder), "好"])
    assert "task.json is of the class 'Other'" in str(result.exception)
    assert "multi-label" in str(result.exception)
