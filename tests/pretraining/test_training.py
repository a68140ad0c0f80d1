"""Training on records: learning, resuming, evaluation and refusals."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from made_records import LENGTH, VOCABULARY, model, write

from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.pretraining import PretrainingRecords, pretrain
from albert_tf.training import scheduled_optimizer


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "records", documents=300)


def epochs_of(out):
    """Losses of the intervals that were saved."""
    state = out / ".training" / "epochs.json"
    return json.loads(state.read_text())["history"]["loss"] if state.exists() else []


@pytest.mark.nightly
@pytest.mark.traced
def test_a_language_is_learned(tmp_path):
    dev = PretrainingRecords(write(tmp_path / "dev", 200, 1, seed=100))
    records = PretrainingRecords(write(tmp_path / "records"))
    pretrainer, masks = model(layers=4), records.masks(ngram=1)
    pretrainer.compile(scheduled_optimizer("adamw", 4e-3, 600))
    options = {"interval": 600, "dev": dev, "verbose": 0}
    done = pretrain(pretrainer, records, tmp_path / "out", 600, 64, masks, **options)
    last = {name: values[-1] for name, values in done["history"].items()}
    # A mask over both parts of a word cannot be filled: one in six or so.
    assert last["val_mlm_logits_accuracy"] > 0.6
    assert last["val_sop_logits_accuracy"] > 0.95


# === Interrupted ===


def train_with_intervals(data, out):
    """Train sixty steps that are saved each ten, and return the model."""
    pretrainer = model()
    pretrainer.compile(scheduled_optimizer("adamw", 1e-3, 60))
    pretrain(pretrainer, PretrainingRecords(data), out, 60, 16, interval=10, verbose=0)
    return pretrainer


COMMAND = "import sys; from test_training import *; train_with_intervals(*sys.argv[1:])"


@pytest.mark.slow
@pytest.mark.traced
def test_a_killed_training_ends_with_the_same_weights(data, tmp_path):
    here = pathlib.Path(__file__).parent
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(data), str(tmp_path / "cut")],
        env={**os.environ, "PYTHONPATH": f"{here}:{here.parent / 'helpers'}"},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(epochs_of(tmp_path / "cut")) < 2:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert 2 <= len(epochs_of(tmp_path / "cut")) < 6
    # Resumed by another process, this one.
    first, second = (train_with_intervals(data, tmp_path / x) for x in ("cut", "whole"))
    for a, b in zip(first.weights, second.weights, strict=True):
        assert np.abs(a.numpy() - b.numpy()).max() < 1e-6
    cut, whole = (epochs_of(tmp_path / x) for x in ("cut", "whole"))
    assert np.allclose(cut, whole) and len(cut) == 6


class Spy(keras.callbacks.Callback):
    """Record weights and the loss on dev, and send a signal at the nth step."""

    def __init__(self, step=0, number=None):
        super().__init__()
        self.left, self.number = step, number
        self.before, self.after, self.dev_loss = [], None, None

    def on_train_batch_begin(self, batch, logs=None):
        self.before.append(self.model.get_weights())
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(self.number)

    def on_train_batch_end(self, batch, logs=None):
        self.after = self.model.get_weights()

    def on_epoch_end(self, epoch, logs=None):
        self.dev_loss = logs.get("val_loss")


@pytest.mark.parametrize(
    ("step", "number"),
    [(3, signal.SIGTERM), pytest.param(2, signal.SIGINT, marks=pytest.mark.slow)],
)
def test_a_signal_saves_the_state_and_the_run_resumes(
    data, trained, tmp_path, step, number
):
    """A signal within an interval and at its end changes no weight."""
    records, out = PretrainingRecords(data), tmp_path / "out"
    handler = signal.getsignal(number)
    message = f"Interrupted at step {step} of 4. The same command resumes."
    with pytest.raises(KeyboardInterrupt, match=message):
        start(records, out, callbacks=[Spy(step, number)])
    assert signal.getsignal(number) is handler
    done, pretrainer = start(records, out)
    whole, weights = trained[2]["history"], trained[1]
    for ours, theirs in zip(pretrainer.weights, weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert done["history"].keys() == whole.keys()
    for name, values in whole.items():
        assert done["history"][name] == pytest.approx(values, rel=1e-5)


def start(
    records, out, rate=1e-3, seed=0, layers=1, ema_momentum=None, dev=None, **kwargs
):
    """Train four steps with two per interval."""
    pretrainer = model(layers=layers)
    pretrainer.compile(scheduled_optimizer("adamw", rate, 4, ema_momentum=ema_momentum))
    kwargs = {"interval": 2, "verbose": 0, "dev": dev, **kwargs}
    return pretrain(pretrainer, records, out, 4, 8, seed=seed, **kwargs), pretrainer


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """The output of a complete training, its weights, and what it returned."""
    out = tmp_path_factory.mktemp("trained")
    done, pretrainer = start(PretrainingRecords(data), out)
    return out, [weight.numpy() for weight in pretrainer.weights], done


def test_the_weights_are_averaged(tmp_path):
    # To trace masks takes longer than the training.
    folder = write(tmp_path / "records", documents=9, files=1, masked=True)
    records, recorded = PretrainingRecords(folder), Spy(3, signal.SIGTERM)
    options = {"rate": 1e-2, "ema_momentum": 0.5, "dev": records}
    # Interrupted within an interval and resumed, and started again when complete.
    with pytest.raises(KeyboardInterrupt):
        start(records, tmp_path, callbacks=[recorded], **options)
    trained = [start(records, tmp_path, callbacks=[recorded], **options)[1]]
    trained.append(start(records, tmp_path, **options)[1])
    _, average, *rest = [*recorded.before, recorded.after]
    assert len(rest) == 3
    for weights in rest:
        average = [(x + y) / 2 for x, y in zip(average, weights, strict=True)]
    assert np.abs(average[0] - rest[-1][0]).max() > 0
    for pretrainer in trained:
        for ours, expected in zip(pretrainer.get_weights(), average, strict=True):
            np.testing.assert_allclose(ours, expected, atol=1e-6)
    # Dev is evaluated with the average.
    batches = records.dataset(8, training=False)
    loss = trained[0].evaluate(batches, return_dict=True, verbose=0)["loss"]
    assert recorded.dev_loss == pytest.approx(loss, rel=1e-4)


def test_another_training_is_refused(data, trained):
    records = PretrainingRecords(data)
    for changes, differs in (
        ({"rate": 2e-3}, "learning_rate.*: 0.001, now 0.002"),
        ({"seed": 1, "layers": 2}, "model.num_layers: 1, now 2; seed: 0, now 1"),
        ({"masks": records.masks(ngram=1)}, "masks.ngram: 3, now 1"),
        ({"settings": {"init": "a"}}, "init: none, now 'a'"),
    ):
        with pytest.raises(ValueError, match=f"state of another training.*{differs}"):
            start(records, trained[0], **changes)
        assert len(epochs_of(trained[0])) == 2


# === Dev ===


@pytest.mark.slow
def test_the_loss_of_dev_is_that_of_numpy(data, tmp_path):
    folder = write(tmp_path / "dev", 40, 1, seed=100)
    # Whole batches, so that the mean over batches is that over sequences.
    file = str(folder / "0.tfrecord")
    few = [x.numpy() for x in tf.data.TFRecordDataset(file).take(24)]
    with tf.io.TFRecordWriter(file) as writer:
        for record in few:
            writer.write(record)
    dev, records = PretrainingRecords(folder), PretrainingRecords(data)
    masks = records.masks(mask_selection_rate=0.2)
    # At a rate of 0 each evaluation is of the same weights, and the same masks.
    done, pretrainer = start(records, tmp_path / "out", 0.0, masks=masks, dev=dev)
    losses = {"mlm_logits": [], "sop_logits": []}
    for x, y, weights in dev.dataset(8, masks, training=False):
        for head, logits in pretrainer(x).items():
            logits = logits.numpy().astype("float64")
            all_of = np.log(np.exp(logits).sum(-1))
            label = y[head].numpy()[..., None]
            loss = all_of - np.take_along_axis(logits, label, -1)[..., 0]
            losses[head].append((loss * weights[head].numpy()).mean())
    for head, values in losses.items():
        assert len(values) == 3
        history = done["history"][f"val_{head}_loss"]
        assert history == pytest.approx([np.mean(values)] * 2, rel=1e-4)
    total = sum(np.mean(values) for values in losses.values())
    assert done["history"]["val_loss"][-1] == pytest.approx(total, rel=1e-4)


def test_wrong_models_and_steps_raise(data, tmp_path):
    records = PretrainingRecords(data)

    def small(vocabulary_size, length):
        sizes = (vocabulary_size, 1, 2, 8, 12, 20)
        return AlbertPretrainer(AlbertBackbone(*sizes, max_sequence_length=length))

    for other, message in (
        (small(VOCABULARY, 16), "28 tokens per sequence, but the model has 16"),
        (model(num_sop_classes=3), "2 classes of sentence order, but .* has 3"),
        (small(99, LENGTH), "51 tokens in their vocabulary, but the model has 99"),
    ):
        with pytest.raises(ValueError, match=message):
            pretrain(other, records, tmp_path, 10, interval=10)
    with pytest.raises(ValueError, match="multiple of `interval`.*25, 10"):
        pretrain(model(), records, tmp_path, 25, interval=10)
    other = PretrainingRecords(write(tmp_path / "other", 9, 1))
    (other.folder / "vocab.txt").write_text(
        (other.folder / "vocab.txt").read_text().replace("\u4e03", "a")
    )
    with pytest.raises(ValueError, match="have different vocabularies"):
        start(records, tmp_path / "out", dev=other)
    assert not (tmp_path / "out").exists()
