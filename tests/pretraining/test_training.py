"""Training on records: learning, resuming, evaluation and refusals."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from made_records import LENGTH, VOCABULARY, damage, model, write, write_manifest

from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.pretraining import PretrainingRecords, pretrain, pretraining_optimizer


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "records", documents=300)


def epochs_of(out):
    """Losses of the intervals that were saved."""
    state = out / ".training" / "epochs.json"
    return json.loads(state.read_text())["history"]["loss"] if state.exists() else []


# === It learns ===


@pytest.mark.nightly
@pytest.mark.traced
def test_a_language_is_learned(tmp_path):
    data = write(tmp_path / "records")
    dev = write(tmp_path / "dev", 200, 1, seed=100)
    pretrainer = model(layers=4)
    pretrainer.compile(pretraining_optimizer("adamw", 4e-3, 600))
    records = PretrainingRecords(data)
    done = pretrain(
        pretrainer,
        records,
        tmp_path / "out",
        600,
        64,
        records.masks(ngram=1),
        interval=600,
        dev=PretrainingRecords(dev),
        verbose=0,
    )
    last = {name: values[-1] for name, values in done["history"].items()}
    # A mask over both parts of a word cannot be filled: one in six or so.
    assert last["val_mlm_logits_accuracy"] > 0.6
    assert last["val_sop_logits_accuracy"] > 0.95


@pytest.mark.slow
@pytest.mark.traced
def test_lamb_learns(data, tmp_path):
    records = PretrainingRecords(data)
    pretrainer = model(layers=1)
    pretrainer.compile(pretraining_optimizer("lamb", 1e-2, 120, accumulate=2))
    done = pretrain(
        pretrainer, records, tmp_path / "out", 120, 32, interval=60, verbose=0
    )
    first, last = done["history"]["loss"]
    assert last < first - 0.1


def test_the_learning_rate_lasts_to_the_end():
    accumulate = 4
    optimizer = pretraining_optimizer("adamw", 0.1, 40, accumulate=accumulate)
    variable = keras.Variable(np.ones(3, "float32"))
    optimizer.build([variable])
    moved = []
    for batch in range(40):
        before = variable.numpy()
        optimizer.apply([keras.ops.ones(3)], [variable])
        if np.abs(variable.numpy() - before).max() > 1e-7:
            moved.append(batch + 1)
    assert moved == list(range(accumulate, 41, accumulate))


# === Interrupted ===


def train_with_intervals(data, out):
    """Train sixty steps that are saved each ten, and return the model."""
    pretrainer = model()
    pretrainer.compile(pretraining_optimizer("adamw", 1e-3, 60))
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


class TellsToEnd(keras.callbacks.Callback):
    """Send the process a signal while it trains its nth step."""

    def __init__(self, step, number):
        super().__init__()
        self.left, self.number = step, number

    def on_train_batch_begin(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(self.number)


@pytest.mark.parametrize(
    ("step", "number"),
    [(3, signal.SIGTERM), pytest.param(2, signal.SIGINT, marks=pytest.mark.slow)],
)
def test_a_training_told_to_end_saves_and_is_resumed(
    data, trained, tmp_path, step, number
):
    """A signal within an interval and at its end changes no weight."""
    records, out = PretrainingRecords(data), tmp_path / "out"
    handler = signal.getsignal(number)
    message = f"Interrupted at step {step} of 4. The same command resumes."
    with pytest.raises(KeyboardInterrupt, match=message):
        start(records, out, callbacks=[TellsToEnd(step, number)])
    assert signal.getsignal(number) is handler
    done, pretrainer = start(records, out)
    whole, weights = trained[2]["history"], trained[1]
    for ours, theirs in zip(pretrainer.weights, weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert done["history"].keys() == whole.keys()
    for name, values in whole.items():
        assert done["history"][name] == pytest.approx(values, rel=1e-5)


def start(
    records,
    out,
    rate=1e-3,
    optimizer="adamw",
    seed=0,
    layers=1,
    weight_average=None,
    **kwargs,
):
    """Train four steps with two per interval."""
    pretrainer = model(layers=layers)
    pretrainer.compile(
        pretraining_optimizer(optimizer, rate, 4, weight_average=weight_average)
    )
    kwargs = {"interval": 2, "verbose": 0, **kwargs}
    done = pretrain(pretrainer, records, out, 4, 8, seed=seed, **kwargs)
    return done, pretrainer


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """The output of a complete training, its weights, and what it returned."""
    out = tmp_path_factory.mktemp("trained")
    done, pretrainer = start(PretrainingRecords(data), out)
    return out, [weight.numpy() for weight in pretrainer.weights], done


class Weights(keras.callbacks.Callback):
    """Record the weights after each step, and the loss on dev."""

    def __init__(self):
        super().__init__()
        self.after, self.dev = [], []

    def on_train_batch_end(self, batch, logs=None):
        self.after.append(self.model.get_weights())

    def on_epoch_end(self, epoch, logs=None):
        self.dev.append(logs["val_loss"])


def test_the_weights_are_averaged(data, tmp_path):
    records, recorded = PretrainingRecords(data), Weights()
    dev = PretrainingRecords(write(tmp_path / "dev", 9, 1, seed=100))
    options = {"rate": 1e-2, "weight_average": 0.5, "dev": dev}
    _, pretrainer = start(records, tmp_path / "whole", callbacks=[recorded], **options)
    first, *rest = recorded.after
    average = first
    for weights in rest:
        average = [(x + y) / 2 for x, y in zip(average, weights, strict=True)]
    for ours, expected in zip(pretrainer.get_weights(), average, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)
    assert max(np.abs(x - y).max() for x, y in zip(average, rest[-1], strict=True)) > 0
    # Dev is evaluated with the average.
    batches = dev.dataset(8, records.masks(), training=False)
    loss = pretrainer.evaluate(batches, return_dict=True, verbose=0)["loss"]
    assert recorded.dev[-1] == pytest.approx(loss, rel=1e-4)
    # Interrupted within an interval and resumed, and given again when complete.
    with pytest.raises(KeyboardInterrupt):
        end = TellsToEnd(3, signal.SIGTERM)
        start(records, tmp_path / "cut", callbacks=[end], **options)
    for _ in range(2):
        _, resumed = start(records, tmp_path / "cut", **options)
        for ours, expected in zip(resumed.get_weights(), average, strict=True):
            np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_a_complete_training_gives_its_weights_again(data, trained, tmp_path):
    """Nothing is trained again, also from another place, with dev and logs."""
    moved = PretrainingRecords(shutil.copytree(data, tmp_path / "moved"))
    dev = PretrainingRecords(write(tmp_path / "dev", 9, 1, seed=100))
    seen = []
    logs = keras.callbacks.LambdaCallback(on_epoch_begin=lambda *x: seen.append(x))
    out, weights, _ = trained
    done, loaded = start(moved, out, dev=dev, callbacks=[logs])
    assert done["history"]["loss"] == epochs_of(out) and not seen
    for first, again in zip(weights, loaded.weights, strict=True):
        assert np.array_equal(first, again.numpy())


def test_another_training_is_refused(data, trained, tmp_path):
    records = PretrainingRecords(data)
    for changes, differs in (
        ({"rate": 2e-3}, "learning_rate.*: 0.001, now 0.002"),
        ({"optimizer": "lamb"}, "optimizer.class_name: 'AdamW', now 'Lamb'"),
        ({"seed": 1, "layers": 2}, "model.num_layers: 1, now 2; seed: 0, now 1"),
        ({"num_shards": 2, "interval": 1}, "interval: 2, now 1; num_shards: 1, now 2"),
        ({"masks": records.masks(ngram=1)}, "masks.ngram: 3, now 1"),
        ({"settings": {"init": "a"}}, "init: none, now 'a'"),
    ):
        with pytest.raises(ValueError, match=f"state of another training.*{differs}"):
            start(records, trained[0], **changes)
        assert len(epochs_of(trained[0])) == 2
    folder = write_manifest(write(tmp_path / "records", documents=280))
    with pytest.raises(ValueError, match="another training.*records.0.tfrecord: "):
        start(PretrainingRecords(folder), trained[0])


# === Dev ===


@pytest.mark.slow
def test_the_loss_of_dev_is_that_of_numpy(data, tmp_path):
    # Whole batches, so that the mean over batches is that over sequences.
    folder = write(tmp_path / "dev", 40, 1, seed=100)
    file = folder / "0.tfrecord"
    few = [x.numpy() for x in tf.data.TFRecordDataset(str(file)).take(24)]
    with tf.io.TFRecordWriter(str(file)) as writer:
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


def test_dev_that_does_not_fit(data, tmp_path):
    records = PretrainingRecords(data)
    three = write_manifest(write(tmp_path / "three", 9, 1), order="three_way")
    with pytest.raises(ValueError, match="three have 3 classes"):
        start(records, tmp_path / "out", dev=PretrainingRecords(three))
    other = write(tmp_path / "other", 9, 1)
    text = (other / "vocab.txt").read_text()
    (other / "vocab.txt").write_text(text.replace("\u4e03", "a"))
    with pytest.raises(ValueError, match="token 8 is 'a' in the first, '\u4e03'"):
        start(records, tmp_path / "out", dev=PretrainingRecords(other))
    assert not (tmp_path / "out").exists()


# === Refused ===


def test_a_damaged_record_is_named(data, tmp_path):
    dev = write(tmp_path / "dev", 20, 1)
    damage(dev / "0.tfrecord")
    records, out = PretrainingRecords(data), tmp_path / "out"
    with pytest.raises(ValueError, match="0.tfrecord is damaged") as error:
        start(records, out, dev=PretrainingRecords(dev))
    assert "\n" not in str(error.value)


def test_the_choices_of_steps(data, tmp_path):
    records = PretrainingRecords(data)
    for steps, interval in ((2500, 1000), (0, 1)):
        message = f"multiple of .*{steps}, {interval}"
        with pytest.raises(ValueError, match=message):
            pretrain(model(), records, tmp_path, steps, interval=interval)


def test_a_model_that_does_not_fit(data, tmp_path):
    records = PretrainingRecords(data)

    def small(vocabulary_size, max_sequence_length):
        sizes = {"max_sequence_length": max_sequence_length}
        return AlbertPretrainer(
            AlbertBackbone(vocabulary_size, 1, 2, 8, 12, 20, **sizes)
        )

    for other, message in (
        (small(VOCABULARY, 16), "28 tokens per sequence, but the model has 16"),
        (model(num_sop_classes=3), "num_sop_classes=2"),
        (small(99, LENGTH), "of 51 tokens, but the model has one of 99"),
    ):
        with pytest.raises(ValueError, match=message):
            pretrain(other, records, tmp_path, 10, interval=10)
    with pytest.raises(ValueError, match="multiple of `accumulate`"):
        pretraining_optimizer("lamb", 1e-3, 10, accumulate=3)
    with pytest.raises(ValueError, match="`weight_average` must be above 0.*1.5"):
        pretraining_optimizer("lamb", 1e-3, 10, weight_average=1.5)
