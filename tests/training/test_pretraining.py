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

from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.preprocessing import WholeWordMaskGenerator
from albert_tf.preprocessing.pretraining_records import write_records
from albert_tf.preprocessing.segment_pairs import (
    Sentences,
    assemble,
    draw_segment_pairs,
)
from albert_tf.training.pretraining import (
    PretrainingRecords,
    plot_pretraining,
    pretrain,
    pretraining_optimizer,
)

PAD, UNK, CLS, SEP, MASK = range(5)
STEMS, ENDINGS, PHASES = 20, 20, 6
VOCABULARY = 5 + STEMS + ENDINGS + PHASES
LENGTH = 28
MASKS = {"mask_selection_rate": 0.15, "mask_selection_length": 6}


def language(documents, seed):
    """A language whose every word is a stem and the ending that belongs to it.

    Knowing one of the two gives the other; nothing else does, so guessing gets one in
    twenty. Each sentence begins with a token that tells how far the document is.
    """
    random = np.random.default_rng(seed)
    tokens, bounds = [], []
    for _ in range(documents):
        bound = [len(tokens)]
        for phase in range(PHASES):
            tokens.append(5 + STEMS + ENDINGS + phase)
            for stem in random.integers(STEMS, size=2):
                tokens += [5 + stem, 5 + STEMS + stem * 7 % ENDINGS]
            bound.append(len(tokens))
        bounds.append(np.array(bound))
    tokens = np.array(tokens, "int32")
    return Sentences(tokens, np.ones(len(tokens), bool), bounds)


def write(folder, documents=1500, files=2, order="sop", seed=0):
    folder.mkdir(parents=True)
    masks = WholeWordMaskGenerator(
        VOCABULARY,
        mask_token_id=MASK,
        unselectable_token_ids=[PAD, CLS, SEP],
        ngram=1,
        **MASKS,
    )
    for file in range(files):
        sentences = language(documents, seed + file)
        random = np.random.default_rng(seed + file)
        pairs = draw_segment_pairs(sentences, LENGTH, random, order, 0.1)
        arrays = assemble(sentences, pairs, LENGTH, CLS, SEP, PAD)
        masked = masks(arrays["token_ids"], arrays["word_starts"], seed=[seed, file])
        arrays = {**arrays, **masked, "labels": pairs.labels}
        write_records(folder / f"{file}.tfrecord", arrays)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [chr(0x4E00 + i) for i in range(VOCABULARY - 5)]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "records")


def model(num_sop_classes=2, layers=2, **kwargs):
    keras.utils.set_random_seed(1)
    backbone = AlbertBackbone(
        VOCABULARY,
        num_layers=layers,
        num_heads=4,
        embedding_dim=32,
        hidden_dim=48,
        intermediate_dim=96,
        max_sequence_length=LENGTH,
        norm_first=True,
        **kwargs,
    )
    return AlbertPretrainer(backbone, num_sop_classes=num_sop_classes)


def masks_of(records):
    return records.masks(ngram=1)


# === It learns ===


@pytest.mark.parametrize("masking", ["static", "dynamic"])
def test_a_language_is_learned(data, tmp_path, masking):
    dev = PretrainingRecords(write(tmp_path / "dev", 200, 1, seed=100))
    records = PretrainingRecords(data)
    pretrainer = model(layers=4)
    pretrainer.compile(pretraining_optimizer("adamw", 3e-3, 900))
    masks = masks_of(records) if masking == "dynamic" else None
    done = pretrain(
        pretrainer,
        records,
        tmp_path / "out",
        900,
        64,
        masks,
        interval=300,
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


def test_dynamic_masks_change_and_the_text_does_not(data):
    records = PretrainingRecords(data)
    masks = masks_of(records)
    count = 6000 // 16

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
    assert count


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
from test_pretraining import *
records = PretrainingRecords({data!r})
pretrainer = model()
pretrainer.compile(pretraining_optimizer("adamw", 1e-3, 60))
pretrain(pretrainer, records, {out!r}, 60, 16, masks_of(records), interval=10,
         verbose=0, settings={{"a": 1}})
pretrainer.save_weights({out!r} + "/final.weights.h5")
"""


def command(data, out):
    here = str(pathlib.Path(__file__).parent)
    code = COMMAND.format(here=here, data=str(data), out=str(out))
    return [sys.executable, "-c", code]


def test_a_killed_training_ends_with_the_same_weights(data, tmp_path):
    process = subprocess.Popen(command(data, tmp_path / "cut"), stderr=-3)
    record = tmp_path / "cut" / ".training" / "record.json"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if record.exists() and len(json.loads(record.read_text())["loss"]) >= 2:
            break
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "cut" / "final.weights.h5").exists()
    for name in ("cut", "whole"):
        subprocess.run(command(data, tmp_path / name), check=True, stderr=-3)
    first, second = model(), model()
    first.load_weights(tmp_path / "cut" / "final.weights.h5")
    second.load_weights(tmp_path / "whole" / "final.weights.h5")
    for a, b in zip(first.weights, second.weights, strict=True):
        assert np.abs(a.numpy() - b.numpy()).max() < 1e-6
    histories = [
        json.loads((tmp_path / x / ".training" / "record.json").read_text())
        for x in ("cut", "whole")
    ]
    assert np.allclose(histories[0]["loss"], histories[1]["loss"])
    assert len(histories[0]["loss"]) == 6


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


# === Refused ===


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
    with pytest.raises(ValueError, match="multiple of `interval`"):
        pretrain(model(), records, tmp_path, 10, interval=3)
    with pytest.raises(ValueError, match="multiple of those accumulated"):
        pretraining_optimizer("lamb", 1e-3, 10, accumulate=3)


def test_plot(tmp_path):
    history = {"loss": [3.0, 2.0], "mlm_logits_accuracy": [0.1, 0.2]}
    plot_pretraining(history, 100, tmp_path / "loss.png")
    assert (tmp_path / "loss.png").read_bytes()[:4] == b"\x89PNG"
    assert [path.name for path in tmp_path.iterdir()] == ["loss.png"]
