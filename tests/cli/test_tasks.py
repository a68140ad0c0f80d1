"""The command line, as its user sees it: what it prints, writes and refuses."""

import collections
import dataclasses
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
from conftest import GOLDEN
from matplotlib.image import imread
from sklearn.metrics import classification_report, confusion_matrix
from typer.testing import CliRunner

import albert_tf_cli
from albert_tf.data.tables import read_labelled_texts
from albert_tf.models import AlbertTextClassifier
from albert_tf.models.pooling import POOLING_MODES
from albert_tf.training import fine_tuning
from albert_tf_cli.finetune import Freeze, PoolingMode, new_model
from albert_tf_cli.task_table import text_classification

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
ALBERT_TF = pathlib.Path(sys.executable).with_name("albert-tf")
COMMANDS = ("inspect", "finetune", "evaluate", "predict", "export")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAIRS = "1\t你还好吗\t你好吗\n0\t在哪\t几点了\n" * 8


pytestmark = [
    pytest.mark.filterwarnings("ignore:.* texts are longer than"),
]


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def albert_tf(capfd, monkeypatch):
    """Run the command line in this process, which has TensorFlow already."""

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["albert-tf", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        with pytest.raises(SystemExit) as exit:
            albert_tf_cli.main()
        return Result(exit.value.code, *capfd.readouterr())

    return run


def fresh_process(*command, stdin=b""):
    """Run a command as a shell would, without the settings of these tests."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "TF_CPP_MIN_LOG_LEVEL"
    }
    result = subprocess.run(
        [str(part) for part in command],
        input=stdin,
        capture_output=True,
        env=environment,
    )
    out, err = result.stdout.decode(), result.stderr.decode()
    return Result(result.returncode, out, err)


# === Data and models, made once ===


@dataclasses.dataclass
class Made:
    """What a `finetune` wrote to `model`, and printed."""

    model: pathlib.Path
    printed: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """60 reviews to train on, 30 each for dev and test, and a checkpoint."""
    folder = tmp_path_factory.mktemp("cli")
    lines = (EXAMPLES / "reviews" / "train.tsv").read_text(encoding="utf-8").split("\n")
    for name, part in (("train", lines[1:61]), ("dev", lines[61:91])):
        (folder / f"{name}.tsv").write_text("\n".join([lines[0], *part]))
    (folder / "test.tsv").write_text("\n".join([lines[0], *lines[91:121]]))
    (folder / "pairs.tsv").write_text(PAIRS)
    config = json.loads((GOLDEN / "google_v2" / "albert_config.json").read_text())
    config["num_hidden_layers"] = 1
    (folder / "one_layer.json").write_text(json.dumps(config))

    shutil.copytree(GOLDEN / "albert_zh_postln", folder / "checkpoint")
    counts = collections.Counter("".join(lines))
    common = [character for character, _ in counts.most_common(117)]
    vocabulary = [*SPECIAL, *(c for c in common if not c.isspace())][:120]
    text = "\n".join(vocabulary) + "\n"
    (folder / "checkpoint" / "vocab.txt").write_text(text, encoding="utf-8")
    return folder


def finetune(folder, output, *arguments):
    """Fine-tune for two epochs; the arguments say from what on what."""
    command = ["finetune", "--output", folder / output, "--epochs", 2, *arguments]
    result = CliRunner().invoke(albert_tf_cli.app, [str(part) for part in command])
    assert result.exit_code == 0, result.output
    return Made(folder / output, result.stdout)


@pytest.fixture(scope="module")
def reviews(folder):
    """A classifier of reviews, from a checkpoint."""
    data = [x for name in ("train", "dev", "test") for x in (f"--{name}", name)]
    data[1::2] = [folder / f"{name}.tsv" for name in data[1::2]]
    return finetune(folder, "reviews", "--checkpoint", folder / "checkpoint", *data)


@pytest.fixture(scope="module")
def pairs(folder):
    """A classifier of pairs in columns of our own, from random weights."""
    return finetune(
        *(folder, "pairs", "--label-column", 1, "--text-column", 3),
        *("--text-b-column", 2, "--dropout", 0, "--sequence-length", 20),
        *("--config", folder / "one_layer.json"),
        *("--vocab", folder / "checkpoint" / "vocab.txt"),
        *("--train", folder / "pairs.tsv", "--dev", folder / "pairs.tsv"),
    )


def lines_of(text):
    """Not `splitlines`, which also cuts at characters that texts contain."""
    assert text.endswith("\n")
    return text[:-1].split("\n")


# === Help ===


@pytest.mark.parametrize(
    "command",
    [(), *(pytest.param((name,), marks=pytest.mark.slow) for name in COMMANDS)],
)
def test_help_comes_without_tensorflow(command):
    start = time.perf_counter()
    result = fresh_process(
        sys.executable, "-X", "importtime", ALBERT_TF, *command, "--help"
    )
    assert time.perf_counter() - start < 3
    assert result.code == 0
    imported = {line.split("|")[-1].strip() for line in result.err.splitlines()}
    assert "albert_tf_cli" in imported
    assert not {"tensorflow", "keras", "numpy"} & imported
    expected = [f"albert-tf {command[0]}", "Example:"] if command else COMMANDS
    assert all(word in result.out for word in expected)


# === inspect ===


def test_inspect_prints_a_table(albert_tf):
    result = albert_tf("inspect", GOLDEN / "google_groups")
    assert result.code == 0
    lines = [line.strip() for line in lines_of(result.out)]
    rows = dict(re.split("  +", line, maxsplit=1) for line in lines if "  " in line)
    assert rows["layout"] == "google"
    assert rows["missing"] == "none"
    assert rows["heads"] == "masked_lm_head, sop_head"
    assert int(rows["parameters"].replace(",", "")) > 10_000


def test_inspect_prints_json(albert_tf):
    path = GOLDEN / "albert_zh_preln" / "model.ckpt-best.index"
    result = albert_tf("inspect", path, "--json")
    report = json.loads(result.out)
    assert report["layout"] == "albert_zh"
    assert report["config"]["ln_type"] == "preln"
    assert report["parameters"] > 10_000
    assert report["missing"] == report["unused"] == []


def test_inspect_with_a_config_from_elsewhere(albert_tf, tmp_path):
    shutil.copytree(GOLDEN / "google_v2", tmp_path / "checkpoint")
    config = tmp_path / "checkpoint" / "albert_config.json"
    config = config.rename(tmp_path / "my.json")
    result = albert_tf("inspect", tmp_path / "checkpoint", "--config", config)
    assert (result.code, result.err) == (0, "")


# === finetune ===


def test_finetune_says_what_it_read_and_how_well_it_did(reviews):
    first, *epochs, last = lines_of(reviews.printed)
    assert first == "2 classes: 好评, 差评. train 60, dev 30, test 30 texts"
    assert [line.split(",")[0].split(" 0.")[0] for line in epochs] == [
        "step 2 of 4: loss",
        "step 4 of 4: loss",
    ]
    assert all("dev accuracy 0." in line for line in epochs)
    assert " s a step, " in epochs[0] and " left" not in epochs[1]
    metrics = json.loads((reviews.model / "metrics.json").read_text("utf-8"))
    last = " ".join(reviews.printed.split("Best epoch")[-1].split())
    assert last.startswith(f"{metrics['best_epoch']} of 2, ")
    for part in ("dev", "test"):
        assert f"{part} accuracy {metrics[part]['accuracy']:.4f}" in last
    assert "metrics.json and history.png are in" in last


def test_finetune_writes_metrics_curves_and_a_model(reviews, folder):
    metrics = json.loads((reviews.model / "metrics.json").read_text("utf-8"))
    assert metrics["classes"] == ["好评", "差评"]
    assert metrics["settings"]["train"] == str(folder / "train.tsv")
    assert len(metrics["history"]["val_accuracy"]) == 2
    picture = imread(reviews.model / "history.png")
    assert picture.std() > 0.05
    model = AlbertTextClassifier.from_preset(str(reviews.model))
    assert model.labels == ["好评", "差评"]
    assert not (reviews.model / ".training").exists()


def test_the_test_score_is_that_of_the_model_written(albert_tf, reviews, folder):
    metrics = json.loads((reviews.model / "metrics.json").read_text("utf-8"))
    result = albert_tf("evaluate", reviews.model, folder / "test.tsv", "--json")
    accuracy = json.loads(result.out)["accuracy"]
    assert metrics["test"]["accuracy"] == pytest.approx(accuracy, abs=1e-6)


def test_finetune_from_random_weights_on_pairs_in_given_columns(pairs):
    assert "2 classes: 0, 1. train 16, dev 16 pairs" in pairs.printed
    model = AlbertTextClassifier.from_preset(str(pairs.model))
    assert model.pairs
    assert model.preprocessor.sequence_length == 20
    assert model.backbone.num_layers == 1
    assert model.backbone.embedding_projection == "after_layer_norm"


class Stopped(ValueError):
    """Ends a fine-tuning before it starts; to the command line a bug."""


@pytest.fixture
def start_of_training(albert_tf, folder, monkeypatch, tmp_path):
    """What `finetune` would start to train, given these options."""

    def start(*options, checkpoint=True):
        started = []

        def instead(classifier, train, dev, output, **kwargs):
            started.append((classifier, train, dev, kwargs))
            raise Stopped

        monkeypatch.setattr(fine_tuning, "fine_tune", instead)
        origin = ("--checkpoint", folder / "checkpoint") if checkpoint else ()
        with pytest.raises(Stopped):
            albert_tf(
                *("finetune", *origin, "--output", tmp_path / "model"),
                *("--train", folder / "train.tsv", "--dev", folder / "dev.tsv"),
                *options,
            )
        return started[0]

    yield start
    keras.config.set_dtype_policy("float32")


def compiled_with(classifier):
    return classifier.get_compile_config()["optimizer"]["config"]["task_settings"]


def test_defaults(start_of_training):
    classifier, train, dev, options = start_of_training()
    assert (len(train[0]), len(train[1]), len(dev[0])) == (60, 60, 30)
    assert set(train[1]) == {0, 1}
    assert (options["epochs"], options["batch_size"]) == (3, 32)
    assert compiled_with(classifier)["learning_rate"] == 1e-3
    assert classifier.dropout == 0.1
    # 256 by default, but this checkpoint has no more positions.
    assert classifier.preprocessor.sequence_length == 64
    assert classifier.backbone.compute_dtype == "float32"


def test_options_reach_the_training(start_of_training):
    classifier, train, _, options = start_of_training(
        *("--epochs", 5, "--batch-size", 8, "--learning-rate", 0.001),
        *("--dropout", 0.3, "--sequence-length", 20, "--mixed-precision"),
        *("--label-column", "domain"),
    )
    assert (options["epochs"], options["batch_size"]) == (5, 8)
    assert compiled_with(classifier)["learning_rate"] == 0.001
    assert classifier.dropout == 0.3
    assert classifier.preprocessor.sequence_length == 20
    assert classifier.backbone.compute_dtype == "bfloat16"
    assert classifier.labels == ["electronics", "food", "hotel"]
    assert set(train[1]) == {0, 1, 2}


def test_options_of_keras_reach_the_training(start_of_training):
    classifier, _, _, options = start_of_training(
        *("--pooling-mode", "mean", "--freeze", "encoder", "--patience", 2),
        *("--r-drop", 0.5, "--ema-momentum", 0.9),
        *("--gradient-accumulation-steps", 4),
    )
    assert classifier.pooling_mode == "mean"
    assert classifier.r_drop == 0.5
    assert compiled_with(classifier)["ema_momentum"] == 0.9
    assert classifier.optimizer.gradient_accumulation_steps == 4
    assert (options["freeze"], options["patience"]) == ("encoder", 2)
    settings = json.loads(json.dumps(options["settings"]))
    assert settings["pooling_mode"] == "mean"
    assert {"freeze", "patience", "r_drop", "ema_momentum"} < settings.keys()


def test_options_of_other_tasks_are_refused(albert_tf, folder, tmp_path):
    (tmp_path / "pairs.tsv").write_text("我在\t我再\n")
    for task, file, option, value in (
        ("regression", folder / "pairs.tsv", "--r-drop", 1),
        ("spelling-correction", tmp_path / "pairs.tsv", "--pooling-mode", "mean"),
        ("spelling-correction", tmp_path / "pairs.tsv", "--dropout", 0.5),
    ):
        result = albert_tf(
            *("finetune", "--task", task, "--checkpoint", folder / "checkpoint"),
            *("--train", file, "--dev", file, "--output", tmp_path / "model"),
            *(option, value),
        )
        assert result.code == 1
        assert f"{option} is not for --task {task}" in " ".join(result.err.split())


def test_every_pooling_and_part_to_freeze_is_offered():
    assert {mode.value for mode in PoolingMode} == POOLING_MODES.keys()
    assert {part.value for part in Freeze} == fine_tuning.FREEZABLE.keys()


def test_the_same_command_starts_the_same_training(start_of_training, folder):
    """The same weights; and the same settings, by which a run that was cut off is
    recognised when it is started again."""
    first, again, other = (
        start_of_training(
            *("--config", folder / "checkpoint" / "albert_config.json"),
            *("--vocab", folder / "checkpoint" / "vocab.txt", "--seed", seed),
            checkpoint=False,
        )
        for seed in (1, 1, 2)
    )
    settings = [start[-1]["settings"] for start in (first, again, other)]
    assert settings[0] == settings[1] == json.loads(json.dumps(settings[0]))
    assert settings[0] != settings[2]
    weights = [start[0].get_weights() for start in (first, again, other)]
    assert all(map(np.array_equal, weights[0], weights[1]))
    assert not all(map(np.array_equal, weights[0], weights[2]))


# === evaluate ===


@pytest.fixture(scope="module")
def undecided(reviews, folder):
    """A model that gives either label to half of the test set."""
    model = AlbertTextClassifier.from_preset(str(reviews.model))
    texts = read_labelled_texts(folder / "test.tsv").x
    outputs = model.predict(texts, verbose=0)
    middle = np.median(outputs[:, 0] - outputs[:, 1])
    model.output_dense.bias.assign(model.output_dense.bias - [middle, 0])
    model.save_to_preset(str(folder / "undecided"))
    return folder / "undecided"


@pytest.fixture(scope="module")
def by_hand(undecided, folder):
    """Truth and predictions of the test set, the latter from `predict`."""
    data = read_labelled_texts(folder / "test.tsv")
    command = ["predict", str(undecided)]
    result = CliRunner().invoke(albert_tf_cli.app, command, input="\n".join(data.x))
    predictions = [line.split("\t")[0] for line in lines_of(result.stdout)]
    assert sorted(predictions) == ["好评"] * 15 + ["差评"] * 15
    return data.labels, predictions


def test_evaluate_prints_the_scores_of_scikit_learn(
    albert_tf, undecided, folder, by_hand
):
    result = albert_tf("evaluate", undecided, folder / "test.tsv", "--json")
    report = json.loads(result.out)
    matrix = report.pop("confusion_matrix")
    assert matrix == confusion_matrix(*by_hand, labels=["好评", "差评"]).tolist()
    expected = classification_report(*by_hand, zero_division=0, output_dict=True)
    assert report == expected


def test_evaluate_prints_tables(albert_tf, undecided, folder, by_hand):
    result = albert_tf("evaluate", undecided, folder / "test.tsv")
    assert result.code == 0
    report = classification_report(*by_hand, zero_division=0, digits=4)
    for line in report.splitlines():
        assert line.split() in [printed.split() for printed in lines_of(result.out)]
    matrix = confusion_matrix(*by_hand, labels=["好评", "差评"])
    for label, row in zip(["好评", "差评"], matrix, strict=True):
        cells = ["│", label, "│", str(row[0]), "│", str(row[1]), "│"]
        assert cells in [printed.split() for printed in lines_of(result.out)]


def test_evaluate_pairs_in_given_columns(albert_tf, pairs, folder):
    columns = ("--label-column", 1, "--text-column", 3, "--text-b-column", 2)
    file = folder / "pairs.tsv"
    result = albert_tf("evaluate", pairs.model, file, "--json", *columns)
    assert json.loads(result.out)["weighted avg"]["support"] == 16
    # Those of the training are remembered.
    assert albert_tf("evaluate", pairs.model, file, "--json").out == result.out


@pytest.mark.slow
def test_evaluate_a_model_without_names_for_its_classes(
    albert_tf, reviews, tmp_path, folder
):
    model = AlbertTextClassifier.from_preset(str(reviews.model))
    model.labels = None
    model.save_to_preset(str(tmp_path / "model"))
    data = (folder / "test.tsv").read_text().replace("好评", "0").replace("差评", "1")
    (tmp_path / "test.tsv").write_text(data)
    result = albert_tf("evaluate", tmp_path / "model", tmp_path / "test.tsv", "--json")
    assert result.code == 0
    assert json.loads(result.out)["0"]["support"] > 0


# === predict ===


def test_predict_arguments(albert_tf, reviews):
    texts = ["房间很干净", "太差了", "", "-5分", "--help"]
    result = albert_tf("predict", reviews.model, "--", *texts)
    assert (result.code, result.err) == (0, "")
    model = AlbertTextClassifier.from_preset(str(reviews.model))
    outputs = keras.ops.softmax(model.predict(texts, verbose=0)).numpy()
    assert lines_of(result.out) == [
        f"{['好评', '差评'][row.argmax()]}\t{row.max():.4f}\t{text}"
        for text, row in zip(texts, outputs, strict=True)
    ]


def test_predict_the_probability_of_every_class(albert_tf, reviews):
    one = lines_of(albert_tf("predict", reviews.model, "太差了").out)[0].split("\t")
    (line,) = lines_of(albert_tf("predict", reviews.model, "太差了", "--top-k", 0).out)
    first, likeliest, second, other, text = line.split("\t")
    assert [first, likeliest, text] == one
    assert {first, second} == {"好评", "差评"}
    assert float(likeliest) + float(other) == pytest.approx(1, abs=1e-4)
    result = albert_tf("predict", reviews.model, "太差了", "--top-k", 1, "--json")
    assert json.loads(result.out)["label"] == first


LINES = {
    b"\xe5\xbe\x88\xe5\xa5\xbd": "很好",
    b"": "",
    b"  ": "  ",
    b"\xff\xfe broken \xe5\xbe": "\ufffd\ufffd broken \ufffd",
    "😀👍🏽".encode(): "😀👍🏽",
    "房间\u2028很\x85干净\x0c".encode(): "房间\u2028很\x85干净\x0c",
    "有\t制表符".encode(): "有\t制表符",
    "[red]括号[/red]".encode(): "[red]括号[/red]",
    b"carriage return\r": "carriage return",
    "好".encode() * 10_000: "好" * 10_000,
}


def check_lines(printed):
    rows = [line.split("\t", 2) for line in lines_of(printed)]
    assert [row[2] for row in rows] == list(LINES.values())
    assert {row[0] for row in rows} <= {"好评", "差评"}
    assert all(0.5 <= float(row[1]) <= 1 for row in rows)


def test_predict_gives_a_line_for_each_line(albert_tf, reviews):
    lines = b"\n".join(LINES)
    result = albert_tf("predict", reviews.model, "--batch-size", 3, stdin=lines)
    assert result.code == 0
    check_lines(result.out)


def test_predict_nothing_or_only_empty_lines(albert_tf, reviews):
    for stdin, count in [(b"", 0), (b"\n\n", 2)]:
        result = albert_tf("predict", reviews.model, stdin=stdin)
        assert result.code == 0
        assert result.out.count("\n") == count


def test_predict_a_file(albert_tf, reviews, refused, tmp_path):
    """As its texts: from a table by its column, from .txt by line."""
    texts = ["很好", "太差了", "一般, 般"]
    expected = albert_tf("predict", reviews.model, *texts).out
    (tmp_path / "a.csv").write_text(
        '编号,内容\n1,很好\n2,太差了\n3,"一般, 般"\n', "utf-8"
    )
    (tmp_path / "a.txt").write_text("\n".join(texts) + "\n", "utf-8")
    for name in ("a.csv", "a.txt"):
        assert albert_tf("predict", reviews.model, tmp_path / name).out == expected
    output = tmp_path / "found.tsv"
    command = ("predict", reviews.model, tmp_path / "a.csv", "--output", output)
    assert "3 answers are in" in albert_tf(*command).out
    assert output.read_text("utf-8") == expected
    assert "is there" in refused(*command)
    assert "no.csv is no file" in refused("predict", reviews.model, "no.csv")
    column = ("--text-column", "正文")
    command = ("predict", reviews.model, tmp_path / "a.csv", *column)
    assert "no column '正文'" in refused(*command)


def test_predict_pairs(albert_tf, pairs):
    lines = "你好吗\t你还好吗\r\n几点了\t在哪\n\t\n".encode()
    result = albert_tf("predict", pairs.model, stdin=lines)
    rows = [line.split("\t") for line in lines_of(result.out)]
    assert [row[2:] for row in rows] == [
        ["你好吗", "你还好吗"],
        ["几点了", "在哪"],
        ["", ""],
    ]
    model = AlbertTextClassifier.from_preset(str(pairs.model))
    x = (["你好吗", "几点了", ""], ["你还好吗", "在哪", ""])
    outputs = keras.ops.softmax(model.predict(x, verbose=0)).numpy()
    assert [row[:2] for row in rows] == [
        [str(output.argmax()), f"{output.max():.4f}"] for output in outputs
    ]


# === export ===


@pytest.mark.slow
def test_an_exported_model_answers_without_this_package(albert_tf, reviews, tmp_path):
    serving = tmp_path / "serving" / "1"
    result = albert_tf("export", reviews.model, serving)
    assert result.code == 0
    assert "takes text and gives label" in " ".join(result.out.split())

    texts = ["房间很干净，服务员也热情", "太差了", "😀"]
    expected = albert_tf("predict", reviews.model, *texts)
    served = fresh_process(
        *(sys.executable, "-X", "importtime", EXAMPLES / "serve.py", serving, *texts)
    )
    assert served.code == 0, served.err
    imported = {line.split("|")[-1].strip() for line in served.err.splitlines()}
    assert "tensorflow_text" in imported
    assert not {"albert_tf", "keras_hub"} & imported
    for one, other in zip(lines_of(served.out), lines_of(expected.out), strict=True):
        one, other = one.split("\t"), other.split("\t")
        assert (one[0], one[2]) == (other[0], other[2])
        assert float(one[1]) == pytest.approx(float(other[1]), abs=1e-3)


def test_export_of_pairs_says_what_it_takes(albert_tf, pairs, tmp_path):
    result = albert_tf("export", pairs.model, tmp_path / "1")
    assert "takes text, text_b and gives" in " ".join(result.out.split())


# === In a process of its own ===


@pytest.mark.slow
def test_predict_in_a_fresh_process(reviews):
    stdin = b"\n".join(LINES) + b"\n"
    result = fresh_process(ALBERT_TF, "predict", reviews.model, stdin=stdin)
    assert result.code == 0
    check_lines(result.out)
    # Of the last line, and nothing of TensorFlow.
    assert "1 of 10 texts are longer than sequence_length=64" in result.err
    assert "onednn" not in result.err.lower()
    assert "cuda" not in result.err.lower()


@pytest.mark.slow
def test_an_error_in_a_fresh_process_is_one_line():
    result = fresh_process(ALBERT_TF, "inspect", "nowhere")
    assert result.code == 1
    assert result.out == ""
    (line,) = lines_of(result.err)
    assert line.startswith("Error: There is no checkpoint at nowhere: ")


# === What is refused, and what is said ===


@pytest.fixture
def refused(albert_tf):
    """Run a command that ends with an error of one line, which it returns."""

    def run(*arguments, stdin=b""):
        result = albert_tf(*arguments, stdin=stdin)
        assert result.code == 1
        assert "Traceback" not in result.err
        told = [line for line in lines_of(result.err) if line.startswith("Error: ")]
        # Nothing after it, which it would go on in.
        assert told == lines_of(result.err)[-1:]
        return told[0]

    return run


@pytest.fixture
def finetune_refused(refused, folder, tmp_path):
    """The error of a `finetune` with some options changed, `None` for left out."""

    def run(**changed):
        options = {
            "checkpoint": folder / "checkpoint",
            "train": folder / "train.tsv",
            "dev": folder / "dev.tsv",
            "output": tmp_path / "model",
            **changed,
        }
        options = {name: value for name, value in options.items() if value is not None}
        names = [f"--{name.replace('_', '-')}" for name in options]
        pairs = zip(names, options.values(), strict=True)
        error = refused("finetune", *(part for pair in pairs for part in pair))
        assert not (tmp_path / "model").exists()
        return error

    return run


def test_a_model_that_is_there_is_not_trained_over(refused, folder, reviews):
    options = ("--train", folder / "train.tsv", "--dev", folder / "dev.tsv")
    before = (reviews.model / "metrics.json").read_bytes()
    for output, checkpoint, message in (
        (reviews.model, folder / "checkpoint", "--overwrite"),
        (folder / "checkpoint", folder / "checkpoint", "is the checkpoint to start"),
    ):
        start = ("--checkpoint", checkpoint, "--output", output)
        assert message in refused("finetune", *options, *start)
    assert (reviews.model / "metrics.json").read_bytes() == before


def test_missing_checkpoint(finetune_refused):
    error = finetune_refused(checkpoint="nowhere")
    assert "no checkpoint at nowhere: no folder, file or release" in error


def test_no_checkpoint_and_not_all_of_config_and_vocabulary(finetune_refused):
    error = finetune_refused(checkpoint=None, config="albert_tiny_zh")
    assert "Give --checkpoint to start from, or --config and --vocab" in error


def test_unknown_size(finetune_refused, folder):
    vocabulary = folder / "checkpoint" / "vocab.txt"
    error = finetune_refused(checkpoint=None, config="albert_mini", vocab=vocabulary)
    assert "--config albert_mini is neither a file nor a known size" in error
    for known in ("albert_tiny_zh", "albert_base_zh_google", "albert_base_en"):
        assert known in error


def test_vocabulary_of_another_size(finetune_refused, folder):
    vocabulary = folder / "checkpoint" / "vocab.txt"
    longer = folder / "longer.txt"
    longer.write_text(vocabulary.read_text() + "[unused]\n")
    error = finetune_refused(vocab=longer)
    assert "The vocabulary has 121 tokens, the model 120" in error
    config = folder / "checkpoint" / "albert_config.json"
    error = finetune_refused(checkpoint=None, config=config, vocab=longer)
    assert "The vocabulary has 121 tokens, the model 120" in error


def test_a_named_size_takes_a_vocabulary_of_any_size(folder):
    start = None, "albert_micro_zh", folder / "checkpoint" / "vocab.txt"
    model = new_model(text_classification.ROW, *start, 128, {"num_classes": 2})
    assert model.backbone.vocabulary_size == 120


def test_missing_vocabulary(finetune_refused, folder, tmp_path):
    error = finetune_refused(checkpoint=GOLDEN / "albert_zh_postln")
    assert "There is no vocabulary beside" in error
    assert "nowhere.txt" in finetune_refused(vocab="nowhere.txt")


def test_missing_data(finetune_refused):
    error = finetune_refused(dev="nowhere.tsv")
    assert error == "Error: nowhere.tsv does not exist."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("label\ttext\n1\t很好\n1\t不错\n", "All texts of .* have the label '1'"),
        ("label\ttext\n1\t很\t好\n", "Line 2 of .* has 3 columns"),
    ],
    ids=["one_class", "ragged"],
)
def test_training_data_that_cannot_be_used(
    finetune_refused, tmp_path, content, message
):
    file = tmp_path / "bad.tsv"
    file.write_bytes(content.encode())
    error = finetune_refused(train=file)
    assert str(file) in error
    assert re.search(message, error)


def test_a_label_column_that_is_not_there(finetune_refused, refused, reviews, folder):
    expected = "has no column 'stars'. Its columns are ['label', 'text', 'domain']"
    assert expected in finetune_refused(label_column="stars")
    data = folder / "test.tsv"
    error = refused("evaluate", reviews.model, data, "--label-column", "stars")
    assert expected in error


def test_a_label_that_training_does_not_have(finetune_refused, tmp_path):
    file = tmp_path / "other.tsv"
    file.write_text("label\ttext\n中评\t还行\n好评\t很好\n")
    error = finetune_refused(dev=file)
    expected = f"'中评' of line 2 of {file} is not among the classes ['好评', '差评']"
    assert expected in error


def test_single_texts_to_train_on_and_pairs_to_score_on(
    finetune_refused, tmp_path, monkeypatch
):
    monkeypatch.setattr(fine_tuning, "fine_tune", None)
    file = tmp_path / "pairs.tsv"
    file.write_text("label\ttext\ttext_b\n好评\t很好\t好\n差评\t差\t很差\n")
    assert "has pairs of texts where single" in finetune_refused(test=file)


def test_output_that_is_a_file(refused, folder, tmp_path):
    file = tmp_path / "notes"
    file.write_text("mine")
    error = refused(
        *("finetune", "--checkpoint", folder / "checkpoint", "--output", file),
        *("--train", folder / "train.tsv", "--dev", folder / "dev.tsv"),
    )
    assert str(file) in error
    assert file.read_text() == "mine"


def test_a_directory_that_is_no_model(refused, folder):
    for model, command in ((folder / "checkpoint", "evaluate"), ("nowhere", "predict")):
        error = refused(command, model, folder / "test.tsv")
        assert f"{model} is not a model that `albert-tf finetune` has written" in error


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("task.json", 0.5),
        ("model.weights.h5", 0.5),
        ("task.weights.h5", None),
        pytest.param("config.json", 0.5, marks=pytest.mark.slow),
        pytest.param("task.weights.h5", 0.5, marks=pytest.mark.slow),
        pytest.param("assets/tokenizer/vocabulary.txt", 0.5, marks=pytest.mark.slow),
        pytest.param("config.json", None, marks=pytest.mark.slow),
        pytest.param("model.weights.h5", None, marks=pytest.mark.slow),
        pytest.param("assets/tokenizer/vocabulary.txt", None, marks=pytest.mark.slow),
    ],
)
def test_a_model_of_which_a_file_is_cut_or_lost(
    refused, reviews, tmp_path, name, share
):
    file = shutil.copytree(reviews.model, tmp_path / "model") / name
    data = file.read_bytes()
    file.unlink()
    if share:
        file.write_bytes(data[: int(len(data) * share)])
    refused("predict", tmp_path / "model", "很好")


def test_a_model_of_pairs_given_single_texts(refused, pairs, folder):
    expected = "pairs of texts with a tab between them. Found: '很好'"
    assert expected in refused("predict", pairs.model, "很好")
    stdin = "你好\t好\n很好\n".encode()
    assert expected in refused("predict", pairs.model, stdin=stdin)
    file = folder / "single.tsv"
    file.write_text("label\ttext\n1\t很好\n0\t差\n")
    error = refused("evaluate", pairs.model, file)
    assert f"{file} has single texts where pairs of texts are expected" in error


@pytest.mark.slow
def test_labels_the_model_does_not_know(refused, reviews, tmp_path):
    file = tmp_path / "numbers.tsv"
    file.write_text("label\ttext\n1\t很好\n0\t差\n")
    error = refused("evaluate", reviews.model, file)
    assert f"The label '1' of line 2 of {file} is not among the classes" in error


@pytest.mark.slow
def test_export_to_a_file(refused, reviews, tmp_path):
    file = tmp_path / "notes"
    file.write_text("mine")
    assert f"{file} exists" in refused("export", reviews.model, file)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    "arguments",
    [
        ("finetune", "--train", "a", "--dev", "b", "--output", "c", "--epochs", "0"),
        ("classify",),
    ],
)
def test_a_command_that_is_misspelt_is_pointed_to_help(albert_tf, arguments):
    result = albert_tf(*arguments)
    assert result.code == 2
    assert "--help" in result.err
    assert "Traceback" not in result.err


# === Names with square brackets, which are markup to rich ===


def test_square_brackets_in_an_error(refused):
    for name in ("[/a]", "[bold]"):
        assert f"no checkpoint at {name}: no folder" in refused("inspect", name)


@pytest.mark.slow
def test_square_brackets_in_labels(albert_tf, reviews, tmp_path):
    labels = ["[a]", "[/b]"]
    model = AlbertTextClassifier.from_preset(str(reviews.model))
    model.labels = labels
    model.save_to_preset(str(tmp_path / "model"))
    (tmp_path / "a.tsv").write_text("label\ttext\n[a]\t好\n[/b]\t差\n")
    result = albert_tf("evaluate", tmp_path / "model", tmp_path / "a.tsv")
    assert result.code == 0
    # In the report, and in head and rows of the table.
    assert [result.out.count(label) for label in labels] == [3, 3]


# === Bugs ===


def test_a_bug_shows_its_traceback(albert_tf, monkeypatch):
    monkeypatch.setattr(
        "albert_tf.checkpoints.inspect_checkpoint", lambda path, config: int(path)
    )
    with pytest.raises(ValueError, match="invalid literal"):
        albert_tf("inspect", ".")
