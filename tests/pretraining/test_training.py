"""Training on records: learning, resuming, evaluation and refusals."""

import dataclasses
import json
import signal

import keras
import numpy as np
import pytest
from made_records import LENGTH, model, write
from processes import kill_when, run_python, start_python
from scipy.special import log_softmax

from albert_tf.pretraining import (
    PretrainingRecords,
    Run,
    build_network,
    evaluate_pretraining,
    pretrain,
    write_weights,
)
from albert_tf.pretraining.training.pretraining_batches import PretrainingBatches
from albert_tf.pretraining.training.pretraining_model import PretrainingModel
from albert_tf.step_counts import interval_of
from albert_tf.training import scheduled_optimizer
from albert_tf_lite.errors import AlbertError


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
    pretrainer = model(layers=4)
    pretrainer.compile(scheduled_optimizer("adamw", 4e-3))
    run = Run(
        steps=600,
        interval=600,
        batch_tokens=64 * LENGTH,
        learning_rate=4e-3,
        masks=records.masks(ngram=1),
    )
    done = pretrain(pretrainer, records, tmp_path / "out", run, dev, verbose=0)
    last = {name: values[-1] for name, values in done["history"].items()}
    # A mask over both parts of a word cannot be filled: one in six or so.
    assert last["val_mlm_logits_accuracy"] > 0.6
    assert last["val_sop_logits_accuracy"] > 0.95


# === Interrupted ===

COMMAND = """
import sys
import numpy as np
from made_records import LENGTH, model
from albert_tf.pretraining import PretrainingRecords, Run, pretrain
from albert_tf.training import scheduled_optimizer

records = PretrainingRecords(sys.argv[1])
run = Run(
    steps=60, batch_tokens=16 * LENGTH, interval=10, learning_rate=1e-3,
    steps_per_call=5,
)
for output in sys.argv[2:]:
    network = model()
    network.compile(scheduled_optimizer("adamw", 1e-3))
    pretrain(network, records, output, run, verbose=0)
    np.savez(output + "/weights.npz", *network.get_weights())
"""


@pytest.mark.parametrize(
    "backend", ["tensorflow", pytest.param("jax", marks=pytest.mark.nightly)]
)
@pytest.mark.slow
def test_a_killed_training_ends_with_the_same_weights(data, tmp_path, backend):
    pytest.importorskip(backend)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start_python(COMMAND, data, killed, KERAS_BACKEND=backend)
    kill_when(process, lambda: len(epochs_of(killed)) >= 2)
    assert 2 <= len(epochs_of(killed)) < 6
    # The first run is resumed, then the second trains without an interruption.
    run_python(COMMAND, data, killed, whole, KERAS_BACKEND=backend)
    weights, expected = (np.load(x / "weights.npz") for x in (killed, whole))
    for name in expected.files:
        assert np.array_equal(weights[name], expected[name])
    assert epochs_of(killed) == epochs_of(whole)


SAME = """
import json, sys
from made_records import LENGTH
from albert_tf.pretraining import PretrainingRecords, Run, pretrain
from albert_tf.pretraining import read_weights
from albert_tf.training import scheduled_optimizer

network = read_weights(sys.argv[2])
network.compile(scheduled_optimizer("lamb", 1e-3))
records = PretrainingRecords(sys.argv[1])
run = Run(steps=20, batch_tokens=16 * LENGTH, interval=1, learning_rate=1e-3)
pretrain(network, records, sys.argv[3], run, verbose=0)
"""


@pytest.mark.nightly
def test_losses_of_jax_are_those_of_tensorflow(tmp_path):
    pytest.importorskip("jax")
    masked = write(tmp_path / "masked", documents=100, masked=True)
    start = model()
    network = build_network(start.backbone)
    network.set_weights(start.get_weights())
    write_weights(network, tmp_path / "start.npz")
    losses = {}
    for backend in ("tensorflow", "jax"):
        out = tmp_path / backend
        run_python(SAME, masked, tmp_path / "start.npz", out, KERAS_BACKEND=backend)
        losses[backend] = epochs_of(out)
    assert len(losses["jax"]) == 20
    np.testing.assert_allclose(losses["jax"], losses["tensorflow"], atol=1e-4)


class Signal(keras.callbacks.Callback):
    """Send a signal at the nth step."""

    def __init__(self, step, number):
        super().__init__()
        self.left, self.number = step, number

    def on_train_batch_begin(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(self.number)


@pytest.mark.parametrize(
    ("step", "number"),
    [
        pytest.param(3, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(2, signal.SIGINT, marks=pytest.mark.nightly),
    ],
)
def test_a_signal_saves_the_state_and_the_run_resumes(
    data, trained, tmp_path, step, number
):
    """A signal within an interval and at its end changes no weight."""
    records, out = PretrainingRecords(data), tmp_path / "out"
    handler = signal.getsignal(number)
    message = f"Interrupted at step {step} of 4. The same command resumes."
    with pytest.raises(KeyboardInterrupt, match=message):
        start(records, out, callbacks=[Signal(step, number)])
    assert signal.getsignal(number) is handler
    done, pretrainer = start(records, out)
    whole, weights = trained[2]["history"], trained[1]
    for ours, theirs in zip(pretrainer.weights, weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert done["history"].keys() == whole.keys()
    for name, values in whole.items():
        assert done["history"][name] == pytest.approx(values, rel=1e-5)


RUN = Run(steps=4, interval=2, batch_tokens=8 * LENGTH, learning_rate=1e-3)


def start(records, out, layers=1, dev=None, callbacks=(), **changes):
    """Train four steps with two per interval, and average the weights."""
    run = dataclasses.replace(RUN, **changes)
    pretrainer = model(layers=layers)
    optimizer = scheduled_optimizer("adamw", run.learning_rate, ema_momentum=0.5)
    pretrainer.compile(optimizer)
    done = pretrain(pretrainer, records, out, run, dev, callbacks, verbose=0)
    return done, pretrainer


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """The output of a complete training, its weights, and what it returned."""
    out = tmp_path_factory.mktemp("trained")
    done, pretrainer = start(PretrainingRecords(data), out)
    return out, [weight.numpy() for weight in pretrainer.weights], done


@pytest.mark.nightly
@pytest.mark.traced
def test_minutes_choose_the_steps_once(data, tmp_path):
    pretrainer, records = model(layers=1), PretrainingRecords(data)
    before = pretrainer.get_weights()
    pretrainer.compile(scheduled_optimizer("adamw", 1e-3, ema_momentum=0.5))
    # The trial changes no weight: at a rate of 0 nothing does.
    run = Run(
        minutes=0.02, batch_tokens=8 * LENGTH, learning_rate=0.0, steps_per_call=2
    )
    done = pretrain(pretrainer, records, tmp_path, run, verbose=0)
    assert done["steps"] == 20 * done["interval"] >= 40 and not done["interval"] % 2
    for first, second in zip(before, pretrainer.get_weights(), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-7)
    again = pretrain(pretrainer, records, tmp_path, run, verbose=0)
    assert again["steps"] == done["steps"] and again["history"] == done["history"]


def test_steps_need_no_interval():
    for steps, per_call, expected in (
        (1500, 1, 750),
        (10_000, 1, 1000),
        (7, 1, 7),
        (1500, 4, 500),
        # Without a divisor from 100 to 1,000.
        (1009, 1, 1009),
        (2018, 1, 2018),
    ):
        assert interval_of(steps, None, per_call) == expected
    assert interval_of(1500, 500, 10) == 500
    for numbers in ((1500, 400, 1), (1500, 500, 3), (1500, None, 7)):
        with pytest.raises(AlbertError, match="steps=1500, interval="):
            interval_of(*numbers)
    for settings in ({}, {"steps": 10, "minutes": 1.0}):
        with pytest.raises(AlbertError, match="needs `steps` or `minutes`. Received"):
            Run(**settings)


def test_the_network_alone_computes_in_16_bits(data, tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        records, steps = PretrainingRecords(data), {"steps": 1, "interval": 1}
        done, pretrainer = start(records, tmp_path / "out", **steps)
        step = PretrainingModel(keras.Model(pretrainer.input, pretrainer.output), None)
        assert pretrainer.backbone.compute_dtype == "bfloat16"
        assert {step.compute_dtype, records.masks().dtype} == {"float32"}
    finally:
        keras.config.set_dtype_policy("float32")
    assert np.isfinite(done["history"]["loss"]).all()


def test_a_finished_training_is_not_trained_again(data, trained):
    out, weights, done = trained
    again, pretrainer = start(PretrainingRecords(data), out)
    assert again["history"] == done["history"]
    for ours, theirs in zip(pretrainer.weights, weights, strict=True):
        assert np.array_equal(ours, theirs)


def test_records_that_do_not_fit_are_refused(data, tmp_path):
    records = PretrainingRecords(data)
    others = PretrainingRecords(write(tmp_path / "others", documents=5, files=1))
    for classes, steps, message in (
        (2, 3, "`steps` must be a multiple of .*Received: steps=3, interval=2, "),
        (3, 4, f"records of {data} have 2 classes of sentence order, .* model has 3"),
    ):
        with pytest.raises(ValueError, match=message):
            pretrainer = model(classes, layers=1)
            pretrainer.compile("adamw")
            pretrain(pretrainer, records, tmp_path, Run(steps=steps, interval=2))
    tokens = others.folder / "vocab.txt"
    tokens.write_text(tokens.read_text().replace(chr(0x4E00), "龘"))
    with pytest.raises(ValueError, match="others and .*records have different vocab"):
        start(records, tmp_path, dev=others)


def test_another_training_is_refused(data, trained):
    records = PretrainingRecords(data)
    masks = records.masks(ngram=1)
    for changes, differs in (
        (
            {"learning_rate": 2e-3, "masks": masks, "settings": {"init": "a"}},
            "init: none, now 'a'; learning_rate: 0.001, now 0.002; masks.ngram: 3, now",
        ),
        (
            {"seed": 1, "layers": 2, "records": PretrainingRecords(data, "nsp")},
            "model.num_layers: 1, now 2; order: 'sop', now 'nsp'; seed: 0, now 1",
        ),
    ):
        with pytest.raises(ValueError, match=f"state of another training.*{differs}"):
            start(**{"records": records, "out": trained[0], **changes})
        assert len(epochs_of(trained[0])) == 2


# === Dev ===


@pytest.mark.slow
def test_the_loss_of_dev_is_that_of_numpy(data, tmp_path):
    dev = PretrainingRecords(write(tmp_path / "dev", 40, 1, seed=100))
    records = PretrainingRecords(data)
    masks = records.masks(mask_selection_rate=0.2)
    # At a rate of 0 each evaluation is of the same weights, and the same masks.
    changes = {"learning_rate": 0.0, "masks": masks}
    done, pretrainer = start(records, tmp_path / "out", dev=dev, **changes)
    step = PretrainingModel(keras.Model(pretrainer.input, pretrainer.output), masks)
    batches = PretrainingBatches(dev, RUN, training=False)
    sums = dict.fromkeys(("mlm_logits", "sop_logits"), np.zeros(2))
    for item in (batches[number] for number in range(len(batches))):
        batch = {name: values[:, 0] for name, values in item.items()}
        features, masked = step.masked(batch)
        wanted = {
            "mlm_logits": (masked["mask_ids"], masked["mask_weights"]),
            "sop_logits": (batch["labels"], batch["has_order"]),
        }
        for head, logits in pretrainer(features).items():
            logs = log_softmax(np.asarray(logits, "float64"), axis=-1)
            label, weights = map(np.asarray, wanted[head])
            loss = -np.take_along_axis(logs, label[..., None], -1)[..., 0]
            weights = (weights.T * batch["weights"]).T
            sums[head] = sums[head] + [(loss * weights).sum(), weights.sum()]
    scores = evaluate_pretraining(pretrainer, dev, 8 * LENGTH, masks)
    for head, (loss, count) in sums.items():
        assert count > 20
        assert scores[f"{head}_loss"] == pytest.approx(loss / count, rel=1e-4)
        last = done["history"][f"val_{head}_accuracy"][-1]
        assert scores[f"{head}_accuracy"] == pytest.approx(last)
        found = done["history"][f"val_{head}_loss"]
        assert found == pytest.approx([loss / count] * 2, rel=1e-4)
        # Before the first step, too.
        assert done["start"][f"{head}_loss"] == pytest.approx(loss / count, rel=1e-4)
