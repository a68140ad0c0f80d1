"""The records of a corpus as batches for `AlbertPretrainer.fit`."""

import fnmatch
import functools
import json
import math
import pathlib
import re
import warnings

import numpy as np
import tensorflow as tf

from albert_tf.files import file_digest
from albert_tf.preprocessing.whole_word_mask_generator import (
    MARKED,
    WholeWordMaskGenerator,
)
from albert_tf.pretraining.records import (
    WORD_STARTS,
    parse_records,
    record_lengths,
    unmask,
)
from albert_tf.tokenizers import load_tokenizer

# What is taken of records of which no manifest says it.
UNSAID = {"order": "sop", "lowercase": True, "mask_rate": 0.15, "ngram": 3}
# Classes of the sentence order; of two in all other orders.
ORDER_CLASSES = {"none": 0, "three_way": 3}
# Records that are mixed, besides the files' order and what was mixed in them.
SHUFFLED = 8192
FILES_AT_ONCE = 16
# Records in which labels with "##" are looked for; one has a dozen labels or more.
LOOKED_AT = 1000
LARGEST_SEED = 2**31 - 1
MADE_AGAIN = "Copy it again, or make the data again."


class PretrainingRecords:
    """The TFRecords of a corpus.

    Args:
        path: string: a directory that `albert-tf pretrain-data` has written, or with
            records of google-research/albert or albert_zh; or a pattern of files.

    Attributes:
        files: list of paths, sorted, of those that hold records.
        manifest: dict, what `pretrain-data` says of them, or empty.
        lengths: dict of feature name to how many values a record has.

    Raises:
        FileNotFoundError: if there are no records.
        ValueError: if a file is damaged, or the data were not made to the end.
    """

    def __init__(self, path):
        folder = pathlib.Path(path)
        self.folder = folder if folder.is_dir() else folder.parent
        pattern = "*" if folder.is_dir() else folder.name
        self.manifest = _read_manifest(self.folder)
        self._settings = {**UNSAID, **self.manifest.get("settings", {})}
        self._shards = {
            self.folder / shard["file"]: shard
            for shard in self.manifest.get("shards", [])
            if fnmatch.fnmatchcase(shard["file"], pattern)
        }
        self._check_sizes()
        files = list(self._shards) if self.manifest else _find(self.folder, pattern)
        self.files = list(filter(self._has_records, files))
        if not self.files:
            raise FileNotFoundError(
                f"There are no records in {path}. Expected *.tfrecord files, such as "
                "`albert-tf pretrain-data` writes"
                + (", named in manifest.json." if self.manifest else ".")
            )
        self.lengths = record_lengths(self.files[0])

    def _check_sizes(self):
        for file, shard in self._shards.items():
            size = file.stat().st_size if file.exists() else 0
            if size != shard["bytes"]:
                raise ValueError(
                    f"{file} has {size} bytes, {shard['bytes']} by the manifest: it is "
                    f"cut short or missing. {MADE_AGAIN}"
                )

    def _has_records(self, file):
        count = self._shards.get(file, {}).get("records")
        return bool(record_lengths(file)) if count is None else count > 0

    @property
    def sequence_length(self):
        """Tokens of a sequence, an int."""
        return self.lengths["input_ids"]

    @property
    def order_classes(self):
        """How many classes the sentence order has, 0 if there is none."""
        return ORDER_CLASSES.get(self._settings["order"], 2)

    @functools.cached_property
    def tokenizer(self):
        """The tokenizer of the vocabulary among the records, or `None`.

        It is the file that the manifest names, or else the only one that may be it.
        """
        found = [*self.folder.glob("*.txt"), *self.folder.glob("*.model")]
        if "vocabulary" in self.manifest:
            named = self.folder / self.manifest["vocabulary"]
            found = [named] if named.exists() else []
        if len(found) != 1:
            return None
        return load_tokenizer(found[0], self._settings["lowercase"])

    @property
    def vocabulary_size(self):
        """Tokens of the vocabulary among the records, an int, or `None`."""
        tokenizer = self.tokenizer
        return tokenizer and tokenizer.vocabulary_size()

    @property
    def contents(self):
        """What tells these records from others: file to checksum, or else size."""
        return {
            file.name: self._shards.get(file, {}).get("sha256") or file.stat().st_size
            for file in self.files
        }

    @property
    def bytes(self):
        """The size of all files, an int."""
        return sum(file.stat().st_size for file in self.files)

    @functools.cached_property
    def counts(self):
        """How many records each file has, a dict."""
        counts = {}
        for file in self.files:
            count = self._shards.get(file, {}).get("records")
            if count is None:
                count = sum(1 for _ in tf.data.TFRecordDataset(str(file)))
            counts[file] = count
        return counts

    def verify(self, progress=lambda done, total: None):
        """Compare the files with the checksums of the manifest, if there is one.

        Args:
            progress: callable, given the bytes read and those there are.

        Raises:
            ValueError: if a file is not as it was written.
        """
        shards = {file: x for file, x in self._shards.items() if "sha256" in x}
        done, total = 0, sum(shard["bytes"] for shard in shards.values())

        def add(count):
            nonlocal done
            done += count
            progress(done, total)

        for file, shard in shards.items():
            if file_digest(file, add) != shard["sha256"]:
                raise ValueError(
                    f"{file} is damaged: its checksum is not that of the manifest. "
                    f"{MADE_AGAIN}"
                )

    def read_through(self):
        """Read every record, to find the damaged one.

        Raises:
            ValueError: if a file is damaged, saying which.
        """
        for file in self.files:
            try:
                for serialized in tf.data.TFRecordDataset(str(file)).batch(256):
                    parse_records(serialized, self.lengths)
            except tf.errors.OpError as error:
                # Without the names of the graph's nodes.
                reason = re.sub(r"{{.*?}} | \[Op:.*", "", error.message.split("\n")[0])
                unlike = f", or its records are not like those of {self.files[0].name}"
                raise ValueError(
                    f"{file} is damaged{unlike if file != self.files[0] else ''} "
                    f"({reason}). {MADE_AGAIN}"
                ) from error

    def masks(self, **changes):
        """What masks the records anew, as they were masked.

        Args:
            **changes: other arguments of `WholeWordMaskGenerator.for_tokenizer`, such
                as `marked_labels`: whether labels have `##`. By default as the manifest
                says, or the records show.

        Raises:
            ValueError: if there is no vocabulary among the records.
        """
        tokenizer = self.tokenizer
        if tokenizer is None:
            raise ValueError(
                f"Masking anew needs the one vocabulary of {self.folder}: a vocab.txt "
                "or a SentencePiece model. Put it there, or keep the masks of the "
                "records."
            )
        if WORD_STARTS not in self.lengths:
            warnings.warn(
                f"The records of {self.folder} do not say where words begin: single "
                "tokens are masked. For whole words keep the masks of the records.",
                stacklevel=2,
            )
        arguments = {
            "mask_selection_rate": self._settings["mask_rate"],
            "mask_selection_length": self.lengths["masked_lm_positions"],
            "marked_labels": self._marked_labels,
            "ngram": self._settings["ngram"],
        }
        return WholeWordMaskGenerator.for_tokenizer(
            tokenizer, **{**arguments, **changes}
        )

    @functools.cached_property
    def _marked_labels(self):
        """Whether labels have `##`, as those that albert_zh's generator writes."""
        if "marked_labels" in self._settings:
            return self._settings["marked_labels"]
        # No text becomes these tokens: a Chinese character is always one by itself.
        tokens = enumerate(self.tokenizer.get_vocabulary())
        marked = [number for number, token in tokens if MARKED.fullmatch(token)]
        records = tf.data.TFRecordDataset(str(self.files[0])).take(LOOKED_AT)
        batches = (parse_records(part, self.lengths) for part in records.batch(100))
        return any(
            np.isin(batch["mask_ids"], marked)[batch["mask_weights"] > 0].any()
            for batch in batches
        )

    def dataset(
        self,
        batch_size,
        masks=None,
        seed=0,
        training=True,
        skip=0,
        num_shards=1,
        shard=0,
    ):
        """Batches for `AlbertPretrainer.fit`.

        Args:
            batch_size: int.
            masks: optional `WholeWordMaskGenerator` that masks every sequence anew
                each time it is read. By default the masks of the records.
            seed: int from 0 to 2**31 - 1. Of order and masks.
            training: bool. In random order, without end; or else once through.
            skip: int. Batches to leave out, those of the steps already trained.
            num_shards: int. How many processes share the records; each reads files of
                its own.
            shard: int. Which of them this is.

        Returns:
            A `tf.data.Dataset` of `(x, y, sample_weight)`. The weights of the
            predictions of a batch have the mean 1.

        Raises:
            ValueError: if there are fewer files than shards, or the seed is too large.
        """
        if not 0 <= seed <= LARGEST_SEED:
            raise ValueError(
                f"`seed` should be from 0 to {LARGEST_SEED:,}. Received: {seed:,}"
            )
        own = self.files[shard::num_shards]
        if len(self.files) < num_shards:
            raise ValueError(
                f"{self.folder} has {len(self.files)} files of records, too few to "
                f"share among {num_shards}. Make them with a smaller --block-size."
            )
        files = [str(file) for file in own]
        records = _records(tf.data.Dataset.from_tensor_slices(files))
        if training:
            # Each epoch by a seed of its own: whoever iterates a second time, as Keras
            # does to look at a batch, gets the same order. Begun anywhere, for that of
            # the next seed should not be this one's second epoch.
            first = int(np.random.default_rng(seed).integers(2**30))
            epochs = tf.data.Dataset.counter(start=first)
            records = epochs.flat_map(lambda epoch: _mixed(files, epoch))
        batches = records.batch(batch_size, drop_remainder=training).enumerate()
        prepare = _Batches(self.lengths, masks, (seed, shard), self.order_classes)
        batches = (
            batches.skip(skip)
            .map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
            .prefetch(2)
        )
        if training:
            return batches
        # Else Keras runs into the end, in a step that has no batch but counts one more
        # in the mean of each head's loss, which does not depend on the batch.
        count = math.ceil(sum(self.counts[file] for file in own) / batch_size)
        return batches.apply(
            tf.data.experimental.assert_cardinality(max(count - skip, 0))
        )


def _read_manifest(folder):
    """What `pretrain-data` says of the records of a folder, empty without it."""
    file = folder / "manifest.json"
    if not file.exists():
        if (folder / "settings.json").exists():
            raise ValueError(
                f"{folder} holds a part of its records at most: `albert-tf "
                "pretrain-data` did not end there. Run the same command again, to go "
                "on or to see what stopped it."
            )
        return {}
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        for shard in manifest["shards"]:
            shard["file"], shard["bytes"]
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(
            f"{file} is cut short, or no manifest of `albert-tf pretrain-data` "
            f"({error!r}). {MADE_AGAIN}"
        ) from error
    return manifest


def _find(folder, pattern):
    return sorted(
        file
        for file in folder.glob(pattern)
        if file.is_file() and "tfrecord" in file.name and file.name[0] != "."
    )


def _mixed(files, seed):
    """The serialized records of files in random order."""
    # Of this function, for `tf.data` has it traced: the order is the seed's alone, not
    # also that of what a user has set for all.
    tf.random.set_seed(1)
    names = tf.data.Dataset.from_tensor_slices(files)
    names = names.shuffle(len(files), seed, reshuffle_each_iteration=False)
    records = _records(names)
    return records.shuffle(SHUFFLED, seed, reshuffle_each_iteration=False)


def _records(names):
    """The serialized records of a dataset of files, some read at a time."""
    return names.interleave(
        tf.data.TFRecordDataset, cycle_length=FILES_AT_ONCE, block_length=16
    )


class _Batches:
    """Serialized records into what `fit` takes."""

    def __init__(self, lengths, masks, seed, order_classes):
        self._lengths = lengths
        self._masks = masks
        self._seed = seed
        self._order_classes = order_classes

    def __call__(self, number, serialized):
        batch = parse_records(serialized, self._lengths)
        if self._masks is not None:
            seed = tf.random.fold_in(tf.constant(self._seed), number)
            plain_ids = self._masks.plain_ids
            token_ids = unmask(batch, plain_ids and tf.constant(plain_ids))
            # Not by `__call__`: Keras may be on another backend than TensorFlow.
            masked = self._masks.call(
                token_ids, batch.get("word_starts"), tf.cast(seed, tf.int32)
            )
            batch.update(masked)
        inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
        y = {"mlm_logits": batch["mask_ids"]}
        weights = {"mlm_logits": _with_mean_one(batch["mask_weights"])}
        if self._order_classes:
            y["sop_logits"] = batch["labels"]
            weights["sop_logits"] = tf.ones_like(batch["labels"], tf.float32)
        return {name: batch[name] for name in inputs}, y, weights


def _with_mean_one(weights):
    """Weights with which Keras' mean over all places is that over the predictions.

    Not left to the loss: devices that share a batch have more and fewer of them.
    """
    return weights / tf.maximum(tf.reduce_mean(weights), 1e-6)
