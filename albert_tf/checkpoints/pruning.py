"""Pruning a vocabulary: a model with only the tokens that its texts need."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.layout import numbers_of
from albert_tf.preprocessing.words import CHINESE
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError

_CHUNK = 1024


def prune_vocabulary(
    model: keras.Model,
    corpus: Iterable[str],
    tokenizer: TextTokenizer | None = None,
    **options: Any,
) -> keras.Model:
    """Return a smaller model for texts like those of a corpus.

    It keeps the rows of the token table, and of the bias of a masked language model,
    that the corpus needs. Its outputs for texts of kept tokens equal those of `model`
    bit for bit. A removed token becomes its smaller pieces, or `[UNK]`. For more
    control, call `needed_tokens`, then `keep_tokens`.

    Args:
        model: an `AlbertBackbone`, or a task on one. It is not changed.
        corpus: strings, such as the training texts and many unlabelled ones. For a
            model of pairs, the texts of both sides.
        tokenizer: the `WordPieceTokenizer` of a model that takes ids; other models
            have one.
        **options: `min_count`, `keep`, `ascii_characters`; see `needed_tokens`.

    Returns:
        A model of the same class, compiled with the defaults. A task of texts has the
        new vocabulary in its preprocessor. For a model of ids build a tokenizer of the
        same tokens: `WordPieceTokenizer(needed_tokens(corpus, tokenizer))`.

    Raises:
        TypeError: if `model` is neither.
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
    if "masked_lm_head" in getattr(model, "heads", ()):
        options.setdefault("marked_characters", True)
    return keep_tokens(model, needed_tokens(corpus, tokenizer, **options), tokenizer)


def needed_tokens(
    corpus: Iterable[str],
    tokenizer: TextTokenizer,
    min_count: int = 1,
    keep: Sequence[str] = (),
    ascii_characters: bool = True,
    marked_characters: bool = False,
) -> list[str]:
    """Return the tokens that a corpus needs, in the order of the vocabulary.

    Args:
        corpus: strings.
        tokenizer: a `WordPieceTokenizer`.
        min_count: int. Rarer tokens are left out. With 1 every text of the corpus
            keeps its tokens.
        keep: further tokens to keep.
        ascii_characters: bool. Keep each ASCII character, with and without `##`, so
            that a new number or Latin word can still be spelled.
        marked_characters: bool. Beside a Chinese character also keep it with `##`,
            which is its label within words in albert_zh's masked language models.

    Returns:
        A list of tokens, which contains the special ones.

    Raises:
        AlbertError: if the tokenizer is not a `WordPieceTokenizer`, the corpus is
            empty, or `keep` names an unknown token.

    Example:
    ```python
    checkpoint = albert_tf.checkpoints.open_checkpoint("examples/albert_micro_zh")
    tokens = albert_tf.checkpoints.needed_tokens(["今天很好"], checkpoint.tokenizer())
    ```
    """
    _check_word_piece(tokenizer)
    if isinstance(corpus, (str, bytes)):
        raise TypeError("`corpus` should be a list of strings, not one string.")
    if min_count < 1:
        raise AlbertError(f"`min_count` should be 1 at least. Received: {min_count}")
    tokens = tokenizer.get_vocabulary()
    # The tokenizer returns the last id of a repeated token.
    ids = {token: i for i, token in enumerate(tokens)}
    needed = _counts(corpus, tokenizer, ids) >= min_count
    needed[tokenizer.special_token_ids] = True
    needed[[tokenizer.token_to_id(token) for token in keep]] = True
    if ascii_characters:
        characters = [chr(code) for code in range(ord("!"), ord("~") + 1)]
        spelled = [*characters, *(f"##{x}" for x in characters)]
        needed[[ids[token] for token in spelled if token in ids]] = True
    if marked_characters:
        for i in np.flatnonzero(needed):
            marked = ids.get(f"##{tokens[i]}")
            if CHINESE.fullmatch(tokens[i]) and marked is not None:
                needed[marked] = True
    return [tokens[i] for i in np.flatnonzero(needed)]


def keep_tokens(
    model: keras.Model, tokens: Sequence[str], tokenizer: TextTokenizer | None = None
) -> keras.Model:
    """Return a model with a part of the vocabulary; see `prune_vocabulary`.

    Args:
        model, tokenizer: see `prune_vocabulary`.
        tokens: tokens of the vocabulary; their index in the list is their new id.

    Raises:
        TypeError: as `prune_vocabulary`.
        AlbertError: if a token is not in the vocabulary, or a special one is missing.
    """
    tokenizer = _tokenizer_of(model, tokenizer)
    rows = [tokenizer.token_to_id(token) for token in tokens]
    kept = WordPieceTokenizer(
        list(tokens), tokenizer.lowercase, tokenizer.compute_dtype
    )
    smaller = _with_vocabulary(model, kept)
    if [x.path for x in model.weights] != [x.path for x in smaller.weights]:
        raise AlbertError(
            "The weights are not those of the model's config, as with LoRA. Save the "
            "model, load it into a plain one, and prune that."
        )
    for old, new in zip(model.weights, smaller.weights, strict=True):
        new.assign(_select_rows(old, new.shape, rows))
    return smaller


def _with_vocabulary(model: keras.Model, tokenizer: TextTokenizer) -> keras.Model:
    """Return a model of the same config for another vocabulary."""
    backbone = getattr(model, "backbone", model)
    size = {"vocabulary_size": tokenizer.vocabulary_size()}
    smaller = type(backbone).from_config({**backbone.get_config(), **size})
    if model is backbone:
        return smaller
    parts = {"backbone": smaller, "preprocessor": None}
    if model.preprocessor is not None:
        parts["preprocessor"] = model.preprocessor.with_tokenizer(tokenizer)
    return type(model).from_config({**model.get_config(), **parts})


def _select_rows(
    weight: keras.Variable, shape: Sequence[int], rows: list[int]
) -> np.ndarray:
    """Return a weight with only these rows along the axes of another length."""
    numbers = numbers_of(weight.numpy())
    for axis, (old, new) in enumerate(zip(weight.shape, shape, strict=True)):
        if old != new:
            numbers = np.take(numbers, rows, axis=axis)
    return numbers


def _counts(
    corpus: Iterable[str], tokenizer: TextTokenizer, ids: dict[str, int]
) -> np.ndarray:
    """Return how often each token occurs, an int array [vocabulary_size]."""
    counts = np.zeros(tokenizer.vocabulary_size(), "int64")
    engine = WordPieceTokenizer(tokenizer.get_vocabulary(), tokenizer.lowercase)
    texts, is_empty = iter(corpus), True
    while chunk := list(itertools.islice(texts, _CHUNK)):
        is_empty = False
        found = engine(chunk).flat_values.numpy()
        counts += np.bincount(found, minlength=len(counts))
        # An unknown word stays unknown only if its first pieces stay: without them,
        # shorter pieces might spell it.
        for word in engine.unknown_words(chunk):
            for piece in _first_pieces(word, ids):
                counts[ids[piece]] += 1
    if is_empty:
        raise AlbertError("`corpus` is empty. Pass texts like those to predict.")
    return counts


def _first_pieces(word: str, ids: dict[str, int]) -> Iterator[str]:
    """Yield the pieces that WordPiece finds before it finds the word unknown."""
    start, mark = 0, ""
    while start < len(word):
        ends = range(len(word), start, -1)
        end = next((x for x in ends if mark + word[start:x] in ids), None)
        if end is None:
            return
        yield mark + word[start:end]
        start, mark = end, "##"


def _tokenizer_of(model: keras.Model, tokenizer: TextTokenizer | None) -> TextTokenizer:
    backbone = getattr(model, "backbone", model)
    if not isinstance(backbone, AlbertBackbone):
        raise TypeError(
            "`model` should be an AlbertBackbone or a task on one. Received: "
            f"{type(model).__name__}"
        )
    own = getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    tokenizer = own or tokenizer
    if tokenizer is None:
        raise AlbertError(
            "This model takes ids and has no vocabulary. Pass it with `tokenizer=`, "
            'for example WordPieceTokenizer("vocab.txt").'
        )
    _check_word_piece(tokenizer)
    if tokenizer.vocabulary_size() != backbone.vocabulary_size:
        raise AlbertError(
            f"The vocabulary has {tokenizer.vocabulary_size()} tokens, the model "
            f"{backbone.vocabulary_size}. Use the one that it was trained with."
        )
    return tokenizer


def _check_word_piece(tokenizer: Any) -> None:
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise AlbertError(
            "Only a WordPiece vocabulary can be pruned. The pieces of a SentencePiece "
            "model compete by their scores, so that texts would get other ids. "
            f"Received: {type(tokenizer).__name__}"
        )
