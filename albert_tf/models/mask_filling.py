"""Answers for masks, and the pseudo-perplexity of texts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.sentence_piece import SPACE_PIECE


def fill_masks(model, texts, top_k, targets, batch_size) -> list:
    """See `AlbertMaskedLM.fill`."""
    single = isinstance(texts, str)
    texts = [texts] if single else list(texts)
    tokenizer = model.preprocessor.tokenizer
    mask = re.escape(tokenizer.mask_token)
    places = [[m.span() for m in re.finditer(mask, text)] for text in texts]
    chosen = None if targets is None else _target_ids(tokenizer, targets)
    for i, found in enumerate(places):
        if not found:
            raise AlbertError(
                f"Text {i} has no {tokenizer.mask_token} to fill: {texts[i]!r}"
            )
    logits = model.predict(texts, batch_size=batch_size, verbose=0)
    filled = []
    for i, (text, found, rows) in enumerate(zip(texts, places, logits, strict=True)):
        if len(rows) < len(found):
            raise AlbertError(
                f"Text {i} has {len(found)} masks, but only {len(rows)} within "
                f"sequence_length={model.preprocessor.sequence_length} tokens. Shorten "
                f"it: {text[:50]!r}"
            )
        scores = model.probabilities(tf.constant(rows)).numpy()
        answers = [
            _answers(text, place, row, top_k, chosen, tokenizer)
            for place, row in zip(found, scores, strict=True)
        ]
        filled.append(answers[0] if len(answers) == 1 else answers)
    return filled[0] if single else filled


def _target_ids(tokenizer, targets):
    """The ids of tokens, each once, in their order."""
    targets = [targets] if isinstance(targets, str) else list(targets)
    ids = {token: i for i, token in enumerate(tokenizer.get_vocabulary())}
    found = [ids.get(x, ids.get(SPACE_PIECE + x)) for x in targets]
    missing = [x for x, i in zip(targets, found, strict=True) if i is None]
    if missing or not targets:
        raise AlbertError(
            "`targets` should be tokens of the vocabulary, such as single Chinese "
            f"characters. Not in it: {missing}"
        )
    return np.array(list(dict.fromkeys(found)))


def _answers(text, place, scores, top_k, chosen, tokenizer):
    """The answers for one mask, of the probabilities of all tokens."""
    start, end = place
    ids = np.arange(len(scores)) if chosen is None else chosen
    answers = []
    for token in ids[np.argsort(-scores[ids], kind="stable")[:top_k]].tolist():
        shown = tokenizer.id_to_token(token).replace(SPACE_PIECE, " ").strip()
        answers.append(
            {
                "score": float(scores[token]),
                "token": token,
                "token_str": shown,
                "sequence": text[:start] + shown.removeprefix("##") + text[end:],
                "start": start,
                "end": end,
            }
        )
    return answers


def pseudo_perplexity(model, texts: Any, batch_size: int) -> np.ndarray:
    """See `AlbertMaskedLM.pseudo_perplexity`."""
    preprocessor = model.preprocessor
    tokenizer, packer = preprocessor.tokenizer, preprocessor.packer
    packed = preprocessor.pack_texts(texts)
    tokens, first_lengths = packed.tokens, packed.first_lengths
    lengths = tokens.row_lengths().numpy()
    # A row of a batch for each token that is not special.
    rows = np.repeat(np.arange(len(lengths)), lengths)
    positions = np.concatenate([np.arange(length) for length in lengths] or [[]])
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id]
    is_text = ~np.isin(tokens.flat_values.numpy(), special)
    rows, positions = rows[is_text], positions[is_text].astype("int32")

    @tf.function(reduce_retracing=True)
    def log_probability(features, positions):
        there = tf.one_hot(positions, tf.shape(features["token_ids"])[1], True, False)
        masked = tf.where(there, tokenizer.mask_token_id, features["token_ids"])
        masks = {"token_ids": masked, "mask_positions": positions[:, tf.newaxis]}
        logits = model({**features, **masks}, training=False)
        probabilities = model.probabilities(logits[:, 0])
        labels = tf.boolean_mask(features["token_ids"], there)
        # Never log 0, of a token that rounds to impossible.
        likely = tf.gather(probabilities, labels, batch_dims=1)
        return tf.math.log(tf.maximum(likely, 1e-37))

    logs = np.zeros(len(rows))
    by_length = np.argsort(lengths[rows], kind="stable")
    for start in range(0, len(rows), batch_size):
        some = by_length[start : start + batch_size]
        features = packer.pad(
            tf.gather(tokens, rows[some]), tf.gather(first_lengths, rows[some])
        )
        logs[some] = log_probability(features, tf.constant(positions[some]))
    counts = np.bincount(rows, minlength=len(lengths))
    sums = np.bincount(rows, weights=logs, minlength=len(lengths))
    with np.errstate(invalid="ignore"):
        return np.exp(-sums / counts)
