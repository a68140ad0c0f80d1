"""Pruning a vocabulary: a model with only the tokens that its texts need."""

import collections
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import numpy as np

from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.tokenizers.checks import check_vocabulary
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts
from albert_tf_lite.words import CHINESE

_CHUNK = 1024
_ASCII = [chr(code) for code in range(ord("!"), ord("~") + 1)]


def prune_vocabulary(
    model: keras.Model,
    corpus: Iterable[str],
    tokenizer: TextTokenizer | None = None,
    min_count: int = 1,
) -> tuple[Any, WordPieceTokenizer]:
    """Return a smaller model for texts like those of a corpus, and its tokenizer.

    Keeps the rows of the token table, and of the bias of a masked language model, for
    the tokens of the corpus, the special ones, and each ASCII character with and
    without `##`, so that a new number or Latin word can still be spelled. Outputs for
    texts of kept tokens equal those of `model` bit for bit. A removed token becomes
    its smaller pieces, or `[UNK]`.

    Args:
        model: an `AlbertBackbone`, or a task on one. It is not changed.
        corpus: strings, such as the training texts and many unlabelled ones. For a
            model of pairs, the texts of both sides.
        tokenizer: the `WordPieceTokenizer` of a model that takes ids; other models
            have one.
        min_count: int. Rarer tokens are left out.

    Returns:
        A pair of a model of the same class, compiled with the defaults, and the
        tokenizer of the kept tokens, which is also in the preprocessor of a task of
        texts.

    Raises:
        AlbertError: if a model of ids comes without tokenizer, the tokenizer is not a
            `WordPieceTokenizer`, or the corpus is empty.

    Example:
    ```python
    classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
        "albert_micro_zh", num_classes=2
    )
    texts = ["房间很干净", "太吵了"]
    small, tokenizer = albert_tf.checkpoints.prune_vocabulary(classifier, texts)
    small.save_to_preset("small")
    ```
    """
    if not isinstance(corpus, Iterator):
        corpus = as_texts(corpus, "corpus")
    if preprocessor := getattr(model, "preprocessor", None):
        tokenizer = preprocessor.tokenizer
    if tokenizer is None:
        raise AlbertError(
            "This model takes ids and has no vocabulary. Pass it with `tokenizer=`, "
            'for example WordPieceTokenizer("vocab.txt").'
        )
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise AlbertError(
            "Only a WordPiece vocabulary can be pruned, because the pieces of a "
            "SentencePiece model compete by their scores. Received: "
            f"{type(tokenizer).__name__}"
        )
    backbone = getattr(model, "backbone", model)
    check_vocabulary(tokenizer, backbone.vocabulary_size, model.name)
    # A masked language model of albert_zh labels characters within words with `##`.
    marked = "masked_lm_head" in getattr(model, "heads", ())
    tokens = _needed_tokens(corpus, tokenizer, min_count, marked)
    kept = tokenizer.with_settings(vocabulary=tokens)
    config = {**backbone.get_config(), "vocabulary_size": len(tokens)}
    smaller = type(backbone).from_config(config)
    if model is not backbone:
        if preprocessor is not None:
            preprocessor = preprocessor.with_tokenizer(kept)
        parts = {"backbone": smaller, "preprocessor": preprocessor}
        smaller = type(model).from_config({**model.get_config(), **parts})
    rows = [tokenizer.token_to_id(token) for token in tokens]
    for old, new in zip(model.weights, smaller.weights, strict=True):
        value = old.numpy()
        for axis, (before, after) in enumerate(zip(old.shape, new.shape, strict=True)):
            if before != after:
                value = np.take(value, rows, axis)
        new.assign(value)
    return smaller, kept


def _needed_tokens(
    corpus: Iterable[str], tokenizer: WordPieceTokenizer, min_count: int, marked: bool
) -> list[str]:
    tokens = tokenizer.get_vocabulary()
    engine = tokenizer.with_settings(dtype="int32", special_tokens_in_strings=False)
    counts: collections.Counter = collections.Counter()
    texts = iter(corpus)
    while chunk := list(itertools.islice(texts, _CHUNK)):
        counts.update(engine(chunk).flat_values.numpy().tolist())
    if not counts:
        raise AlbertError("`corpus` is empty. Pass texts like those to predict.")
    needed = {tokens[i] for i, count in counts.items() if count >= min_count}
    needed.update(tokenizer.special_tokens, tokenizer.added_tokens)
    needed.update(_ASCII, [f"##{x}" for x in _ASCII])
    if marked:
        needed.update([f"##{x}" for x in needed if CHINESE.fullmatch(x)])
    return [token for token in tokens if token in needed]
