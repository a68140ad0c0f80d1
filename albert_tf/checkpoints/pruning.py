"""Pruning a vocabulary: a model with only the tokens that its texts need."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from albert_tf.backbone.presets import check_vocabulary
from albert_tf.preprocessing.words import CHINESE
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError

_CHUNK = 1024


def prune_vocabulary(
    model: keras.Model,
    corpus: Iterable[str],
    tokenizer: TextTokenizer | None = None,
    min_count: int = 1,
) -> keras.Model:
    """Return a smaller model for texts like those of a corpus.

    It keeps the rows of the token table, and of the bias of a masked language model,
    that the corpus needs. Its outputs for texts of kept tokens equal those of `model`
    bit for bit. A removed token becomes its smaller pieces, or `[UNK]`.

    Args:
        model: an `AlbertBackbone`, or a task on one. It is not changed.
        corpus: strings, such as the training texts and many unlabelled ones. For a
            model of pairs, the texts of both sides.
        tokenizer: the `WordPieceTokenizer` of a model that takes ids; other models
            have one.
        min_count: int. Rarer tokens are left out.

    Returns:
        A model of the same class, compiled with the defaults. A task of texts has the
        new vocabulary in its preprocessor. For a model of ids, build a tokenizer of
        the same tokens: `WordPieceTokenizer(needed_tokens(corpus, tokenizer))`.

    Raises:
        AlbertError: if a model of ids comes without tokenizer, the tokenizer is of
            another kind, or the corpus is empty.

    Example:
    ```python
    classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
        "examples/albert_micro_zh", num_classes=2
    )
    small = albert_tf.checkpoints.prune_vocabulary(classifier, ["房间很干净", "太吵了"])
    small.save_to_preset("small")
    ```
    """
    tokenizer = _tokenizer_of(model, tokenizer)
    marked = "masked_lm_head" in getattr(model, "heads", ())
    tokens = needed_tokens(corpus, tokenizer, min_count, marked)
    return keep_tokens(model, tokens, tokenizer)


def needed_tokens(
    corpus: Iterable[str],
    tokenizer: TextTokenizer,
    min_count: int = 1,
    marked_characters: bool = False,
) -> list[str]:
    """Return the tokens that a corpus needs, in their order.

    Special tokens are included, and each ASCII character with and without `##`, so
    that a new number or Latin word can still be spelled.

    Args:
        corpus: strings.
        tokenizer: a `WordPieceTokenizer`.
        min_count: int. Rarer tokens are left out.
        marked_characters: bool. Beside a Chinese character also keep it with `##`,
            which is its label within words in albert_zh's masked language models.

    Raises:
        AlbertError: if the tokenizer is not a `WordPieceTokenizer`, or the corpus is
            empty.

    Example:
    ```python
    checkpoint = albert_tf.checkpoints.open_checkpoint("examples/albert_micro_zh")
    tokens = albert_tf.checkpoints.needed_tokens(["今天很好"], checkpoint.tokenizer())
    ```
    """
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise AlbertError(
            "Only a WordPiece vocabulary can be pruned, because the pieces of a "
            "SentencePiece model compete by their scores. Received: "
            f"{type(tokenizer).__name__}"
        )
    tokens = tokenizer.get_vocabulary()
    engine = WordPieceTokenizer(tokens, tokenizer.lowercase)
    counts: collections.Counter = collections.Counter()
    texts = iter(corpus)
    while chunk := list(itertools.islice(texts, _CHUNK)):
        counts.update(engine(chunk).flat_values.numpy().tolist())
    if not counts:
        raise AlbertError("`corpus` is empty. Pass texts like those to predict.")
    needed = {tokens[i] for i, count in counts.items() if count >= min_count}
    characters = [chr(code) for code in range(ord("!"), ord("~") + 1)]
    needed.update(tokenizer.special_tokens, characters, [f"##{x}" for x in characters])
    if marked_characters:
        needed.update([f"##{x}" for x in needed if CHINESE.fullmatch(x)])
    return [token for token in tokens if token in needed]


def keep_tokens(
    model: keras.Model, tokens: Sequence[str], tokenizer: TextTokenizer | None = None
) -> keras.Model:
    """Return a model with only these tokens, whose new ids are their indexes."""
    tokenizer = _tokenizer_of(model, tokenizer)
    backbone = getattr(model, "backbone", model)
    size = {"vocabulary_size": len(tokens)}
    smaller = type(backbone).from_config({**backbone.get_config(), **size})
    if model is not backbone:
        parts: dict[str, Any] = {"backbone": smaller, "preprocessor": None}
        if model.preprocessor is not None:
            kept = WordPieceTokenizer(
                list(tokens), tokenizer.lowercase, tokenizer.compute_dtype
            )
            parts["preprocessor"] = model.preprocessor.with_tokenizer(kept)
        smaller = type(model).from_config({**model.get_config(), **parts})
    if [x.path for x in model.weights] != [x.path for x in smaller.weights]:
        raise AlbertError(
            "The weights are not those of the model's config, as with LoRA. Save the "
            "model, load it into a plain one, and prune that."
        )
    rows = [tokenizer.token_to_id(token) for token in tokens]
    for old, new in zip(model.weights, smaller.weights, strict=True):
        value = old.numpy()
        for axis, (before, after) in enumerate(zip(old.shape, new.shape, strict=True)):
            if before != after:
                value = np.take(value, rows, axis)
        new.assign(value)
    return smaller


def _tokenizer_of(model: keras.Model, tokenizer: TextTokenizer | None) -> TextTokenizer:
    if preprocessor := getattr(model, "preprocessor", None):
        tokenizer = preprocessor.tokenizer
    if tokenizer is None:
        raise AlbertError(
            "This model takes ids and has no vocabulary. Pass it with `tokenizer=`, "
            'for example WordPieceTokenizer("vocab.txt").'
        )
    size = getattr(model, "backbone", model).vocabulary_size
    check_vocabulary(tokenizer, size, model.name)
    return tokenizer
