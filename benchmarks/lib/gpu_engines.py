"""Rounds of albert-tf on JAX and of transformers for `gpu.py`, on the same batches.

Imports only what an engine needs, because each runs in its own process.
"""

import pathlib
import sys
import tempfile
import time

import numpy as np

from benchmarks.lib.peers import transformers_config
from benchmarks.lib.release_sizes import MICRO_SIZES, release_sizes

BATCH_TOKENS = {"fit": 16_384, "predict": 65_536, "pretrain": 32_768}
# Mean and deviation of the logarithm of the tokens of LCQMC's pairs (dev.tsv).
LCQMC = (3.3, 0.24)
LCQMC_WIDTHS = (32, 64)
# `albert-tf pretrain` takes the largest divisor of its interval up to 32 on a GPU.
STEPS_PER_CALL = 25
MASKED, MASK, SPECIAL = 0.15, 4, 3
RATE = 1e-4
OURS, FUSED, LAMB, THEIRS = "albert-tf", "fused", "lamb", "transformers"
BASE, TINY, MICRO = "albert_base_zh", "albert_tiny_zh", "albert_micro_zh"


def sizes_of(row, quick):
    """Return the arguments of `AlbertBackbone` for a row."""
    _, size, _, _ = row
    if size == MICRO:
        sizes = {**MICRO_SIZES, "vocabulary_size": 8000}
    else:
        sizes = release_sizes(size)
    if quick:
        small = {"num_layers": 1, "num_heads": 2, "vocabulary_size": 99}
        sizes = {**sizes, **small, "hidden_dim": 32, "intermediate_dim": 64}
    return sizes


def batches_of(row, arguments):
    """Return batches of ids [sequences, width] and lengths [sequences]."""
    job, _, length, _ = row
    random, batches = np.random.default_rng(1), []
    vocabulary = sizes_of(row, arguments.quick)["vocabulary_size"]
    tokens = batch_tokens(job, arguments)
    if length == "lcqmc":
        widths = LCQMC_WIDTHS
        count = arguments.batches * tokens // widths[0]
        lengths = np.clip(random.lognormal(*LCQMC, count).round(), 9, widths[-1])
    else:
        widths = (full_length(arguments),)
        lengths = np.full(arguments.batches * tokens // widths[0], widths[0])
    start = 0
    for width in widths:
        bucket = lengths[(lengths > start) & (lengths <= width)]
        rows, start = tokens // width, width
        # No smaller last batch, for which both engines would compile again.
        full = np.resize(bucket, max(len(bucket) // rows, 1) * rows)
        for part in full.astype("int32").reshape(-1, rows):
            ids = random.integers(5, vocabulary, (rows, width), dtype="int32")
            batches.append((np.where(np.arange(width) < part[:, None], ids, 0), part))
    return [batches[i] for i in random.permutation(len(batches))]


def batch_tokens(job, arguments):
    return 256 if arguments.quick else BATCH_TOKENS[job]


def full_length(arguments):
    return 32 if arguments.quick else 512


def steps_per_call(arguments):
    return 2 if arguments.quick else STEPS_PER_CALL


READY = "ready\n"


class Watch:
    """Seconds of the rounds, between which nothing else is done.

    After the first, in which the engines compile, it waits until `gpu.py` answers.
    """

    def __init__(self):
        self.seconds = []
        self.start = time.perf_counter()

    def __call__(self, *_):
        self.seconds.append(time.perf_counter() - self.start)
        if len(self.seconds) == 1:
            print(READY, end="", file=sys.__stdout__, flush=True)
            sys.stdin.readline()
        self.start = time.perf_counter()


def timed(call, rounds):
    """Return the seconds of the first call, and of each of the rounds after it."""
    watch = Watch()
    for _ in range(1 + rounds):
        call()
        watch()
    return watch.seconds


# === Keras ===


def run_keras(row, arguments):
    """Return the times of the rounds, the tokens of one and the peak of memory."""
    from albert_tf.backbone.precision import as_dtype
    from albert_tf.layers import AttentionBlock
    import jax
    import keras

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(as_dtype("bfloat16"))
    AttentionBlock.fuses_on_jax = row[-1] == FUSED
    run = _pretrain if row[0] == "pretrain" else _classify
    times, tokens = run(row, arguments)
    memory = jax.local_devices()[0].memory_stats() or {}
    return times, tokens, memory.get("peak_bytes_in_use")


def _classify(row, arguments):
    from albert_tf.backbone import AlbertBackbone
    import keras

    data, tokens = [], 0
    for ids, lengths in batches_of(row, arguments):
        tokens += int(lengths.sum())
        is_token = np.arange(ids.shape[1]) < lengths[:, None]
        x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": is_token * 1}
        data.append(({name: y.astype("int32") for name, y in x.items()}, lengths % 2))
    backbone = AlbertBackbone(**sizes_of(row, arguments.quick))
    pooled = backbone(backbone.input)["pooled_output"]
    head = keras.layers.Dense(2, dtype="float32")
    model = keras.Model(backbone.input, head(pooled))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(RATE), loss)

    def fit():
        batches = (x for x in data)
        model.fit(batches, steps_per_epoch=len(data), shuffle=False, verbose=0)

    def predict():
        model.predict(((x,) for x, _ in data), steps=len(data), verbose=0)

    times = timed({"fit": fit, "predict": predict}[row[0]], arguments.rounds)
    return times, tokens


def _pretrain(row, arguments):
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.pretraining import PretrainingRecords, Run, build_network, pretrain
    from albert_tf.training import scheduled_optimizer

    length = full_length(arguments)
    sizes = sizes_of(row, arguments.quick)
    tokens = batch_tokens("pretrain", arguments)
    per_call = steps_per_call(arguments)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        count = 2 * per_call * tokens // length
        write_records(folder / "records", sizes["vocabulary_size"], count, length)
        records = PretrainingRecords(folder / "records")
        network = build_network(AlbertBackbone(**sizes), records.order_classes)
        optimizer = "lamb" if row[-1] == LAMB else "adamw"
        network.compile(scheduled_optimizer(optimizer, RATE))
        watch = Watch()
        run = Run(
            steps=(1 + arguments.rounds) * per_call,
            batch_tokens=tokens,
            interval=(1 + arguments.rounds) * per_call,
            learning_rate=RATE,
            steps_per_call=per_call,
        )
        # `progress` is called after the loss of each call was read.
        pretrain(network, records, folder / "state", run, progress=watch, verbose=0)
    # All sequences are full.
    return watch.seconds, per_call * tokens


def write_records(folder, vocabulary_size, count, length):
    """Write records of random ids, in sequences of two segments."""
    from albert_tf.pretraining.records.records_directory import (
        Header,
        complete_shard,
        publish,
    )
    from albert_tf.pretraining.records.shard_files import token_dtype

    random = np.random.default_rng(1)
    content = length - SPECIAL
    ids = random.integers(5, vocabulary_size, count * content)
    arrays = {
        "token_ids": ids.astype(token_dtype(vocabulary_size)),
        "word_starts": np.ones(len(ids), bool),
        "lengths": np.full(count, content, "uint16"),
        "second_starts": np.full(count, content // 2, "uint16"),
        "documents": np.arange(count, dtype="uint32"),
    }
    folder.mkdir()
    shards = complete_shard(folder / f"pretrain-00000-00-{0:016x}", lambda: arrays)
    tokens = {"size": vocabulary_size, "pad": 0, "cls": 2, "sep": 3, "mask": MASK}
    settings = {"order": "sop", "lowercase": True, "sequence_length": length}
    publish(folder, Header(folder / "vocab.txt", tokens, settings), shards)


# === PyTorch ===


def run_transformers(row, arguments):
    """Return the same as `run_keras`."""
    import torch
    import transformers

    job = row[0]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sizes = sizes_of(row, arguments.quick)
    config = transformers_config(
        sizes, classifier_dropout_prob=0.0, attn_implementation="sdpa"
    )
    kind = "PreTraining" if job == "pretrain" else "SequenceClassification"
    model = getattr(transformers, f"AlbertFor{kind}")(config).to(device)
    model = model.bfloat16().eval() if job == "predict" else model.train()
    # Quick runs do not compile.
    backend = "eager" if arguments.quick else "inductor"
    compiled = torch.compile(model, dynamic=False, backend=backend)
    fused = {"fused": True} if device == "cuda" else {}
    optimizer = torch.optim.AdamW(model.parameters(), RATE, **fused)
    batches = batches_of(row, arguments)
    if job == "pretrain":
        batches = batches[: steps_per_call(arguments)]
    data = [_torch_inputs(job, ids, lengths) for ids, lengths in batches]

    def forward(inputs):
        return compiled(**{x: y.to(device) for x, y in inputs.items()})

    def fit():
        for inputs in data:
            optimizer.zero_grad()
            with torch.autocast(device, torch.bfloat16):
                loss = forward(inputs).loss
            loss.backward()
            if job == "pretrain":
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return loss.item()

    def predict():
        with torch.no_grad():
            found = [forward(inputs).logits for inputs in data]
        return torch.cat(found).float().cpu().numpy()

    times = timed(predict if job == "predict" else fit, arguments.rounds)
    memory = torch.cuda.max_memory_allocated() if device == "cuda" else None
    return times, sum(int(lengths.sum()) for _, lengths in batches), memory


def _torch_inputs(job, ids, lengths):
    import torch

    mask = np.arange(ids.shape[1]) < lengths[:, None]
    arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids}
    if job == "fit":
        arrays["labels"] = lengths % 2
    elif job == "pretrain":
        chosen = np.random.default_rng(1).random(ids.shape) < MASKED
        # PyTorch's cross entropy ignores labels of -100.
        arrays["labels"] = np.where(chosen, ids, -100)
        arrays["input_ids"] = np.where(chosen, MASK, ids)
        arrays["sentence_order_label"] = np.arange(len(ids)) % 2
    return {x: torch.as_tensor(y.astype("int64")) for x, y in arrays.items()}
