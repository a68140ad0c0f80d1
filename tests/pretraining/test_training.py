"""Training on records: learning, resuming, and what is refused."""

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
from made_records import (
    LENGTH,
    VOCABULARY,
    damage,
    masks_of,
    model,
    write,
    write_manifest,
)

from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.pretraining import PretrainingRecords, pretrain, pretraining_optimizer


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "records")


# === It learns ===


@pytest.mark.parametrize("masking", ["static", "dynamic"])
def test_a_language_is_learned(data, tmp_path, masking):
    dev = PretrainingRecords(write(tmp_path / "dev", 200, 1, seed=100))
    records = PretrainingRecords(data)
    pretrainer = model(layers=4)
    pretrainer.compile(pretraining_optimizer("adamw", 3e-3, 500))
    masks = masks_of(records) if masking == "dynamic" else None
    done = pretrain(
        pretrainer,
        records,
        tmp_path / "out",
        500,
        64,
        masks,
        interval=250,
        dev=dev,
        verbose=0,
    )
    last = {name: values[-1] for name, values in done["history"].items()}
    # A mask over both parts of a word cannot be filled: one in six or so.
    assert last["val_mlm_logits_accuracy"] > 0.6
    assert last["val_sop_logits_accuracy"] > 0.95


def test_lamb_learns(data, tmp_path):
    records = PretrainingRecords(data)
    pretrainer = model()
    pretrainer.compile(pretraining_optimizer("lamb", 1e-2, 200, accumulate=2))
    done = pretrain(
        pretrainer, records, tmp_path / "out", 200, 32, interval=50, verbose=0
    )
    loss = done["history"]["loss"]
    assert len(loss) == 4 and loss[-1] < loss[0] - 0.15


@pytest.mark.parametrize("accumulate", [1, 4])
def test_the_learning_rate_lasts_to_the_end(accumulate):
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


# === Batches ===


def batches(records, count, **kwargs):
    return list(records.dataset(16, **kwargs).take(count))


def flat(batch):
    x, y, weights = batch
    return {
        **x,
        **{f"y_{k}": v for k, v in y.items()},
        **{f"w_{k}": v for k, v in weights.items()},
    }


def equal(first, second):
    first, second = flat(first), flat(second)
    return all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("dynamic", [False, True])
def test_batches_depend_on_the_seed_and_can_be_skipped_to(data, dynamic):
    records = PretrainingRecords(data)
    masks = masks_of(records) if dynamic else None
    first = batches(records, 8, masks=masks, seed=3)
    again = batches(records, 3, masks=masks, seed=3, skip=5)
    assert all(map(equal, first[5:], again))
    other = batches(records, 1, masks=masks, seed=4)
    assert not equal(first[0], other[0])


def test_batches_do_not_depend_on_the_seed_of_all(data):
    records = PretrainingRecords(data)
    drawn = []
    for seed in (1, 2):
        tf.random.set_seed(seed)
        drawn.append(batches(records, 4, seed=3))
    assert all(map(equal, *drawn))


def test_a_seed_is_not_the_next_epoch_of_another(data):
    records = PretrainingRecords(data)
    first = {bytes(batch[0]["token_ids"].numpy()) for batch in batches(records, 3)}
    length = sum(records.counts.values()) // 16
    others = [*batches(records, 5 * length), *batches(records, 5 * length, seed=1)]
    later = {bytes(batch[0]["token_ids"].numpy()) for batch in others[3:]}
    assert not first & later


def test_dynamic_masks_change_and_the_text_does_not(data):
    records = PretrainingRecords(data)
    masks = masks_of(records)

    def plain(batch):
        ids = batch[0]["token_ids"].numpy().copy()
        rows, slots = np.nonzero(batch[2]["mlm_logits"])
        where = batch[0]["mask_positions"].numpy()[rows, slots]
        ids[rows, where] = batch[1]["mlm_logits"].numpy()[rows, slots]
        return ids

    texts = [
        sorted(
            map(
                bytes,
                np.concatenate(
                    [plain(x) for x in records.dataset(16, m, training=False)]
                ),
            )
        )
        for m in (None, masks)
    ]
    assert texts[0] == texts[1]
    static, dynamic = (batches(records, 1, masks=m)[0] for m in (None, masks))
    assert not np.array_equal(static[0]["token_ids"], dynamic[0]["token_ids"])


def test_without_training_each_record_comes_once(data):
    records = PretrainingRecords(data)
    sizes = [len(x["token_ids"]) for x, _, _ in records.dataset(64, training=False)]
    whole = sum(1 for f in records.files for _ in tf.data.TFRecordDataset(str(f)))
    assert sum(sizes) == whole


def test_processes_read_files_of_their_own(data):
    records = PretrainingRecords(data)
    texts = []
    for shard in range(2):
        dataset = records.dataset(64, training=False, num_shards=2, shard=shard)
        texts.append(
            {bytes(row) for x, _, _ in dataset for row in x["token_ids"].numpy()}
        )
    assert not texts[0] & texts[1]
    with pytest.raises(ValueError, match="too few to share among 3"):
        records.dataset(8, num_shards=3, shard=2)


# === Cut off ===

COMMAND = """
import sys
sys.path.insert(0, {here!r})
from made_records import *
from albert_tf.pretraining import *
records = PretrainingRecords({data!r})
pretrainer = model()
pretrainer.compile(pretraining_optimizer("adamw", 1e-3, 60))
pretrain(pretrainer, records, {out!r}, 60, 16, masks_of(records), interval=10,
         verbose=0)
pretrainer.save_weights({out!r} + "/final.weights.h5")
"""


def command(data, out):
    here = str(pathlib.Path(__file__).parents[1] / "helpers")
    code = COMMAND.format(here=here, data=str(data), out=str(out))
    return [sys.executable, "-c", code]


def loss_of(record):
    return json.loads(record.read_text())["history"]["loss"]


@pytest.mark.processes
def test_a_killed_training_ends_with_the_same_weights(data, tmp_path):
    other = subprocess.Popen(command(data, tmp_path / "whole"), stderr=-3)
    process = subprocess.Popen(command(data, tmp_path / "cut"), stderr=-3)
    record = tmp_path / "cut" / ".training" / "record.json"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if record.exists() and len(loss_of(record)) >= 2:
            break
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "cut" / "final.weights.h5").exists()
    subprocess.run(command(data, tmp_path / "cut"), check=True, stderr=-3)
    assert other.wait() == 0
    first, second = model(), model()
    first.load_weights(tmp_path / "cut" / "final.weights.h5")
    second.load_weights(tmp_path / "whole" / "final.weights.h5")
    for a, b in zip(first.weights, second.weights, strict=True):
        assert np.abs(a.numpy() - b.numpy()).max() < 1e-6
    cut, whole = (
        loss_of(tmp_path / x / ".training" / "record.json") for x in ("cut", "whole")
    )
    assert np.allclose(cut, whole)
    assert len(cut) == 6


def test_a_training_that_is_done_gives_its_weights_again(data, tmp_path):
    trained = []
    for _ in range(2):
        pretrainer = model()
        pretrainer.compile(pretraining_optimizer("adamw", 1e-3, 10))
        done = pretrain(
            pretrainer, PretrainingRecords(data), tmp_path, 10, 8, interval=5, verbose=0
        )
        trained.append([weight.numpy() for weight in pretrainer.weights])
        assert len(done["history"]["loss"]) == 2
    for first, second in zip(*trained, strict=True):
        assert np.array_equal(first, second)


def start(records, out, rate=1e-3, optimizer="adamw", seed=0, layers=2, **kwargs):
    """Train four steps, two an interval."""
    pretrainer = model(layers=layers)
    pretrainer.compile(pretraining_optimizer(optimizer, rate, 4))
    kwargs = {"masks": masks_of(records), "interval": 2, **kwargs}
    return pretrain(pretrainer, records, out, 4, 8, seed=seed, verbose=0, **kwargs)


def test_what_does_not_change_the_training_may_change(data, tmp_path):
    folder = write_manifest(shutil.copytree(data, tmp_path / "records"))
    dev = PretrainingRecords(write(tmp_path / "dev", 9, 1, seed=100))
    first = start(PretrainingRecords(folder), tmp_path / "out")
    # Another place, dev and logs too: all is done, nothing is trained.
    moved = PretrainingRecords(shutil.move(folder, tmp_path / "moved"))
    seen = []
    logs = keras.callbacks.LambdaCallback(on_epoch_begin=lambda *x: seen.append(x))
    kwargs = {"dev": dev, "callbacks": [logs]}
    again = start(moved, tmp_path / "out", **kwargs)
    assert again["history"] == first["history"] and not seen


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"rate": 2e-3}, "learning_rate.*: 0.001, now 0.002"),
        ({"optimizer": "lamb"}, "optimizer.class_name: 'AdamW', now 'Lamb'"),
        ({"seed": 1}, "seed: 0, now 1"),
        ({"layers": 3}, "model.num_layers: 2, now 3"),
        ({"num_shards": 2}, "num_shards: 1, now 2"),
        ({"interval": 1}, "interval: 2, now 1"),
        ({"masks": None}, "masks: {.*, now None[;)]"),
        ({"settings": {"init": "a"}}, "init: none, now 'a'"),
    ],
)
def test_another_training_is_refused(data, tmp_path_factory, changes, differs):
    out = tmp_path_factory.getbasetemp() / "another_training"
    records = PretrainingRecords(data)
    if not out.exists():
        start(records, out)
    with pytest.raises(ValueError, match=f"state of another training.*{differs}"):
        start(records, out, **changes)
    assert len(loss_of(out / ".training" / "record.json")) == 2


@pytest.mark.parametrize("with_manifest", [True, False])
def test_other_records_under_the_same_name_are_refused(data, tmp_path, with_manifest):
    folder = shutil.copytree(data, tmp_path / "records")
    if with_manifest:
        write_manifest(folder)
    start(PretrainingRecords(folder), tmp_path / "out")
    shutil.rmtree(folder)
    write(folder, documents=1400)
    if with_manifest:
        write_manifest(folder)
    with pytest.raises(ValueError, match="another training.*records.0.tfrecord: "):
        start(PretrainingRecords(folder), tmp_path / "out")


# === Dev ===


def test_the_loss_of_dev_is_that_of_numpy(data, tmp_path):
    # Whole batches, so that the mean over batches is that over sequences.
    folder = write(tmp_path / "dev", 40, 1, seed=100)
    file = folder / "0.tfrecord"
    few = [x.numpy() for x in tf.data.TFRecordDataset(str(file)).take(24)]
    with tf.io.TFRecordWriter(str(file)) as writer:
        for record in few:
            writer.write(record)
    dev = PretrainingRecords(folder)
    pretrainer = model()
    pretrainer.compile(pretraining_optimizer("adamw", 1e-3, 2))
    records = PretrainingRecords(data)
    done = pretrain(
        pretrainer, records, tmp_path / "out", 2, 8, interval=1, dev=dev, verbose=0
    )
    losses = {"mlm_logits": [], "sop_logits": []}
    for x, y, weights in dev.dataset(8, training=False):
        for head, logits in pretrainer(x).items():
            logits = logits.numpy().astype("float64")
            all_of = np.log(np.exp(logits).sum(-1))
            label = y[head].numpy()[..., None]
            loss = all_of - np.take_along_axis(logits, label, -1)[..., 0]
            losses[head].append((loss * weights[head].numpy()).mean())
    last = {name: values[-1] for name, values in done["history"].items()}
    for head, values in losses.items():
        assert len(values) == 3
        assert last[f"val_{head}_loss"] == pytest.approx(np.mean(values), rel=1e-4)
    total = sum(np.mean(values) for values in losses.values())
    assert last["val_loss"] == pytest.approx(total, rel=1e-4)


def test_dev_that_does_not_fit(data, tmp_path):
    records = PretrainingRecords(data)
    three = write_manifest(write(tmp_path / "three", 9, 1), order="three_way")
    with pytest.raises(ValueError, match="three have 3 classes"):
        start(records, tmp_path / "out", dev=PretrainingRecords(three))
    other = write(tmp_path / "other", 9, 1)
    text = (other / "vocab.txt").read_text()
    (other / "vocab.txt").write_text(text.replace("\u4e03", "a"))
    with pytest.raises(ValueError, match="token 8 is 'a' in the one, '\u4e03' in the"):
        start(records, tmp_path / "out", dev=PretrainingRecords(other))
    assert not (tmp_path / "out").exists()


# === Refused ===


@pytest.mark.parametrize("where", ["records", "dev"])
def test_a_damaged_record_is_named(data, tmp_path, where):
    parts = {"records": data, "dev": write(tmp_path / "dev", 200, 1)}
    parts[where] = shutil.copytree(parts[where], tmp_path / "damaged")
    damage(parts[where] / "0.tfrecord")
    records, dev = (PretrainingRecords(parts[x]) for x in ("records", "dev"))
    with pytest.raises(ValueError, match="0.tfrecord is damaged") as error:
        pretrainer = model()
        pretrainer.compile(pretraining_optimizer("adamw", 1e-3, 200))
        pretrain(
            pretrainer,
            records,
            tmp_path / "out",
            200,
            64,
            dev=dev,
            interval=200,
            verbose=0,
        )
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("steps", "interval", "choices"),
    [
        (2500, 1000, "Take 2,000 or 3,000 steps, or an interval of 625"),
        (7, 10, "Take 10 steps, or an interval of 7"),
        (0, 1, "`steps` and `interval` should be 1 at least. Received: 0 and 1"),
        (4, 0, "`steps` and `interval` should be 1 at least. Received: 4 and 0"),
    ],
)
def test_the_choices_of_steps(data, tmp_path, steps, interval, choices):
    with pytest.raises(ValueError, match=choices):
        pretrain(model(), PretrainingRecords(data), tmp_path, steps, interval=interval)


def test_no_records(tmp_path):
    with pytest.raises(FileNotFoundError, match="no records.*pretrain-data"):
        PretrainingRecords(tmp_path)
    with pytest.raises(FileNotFoundError, match="no records"):
        PretrainingRecords(tmp_path / "none")


def test_records_that_were_not_finished(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "records")
    (folder / "settings.json").write_text("{}")
    with pytest.raises(ValueError, match="a part of its records.*Run the same command"):
        PretrainingRecords(folder)


def test_a_file_that_was_cut(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "records")
    sizes = {f.name: f.stat().st_size for f in folder.glob("*.tfrecord")}
    shards = [{"file": name, "bytes": size} for name, size in sizes.items()]
    (folder / "manifest.json").write_text(json.dumps({"shards": shards}))
    assert PretrainingRecords(folder).lengths
    file = folder / "1.tfrecord"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match="1.tfrecord has .* by the manifest"):
        PretrainingRecords(folder)
    file.unlink()
    with pytest.raises(ValueError, match="1.tfrecord has 0 bytes"):
        PretrainingRecords(folder)


def test_no_vocabulary_to_mask_with(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "records")
    (folder / "vocab.txt").unlink()
    records = PretrainingRecords(folder)
    assert records.tokenizer is None
    with pytest.raises(ValueError, match="needs the one vocabulary"):
        records.masks()


def test_a_model_that_does_not_fit(data, tmp_path):
    records = PretrainingRecords(data)
    short = AlbertPretrainer(
        AlbertBackbone(VOCABULARY, 1, 2, 8, 12, 20, max_sequence_length=16)
    )
    with pytest.raises(ValueError, match="28 tokens, the model 16 positions"):
        pretrain(short, records, tmp_path, 10, interval=10)
    with pytest.raises(ValueError, match="num_sop_classes=2"):
        pretrain(model(num_sop_classes=3), records, tmp_path, 10, interval=10)
    other = AlbertPretrainer(
        AlbertBackbone(99, 1, 2, 8, 12, 20, max_sequence_length=LENGTH)
    )
    with pytest.raises(ValueError, match="has 51 tokens, the model 99"):
        pretrain(other, records, tmp_path, 10, interval=10)
    with pytest.raises(ValueError, match="multiple of those accumulated"):
        pretraining_optimizer("lamb", 1e-3, 10, accumulate=3)
    with pytest.raises(ValueError, match="not be below 0.*Received: -1"):
        pretraining_optimizer("lamb", -1, 10)
