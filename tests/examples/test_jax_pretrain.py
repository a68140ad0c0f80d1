"""Pretraining on JAX without TensorFlow takes the steps of TensorFlow."""

import importlib.util
import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from processes import run_python
from small_corpus import write_corpus, write_vocabulary

import albert_tf
from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.pretraining import (
    PretrainingData,
    PretrainingRecords,
    make_pretraining_data,
)
from albert_tf.training import scheduled_optimizer

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "albert_micro_zh"
SIZE = {
    **{"vocabulary_size": 200, "num_layers": 2, "num_heads": 4, "embedding_dim": 16},
    **{"hidden_dim": 32, "intermediate_dim": 64, "max_sequence_length": 64},
}
STEPS, RATE = 50, 3e-3

# Blocks TensorFlow, trains in one run and in parts, and saves the batches.
SCRIPT = """
import importlib.util, pathlib, sys

names = ("tensorflow", "tensorflow_text", "tf_keras")
sys.modules.update(dict.fromkeys(names))
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda x, *_: None if x in names else find_spec(x, *_)

import jax, numpy as np
import jax_pretrain

def options(output, *more):
    return [
        "arrays", output, "--learning-rate", "0.003", "--batch-tokens", "256",
        "--steps-per-call", "5", "--ema-momentum", "0.9", *more,
    ]

fixed = ("--steps", "50", "--start", "start.npz", "--precision", "float32")
jax_pretrain.main(options("whole", *fixed))
for _ in range(3):
    jax_pretrain.main(options("parts", *fixed, "--stop", "0"))
jax_pretrain.main(options("parts", *fixed))

training = jax_pretrain.Training(
    jax_pretrain.parse_arguments(options("whole", *fixed))
)
training.load()
batch = jax.jit(training.batch, static_argnums=4)
saved = {}
for call in range(training.calls):
    width, inputs = training.inputs(call)
    for rows, step, mask_rate, _ in zip(*inputs):
        parts = batch(training.arrays, rows, step, mask_rate, width)
        for kind, part in zip(("x", "y", "weights"), parts):
            for name, values in part.items():
                saved[f"{step}/{kind}/{name}"] = values
np.savez("batches.npz", **saved)

# Mixed precision is the default.
jax_pretrain.main(options("timed", "--minutes", "0.002", "--layers", "1"))
assert sys.modules["tensorflow"] is None
"""


@pytest.fixture(scope="module")
def jax_arrays():
    file = FOLDER / "jax_arrays.py"
    spec = importlib.util.spec_from_file_location("jax_arrays", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory, jax_arrays):
    """Records, and arrays in several files."""
    folder = tmp_path_factory.mktemp("jax")
    write_vocabulary(folder / "vocab.txt", 200)
    write_corpus(folder / "text.txt", documents=900)
    made = PretrainingData(
        str(folder / "vocab.txt"),
        sequence_length=64,
        block_bytes=20_000,
        keep_unpaired=True,
    )
    make_pretraining_data([str(folder / "text.txt")], folder / "records", made)
    jax_arrays.TOKENS_PER_FILE = 4000
    records = PretrainingRecords(folder / "records")
    jax_arrays.write_arrays(records, folder / "arrays", SIZE)
    return folder


def test_arrays_hold_the_records_and_little_else(folder):
    files = sorted((folder / "arrays").glob("*.npz"))
    assert len(files) > 1
    parts = [np.load(file) for file in files]
    arrays = {x: np.concatenate([part[x] for part in parts]) for x in parts[0].files}
    assert arrays["tokens"].dtype == "uint16"
    records = PretrainingRecords(folder / "records")
    batches = list(records.dataset(64, training=False).map(lambda x, y, w: (x, y)))
    ids, segments = (
        [row[row_mask > 0] for x, _ in batches for row, row_mask in pairs(x, name)]
        for name in ("token_ids", "segment_ids")
    )
    assert len(ids) == len(arrays["lengths"])
    found = np.split(arrays["tokens"], np.cumsum(arrays["lengths"])[:-1])
    # All tokens are equal except those that the dataset has masked.
    same = [np.mean(x == y) for x, y in zip(ids, found, strict=True)]
    assert np.mean(same) > 0.8
    assert [row.sum() for row in segments] == arrays["seconds"].tolist()
    labels = np.concatenate([y["sop_logits"] for _, y in batches])
    assert labels.tolist() == arrays["labels"].tolist()


def pairs(x, name):
    return zip(x[name].numpy(), x["padding_mask"].numpy(), strict=True)


def test_masked_records_and_other_orders_are_refused(folder, jax_arrays, tmp_path):
    made = PretrainingData(
        str(folder / "vocab.txt"), sequence_length=64, order="three_way"
    )
    make_pretraining_data([str(folder / "text.txt")], tmp_path / "records", made)
    records = PretrainingRecords(tmp_path / "records")
    with pytest.raises(albert_tf.AlbertError, match="unmasked records with sentence"):
        jax_arrays.write_arrays(records, tmp_path / "arrays", SIZE)
    assert not (tmp_path / "arrays").exists()


@pytest.fixture(scope="module")
def trained(folder):
    """The folder after the trainings of the script."""
    pytest.importorskip("jax", reason="JAX is not installed (extra [jax])")
    model = AlbertPretrainer(AlbertBackbone(**SIZE))
    np.savez(folder / "start.npz", **{x.path: x.numpy() for x in model.weights})
    environment = {
        **{"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(FOLDER)]),
        # Later trainings reuse what was compiled.
        "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    (folder / "stdout").write_text(run_python(SCRIPT, cwd=folder, **environment))
    return folder


def features(saved, prefix):
    names = [name for name in saved.files if name.startswith(prefix)]
    return {name.removeprefix(prefix): saved[name] for name in names}


@pytest.mark.nightly
@pytest.mark.traced
def test_losses_are_those_of_tensorflow(trained, jax_arrays):
    model = AlbertPretrainer(AlbertBackbone(**SIZE))
    with np.load(trained / "start.npz") as start:
        for variable in model.weights:
            variable.assign(start[variable.path])
    model.compile(scheduled_optimizer("adamw", RATE, STEPS, 0.05, ema_momentum=0.9))
    saved = np.load(trained / "batches.npz")

    def batches():
        for step in range(STEPS):
            yield tuple(features(saved, f"{step}/{x}/") for x in ("x", "y", "weights"))

    dataset = tf.data.Dataset.from_generator(
        batches,
        output_signature=tf.nest.map_structure(
            lambda x: tf.TensorSpec([None] * x.ndim, x.dtype), next(batches())
        ),
    )
    # An epoch per step. `fit` finally replaces the weights by their averages.
    found = model.fit(dataset, epochs=STEPS, steps_per_epoch=1, verbose=0).history
    lengths = {x["token_ids"].shape[1] for x, _, _ in batches()}
    assert lengths == {32, 64}
    history = np.load(trained / "whole" / "history.npz")
    for name in history.files:
        np.testing.assert_allclose(history[name], found[name], atol=1e-4)
    # The averaged weights, in a checkpoint of the original code.
    jax_arrays.main(
        ["checkpoint", str(trained / "whole"), str(trained / "checkpoint")]
        + ["--vocab", str(trained / "arrays" / "vocab.txt")]
    )
    loaded = AlbertPretrainer.from_checkpoint(trained / "checkpoint")
    for a, b in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.nightly
def test_a_resumed_training_has_the_same_weights(trained):
    whole, parts = (np.load(trained / x / "weights.npz") for x in ("whole", "parts"))
    assert (trained / "stdout").read_text().count("same command to resume") == 3
    for name in whole.files:
        np.testing.assert_array_equal(whole[name], parts[name])
    histories = [np.load(trained / x / "history.npz") for x in ("whole", "parts")]
    for name in histories[0].files:
        np.testing.assert_array_equal(*(history[name] for history in histories))
        assert len(histories[0][name]) == STEPS


@pytest.mark.nightly
def test_masks_have_the_share_of_the_step(trained):
    saved = np.load(trained / "batches.npz")
    shares, is_masked, orders = [], [], []
    for step in range(STEPS):
        x, y = (features(saved, f"{step}/{kind}/") for kind in ("x", "y"))
        chosen = saved[f"{step}/weights/mlm_logits"] > 0
        # [CLS], and a [SEP] per segment.
        special = 2 * len(chosen) + x["segment_ids"].any(axis=1).sum()
        shares.append(chosen.sum() / (x["padding_mask"].sum() - special))
        assert not np.isin(y["mlm_logits"][chosen], [0, 2, 3, 4]).any()
        there = np.take_along_axis(x["token_ids"], x["mask_positions"], axis=1)
        is_masked += (there == 4)[chosen].tolist()
        orders += y["sop_logits"].tolist()
    assert abs(np.mean(shares[:10]) - 0.285) < 0.02
    assert abs(np.mean(shares[-10:]) - 0.165) < 0.02
    assert abs(np.mean(is_masked) - 0.8) < 0.05
    assert abs(np.mean(orders) - 0.5) < 0.15


@pytest.mark.nightly
def test_a_speed_trial_sets_the_steps(trained):
    history = np.load(trained / "timed" / "history.npz")
    steps = len(history["mlm_logits_loss"])
    assert steps and steps % 5 == 0
    config = json.loads((trained / "timed" / "config.json").read_text())
    assert config == {**SIZE, "num_layers": 1}
    assert np.isfinite(history["mlm_logits_loss"]).all()
