"""A block of text into files of masked records; what the workers run."""

import dataclasses
import pathlib

import numpy as np
import tensorflow as tf

from albert_tf.files import complete_file, file_digest
from albert_tf.preprocessing.whole_word_mask_generator import WholeWordMaskGenerator
from albert_tf.pretraining.records import write_records
from albert_tf.pretraining.segment_pairs import (
    ORDERS,
    assemble,
    draw_segment_pairs,
)
from albert_tf.pretraining.sentence_tokens import SentenceTokenizer
from albert_tf.tokenizers import load_tokenizer

# Sequences masked at a time.
ROWS = 256
# Where a block has one document, no segment of another can follow.
LONELY = "sequences without another document"


class ShardMaker:
    """Makes files of records, with the vocabulary and dictionary held ready.

    May be pickled if its segmenter may be; vocabulary and dictionary are then loaded
    again.

    Args:
        settings: a `PretrainingData`.
        directory: string or path, where to write.

    Call arguments:
        index: int, the number of a block of text.
        documents: list of lists of lines, strings: the block.

    Returns:
        A dict: `shards`, for each file a dict of `file`, `bytes`, `sha256` and
        `records`, and `counts`. They depend on the call arguments and settings alone.

    Raises:
        OSError: if a file cannot be written.
    """

    def __init__(self, settings, directory):
        self._settings = settings
        self._directory = pathlib.Path(directory)
        self._tokenizer = load_tokenizer(settings.vocabulary, settings.lowercase)
        # Two sentences are to find room in a sequence.
        longest = max(settings.sequence_length // 2, 1)
        self._sentences = SentenceTokenizer(
            self._tokenizer,
            settings.word_boundaries,
            settings.split_sentences,
            longest,
        )
        self._masks = WholeWordMaskGenerator.for_tokenizer(
            self._tokenizer,
            settings.mask_rate,
            settings.predictions,
            settings.marked_labels,
            ngram=settings.ngram,
        )
        length = settings.sequence_length
        self._mask = tf.function(
            self._masks.call,
            input_signature=[
                tf.TensorSpec([None, length], tf.int32),
                tf.TensorSpec([None, length], tf.bool),
                tf.TensorSpec([2], tf.int32),
            ],
        )

    def __reduce__(self):
        return ShardMaker, (self._settings, self._directory)

    def __call__(self, index, documents):
        sentences = self._sentences(documents)
        counts = {
            "tokens": len(sentences.tokens),
            "records": 0,
            "predictions": 0,
            "sentences without a second": 0,
        }
        shards = []
        # Each is written before the next is drawn: memory does not grow with them.
        for duplicate in range(self._settings.duplicates):
            arrays, dropped = self._sequences(sentences, index, duplicate)
            records = len(arrays["labels"])
            number = index * self._settings.duplicates + duplicate
            path = self._directory / f"pretrain-{number:05d}.tfrecord"
            shards.append({**_write_shard(path, arrays), "records": records})
            counts["records"] += records
            counts["predictions"] += int(arrays["mask_weights"].sum())
            counts["sentences without a second"] += dropped
        if len(sentences.documents) == 1 and "other" in ORDERS[self._settings.order]:
            counts[LONELY] = counts["records"]
        return {"shards": shards, "counts": counts}

    def _sequences(self, sentences, index, duplicate):
        """Masked sequences of all the text, mixed, and how many sentences were lost."""
        settings, tokenizer = self._settings, self._tokenizer
        random = np.random.default_rng([settings.seed, index, duplicate])
        pairs = draw_segment_pairs(
            sentences,
            settings.sequence_length,
            random,
            settings.order,
            settings.short_sequence_rate,
        )
        order = random.permutation(len(pairs.labels))
        mixed = {x: getattr(pairs, x)[order] for x in ("first", "second", "labels")}
        pairs = dataclasses.replace(pairs, **mixed)
        arrays = assemble(
            sentences,
            pairs,
            settings.sequence_length,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
            tokenizer.pad_token_id,
        )
        masked = [
            self._mask(
                arrays["token_ids"][row : row + ROWS],
                arrays["word_starts"][row : row + ROWS],
                random.integers(2**31, size=2).astype("int32"),
            )
            for row in range(0, max(len(pairs.labels), 1), ROWS)
        ]
        for key in masked[0]:
            arrays[key] = np.concatenate([part[key].numpy() for part in masked])
        return {**arrays, "labels": pairs.labels}, pairs.dropped


def _write_shard(path, arrays):
    try:
        with complete_file(path) as temporary:
            write_records(temporary, arrays)
            digest = file_digest(temporary)
            size = temporary.stat().st_size
    except tf.errors.OpError as error:
        raise OSError(
            f"{path} cannot be written: {error.message}. Is the disk full? What was "
            "written before stays; run the same command to go on."
        ) from error
    return {"file": path.name, "bytes": size, "sha256": digest}
