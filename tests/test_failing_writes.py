"""Every writer, with each of its changes of files failing in turn.

After each failure the old result or the new one is whole, nothing else is left, the
error is one line with the path and what to do, and the same call then succeeds.
"""

import errno
import functools
import itertools
import json
import os
import pathlib
import tempfile
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from unittest import mock

import keras
import pytest
from archives import zipped
from checkpoint_files import GOLDEN
from command_line import CONFIG, run
from failing_files import Sweep
from lite_tasks import needs_onnx
from processes import run_python
from small_classifier import TEXTS, small_classifier
from small_corpus import write_corpus, write_vocabulary

import albert_tf
from albert_tf.checkpoints import RELEASES, config_arguments
from albert_tf.checkpoints.download import download_release
from albert_tf.checkpoints.releases import Release
from albert_tf.export import litert_files
from albert_tf.files import file_digest
from albert_tf.training import run_state
from albert_tf_cli.shared.error_report import write_report

LABELS = ["坏", "中", "好"]


@functools.cache
def classifier(seed, order="after"):
    """The classifier of the old result (seed 0) or the new one (seed 1)."""
    sizes = {"embedding_projection": f"{order}_layer_norm"}
    return small_classifier(labels=LABELS, seed=seed, sizes=sizes)


class Writer(NamedTuple):
    """A function of a seed and a path.

    `is_new_only` is true if it refuses to replace a result. `library` is the one that
    writes its files if that is not Python. `kept` is a pattern of what an interrupted
    run keeps, to resume from it. Each change of a file fails, or each `step`-th where a
    run takes long.
    """

    write: Callable
    is_new_only: bool = False
    library: str | None = None
    kept: str = "(?!)"
    step: int = 1


# === Models ===


def checkpoint(layout, seed, out):
    task = classifier(seed, "before" if layout == "albert_zh" else "after")
    # Keras numbers the models of a process in its files.
    keras.utils.clear_session(free_memory=False)
    # KerasHub's classifiers keep no labels.
    model = task.backbone if layout == "kerashub" else task
    albert_tf.save_checkpoint(model, out, layout=layout)


def preset(seed, out):
    classifier(seed).save_to_preset(str(out))


def keras_file(seed, out):
    classifier(seed).save(out.with_suffix(".keras"))


def weights_file(seed, out):
    classifier(seed).save_weights(out.with_suffix(".weights.h5"))


def exported(name, suffix, seed, out, **options):
    write = getattr(albert_tf.export, name)
    write(classifier(seed), out.with_suffix(suffix), **options)


def litert(seed, out):
    # The conversion writes no files of ours.
    network = mock.patch.object(litert_files, "_convert", lambda *_: bytes([seed]) * 99)
    with network:
        exported("litert", ".tflite", seed, out, lengths=[8])


def saved_model(seed, out):
    albert_tf.export.saved_model(classifier(seed), out)


def new_version(seed, out):
    albert_tf.export.saved_model(classifier(seed), out, version="next")


def transformers_js(seed, out):
    albert_tf.export.transformers_js(classifier(seed), out)


def state(seed, out):
    """The state of a training, after one epoch or two."""
    if not out.exists():
        MKDIR(out)
    task = classifier(seed)
    callback = run_state.TrainingState(out)
    callback.set_model(task)
    callback.history = {"loss": [0.5] * (1 + seed)}
    callback.write()


def download(seed, out):
    folder = GOLDEN / "google_early"
    names = ("model.ckpt-best.index", "model.ckpt-best.data-00000-of-00001")
    release = Release(
        name="golden",
        language="zh",
        layout="google",
        arguments=config_arguments(folder / "albert_config.json"),
        vocabulary="vocab.txt",
        lowercase=True,
        url="https://models.example.com/golden.zip",
        index_sha256=file_digest(folder / names[0]),
    )
    if not out.exists():
        # An archive that a person put there.
        MKDIR(out)
        content = zipped({f"model/{x}": (folder / x).read_bytes() for x in names})
        with OPEN(out / "golden.zip", "wb") as file:
            file.write(content)
    changed = {"ALBERT_TF_CACHE": str(out)}
    with (
        mock.patch.dict(RELEASES, golden=release),
        mock.patch.dict(os.environ, changed),
    ):
        download_release("golden")


# Those that never fail.
MKDIR, OPEN = os.mkdir, open


# === Commands ===


@functools.cache
def inputs():
    """Files that commands read, in a folder of this process."""
    folder = pathlib.Path(tempfile.mkdtemp())
    for seed in (0, 1):
        checkpoint("google", seed, folder / f"model{seed}")
        rows = [f"{LABELS[i % 3]}\t{x or '一'}" for i, x in enumerate(TEXTS * 3)]
        lines = ["label\ttext", *rows[seed:]]
        (folder / f"train{seed}.tsv").write_text("\n".join(lines), "utf-8")
        write_corpus(folder / f"corpus{seed}.txt", documents=20 + seed)
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": 60}))
    write_vocabulary(folder / "vocab.txt", 60)
    return folder


def convert(seed, out):
    options = ("--to", "google", "--overwrite")
    run("convert", inputs() / f"model{seed}", out, *options)


def prune(seed, out):
    corpus = ("--corpus", inputs() / "train0.tsv")
    options = (*corpus, "--to", "google", "--overwrite")
    run("prune", inputs() / f"model{seed}", out, *options)


def pretrain_data(seed, out):
    text = inputs() / "corpus.txt"
    # The same file with other text.
    with OPEN(text, "wb") as file:
        file.write((inputs() / f"corpus{seed}.txt").read_bytes())
    files = ("--input", text, "--vocab", inputs() / "vocab.txt", "--output", out)
    run("pretrain-data", *files, "--sequence-length", 32, "--workers", 1)


def labelled_data(seed, out):
    file = inputs() / "train0.tsv"
    files = ("--labelled", f"mood:text-classification={file}", "--output", out)
    vocabulary = ("--vocab", inputs() / "vocab.txt", "--sequence-length", 32)
    run("pretrain-data", *files, *vocabulary)


def finetune(seed, out):
    # Keras numbers the models of a process in its files.
    keras.utils.clear_session(free_memory=False)
    start = ("--config", inputs() / "config.json", "--vocab", inputs() / "vocab.txt")
    train = ("--train", inputs() / f"train{seed}.tsv", "--epochs", 1, *start)
    run("finetune", *train, "--output", out, "--overwrite")


def pretrain(seed, out, *more):
    records = inputs() / "records"
    if not records.exists():
        pretrain_data(0, records)
    start = ("--config", inputs() / "config.json", "--data", records)
    options = ("--steps", 2, "--batch-tokens", 256, *more)
    run("pretrain", *start, "--output", out, *options)


def pretrain_labelled(seed, out):
    labelled = inputs() / "labelled"
    if not labelled.exists():
        labelled_data(0, labelled)
    pretrain(seed, out, "--labelled", labelled)


@functools.cache
def answering_model():
    folder = inputs() / "answering"
    classifier(0).save_to_preset(folder)
    albert_tf.export.onnx(classifier(0), folder / "model.onnx", preset=folder)
    return folder


def predict(suffix, seed, out):
    file = inputs() / f"train{seed}.tsv"
    files = (answering_model(), file, "--output", out.with_suffix(suffix))
    run("predict", *files, "--workers", 1)


def report(seed, out):
    write_report(str(out), f"Report {seed}", {"accuracy": 0.5}, [{"text": "好"}])


# What an interrupted run keeps.
STATE = r"^out/(\.training|heads\.\w+)(/|$)|^out$"
SHARDS = r"^out/(pretrain-[^/]*|manifest.json|vocab.txt)(/|$)|^out$"
ANSWERS = r"\.answers$"
# The state is removed when these are written beside the model.
FINETUNED = rf"{STATE}|^out/(metrics.json|history.png|model.onnx|README.md)$"
WRITERS = {
    "checkpoint google": Writer(partial(checkpoint, "google"), library="C++"),
    "checkpoint albert_zh": Writer(partial(checkpoint, "albert_zh"), library="C++"),
    "checkpoint huggingface": Writer(partial(checkpoint, "huggingface"), library="C++"),
    "checkpoint kerashub": Writer(
        partial(checkpoint, "kerashub"), is_new_only=True, library="HDF5"
    ),
    "checkpoint keras": Writer(
        partial(checkpoint, "keras"), is_new_only=True, library="HDF5"
    ),
    "preset": Writer(preset, library="HDF5"),
    ".keras": Writer(keras_file),
    ".weights.h5": Writer(weights_file, library="HDF5"),
    "onnx": Writer(partial(exported, "onnx", ".onnx")),
    "litert": Writer(litert),
    "saved model": Writer(saved_model, library="C++"),
    "version of a saved model": Writer(new_version, is_new_only=True, library="C++"),
    "transformers_js": Writer(transformers_js),
    "state": Writer(state, library="HDF5", kept="^out$|epoch-2-step"),
    "download": Writer(download, is_new_only=True, kept="^out$|golden.zip$"),
    "convert": Writer(convert, step=3),
    "prune": Writer(prune, step=3),
    "pretrain-data": Writer(pretrain_data, kept=SHARDS),
    "pretrain-data --labelled": Writer(labelled_data, kept=SHARDS),
    "finetune": Writer(finetune, library="HDF5", kept=FINETUNED, step=5),
    "pretrain": Writer(pretrain, is_new_only=True, kept=STATE, step=5),
    "pretrain --labelled": Writer(
        pretrain_labelled, is_new_only=True, kept=STATE, step=5
    ),
    "predict .csv": Writer(partial(predict, ".csv"), is_new_only=True, kept=ANSWERS),
    "predict .parquet": Writer(
        partial(predict, ".parquet"), is_new_only=True, library="C++", kept=ANSWERS
    ),
    "report": Writer(report),
}
# Once without space or permission, or without space from then on.
FAILURES = {
    "once": (errno.ENOSPC, False),
    "denied": (errno.EACCES, False),
    "full": (errno.ENOSPC, True),
}
# What takes less than two seconds.
QUICK = {
    ("checkpoint albert_zh", True, "once"),
    ("litert", True, "once"),
    ("report", True, "denied"),
}
PLACES = [
    pytest.param(
        *place,
        marks=[] if place in QUICK else pytest.mark.nightly,
        id=f"{place[0]}, {'over another' if place[1] else 'new'}, {place[2]}",
    )
    for place in itertools.product(WRITERS, (False, True), FAILURES)
    if not (place[1] and WRITERS[place[0]].is_new_only)
]
NATIVE = [
    (name, is_over)
    for name, writer in WRITERS.items()
    for is_over in (False, True)
    if writer.library and not (is_over and writer.is_new_only)
]


def sweep_of(name, is_over):
    writer = WRITERS[name]
    old = partial(writer.write, 0) if is_over else None
    return Sweep(partial(writer.write, 1), old, writer.kept)


@needs_onnx
@pytest.mark.parametrize(("name", "is_over", "kind"), PLACES)
def test_a_failure_leaves_the_old_result_or_the_new_one(name, is_over, kind, tmp_path):
    sweep = sweep_of(name, is_over)
    sweep.fail_each(tmp_path, *FAILURES[kind], WRITERS[name].step)
    assert sweep.places
    assert not sweep.faults, "\n".join(sweep.faults)


LIMITED = """
import sys
import test_failing_writes
test_failing_writes.try_limits(sys.argv[1], sys.argv[2] == "True", sys.argv[3])
"""


def try_limits(name, is_over, folder):
    sweep = sweep_of(name, is_over)
    # Other libraries than HDF5 have to fail themselves.
    is_reserved = WRITERS[name].library == "HDF5"
    reserve = albert_tf.files._reserve if is_reserved else lambda *_: None
    with mock.patch.object(albert_tf.files, "_reserve", reserve):
        sweep.fail_at_sizes(folder)
    assert not sweep.faults, "\n".join(sweep.faults)


@needs_onnx
@pytest.mark.nightly
@pytest.mark.parametrize(("name", "is_over"), NATIVE)
def test_a_limit_of_the_size_of_files(name, is_over, tmp_path):
    """In another process, because HDF5 could end it."""
    pytest.importorskip("resource", reason="needs limits of Unix")
    folder = pathlib.Path(__file__).parent
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{LIMITED}"
    run_python(code, name, is_over, tmp_path)
