"""Read the records of a corpus as batches for `AlbertPretrainer.fit`."""

import functools
import math
import os
import pathlib
import warnings
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.models.batching import shuffled_order
from albert_tf.preprocessing.masked_features import (
    MASK_DEFAULTS,
    mask_settings,
    masked_features,
    trimmed,
)
from albert_tf.preprocessing.masking import WholeWordMaskGenerator
from albert_tf.preprocessing.words import label_tokens
from albert_tf.pretraining.records import (
    FEATURES,
    count_records,
    parse_records,
    read_manifest,
    record_lengths,
    unmask,
)
from albert_tf.pretraining.segment_pairs import ORDERS
from albert_tf.tokenizers import load_tokenizer
from albert_tf_lite.errors import AlbertError

# Settings of records without a manifest.
DEFAULTS = {"order": "sop", "lowercase": True}
# Size of the shuffle buffer, in records.
SHUFFLED = 8192
FILES_AT_ONCE = 16
# Maximum number of batches that exchange records to have similar lengths.
GROUPED_BATCHES = 64
# Lengths are rounded up to multiples. JAX compiles each shape, which takes longer than
# padding.
LENGTH_STEP = 16 if keras.backend.backend() == "jax" else 4
_POSITIONAL = ("token_ids", "segment_ids", "padding_mask", "word_starts")


class PretrainingRecords:
    """The TFRecords of a corpus, all of which are read once to check them.

    Args:
        path: string: a directory written by `albert-tf pretrain-data`, or of records
            of google-research/albert or albert_zh.

    Attributes:
        counts: dict of path to number of records, without empty files.
        manifest: dict, the manifest of `pretrain-data`; empty without one.
        lengths: dict of feature name to the number of values per record.

    Raises:
        FileNotFoundError: if there are no records, or a file is missing.
        AlbertError: if a file is damaged, or the records are incomplete.

    Example:
    ```python
    records = albert_tf.pretraining.PretrainingRecords("records")
    batches = records.dataset(32, records.masks(mask_selection_rate=0.2))
    features, labels, weights = next(iter(batches))
    ```
    """

    def __init__(self, path: str | os.PathLike):
        self.folder = pathlib.Path(path)
        self.manifest = read_manifest(self.folder)
        self._settings = {**DEFAULTS, **self.manifest.get("settings", {})}
        if self.manifest and "shards" not in self.manifest:
            raise AlbertError(
                f"{self.folder} holds only a part of its records: `albert-tf "
                "pretrain-data` was interrupted. Run the same command again to resume."
            )
        shards = self.manifest.get("shards", [])
        expected = {self.folder / x["file"]: x["records"] for x in shards}
        found = expected or sorted(self.folder.glob("*tfrecord*"))
        # Without hidden and empty files.
        files = [
            x for x in found if x.name[0] != "." and expected.get(x, x.stat().st_size)
        ]
        if not files:
            raise FileNotFoundError(
                f"There are no records in {path}. Expected *.tfrecord files such as "
                "those of `albert-tf pretrain-data`."
            )
        self.lengths = record_lengths(files[0])
        self.counts: dict[pathlib.Path, int] = {}
        for file in files:
            count = count_records(file, self.lengths)
            if count is None or count != expected.get(file, count):
                raise AlbertError(
                    f"{file} is damaged, or its records differ from those of the other "
                    "files. Copy it again, or remove it and rebuild the records."
                )
            self.counts[file] = count

    @property
    def sequence_length(self) -> int:
        """Number of tokens per sequence."""
        return self.lengths["token_ids"]

    @property
    def is_masked(self) -> bool:
        """True if the records hold masks."""
        return "mask_ids" in self.lengths

    @property
    def order_classes(self) -> int:
        """Number of classes of the sentence order; 0 without one."""
        return len(ORDERS[self._settings["order"]])

    @functools.cached_property
    def tokenizer(self) -> keras_hub.tokenizers.Tokenizer | None:
        """Tokenizer of the vocabulary beside the records, or `None`."""
        found = [*self.folder.glob("*.txt"), *self.folder.glob("*.model")]
        if self.manifest:
            found = [self.folder / self.manifest["vocabulary"]]
        if len(found) == 1:
            return load_tokenizer(found[0], self._settings["lowercase"])
        return None

    def masks(self, **settings: Any) -> WholeWordMaskGenerator:
        """Return a generator that masks the records while they are read.

        Args:
            **settings: arguments of `WholeWordMaskGenerator.for_tokenizer`:
                `mask_selection_rate`, `mask_selection_length`, `ngram`, `whole_word`,
                `marked_labels` (labels with `##`, as in albert_zh) and others. By
                default those of masked records in the manifest, or ALBERT's.

        Raises:
            AlbertError: if there is no vocabulary beside the records, or a value is not
                allowed.
        """
        if self.tokenizer is None:
            raise AlbertError(
                f"Masking needs a vocabulary in {self.folder}, and not several: put a "
                "vocab.txt or a SentencePiece model there."
            )
        if "word_starts" not in self.lengths:
            warnings.warn(
                f"The records of {self.folder} do not contain where words begin: "
                "single tokens are masked.",
                stacklevel=2,
            )
        # The length follows from the rate.
        inherited = MASK_DEFAULTS.keys() - {"mask_selection_length"}
        known = {x: y for x, y in self._settings.items() if x in inherited}
        given = {name: x for name, x in settings.items() if x is not None}
        arguments = mask_settings(self.sequence_length, **{**known, **given})
        return WholeWordMaskGenerator.for_tokenizer(self.tokenizer, **arguments)

    def dataset(
        self,
        batch_size: int,
        masks: WholeWordMaskGenerator | None = None,
        seed: int = 0,
        training: bool = True,
        skip: int = 0,
        num_shards: int = 1,
        shard: int = 0,
        steps: int | None = None,
    ) -> tf.data.Dataset:
        """Return batches for `AlbertPretrainer.fit`.

        Args:
            batch_size: int.
            masks: optional `WholeWordMaskGenerator` that masks each sequence each time
                it is read. By default masked records keep their masks.
            seed: int from 0 to 2**31 - 1, of order and masks.
            training: bool. `True` repeats the records endlessly in random order, in
                batches of similar length. `False` reads them once, with the same masks
                each time.
            skip: int. Number of batches to skip, for a training that is resumed.
            num_shards, shard: ints. Number of processes that share the records, each of
                which reads other files, and the index of this process.
            steps: optional int. Number of batches in which the rate of `masks` changes
                to its last value, which it has by default.

        Returns:
            A `tf.data.Dataset` of `(x, y, sample_weight)`, as long as the longest
            sequence of the batch unless processes share the records. The weights of
            the predictions have the mean 1; a sequence of one segment has the weight 0
            in sentence order.

        Raises:
            AlbertError: if there are fewer files than shards.
        """
        files = list(self.counts)
        if len(files) < num_shards:
            raise AlbertError(
                f"{self.folder} has {len(files)} files of records, too few to share "
                f"among {num_shards}. Make them with smaller `block_bytes=`."
            )
        if masks is None and not self.is_masked:
            masks = self.masks()
        own = files[shard::num_shards]
        names, count = list(map(str, own)), sum(self.counts[file] for file in own)
        records = _shuffled(names, seed) if training else tf.data.TFRecordDataset(names)
        # Hosts that train together need batches of one shape.
        trims = num_shards == 1
        if training and trims:
            length = self.sequence_length
            batches = _grouped(records, count, batch_size, length, (seed, shard))
        else:
            batches = records.batch(batch_size, drop_remainder=training)
        plain_ids = label_tokens(self.tokenizer) if self.is_masked else None

        @tf.autograph.experimental.do_not_convert
        def prepare(number: tf.Tensor, serialized: tf.Tensor) -> tuple:
            batch = parse_records(serialized, self.lengths)
            if trims:
                batch = trimmed(batch, "padding_mask", LENGTH_STEP, _POSITIONAL)
            if masks is not None:
                ids = batch["token_ids"]
                if self.is_masked:
                    ids = unmask(batch, plain_ids)
                own_seed = tf.random.fold_in(tf.constant((seed, shard)), number)
                progress = 1.0
                if steps is not None:
                    progress = tf.minimum(tf.cast(number / steps, tf.float32), 1.0)
                starts = batch.get("word_starts")
                # `__call__` would convert the tensors for Keras' backend.
                batch |= masks.call(ids, starts, tf.cast(own_seed, tf.int32), progress)
            features, mask_ids, mask_weights = masked_features(batch, trims=trims)
            y, weights = {"mlm_logits": mask_ids}, {"mlm_logits": mask_weights}
            if self.order_classes:
                y["sop_logits"] = batch["labels"]
                # A sequence of one segment has no order.
                has_two = tf.reduce_max(batch["segment_ids"], axis=1)
                weights["sop_logits"] = tf.cast(has_two, tf.float32)
            return features, y, weights

        batches = (
            batches.enumerate()
            .skip(skip)
            .map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
            .prefetch(2)
        )
        if training:
            return batches
        # Without a length Keras tries one more batch and counts it in the mean of
        # each head's loss.
        length = max(math.ceil(count / batch_size) - skip, 0)
        return batches.apply(tf.data.experimental.assert_cardinality(length))


def _shuffled(files: list[str], seed: int) -> tf.data.Dataset:
    """Return serialized records, endlessly in random order."""

    @tf.autograph.experimental.do_not_convert
    def epoch(number: tf.Tensor) -> tf.data.Dataset:
        # Set in the graph of this function only: the order does not depend on the
        # user's global seed.
        tf.random.set_seed(1)
        options = {"seed": number, "reshuffle_each_iteration": False}
        names = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files), **options)
        records = names.interleave(
            tf.data.TFRecordDataset, cycle_length=FILES_AT_ONCE, block_length=16
        )
        return records.shuffle(SHUFFLED, **options)

    # One seed per epoch: iterating twice, as Keras does to look at a batch, repeats the
    # order. The first is random, so that the second epoch of one seed is not the first
    # of the next.
    first = int(np.random.default_rng(seed).integers(2**30))
    return tf.data.Dataset.counter(start=first).flat_map(epoch)


def _grouped(
    records: tf.data.Dataset,
    count: int,
    batch_size: int,
    sequence_length: int,
    seed: tuple[int, int],
) -> tf.data.Dataset:
    """Group `count` serialized records, repeated endlessly, into similar lengths.

    Records are exchanged between 64 neighbouring batches, or an epoch if that is less.
    """
    together = max(min(count // batch_size, GROUPED_BATCHES), 1)
    mask = FEATURES["padding_mask"]
    feature = {mask: tf.io.FixedLenFeature([sequence_length], tf.int64)}

    @tf.autograph.experimental.do_not_convert
    def group(number: tf.Tensor, serialized: tf.Tensor) -> tf.Tensor:
        tokens = tf.reduce_sum(tf.io.parse_example(serialized, feature)[mask], axis=1)
        own_seed = tf.random.fold_in(tf.constant(seed), number)[0]
        order = shuffled_order(tokens, batch_size, own_seed)
        return tf.reshape(tf.gather(serialized, order), [together, batch_size])

    windows = records.batch(together * batch_size, drop_remainder=True).enumerate()
    return windows.map(group, num_parallel_calls=2, deterministic=True).unbatch()
