"""Batches of `jax_pretrain.py`: which sequences, in which order, with which masks.

They depend on the arrays, the seed and the step only. The device draws them.
"""

import functools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np

from albert_tf_lite.errors import AlbertError

# Sequences are padded to these lengths. XLA compiles a program for each.
WIDTHS = (32, 64, 96, 128, 256, 512)
# Share of the tokens to predict at the first and the last step, how many of them become
# [MASK] or a random token, and the maximum number of neighbours masked together.
MASK_RATES, MASK_TOKEN_RATE, RANDOM_TOKEN_RATE, NGRAM = (0.3, 0.15), 0.8, 0.1, 3


def read_arrays(folder):
    """Return the arrays of all files of a directory, and their settings."""
    parts = [np.load(file) for file in sorted(folder.glob("*.npz"))]
    if not parts:
        raise FileNotFoundError(f"There are no arrays (*.npz) in {folder}.")
    arrays = {x: np.concatenate([part[x] for part in parts]) for x in parts[0].files}
    ends = np.cumsum(arrays["lengths"], dtype="int64")
    arrays["starts"] = (ends - arrays["lengths"]).astype("int32")
    return arrays, json.loads((folder / "arrays.json").read_text("utf-8"))


class Plan:
    """Padded length and sequences of each call, an int array [steps, sequences].

    An epoch groups sequences of similar lengths in random order. It has each sequence
    once.
    """

    def __init__(self, lengths, longest, batch_tokens, steps_per_call, seed):
        self.widths = [*(x for x in WIDTHS if x < longest), longest]
        self.buckets = np.searchsorted(self.widths, lengths)
        self.batch_tokens, self.steps, self.seed = batch_tokens, steps_per_call, seed
        self.epoch = functools.lru_cache(1)(self._epoch)
        self.calls_per_epoch = len(self.epoch(0))
        if not self.calls_per_epoch:
            raise AlbertError(
                f"{len(lengths)} sequences are too few for {steps_per_call} steps of "
                f"{batch_tokens} tokens. Use a smaller --batch-tokens or more text."
            )

    def __getitem__(self, call):
        epoch, number = divmod(call, self.calls_per_epoch)
        return self.epoch(epoch)[number]

    def _epoch(self, number):
        random = np.random.default_rng((self.seed, number))
        calls, rest = [], np.empty(0, "int64")
        for bucket, width in enumerate(self.widths):
            own = random.permutation(np.flatnonzero(self.buckets == bucket))
            # The rest of a bucket is padded to the length of the next.
            rows = np.concatenate([rest, own]).astype("int32")
            shape = self.steps, max(self.batch_tokens // width, 1)
            used = len(rows) // math.prod(shape) * math.prod(shape)
            calls += [(width, x) for x in rows[:used].reshape(-1, *shape)]
            rest = rows[used:]
        return [calls[i] for i in random.permutation(len(calls))]


def read_rows(arrays, rows, width):
    """Return positions [1, width], and of each row its lengths and start [rows, 1]."""
    place = jnp.arange(width)[None]
    return place, *(
        arrays[name][rows].astype("int32")[:, None]
        for name in ("lengths", "seconds", "starts")
    )


def draw_masks(token_ids, settings, key, mask_rate):
    """Mask neighbouring tokens as `WholeWordMaskGenerator(whole_word=False)`."""
    ngram_key, choice_key, budget_key, what_key, id_key = jax.random.split(key, 5)
    special = list(settings["special_ids"].values())
    selectable = ~jnp.isin(token_ids, jnp.array(special))
    width = token_ids.shape[1]
    row, place = jnp.arange(len(token_ids))[:, None], jnp.arange(width)[None]

    def previous(x):
        return jnp.pad(x[:, :-1], [(0, 0), (1, 0)])

    # n-grams of neighbours, with p(n) = (1/n) / sum(1/k).
    logits = -jnp.log(jnp.arange(1.0, NGRAM + 1))
    sizes = 1 + jax.random.categorical(ngram_key, logits, shape=token_ids.shape)
    ends = jnp.cumsum(sizes, axis=1)
    begins = jnp.zeros(token_ids.shape, bool).at[row, ends].set(True, mode="drop")
    ngrams = jnp.cumsum(begins | ~previous(selectable), axis=1) - 1

    # Tokens by n-gram in random order, then the unselectable ones.
    draws = jax.random.uniform(choice_key, token_ids.shape)
    draws = jnp.where(selectable, jnp.take_along_axis(draws, ngrams, axis=1), 2.0)
    order = jnp.argsort(draws, axis=1)
    in_order = jnp.take_along_axis(ngrams, order, axis=1)
    is_first = (in_order != previous(in_order)) | (place == 0)
    before = jax.lax.cummax(jnp.where(is_first, place, 0), axis=1)
    # The n-gram that reaches the budget is masked whole, on average (NGRAM - 1) / 4
    # tokens beyond it. Rounded up or down at random, so that the average is the rate.
    budget = mask_rate * selectable.sum(axis=1, keepdims=True) - (NGRAM - 1) / 4
    budget = jnp.floor(budget + jax.random.uniform(budget_key, budget.shape))
    chosen = before < jnp.maximum(budget, 1)
    chosen &= jnp.take_along_axis(selectable, order, axis=1)

    # The chosen tokens are the first in order.
    most = min(math.ceil(max(MASK_RATES) * width) + NGRAM, width)
    positions, chosen = order[:, :most], chosen[:, :most]
    mask_ids = jnp.take_along_axis(token_ids, positions, axis=1)
    allowed = np.setdiff1d(np.arange(settings["size"]["vocabulary_size"]), special)
    random_ids = jax.random.choice(id_key, jnp.array(allowed, "int32"), chosen.shape)
    what = jax.random.uniform(what_key, chosen.shape)
    is_changed = what < MASK_TOKEN_RATE + RANDOM_TOKEN_RATE
    mask_id = settings["special_ids"]["mask"]
    new = jnp.where(what < MASK_TOKEN_RATE, mask_id, random_ids)
    new = jnp.where(chosen & is_changed, new, mask_ids)
    weights = chosen.astype("float32")
    return {
        "token_ids": token_ids.at[row, positions].set(new),
        "mask_positions": positions,
        "mask_ids": mask_ids,
        # Their mean is 1, so that the mean of the losses is that of the predictions.
        "mask_weights": weights / jnp.maximum(weights.mean(), 1e-6),
    }
