"""Turn blocks of text into files of records."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.files import complete_file, file_digest
from albert_tf.preprocessing.masked_features import mask_settings
from albert_tf.preprocessing.masking import WholeWordMaskGenerator, check_has_mask
from albert_tf.preprocessing.texts import warn_of_unknown
from albert_tf.pretraining.records import count_records, write_records
from albert_tf.pretraining.segment_pairs import (
    ORDERS,
    Sentences,
    draw_sequences,
    tokenize_documents,
)
from albert_tf.tokenizers import load_tokenizer
from albert_tf_lite.changes import changed_error
from albert_tf_lite.errors import AlbertError

# Part of every shard's name: increase it when the same text gives other records.
FORMAT = 2


@dataclasses.dataclass(frozen=True)
class PretrainingData:
    """Settings that turn text into records.

    Args:
        vocabulary: string, path of a `vocab.txt` or a SentencePiece model.
        lowercase: bool. Lower-case the text.
        sequence_length: int. Tokens per sequence, including `[CLS]` and `[SEP]`.
        segmenter: optional function of a string that returns its words, such as
            `zh.Jieba()`. By default each token is a word.
        split_sentences: optional function of a line that returns its sentences, such
            as `zh.split_sentences`. By default a line is a sentence.
        duplicates: int. How often the text is used, each time in other pairs.
        order: string, the second segment: `"sop"`, `"nsp"`, `"three_way"` or `"none"`.
        keep_unpaired: bool. Keep a sentence that stands alone as a sequence of one
            segment without a label of sentence order; by default it is left out, as in
            the original, whose code would take it for a labelled one.
        masks: optional dict of arguments of `PretrainingRecords.masks`, perhaps empty,
            to write masked records, as the original code reads them. By default masks
            are drawn when records are read.
        text_field: string, the field of JSON lines that holds the text.
        encoding: optional string, that of the text. By default that of the first
            megabyte of each file.
        block_bytes: int. Bytes of text per file of records.
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
    masks: dict[str, Any] | None = None
    text_field: str = "text"
    encoding: str | None = None
    block_bytes: int = 4_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise AlbertError(f"Unknown order {self.order!r}. Known: {list(ORDERS)}")
        if self.sequence_length < 8:
            raise AlbertError(
                f"`sequence_length` must be at least 8: {self.sequence_length}"
            )

    def get_config(self) -> dict[str, Any]:
        """Return the settings as JSON can hold them."""
        config = {x.name: getattr(self, x.name) for x in dataclasses.fields(self)}
        masks = config.pop("masks")
        for name in ("segmenter", "split_sentences"):
            if (function := config[name]) is not None:
                shown = getattr(function, "__qualname__", repr(function))
                # The address differs between runs.
                config[name] = re.sub(r" at 0x[0-9a-fA-F]+", "", shown)
        config["vocabulary_sha256"] = file_digest(config.pop("vocabulary"))
        if masks is not None:
            config |= mask_settings(self.sequence_length, **masks)
        return {"format": FORMAT, **config, "masked": masks is not None}


class ShardMaker:
    """Write the files of records of a block of text, unless they are complete.

    `config` is that of the settings; the name of a segmenter may differ between
    processes. Pickling leaves out the vocabulary, which is then loaded again.
    """

    def __init__(
        self,
        settings: PretrainingData,
        directory: str | os.PathLike,
        config: dict[str, Any],
    ):
        self._settings = settings
        self._directory = pathlib.Path(directory)
        self._config = config
        self._tokenizer = load_tokenizer(settings.vocabulary, settings.lowercase)
        # Other processes read it again.
        if file_digest(settings.vocabulary) != config["vocabulary_sha256"]:
            raise changed_error(settings.vocabulary)
        self._tokenize = tf.function(
            self._tokenizer.tokenize_with_offsets,
            input_signature=[tf.TensorSpec([None], tf.string)],
        )
        check_has_mask(self._tokenizer)
        self._mask: Any = None
        if settings.masks is not None:
            arguments = mask_settings(settings.sequence_length, **settings.masks)
            masks = WholeWordMaskGenerator.for_tokenizer(self._tokenizer, **arguments)
            self._mask = tf.function(masks.call, reduce_retracing=True)

    def __reduce__(self) -> tuple:
        return ShardMaker, (self._settings, self._directory, self._config)

    def __call__(self, index: int, documents: list[list[str]]) -> list[dict[str, Any]]:
        """Return name and number of records of each file."""
        text = "\n\n".join("\n".join(document) for document in documents)
        content = json.dumps(self._config, sort_keys=True) + "\n" + text
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        settings, sentences, shards = self._settings, None, []
        # Each file is written before the next is drawn, which bounds the memory.
        for duplicate in range(settings.duplicates):
            number = index * settings.duplicates + duplicate
            path = self._directory / f"pretrain-{number:05d}-{digest}.tfrecord"
            count = count_records(path) if path.exists() else None
            if count is None:
                sentences = sentences or self._sentences(documents)
                arrays = self._sequences(sentences, index, duplicate)
                try:
                    with complete_file(path) as temporary:
                        write_records(temporary, arrays)
                except tf.errors.OpError as error:
                    raise OSError(
                        f"{path} cannot be written: {error.message}. Complete files "
                        "are kept; run the same command to resume."
                    ) from error
                count = len(arrays["labels"])
            shards.append({"file": path.name, "records": count})
        return shards

    def _sentences(self, documents: list[list[str]]) -> Sentences:
        """Return tokenized sentences; warn if many tokens are unknown."""
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
        self, sentences: Sentences, index: int, duplicate: int
    ) -> dict[str, np.ndarray]:
        """Return shuffled sequences."""
        settings, tokenizer = self._settings, self._tokenizer
        random = np.random.default_rng([settings.seed, index, duplicate])
        arrays = draw_sequences(
            sentences,
            settings.sequence_length,
            random,
            (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id),
            settings.order,
            keep_unpaired=settings.keep_unpaired,
        )
        order = random.permutation(len(arrays["labels"]))
        arrays = {name: values[order] for name, values in arrays.items()}
        if self._mask is not None:
            seed = random.integers(2**31, size=2).astype("int32")
            masked = self._mask(arrays["token_ids"], arrays["word_starts"], seed)
            arrays.update({name: values.numpy() for name, values in masked.items()})
        return arrays
