"""Random histories of a model: trained, killed, resumed, replaced, exported, moved.

Whatever happened before, an answer is that of the weights and of the vocabulary in the
folder that was asked; a resumed run ends as an uninterrupted one; and what is refused
says why in one line.
"""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import warnings
from unittest import mock

import hypothesis
import numpy as np
import pytest
from command_line import refused, run, write_start
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from lite_tasks import needs_litert, needs_onnx
from memory import release_models, resident_bytes
from small_classifier import VOCABULARY

import albert_tf
from albert_tf.locks import only_writer
from albert_tf.training.run_state import TrainingState
from albert_tf_cli.tasks import blocks
from albert_tf_lite.errors import AlbertError

pytestmark = [needs_onnx, needs_litert]
# A test of ten minutes is taken for one that hangs.
MINUTES, PARTS = 10, 4
TEXTS = ["很好吃", "太差了", "不好", "我想你来吧", "好", "天地人大小", "吃鸡蛋吗？"]
ROWS = ["label\ttext", "1\t很好吃", "0\t太差了", "1\t好，很好", "0\t不好"]
ROWS += ["1\t我想你来", "0\t差，不来了", "1\t好吃！", "0\t太坏了"]
# Versions of the file to train on: whole, with a changed label, cut in its last row.
TRAIN = ["\n".join(ROWS) + "\n"]
TRAIN += [TRAIN[0].replace("1\t好吃", "0\t好吃"), TRAIN[0][:-2]]
# Versions of the vocabulary: two tokens change places.
FIRST, SECOND = (VOCABULARY.index(x) for x in "好差")
SWAPPED = [*VOCABULARY]
SWAPPED[FIRST], SWAPPED[SECOND] = SWAPPED[SECOND], SWAPPED[FIRST]
VOCABULARIES = ["\n".join(x) + "\n" for x in (VOCABULARY, SWAPPED)]
LAYOUTS = ("albert_zh", "keras")


class Killed(BaseException):
    """Ends a command at once."""


@contextlib.contextmanager
def killed_at(place, number):
    """Kill what runs in the block at the n-th call of a function, if it gets there."""
    calls = 0

    def counted(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == number:
            if place == "signal":
                signal.raise_signal(signal.SIGINT)
            else:
                raise Killed
        return function(*arguments, **options)

    owner, name = PLACES[place]
    function = getattr(owner, name)
    with mock.patch.object(owner, name, counted):
        yield


# Functions at whose calls a command is killed. A module of a command has the name of
# its function.
PLACES = {
    "block": (sys.modules["albert_tf_cli.commands.predict"], "append"),
    "signal": (TrainingState, "on_train_batch_end"),
    "step": (TrainingState, "on_train_batch_end"),
    "replace": (os, "replace"),
    "unlink": (pathlib.Path, "unlink"),
}


def command_of(root, folder, seed):
    """Return the command that trains."""
    return (
        *("finetune", "--train", root / "train.tsv", "--dev", root / "dev.tsv"),
        *("--config", root / "size.json", "--vocab", root / "vocab.txt"),
        *("--output", folder, "--epochs", 2, "--batch-size", 4, "--seed", seed),
        *("--learning-rate", 0.01, "--overwrite"),
    )


def write_inputs(root, train, vocabulary):
    write_start(root)
    (root / "train.tsv").write_text(train, "utf-8")
    (root / "dev.tsv").write_text(TRAIN[0], "utf-8")
    (root / "vocab.txt").write_text(vocabulary, "utf-8")


def weights_of(folder):
    task = albert_tf.models.AlbertTextClassifier.from_preset(str(folder))
    return [*task.get_weights(), np.float32(task.temperature)]


def keras_answers(folder):
    """Return label and score for each text, by TensorFlow."""
    answers = albert_tf.pipeline("text-classification", str(folder), verbose=0)(TEXTS)
    return [(x["label"], x["score"]) for x in answers]


@functools.cache
def uninterrupted(train, vocabulary, seed):
    """Return the weights and the answers of an uninterrupted training."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        write_inputs(root, train, vocabulary)
        run(*command_of(root, root / "model", seed))
        return weights_of(root / "model"), keras_answers(root / "model")


def assert_same_answers(found, expected):
    assert [label for label, _ in found] == [label for label, _ in expected]
    scores = [[score for _, score in x] for x in (found, expected)]
    np.testing.assert_allclose(*scores, atol=2e-4)


@pytest.mark.filterwarnings("ignore")
class Histories(RuleBasedStateMachine):
    """A folder `model`, what was trained into it, and files that were made of it."""

    count = 0

    def __init__(self):
        super().__init__()
        type(self).count += 1
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.folder = self.root / "model"
        self.train, self.vocabulary = TRAIN[0], VOCABULARIES[0]
        self.finished = None  # The (train, vocabulary, seed) whose weights it holds.
        self.unfinished = None  # That of a training to resume.
        self.is_edited = False  # Whether its vocabulary is another than in training.
        self.copies = {}  # Exported and converted files, with their answers.
        self.pending = None  # The model and the answers of an unfinished output.
        write_inputs(self.root, self.train, self.vocabulary)
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")

    def teardown(self):
        self._warnings.__exit__(None, None, None)
        shutil.rmtree(self.root)
        if resident_bytes() > 2e9:
            release_models()

    # === Training ===

    def run_training(self, key):
        """Run a training to its end, or see that it is refused because of another."""
        command = command_of(self.root, self.folder, key[2])
        state = self.folder / ".training" / "epochs.json"
        if state.exists() and self.unfinished not in (None, key):
            assert "another training" in refused(*command)
            # As the message says.
            shutil.rmtree(state.parent)
        run(*command)
        self.set_finished(key)
        assert not (self.folder / ".training").exists()

    def set_finished(self, key):
        self.finished, self.unfinished, self.is_edited = key, None, False
        weights, answers = uninterrupted(*key)
        for found, expected in zip(weights_of(self.folder), weights, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-5)
        assert_same_answers(keras_answers(self.folder), answers)

    @initialize(seed=st.integers(0, 1))
    def start(self, seed):
        self.run_training((self.train, self.vocabulary, seed))

    @rule(seed=st.integers(0, 1))
    def train_again(self, seed):
        self.run_training((self.train, self.vocabulary, seed))

    @rule(
        seed=st.integers(0, 1),
        place=st.sampled_from(["signal", "step", "replace", "unlink"]),
        number=st.integers(1, 14),
    )
    def kill(self, seed, place, number):
        key = (self.train, self.vocabulary, seed)
        if self.unfinished not in (None, key):
            return
        try:
            with killed_at(place, number):
                run(*command_of(self.root, self.folder, seed))
        except (Killed, KeyboardInterrupt, SystemExit):
            self.unfinished = key
            self.see_what_the_folder_holds(key)
            return
        self.set_finished(key)

    def see_what_the_folder_holds(self, key):
        """After a kill, the folder holds the old weights or the new ones, whole."""
        try:
            answers = keras_answers(self.folder)
        except (AlbertError, OSError):
            # Its files were being replaced.
            self.finished = None
            return
        candidates = [key] if self.is_edited else [key, self.finished]
        for candidate in filter(None, candidates):
            with contextlib.suppress(AssertionError):
                assert_same_answers(answers, uninterrupted(*candidate)[1])
                self.finished, self.is_edited = candidate, False
                return
        assert self.is_edited, "the folder holds neither the old nor the new weights"

    @precondition(lambda self: self.unfinished)
    @rule()
    def resume(self):
        key = (self.train, self.vocabulary, self.unfinished[2])
        self.run_training(key)

    @precondition(lambda self: self.unfinished is None)
    @rule(seed=st.integers(0, 1))
    def two_processes(self, seed):
        state = self.folder / ".training"
        state.mkdir()
        with only_writer(state):
            line = refused(*command_of(self.root, self.folder, seed))
        assert "Another process is writing" in line
        shutil.rmtree(state)

    # === Inputs ===

    @rule(version=st.integers(0, 2))
    def change_examples(self, version):
        self.train = TRAIN[version]
        (self.root / "train.tsv").write_text(self.train, "utf-8")

    @rule(version=st.integers(0, 1))
    def change_vocabulary(self, version):
        self.vocabulary = VOCABULARIES[version]
        (self.root / "vocab.txt").write_text(self.vocabulary, "utf-8")

    @precondition(lambda self: self.finished)
    @rule()
    def change_vocabulary_of_the_model(self):
        (file,) = self.folder.glob("assets/tokenizer/*.txt")
        tokens = file.read_text("utf-8").splitlines()
        tokens[FIRST], tokens[SECOND] = tokens[SECOND], tokens[FIRST]
        file.write_text("\n".join(tokens) + "\n", "utf-8")
        self.is_edited = True

    @rule()
    def rename(self):
        self.folder = self.folder.rename(self.root / f"model-{time.monotonic_ns()}")

    # === Answers ===

    def expected(self):
        if self.is_edited:
            return keras_answers(self.folder)
        return uninterrupted(*self.finished)[1]

    def answers_of(self, model, *options):
        done = run("predict", model, *TEXTS, "--json", *options)
        lines = [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]
        return [(x["label"], x["score"]) for x in lines]

    @rule(precision=st.sampled_from([(), ("--precision", "float32")]))
    def predict(self, precision):
        if self.finished is None:
            refused("predict", self.folder, *TEXTS, *precision)
            return
        found = self.answers_of(self.folder, *precision)
        assert_same_answers(found, self.expected())

    @precondition(lambda self: self.finished)
    @rule(suffix=st.sampled_from(["onnx", "onnx", "onnx", "tflite"]))
    def export(self, suffix):
        path = self.root / f"exported-{len(self.copies)}.{suffix}"
        run("export", self.folder, path)
        self.copies[path] = self.expected()

    @precondition(lambda self: self.finished)
    @rule(layout=st.sampled_from(LAYOUTS))
    def convert(self, layout):
        path = self.root / f"converted-{len(self.copies)}"
        run("convert", self.folder, path, "--to", layout)
        self.copies[path] = self.expected()

    @precondition(lambda self: self.copies)
    @rule(data=st.data())
    def predict_by_a_copy(self, data):
        path = data.draw(st.sampled_from(sorted(self.copies)))
        assert_same_answers(self.answers_of(path), self.copies[path])

    @precondition(lambda self: self.finished)
    @rule(number=st.integers(1, 4))
    def predict_a_file(self, number):
        """Answer a file in blocks of three; the run may be killed in between."""
        expected, output = self.expected(), self.root / "found.jsonl"
        (self.root / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
        command = ("predict", self.folder, self.root / "texts.txt", "--output", output)
        with mock.patch.object(blocks, "BLOCK", 3):
            if self.pending not in (None, expected):
                assert "holds the answers of an unfinished run" in refused(*command)
                (self.root / ".found.jsonl.answers").unlink()
            self.pending = None
            try:
                with killed_at("block", number):
                    run(*command, "--workers", 1)
            except Killed:
                journal = self.root / ".found.jsonl.answers"
                self.pending = expected if journal.exists() else None
                return
        rows = [json.loads(x) for x in output.read_text("utf-8").splitlines()]
        output.unlink()
        assert [x["text"] for x in rows] == TEXTS
        assert_same_answers([(x["label"], x["score"]) for x in rows], expected)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_minutes_of_histories(part):
    seed = int(os.environ.get("ALBERT_TF_SEED", time.time()))
    end = time.monotonic() + 60 * MINUTES / PARTS
    print(f"ALBERT_TF_SEED={seed}")
    while time.monotonic() < end:
        run_state_machine_as_test(
            hypothesis.seed(seed)(Histories),
            settings=settings(
                max_examples=3,
                stateful_step_count=8,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        seed += 1
    print(f"{Histories.count} histories")
