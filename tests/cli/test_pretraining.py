"""`albert-tf pretrain-data | pretrain`."""

import gzip
import json
import pathlib
import shutil
import subprocess
import sys

import keras
import pytest
from small_corpus import LINES, write_corpus, write_vocabulary
from typer.testing import CliRunner

import albert_tf
import albert_tf_cli
from albert_tf import conversion
from albert_tf.checkpoints import open_checkpoint
from albert_tf.models import AlbertBackbone, AlbertPretrainer

CONFIG = {
    "vocab_size": 60,
    "embedding_size": 8,
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}


def run(*command):
    return CliRunner().invoke(albert_tf_cli.app, [str(part) for part in command])


def printed(*command):
    result = run(*command)
    assert result.exception is None, result.exception
    return " ".join(result.stdout.split())


def refused(*command):
    result = run(*command)
    assert result.exit_code
    return f"{result.exception} {result.output}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretraining")
    (folder / "text").mkdir()
    write_corpus(folder / "text" / "a.txt", documents=60)
    write_vocabulary(folder / "vocab.txt", CONFIG["vocab_size"])
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def data(folder, output, *options):
    return (
        *(
            "pretrain-data",
            "--input",
            folder / "text" / "*.txt",
            "--vocab",
            folder / "vocab.txt",
        ),
        *("--output", output, "--sequence-length", 32, "--workers", 1, *options),
    )


@pytest.fixture(scope="module")
def records(folder):
    out = printed(*data(folder, folder / "records"))
    assert "documents 60" in out and "not utf8 0" in out
    assert "1 file of records is in" in out
    return folder / "records"


@pytest.mark.slow
def test_the_command_and_its_processes(folder, records, tmp_path):
    """As a user runs it: another process, which starts others."""
    command = [
        pathlib.Path(sys.executable).with_name("albert-tf"),
        *data(folder, tmp_path / "records", "--workers", 2, "--block-size", 2000),
    ]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    manifests = [
        json.loads((path / "manifest.json").read_text())
        for path in (tmp_path / "records", records)
    ]
    assert len(manifests[0]["shards"]) > 2
    counts = [x["counts"] for x in manifests]
    assert counts[0]["documents"] == counts[1]["documents"] == 60


def options(records, output, **changes):
    values = {"steps": 6, "batch-size": 8, "interval": 2, **changes}
    named = [part for name, value in values.items() for part in (f"--{name}", value)]
    return ("pretrain", "--data", records, "--output", output, *named)


@pytest.mark.parametrize(
    "changes",
    [
        {"mask-selection-rate": 0.2, "ngram": 1, "mask-selection-length": 5},
        pytest.param(
            {"optimizer": "adamw", "accumulate": 2, "steps": 4, "layout": "keras"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_from_random_weights(folder, records, tmp_path, changes):
    config = folder / "config.json"
    out = printed(*options(records, tmp_path, config=config, **changes))
    assert "step 2 of" in out and "masked tokens 0." in out and " s a step, " in out
    assert "loss.png are in" in out and not (tmp_path / ".training").exists()
    model = AlbertPretrainer.from_checkpoint(tmp_path)
    assert model.backbone.vocabulary_size == 60
    history = json.loads((tmp_path / "history.json").read_text())
    steps = changes.get("steps", 6)
    assert len(history["history"]["loss"]) == steps // 2
    assert history["settings"]["ngram"] == changes.get("ngram")
    assert history["settings"]["config"] == str(config)
    assert not {"output", "context"} & history["settings"].keys()
    assert (tmp_path / "loss.png").stat().st_size > 1000
    tokenizer = open_checkpoint(tmp_path).tokenizer()
    assert (
        tokenizer.get_vocabulary()
        == (folder / "vocab.txt").read_text().split("\n")[:-1]
    )


@pytest.mark.slow
def test_masked_records(folder, records, tmp_path):
    """They keep their masks, or are masked again by the same settings."""
    masks = ("--masked", "--mask-selection-rate", 0.1, "--ngram", 2)
    printed(*data(folder, tmp_path / "masked", *masks))
    config = {"config": folder / "config.json", "masking": "static", "steps": 2}
    out = printed(*options(tmp_path / "masked", tmp_path / "out", **config))
    assert "loss.png are in" in out
    out = refused(*options(records, tmp_path / "o", **config))
    assert "hold no masks" in out and "--masked" in out
    out = refused(*options(tmp_path / "masked", tmp_path / "o", **config, ngram=1))
    assert "ngram: --masking static keeps" in out
    assert "ngram: records hold no masks" in refused(
        *data(folder, tmp_path / "o", "--ngram", 2)
    )


@pytest.mark.slow
def test_starting_from_a_released_layout(records, tmp_path):
    model = AlbertPretrainer(
        AlbertBackbone(60, 2, 2, 8, 12, 20, max_sequence_length=32)
    )
    albert_tf.save_checkpoint(model, tmp_path / "released", layout="albert_zh")
    (tmp_path / "released" / "vocab.txt").write_bytes(
        (records / "vocab.txt").read_bytes()
    )
    dev = {
        "init": tmp_path / "released",
        "dev": records,
        "learning-rate": 0.0,
        "steps": 2,
    }
    out = printed(*options(records, tmp_path / "out", **dev))
    assert "dev loss" in out
    again = AlbertPretrainer.from_checkpoint(tmp_path / "out")
    # At a rate of 0 nothing but LAMB's sums has moved.
    for first, second in zip(model.weights, again.weights, strict=True):
        assert abs(first - second).numpy().max() < 1e-7


def test_a_checkpoint_of_another_vocabulary_is_refused(records, tmp_path):
    model = AlbertPretrainer(
        AlbertBackbone(60, 2, 2, 8, 12, 20, max_sequence_length=32)
    )
    albert_tf.save_checkpoint(model, tmp_path / "released", layout="albert_zh")
    tokens = (records / "vocab.txt").read_text(encoding="utf-8").split("\n")
    tokens[7] = "鱼"
    text = "\n".join(tokens)
    (tmp_path / "released" / "vocab.txt").write_text(text, encoding="utf-8")
    out = refused(*options(records, tmp_path / "out", init=tmp_path / "released"))
    assert "different vocabularies: token 7 is" in out and "鱼" in out
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_mixed_precision_is_written_so_that_it_can_be_read(folder, records, tmp_path):
    changes = {"config": folder / "config.json", "layout": "keras"}
    policy = keras.config.dtype_policy()
    try:
        printed(*options(records, tmp_path, **changes), "--mixed-precision")
    finally:
        keras.config.set_dtype_policy(policy)
    model = AlbertPretrainer.from_preset(str(tmp_path))
    assert model.backbone.dtype_policy.name == "float32"
    loaded = albert_tf.load_checkpoint(tmp_path)
    for first, second in zip(model.backbone.weights, loaded.weights, strict=True):
        assert abs(first - second).numpy().max() == 0


# === Before the training ===


def test_what_cannot_be_written_is_refused_first(folder, records, tmp_path):
    config = {"config": folder / "config.json"}
    out = refused(*options(records, tmp_path / "out", **config, layout="google"))
    assert "embedding_projection='before_layer_norm'" in out
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model.safetensors").touch()
    out = refused(*options(records, tmp_path / "other", **config))
    assert "holds files of another checkpoint" in out
    assert not list(tmp_path.rglob(".training"))


@pytest.mark.slow
def test_damaged_records_are_named_first(folder, records, tmp_path):
    shutil.copytree(records, tmp_path / "records")
    (file,) = (tmp_path / "records").glob("*.tfrecord")
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    config = {"config": folder / "config.json"}
    for changes in ({}, {"dev": tmp_path / "records"}):
        train = records if changes else tmp_path / "records"
        out = refused(*options(train, tmp_path / "out", **config, **changes))
        assert f"{file} is damaged" in out
    assert not list(tmp_path.rglob("*.h5"))


@pytest.mark.slow
def test_resuming_with_other_outputs(folder, records, tmp_path, monkeypatch):
    """Of a run whose checkpoint could not be written, as the layout would have it."""
    changes = {"config": folder / "config.json", "layout": "keras"}

    def full(*args, **kwargs):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(conversion, "save_checkpoint", full)
        assert "No space" in refused(*options(records, tmp_path / "out", **changes))
    # Another spelling of the path, another layout, logs, dev.
    changes = {"config": folder / "config.json", "tensorboard": tmp_path / "logs"}
    spelled = records / ".." / records.name
    out = printed(*options(spelled, tmp_path / "out", **changes, dev=spelled))
    assert "Checkpoint (albert_zh)" in out
    history = json.loads((tmp_path / "out" / "history.json").read_text())
    assert len(history["history"]["loss"]) == 3
    out = refused(*options(records, tmp_path / "out", **changes, **{"steps": 8}))
    assert "holds a finished training of 6 steps" in out and "--init" in out


@pytest.mark.slow
def test_tensorboard(folder, records, tmp_path):
    logs = tmp_path / "logs"
    changes = {"config": folder / "config.json", "tensorboard": logs}
    printed(*options(records, tmp_path / "out", **changes))
    assert list(logs.rglob("events.out.*"))


def test_tensorboard_missing(folder, records, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    changes = {"config": folder / "config.json", "tensorboard": tmp_path / "logs"}
    out = refused(*options(records, tmp_path / "out", **changes))
    assert "pip install tensorboard" in out


@pytest.mark.slow
@pytest.mark.filterwarnings("error:Gradients do not exist")
def test_one_sequence_without_order(folder, tmp_path):
    printed(*data(folder, tmp_path / "records", "--order", "none"))
    config = folder / "config.json"
    out = printed(*options(tmp_path / "records", tmp_path / "out", config=config))
    assert "masked tokens 0." in out and "order 0." not in out
    report = albert_tf.inspect_checkpoint(tmp_path / "out")
    assert report.heads == ["masked_lm_head"]
    # What a classifier begins with.
    assert albert_tf.load_checkpoint(tmp_path / "out").pooled_dense is not None


@pytest.mark.slow
def test_a_named_size_takes_the_vocabulary_of_the_records(records, tmp_path):
    changes = {"config": "albert_micro_zh", "steps": 1, "batch-size": 2}
    printed(*options(records, tmp_path, **changes))
    assert albert_tf.load_checkpoint(tmp_path).vocabulary_size == 60


def test_bad_options(folder, records, tmp_path):
    assert "Give --config" in refused(*options(records, tmp_path))
    both = {"config": "albert_tiny_zh", "init": "albert_tiny_zh"}
    assert "or --init" in refused(*options(records, tmp_path, **both))
    nothing = {"config": "nothing"}
    assert "neither a file nor a known size" in refused(
        *options(records, tmp_path, **nothing)
    )
    config = {"config": folder / "config.json"}
    assert "no records" in refused(*options(tmp_path, tmp_path, **config))
    assert "multiple of" in refused(*options(records, tmp_path, **config, steps=5))
    for seed in (-1, 2**31):
        out = refused(*options(records, tmp_path, **config, seed=seed))
        assert "'--seed'" in out
    missing = list(data(folder, tmp_path / "o"))
    missing[2] = "nowhere/*.txt"
    assert "nowhere" in refused(*missing)
    missing[2], missing[4] = folder / "text" / "a.txt", folder / "none.txt"
    assert "none.txt" in refused(*missing)
    missing[4] = folder / "vocab.txt"
    rate = ("--masked", "--mask-selection-rate", 1.5)
    assert "mask_selection_rate" in refused(*missing, *rate)
    assert "workers" in refused(*missing, "--workers", 0)
    assert "Ray cluster" in refused(*missing, "--address", "auto")
    assert not pathlib.Path(tmp_path / "o").exists()


@pytest.mark.parametrize("ending", ["jsonl.gz"])
def test_json_lines(folder, tmp_path, ending):
    lines = [json.dumps({"content": "\n".join(LINES)}) for _ in range(20)]
    lines += ['{"other": 1}', "no JSON"]
    content = "\n".join(lines).encode()
    path = tmp_path / f"a.{ending}"
    path.write_bytes(gzip.compress(content) if ending[-1] == "z" else content)
    command = list(data(folder, tmp_path / "out", "--text-field", "content"))
    command[2] = path
    out = printed(*command)
    assert "documents 20" in out and "not json 2" in out
