"""Turn blocks of text into shards of records."""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from albert_tf.files import file_digest
from albert_tf.layers.whole_word_mask_generator import check_has_mask
from albert_tf.pretraining.records.records_directory import (
    Shard,
    complete_shard,
    shard_name,
)
from albert_tf.pretraining.records.segment_pairs import (
    ORDERS,
    Sentences,
    TokenizedTexts,
    cut_sequences,
    tokenize_documents,
)
from albert_tf.pretraining.records.shard_files import Arrays, token_dtype
from albert_tf_lite.changes import changed_error
from albert_tf_lite.errors import AlbertError

# Part of every shard's name: increase it when the same text gives other records.
FORMAT = 3


@dataclasses.dataclass(frozen=True)
class PretrainingData:
    """Settings that turn text into records.

    Args:
        vocabulary: string, path of a `vocab.txt` or a SentencePiece model.
        lowercase: bool. Lower-case the text.
        sequence_length: int, at most 65535. Tokens per sequence, including `[CLS]` and
            `[SEP]`.
        segmenter: optional function of a string that returns its words, such as
            `zh.Jieba()`. By default each token is a word.
        split_sentences: optional function of a line that returns its sentences, such
            as `zh.split_sentences`. By default a line is a sentence.
        duplicates: int. How often the text is used, each time in other pairs.
        order: string, the second segment: `"sop"`, `"nsp"`, `"three_way"` or `"none"`.
            It is drawn each time a sequence is read.
        keep_unpaired: bool. Keep a sentence that stands alone as a sequence of one
            segment without a label of sentence order; by default it is left out, as in
            the original, whose code would take it for a labelled one.
        text_field: string, the field of JSON lines that holds the text.
        encoding: optional string, that of the text. By default that of the first
            megabyte of each file.
        document_per_line: bool. Each line of a text file is a document, instead of the
            lines up to an empty one. It does not change JSON lines and files of
            WikiExtractor.
        block_bytes: int. Bytes of text per shard of records.
        seed: int.

    Raises:
        AlbertError: if a value is not allowed.

    Example:
    ```python
    settings = albert_tf.pretraining.PretrainingData(
        "examples/albert_micro_zh/vocab.txt", sequence_length=64, segmenter=zh.Jieba()
    )
    ```
    """

    vocabulary: str
    lowercase: bool = True
    sequence_length: int = 512
    segmenter: Callable[[str], list[str]] | None = None
    split_sentences: Callable[[str], list[str]] | None = None
    duplicates: int = 1
    order: str = "sop"
    keep_unpaired: bool = False
    text_field: str = "text"
    encoding: str | None = None
    document_per_line: bool = False
    block_bytes: int = 4_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise AlbertError(f"Unknown order {self.order!r}. Known: {list(ORDERS)}")
        if not 8 <= self.sequence_length < 2**16:
            raise AlbertError(
                "`sequence_length` must be at least 8 and at most 65535: "
                f"{self.sequence_length}"
            )

    def get_config(self) -> dict[str, Any]:
        """Return the settings as JSON can hold them."""
        config = {x.name: getattr(self, x.name) for x in dataclasses.fields(self)}
        for name in ("segmenter", "split_sentences"):
            if (function := config[name]) is not None:
                shown = getattr(function, "__qualname__", repr(function))
                # The address differs between runs.
                config[name] = re.sub(r" at 0x[0-9a-fA-F]+", "", shown)
        config["vocabulary_sha256"] = file_digest(config.pop("vocabulary"))
        return {"format": FORMAT, **config}


class ShardMaker:
    """Write the shards of a block of text, unless they are complete.

    Pickling leaves out the vocabulary, which is then loaded again.

    Args:
        settings: a `PretrainingData`.
        directory: string, that of the records.
        config: dict, that of the settings; the name of a segmenter may differ between
            processes.
    """

    def __init__(
        self,
        settings: PretrainingData,
        directory: str | os.PathLike,
        config: dict[str, Any],
    ):
        import tensorflow as tf

        self._settings = settings
        self._directory = pathlib.Path(directory)
        self._config = config
        self._tokenizer, self.tokens = load_tokens(
            settings.vocabulary, settings.lowercase
        )
        # Other processes read it again.
        if file_digest(settings.vocabulary) != config["vocabulary_sha256"]:
            raise changed_error(settings.vocabulary)
        self._offsets = tf.function(
            self._tokenizer.tokenize_with_offsets,
            input_signature=[tf.TensorSpec([None], tf.string)],
        )

    def __reduce__(self) -> tuple:
        return ShardMaker, (self._settings, self._directory, self._config)

    def __call__(self, index: int, documents: list[list[str]]) -> list[Shard]:
        """Return the entries of the shards of a block in the manifest.

        Each shard is written before the next is cut, which bounds the memory.
        """
        settings, digest = self._settings, self._digest(documents)
        sentences = functools.cache(lambda: self._sentences(documents))
        shards: list[Shard] = []
        for duplicate in range(settings.duplicates):
            folder = self._directory / shard_name(index, duplicate, digest)
            random = np.random.default_rng([settings.seed, index, duplicate])
            make = functools.partial(self._sequences, sentences, random)
            shards += complete_shard(folder, make)
        return shards

    def _digest(self, documents: list[list[str]]) -> str:
        """Return what the settings and a text add to the names of their shards."""
        text = "\n\n".join("\n".join(document) for document in documents)
        content = json.dumps(self._config, sort_keys=True) + "\n" + text
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def _sentences(self, documents: list[list[str]]) -> Sentences:
        """Return tokenized sentences; warn if many tokens are unknown."""
        from albert_tf.preprocessing.texts import warn_of_unknown

        settings = self._settings
        sentences = tokenize_documents(
            documents,
            self._tokenize,
            settings.segmenter,
            settings.split_sentences,
            # A sequence has room for two sentences.
            longest=settings.sequence_length // 2,
        )
        warn_of_unknown(sentences.tokens, documents, self._tokenizer)
        return sentences

    def _sequences(
        self, sentences: Callable[[], Sentences], random: np.random.Generator
    ) -> Arrays:
        return cut_sequences(
            sentences(),
            self._settings.sequence_length,
            random,
            pairs=bool(ORDERS[self._settings.order]),
            keep_unpaired=self._settings.keep_unpaired,
        )

    def _tokenize(self, texts: list[str]) -> TokenizedTexts:
        import tensorflow as tf

        ids, starts, ends = self._offsets(tf.constant(texts, tf.string))
        dtype = token_dtype(self.tokens["size"])
        return TokenizedTexts(
            ids=ids.flat_values.numpy().astype(dtype),
            starts=starts.flat_values.numpy(),
            ends=ends.flat_values.numpy(),
            counts=ids.row_lengths().numpy(),
        )


def load_tokens(vocabulary: str, lowercase: bool) -> tuple[Any, dict[str, int]]:
    """Return the tokenizer of a vocabulary, and `tokens` of the manifest."""
    from albert_tf.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(vocabulary, lowercase)
    check_has_mask(tokenizer)
    names = ("cls", "sep", "pad", "mask")
    ids = {name: int(getattr(tokenizer, f"{name}_token_id")) for name in names}
    return tokenizer, {"size": int(tokenizer.vocabulary_size()), **ids}
