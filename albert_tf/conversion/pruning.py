"""A model with the tokens only that its texts need."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.layout import numbers_of
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing.marked_labels import CHINESE
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError

_CHUNK = 1024


def prune_vocabulary(
    model: AlbertBackbone | AlbertTask,
    corpus: Iterable[str],
    tokenizer: TextTokenizer | None = None,
    **options,
) -> AlbertBackbone | AlbertTask:
    """A smaller model for texts like those of a corpus.

    It has the rows of the token table, and of the bias of a masked language model,
    that the corpus needs. Its outputs for a text of kept tokens are those of `model`,
    bit for bit; a token that is left out is read as its smaller pieces, or as
    `[UNK]`. For more control: `needed_tokens`, then `keep_tokens`.

    Args:
        model: an `AlbertBackbone`, or a task on one. It stays as it is.
        corpus: strings, such as the texts that the model was trained on and many like
            those that it will get; of a model of pairs, the texts of both sides.
        tokenizer: the `WordPieceTokenizer` of a model that takes ids; others have one.
        **options: `min_count`, `keep`, `ascii_characters`, as for `needed_tokens`.

    Returns:
        A model of the same class, compiled with the defaults. A task of texts has the
        new vocabulary in its preprocessor. For a model of ids make a tokenizer of the
        same tokens: `WordPieceTokenizer(needed_tokens(corpus, tokenizer))`.

    Raises:
        TypeError: if `model` is neither, or the tokenizer is of another kind.
        AlbertError: if a model of ids comes without tokenizer, or the corpus is empty.

    Example:
    ```python
    small = albert_tf.conversion.prune_vocabulary(classifier, train_texts, min_count=2)
    small.save_to_preset("small")
    ```
    """
    tokenizer = _tokenizer_of(model, tokenizer)
    if "masked_lm_head" in getattr(model, "heads", ()):
        options.setdefault("marked_characters", True)
    tokens = needed_tokens(corpus, tokenizer, **options)
    return keep_tokens(model, tokens, tokenizer)


def needed_tokens(
    corpus: Iterable[str],
    tokenizer: TextTokenizer,
    min_count: int = 1,
    keep: Sequence[str] = (),
    ascii_characters: bool = True,
    marked_characters: bool = False,
) -> list[str]:
    """The tokens that the texts of a corpus need, in the order of the vocabulary.

    Args:
        corpus: strings.
        tokenizer: a `WordPieceTokenizer`.
        min_count: int. Tokens that occur less often are left out. With 1 every text of
            the corpus keeps its ids.
        keep: further tokens to keep.
        ascii_characters: bool. Keep each ASCII character, with and without `##`, so
            that a new number or Latin word can still be spelled.
        marked_characters: bool. Beside a Chinese character also keep it with `##`,
            which is its label within words in albert_zh's masked language models.

    Returns:
        A list of tokens; the special ones are always in it.

    Raises:
        TypeError: if the tokenizer is no `WordPieceTokenizer`.
        AlbertError: if the corpus is empty, or `keep` names an unknown token.
    """
    _check_word_piece(tokenizer)
    if isinstance(corpus, (str, bytes)):
        raise TypeError("`corpus` should be a list of strings, not one string.")
    if min_count < 1:
        raise AlbertError(f"`min_count` should be 1 at least. Received: {min_count}")
    tokens = tokenizer.get_vocabulary()
    # Of a repeated token the last, as the tokenizer gives it.
    ids = {token: i for i, token in enumerate(tokens)}
    needed = _counts(corpus, tokenizer, ids) >= min_count
    needed[tokenizer.special_token_ids] = True
    needed[[tokenizer.token_to_id(token) for token in keep]] = True
    if ascii_characters:
        characters = (chr(code) for code in range(ord("!"), ord("~") + 1))
        spelled = ((x, f"##{x}") for x in characters)
        for token in itertools.chain.from_iterable(spelled):
            if token in ids:
                needed[ids[token]] = True
    if marked_characters:
        for i in np.flatnonzero(needed):
            marked = ids.get(f"##{tokens[i]}")
            if CHINESE.fullmatch(tokens[i]) and marked is not None:
                needed[marked] = True
    return [tokens[i] for i in np.flatnonzero(needed)]


def keep_tokens(
    model: AlbertBackbone | AlbertTask,
    tokens: Sequence[str],
    tokenizer: TextTokenizer | None = None,
) -> AlbertBackbone | AlbertTask:
    """A model with a part of the vocabulary: what `prune_vocabulary` makes.

    Args:
        model, tokenizer: as for `prune_vocabulary`.
        tokens: tokens of the vocabulary; their place in the list is their new id.

    Raises:
        TypeError: as `prune_vocabulary`.
        AlbertError: if a token is not in the vocabulary, or a special one is missing.
    """
    tokenizer = _tokenizer_of(model, tokenizer)
    rows = [tokenizer.token_to_id(token) for token in tokens]
    kept = WordPieceTokenizer(
        list(tokens), tokenizer.lowercase, tokenizer.compute_dtype
    )
    smaller = _with_rows(model, kept)
    pairs = list(zip(model.weights, smaller.weights, strict=False))
    if len(model.weights) != len(smaller.weights) or any(
        old.path != new.path for old, new in pairs
    ):
        raise AlbertError(
            "The weights are not those of the model's config, as with LoRA. Save the "
            "model, load it into a plain one, and prune that."
        )
    for old, new in pairs:
        new.assign(_rows_of(old, new.shape, rows))
    return smaller


def _with_rows(model, tokenizer):
    """A model of the same config for another vocabulary."""
    backbone = getattr(model, "backbone", model)
    size = {"vocabulary_size": tokenizer.vocabulary_size()}
    smaller = type(backbone).from_config({**backbone.get_config(), **size})
    if model is backbone:
        return smaller
    parts = {"backbone": smaller, "preprocessor": None}
    if model.preprocessor is not None:
        parts["preprocessor"] = model.preprocessor.with_tokenizer(tokenizer)
    return type(model).from_config({**model.get_config(), **parts})


def _rows_of(weight, shape, rows):
    """A weight, with these rows only where its shape has another size."""
    numbers = numbers_of(weight.numpy())
    for axis, (old, new) in enumerate(zip(weight.shape, shape, strict=True)):
        if old != new:
            numbers = np.take(numbers, rows, axis=axis)
    return numbers


def _counts(corpus, tokenizer, ids):
    """How often each token occurs, an int array [vocabulary_size]."""
    counts = np.zeros(tokenizer.vocabulary_size(), "int64")
    engine = WordPieceTokenizer(tokenizer.get_vocabulary(), tokenizer.lowercase)
    texts, is_empty = iter(corpus), True
    while chunk := list(itertools.islice(texts, _CHUNK)):
        is_empty = False
        found = engine(chunk).flat_values.numpy()
        counts += np.bincount(found, minlength=len(counts))
        # A word is unknown for what stops its pieces. Without those, shorter ones might
        # spell it.
        for word in engine.unknown_words(chunk):
            for piece in _first_pieces(word, ids):
                counts[ids[piece]] += 1
    if is_empty:
        raise AlbertError("`corpus` is empty. Give the texts that the model is for.")
    return counts


def _first_pieces(word, ids):
    """The pieces that WordPiece finds in a word before it finds it unknown."""
    start, mark = 0, ""
    while start < len(word):
        ends = range(len(word), start, -1)
        end = next((x for x in ends if mark + word[start:x] in ids), None)
        if end is None:
            return
        yield mark + word[start:end]
        start, mark = end, "##"


def _tokenizer_of(model, tokenizer):
    if not isinstance(model, (AlbertBackbone, AlbertTask)):
        raise TypeError(
            "`model` should be an AlbertBackbone or a task on one. Received: "
            f"{type(model).__name__}"
        )
    own = getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    tokenizer = own or tokenizer
    if tokenizer is None:
        raise AlbertError(
            "This model takes ids, and does not know its vocabulary. Give it with "
            '`tokenizer=`, such as WordPieceTokenizer("vocab.txt").'
        )
    _check_word_piece(tokenizer)
    backbone = getattr(model, "backbone", model)
    if tokenizer.vocabulary_size() != backbone.vocabulary_size:
        raise AlbertError(
            f"The vocabulary has {tokenizer.vocabulary_size()} tokens, the model "
            f"{backbone.vocabulary_size}. Use the one that it was trained with."
        )
    return tokenizer


def _check_word_piece(tokenizer):
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise AlbertError(
            "Tokens can be left out of a WordPiece vocabulary. The pieces of a "
            "SentencePiece model compete by their scores, and without some of them "
            f"texts get other ids. Received: {type(tokenizer).__name__}"
        )
