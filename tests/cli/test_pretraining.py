"""`albert-tf pretrain-data | pretrain`."""

import json
import pathlib
import re
import shutil

import numpy as np
import openpyxl
import pytest
from command_line import CONFIG, refused, run
from processes import WITHOUT_TENSORFLOW, run_python
from small_corpus import write_corpus, write_vocabulary

import albert_tf
from albert_tf.checkpoints import open_checkpoint
from albert_tf.checkpoints.saving import Saving
from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.pretraining import write_weights
from albert_tf_cli.shared import progress

# Traced steps are faster than eager ones from some ten on.
pytestmark = pytest.mark.traced

MICRO = pathlib.Path(__file__).parents[2] / "examples" / "albert_micro_zh"


def printed(*command):
    return " ".join(run(*command).stdout.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretraining")
    (folder / "text").mkdir()
    write_corpus(folder / "text" / "a.txt", documents=60)
    write_vocabulary(folder / "vocab.txt", 60)
    config = {**CONFIG, "vocab_size": 60}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def data(folder, output):
    files = ("--input", folder / "text" / "*.txt", "--vocab", folder / "vocab.txt")
    size = ("--sequence-length", 32, "--workers", 1)
    return ("pretrain-data", *files, "--output", output, *size)


@pytest.fixture(scope="module")
def records(folder):
    out = printed(*data(folder, folder / "records"))
    assert "documents 60" in out and "not_utf8 0" in out
    assert "Shards of records in" in out
    return folder / "records"


def options(records, output, **changes):
    values = {"steps": 4, "batch-tokens": 256, "interval": 2, **changes}
    named = [part for name, value in values.items() for part in (f"--{name}", value)]
    return ("pretrain", "--data", records, "--output", output, *named)


@pytest.mark.slow
def test_from_random_weights(folder, records, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.01)
    changes = {"config": folder / "config.json", "ngram": 1}
    changes |= {"mask-selection-rate": "0.3:0.15", "ema-momentum": 0.9}
    result = run(*options(records, tmp_path, **changes))
    out = " ".join(result.stdout.split())
    assert out.startswith(f"4 steps with 256 tokens per step of {records}, from random")
    line = r"^pretrain: step \d of 4, \S+ s per step, 0 min \d+ s left$"
    assert re.search(line, result.stderr, re.MULTILINE)
    assert "Epoch 2/2" in out and "mlm_logits_accuracy: 0." in out
    assert "loss.png are in" in out and not (tmp_path / ".training").exists()
    model = AlbertPretrainer.from_checkpoint(tmp_path)
    assert model.backbone.vocabulary_size == 60
    history = json.loads((tmp_path / "history.json").read_text())
    assert len(history["history"]["loss"]) == 2
    card = (tmp_path / "README.md").read_text("utf-8")
    assert "| train | records |" in card and "`mlm_logits_accuracy` 0" in card
    assert "albert-tf predict . --task fill-mask" in card
    assert history["settings"]["ngram"] == 1
    assert history["settings"]["config"] == str(folder / "config.json")
    assert (tmp_path / "loss.png").stat().st_size > 1000
    tokens = open_checkpoint(tmp_path).tokenizer().get_vocabulary()
    assert tokens == (folder / "vocab.txt").read_text().split("\n")[:-1]


def test_options_and_tokens_that_do_not_fit(records, tmp_path):
    command = options(records, tmp_path / "out", config="albert_tiny_zh", minutes=1)
    assert "Give --steps or --minutes, not both." in refused(*command)
    # Before the records are opened.
    changes = {"config": "albert_tiny_zh", "steps": 1500, "interval": 400}
    error = refused(*options(tmp_path, tmp_path / "out", **changes))
    assert "steps=1500, interval=400, steps_per_call=1" in error
    command = (*data(records, tmp_path / "x"), "--user-dictionary", "words.txt")
    error = refused(*command, "--segmenter", "whitespace")
    assert "--user-dictionary is for --segmenter jieba" in error
    command = options(records, tmp_path / "out", checkpoint=MICRO)
    assert "have different vocabularies" in refused(*command)


@pytest.mark.nightly
def test_starting_from_a_released_layout(records, tmp_path):
    model = AlbertPretrainer(
        AlbertBackbone(60, 2, 2, 8, 12, 20, max_sequence_length=32)
    )
    folder = tmp_path / "released"
    albert_tf.save_checkpoint(model, folder, layout="albert_zh")
    shutil.copy(records / "vocab.txt", folder)
    changes = {"checkpoint": folder, "dev": records, "learning-rate": 0.0}
    assert "val_loss: " in printed(*options(records, tmp_path / "out", **changes))
    again = AlbertPretrainer.from_checkpoint(tmp_path / "out")
    # At a rate of 0 only the sums of LAMB move, by rounding.
    for first, second in zip(model.weights, again.weights, strict=True):
        assert abs(first - second).numpy().max() < 1e-7


PLAIN = f"{WITHOUT_TENSORFLOW}\nimport albert_tf_cli\nalbert_tf_cli.main()"


@pytest.mark.nightly
def test_a_machine_without_tensorflow_trains_and_the_same_command_converts(
    folder, records, tmp_path
):
    pytest.importorskip("jax", reason="JAX is not installed (extra [jax])")
    # Beside another checkpoint, which is not opened.
    model = AlbertPretrainer(
        AlbertBackbone(60, 2, 2, 8, 12, 20, max_sequence_length=32)
    )
    albert_tf.save_checkpoint(model, tmp_path / "other", layout="albert_zh")
    write_weights(model, tmp_path / "start.npz")
    command = options(records, tmp_path / "out", checkpoint=tmp_path / "start.npz")
    out = run_python(PLAIN, *command, KERAS_BACKEND="jax")
    assert "The same command with TensorFlow" in " ".join(out.split())
    with np.load(tmp_path / "out" / "weights.npz") as weights:
        weights = dict(weights)
    out = printed(*command)
    assert "Checkpoint (albert_zh)" in out and "Epoch" not in out
    assert not (tmp_path / "out" / "weights.npz").exists()
    for weight in AlbertPretrainer.from_checkpoint(tmp_path / "out").weights:
        assert np.array_equal(weight, weights[weight.path])


@pytest.mark.slow
def test_a_full_disk_loses_nothing_and_another_layout_resumes(
    folder, records, tmp_path, monkeypatch
):
    def full(*args, **kwargs):
        raise OSError("No space left on device")

    changes = {"config": folder / "config.json", "to": "keras"}
    with monkeypatch.context() as patch:
        patch.setattr(Saving, "write_into", full)
        command = [str(x) for x in options(records, tmp_path / "out", **changes)]
        with pytest.raises(OSError, match="No space"):
            run(*command)
    # Another spelling of the path, another layout, dev.
    del changes["to"]
    spelled = records / ".." / records.name
    out = printed(*options(spelled, tmp_path / "out", **changes, dev=spelled))
    assert "Checkpoint (albert_zh)" in out
    history = json.loads((tmp_path / "out" / "history.json").read_text())
    assert len(history["history"]["loss"]) == 2
    out = refused(*options(records, tmp_path / "out", **changes, **{"steps": 8}))
    assert "holds a finished training" in out and "--checkpoint" in out


@pytest.mark.slow
def test_a_stage_on_labelled_files(folder, records, tmp_path):
    lines = ["label\ttext"] + ["好评\t天气很好", "差评\t明天下雨"] * 20
    (tmp_path / "a.tsv").write_text("\n".join(lines), "utf-8")
    workbook = openpyxl.Workbook()
    workbook.active.append(["another", "sheet"])
    sheet = workbook.create_sheet("评论")
    rows = [("差评", "可能下雨"), ("好评", "公园很好")] * 20
    for row in [("label", "text"), *rows]:
        sheet.append(row)
    workbook.save(tmp_path / "b.xlsx")
    (tmp_path / "c.txt").write_text("我 O\n去 O\n公 B-LOC\n园 I-LOC\n\n" * 20, "utf-8")
    vocabulary = ("--vocab", folder / "vocab.txt", "--sequence-length", 32)
    names = "a.tsv", "b.xlsx"
    files = [f"sentiment:text-classification={tmp_path / x}" for x in names]
    files.append(f"places:token-classification={tmp_path / 'c.txt'}")
    labelled = [part for file in files for part in ("--labelled", file)]
    rest = ("--output", tmp_path / "data", "--sheet", "评论")
    command = ("pretrain-data", *labelled, *vocabulary, *rest)
    out = printed(*command)
    assert "sentiment (text-classification): 好评, 差评" in out
    assert "places (token-classification): LOC" in out and "sets 3" in out
    changes = {"config": folder / "config.json", "labelled": tmp_path / "data"}
    command = options(records, tmp_path / "out", **changes)
    assert "100 labelled texts in" in printed(*command)
    opened = open_checkpoint(tmp_path / "out")
    assert opened.named_heads == ["sentiment", "places"]
    assert not list((tmp_path / "out").glob("heads.*"))
    view = opened.with_head("sentiment")
    assert view.head_config("classifier")["labels"] == ["好评", "差评"]
    assert opened.with_head("places").num_classes("token_classifier") == 3
    assert AlbertPretrainer.from_checkpoint(tmp_path / "out").backbone.num_layers == 1
    history = json.loads((tmp_path / "out" / "history.json").read_text())["history"]
    assert len(history["tags_loss"]) == 2


def test_labelled_files_and_options_that_do_not_fit(records, tmp_path):
    rest = ("--vocab", records / "vocab.txt", "--output", tmp_path / "x")
    assert "Give --input for text, or --labelled" in refused("pretrain-data", *rest)
    for name in ("a=b.tsv", "a:multi-label=b.tsv", "a:regression="):
        error = refused("pretrain-data", "--labelled", name, *rest)
        assert "must be NAME:TASK=FILE" in error and f"Received: {name}" in error
    command = ("pretrain-data", "--labelled", "a:regression=b.tsv", *rest)
    assert "--order: only for text without labels" in refused(
        *command, "--order", "sop"
    )
    (tmp_path / "b.tsv").write_text("label\ttext\n1\t好\n", "utf-8")
    command = ("pretrain-data", "--labelled", f"a:regression={tmp_path / 'b.tsv'}")
    error = refused(*command, *rest, "--sheet", "评论")
    assert "No file is a workbook of sheets. Leave out --sheet" in error
    changes = {"config": "albert_tiny_zh", "labelled": records}
    command = options(records, tmp_path / "out", **changes)
    assert "holds text without labels" in refused(*command)
    error = refused(*options(records, tmp_path / "out", **changes, dev=records))
    assert "--labelled trains on one host and without --dev" in error
    error = refused(*options(records, tmp_path / "out", **changes, to="keras"))
    assert "--labelled writes several heads, for which --to keras has no place" in error
