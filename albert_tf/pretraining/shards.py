"""A block of text into files of records; what the workers run."""

import pathlib

import numpy as np
import tensorflow as tf

from albert_tf.files import complete_file, file_digest
from albert_tf.preprocessing.whole_word_mask_generator import WholeWordMaskGenerator
from albert_tf.pretraining.records import write_records
from albert_tf.pretraining.segment_pairs import (
    ORDERS,
    SegmentPairs,
    assemble,
    draw_segment_pairs,
)
from albert_tf.pretraining.sentence_tokens import SentenceTokenizer
from albert_tf.tokenizers import load_tokenizer

# Sequences masked at a time.
ROWS = 256
# Counted where a block has one document: no segment of another can follow.
ONE_DOCUMENT = "sequences without another document"


class ShardMaker:
    """Makes files of records, with the vocabulary and dictionary held ready.

    Called with the number of a block of text and its documents, lists of lines. Returns
    a dict: `shards`, for each file a dict of `file`, `bytes`, `sha256` and `records`,
    and `counts`; all of it depends on the block and the settings alone. Pickled without
    vocabulary and dictionary, which are then loaded again.
    """

    def __init__(self, settings, directory):
        self._settings = settings
        self._directory = pathlib.Path(directory)
        self._tokenizer = load_tokenizer(settings.vocabulary, settings.lowercase)
        self._sentences = SentenceTokenizer(
            self._tokenizer,
            settings.segmenter,
            settings.split_sentences,
            # Two sentences are to find room in a sequence.
            longest=max(settings.sequence_length // 2, 1),
        )
        # Also where nothing is masked yet: it refuses a vocabulary without [MASK].
        masks = WholeWordMaskGenerator.for_tokenizer(
            self._tokenizer, **settings.mask_settings
        )
        rows = [None, settings.sequence_length]
        signature = [
            tf.TensorSpec(rows, tf.int32),
            tf.TensorSpec(rows, tf.bool),
            tf.TensorSpec([2], tf.int32),
        ]
        self._mask = tf.function(masks.call, input_signature=signature)

    def __reduce__(self):
        return ShardMaker, (self._settings, self._directory)

    def __call__(self, index, documents):
        sentences = self._sentences(documents)
        counts = {
            "tokens": len(sentences.tokens),
            "records": 0,
            "sentences without a second": 0,
        }
        shards = []
        # Each is written before the next is drawn: memory does not grow with them.
        for duplicate in range(self._settings.duplicates):
            arrays, unpaired = self._sequences(sentences, index, duplicate)
            records = len(arrays["labels"])
            number = index * self._settings.duplicates + duplicate
            path = self._directory / f"pretrain-{number:05d}.tfrecord"
            shards.append({**_write_shard(path, arrays), "records": records})
            counts["records"] += records
            counts["sentences without a second"] += unpaired
        if len(sentences.documents) == 1 and "other" in ORDERS[self._settings.order]:
            counts[ONE_DOCUMENT] = counts["records"]
        return {"shards": shards, "counts": counts}

    def _sequences(self, sentences, index, duplicate):
        """Sequences of all the text, shuffled, and how many sentences made no pair."""
        settings, tokenizer = self._settings, self._tokenizer
        random = np.random.default_rng([settings.seed, index, duplicate])
        pairs = draw_segment_pairs(
            sentences,
            settings.sequence_length,
            random,
            settings.order,
            settings.short_sequence_rate,
            settings.keep_unpaired,
        )
        order = random.permutation(len(pairs.labels))
        pairs = SegmentPairs(
            pairs.first[order], pairs.second[order], pairs.labels[order], pairs.unpaired
        )
        arrays = assemble(
            sentences,
            pairs,
            settings.sequence_length,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
            tokenizer.pad_token_id,
        )
        if settings.masked:
            arrays.update(self._masked(arrays, random))
        return {**arrays, "labels": pairs.labels}, pairs.unpaired

    def _masked(self, arrays, random):
        """The token ids masked, and what is to be predicted."""
        parts = [
            self._mask(
                arrays["token_ids"][row : row + ROWS],
                arrays["word_starts"][row : row + ROWS],
                random.integers(2**31, size=2).astype("int32"),
            )
            for row in range(0, max(len(arrays["token_ids"]), 1), ROWS)
        ]
        return {
            x: np.concatenate([part[x].numpy() for part in parts]) for x in parts[0]
        }


def _write_shard(path, arrays):
    try:
        with complete_file(path) as temporary:
            write_records(temporary, arrays)
            digest = file_digest(temporary)
            size = temporary.stat().st_size
    except tf.errors.OpError as error:
        raise OSError(
            f"{path} cannot be written: {error.message}. Is the disk full? What was "
            "written before stays; run the same command to resume."
        ) from error
    return {"file": path.name, "bytes": size, "sha256": digest}
