"""Compare the speed of pretraining steps with transformers.

    python -m benchmarks.speed.pretraining_step [--size albert_tiny_zh]
        [--batch-size 32]

A step includes both losses and the update. Inputs are random ids in full-length
sequences with a fixed share of masked tokens. KerasHub has no ALBERT pretraining with
sentence order. transformers (if installed) scores the vocabulary at every position,
albert-tf only at the masked ones.
"""

import argparse
import functools
import importlib.util

import albert_tf
import keras
import numpy as np
import tensorflow as tf
import zh

from benchmarks.lib.harness import (
    compared,
    console,
    forward_gflop,
    in_turn,
    matrix_rate,
    table_of,
    write_results,
)
from benchmarks.lib.peers import transformers_config

MASKED = 0.15


class Ours:
    def __init__(self, sizes, tokens, positions, order):
        backbone = albert_tf.models.AlbertBackbone(**sizes)
        self.model = albert_tf.models.AlbertPretrainer(backbone)
        x = {
            "token_ids": tokens,
            "segment_ids": np.zeros_like(tokens),
            "padding_mask": np.ones(tokens.shape, bool),
            "mask_positions": positions,
        }
        labels = np.take_along_axis(tokens, positions, axis=1)
        y = {"mlm_logits": labels, "sop_logits": order}
        self.batches = iter(tf.data.Dataset.from_tensors((x, y)).repeat())
        self.model.make_train_function()

    def step(self):
        self.model.train_function(self.batches)


class Transformers:
    def __init__(self, sizes, tokens, positions, order):
        import torch
        import transformers

        self.model = transformers.AlbertForPreTraining(transformers_config(sizes))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4)
        # PyTorch's cross entropy ignores labels of -100.
        labels = np.full(tokens.shape, -100)
        np.put_along_axis(
            labels, positions, np.take_along_axis(tokens, positions, axis=1), axis=1
        )
        self.inputs = {
            "input_ids": torch.as_tensor(tokens, dtype=torch.long),
            "labels": torch.as_tensor(labels, dtype=torch.long),
            "sentence_order_label": torch.as_tensor(order, dtype=torch.long),
        }

    def step(self):
        self.optimizer.zero_grad()
        self.model(**self.inputs).loss.backward()
        self.optimizer.step()


def random_batch(sizes, batch_size, length):
    """Return ids, the masked positions of each sequence, and sentence orders."""
    generator = np.random.default_rng(1)
    shape = (batch_size, length)
    tokens = generator.integers(5, sizes["vocabulary_size"], shape, dtype="int32")
    chosen = generator.permuted(np.tile(np.arange(length), (batch_size, 1)), axis=1)
    positions = np.sort(chosen[:, : round(MASKED * length)], axis=1).astype("int32")
    return tokens, positions, generator.integers(0, 2, batch_size, dtype="int32")


def has_transformers():
    packages = ("torch", "transformers")
    return all(importlib.util.find_spec(package) for package in packages)


def make_steps(model, steps):
    for _ in range(steps):
        model.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="albert_tiny_zh", choices=zh.SIZES)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=2, help="steps per round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)
    sizes = zh.SIZES[arguments.size]
    length = arguments.sequence_length
    batch = random_batch(sizes, arguments.batch_size, length)
    tokens, positions, _ = batch
    engines = {"albert-tf": Ours}
    if has_transformers():
        engines["transformers"] = Transformers

    jobs = {}
    for name, engine in engines.items():
        model = engine(sizes, *batch)
        jobs[name] = functools.partial(make_steps, model, arguments.steps)
    before = matrix_rate()
    rows = compared(in_turn(jobs, arguments.rounds), to=list(engines)[-1])
    rate = float(np.mean([before, matrix_rate()]))
    # The head maps to the embedding width, then to the vocabulary.
    head = sizes["embedding_dim"] * (sizes["hidden_dim"] + sizes["vocabulary_size"])
    encoder_gflop = forward_gflop(sizes, tokens.size, length)
    head_gflop = 2 * positions.size * head / 1e9
    # Backward is twice forward.
    work = 3 * (encoder_gflop + head_gflop)
    for row in rows.values():
        row["tokens/s"] = arguments.steps * tokens.size / row["seconds"]
        row["share"] = arguments.steps * work / row["seconds"] / rate
    console.print(f"Matrix product at {rate:.0f} GFLOP/s")
    columns = ("tokens/s", "ratio", "smallest", "largest", "share")
    console.print(table_of(rows, columns))
    name = f"pretraining_step_{arguments.size}"
    values = {"settings": vars(arguments), "matrix_gflops": rate, "rows": rows}
    write_results(name, values)


if __name__ == "__main__":
    main()
