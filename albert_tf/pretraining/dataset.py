"""The records of a corpus as batches for `AlbertPretrainer.fit`."""

import fnmatch
import functools
import math
import pathlib
import re
import warnings

import tensorflow as tf

from albert_tf.files import file_digest
from albert_tf.preprocessing.whole_word_mask_generator import WholeWordMaskGenerator
from albert_tf.pretraining.batches import (
    grouped_by_length,
    prepare_batch,
    serialized_records,
)
from albert_tf.pretraining.manifest import read_manifest
from albert_tf.pretraining.masking import (
    MASK_DEFAULTS,
    mask_settings,
    token_of_labels,
)
from albert_tf.pretraining.records import (
    MASK_FEATURES,
    WORD_STARTS,
    find_records,
    parse_records,
    record_lengths,
)
from albert_tf.tokenizers import load_tokenizer
from albert_tf_lite.errors import AlbertError

# Of records without a manifest.
DEFAULTS = {"order": "sop", "lowercase": True}
# Classes of the sentence order; two in all other orders.
ORDER_CLASSES = {"none": 0, "three_way": 3}
COPY_AGAIN = "Copy it again, or rebuild the records."


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
        AlbertError: if a file is damaged, or the records were not made to the end.
    """

    def __init__(self, path):
        folder = pathlib.Path(path)
        self.folder = folder if folder.is_dir() else folder.parent
        pattern = "*" if folder.is_dir() else folder.name
        self.manifest = read_manifest(self.folder)
        self._settings = {**DEFAULTS, **self.manifest.get("settings", {})}
        self._shards = {
            self.folder / shard["file"]: shard
            for shard in self.manifest.get("shards", [])
            if fnmatch.fnmatchcase(shard["file"], pattern)
        }
        self._check_sizes()
        named = list(self._shards)
        files = named if self.manifest else find_records(self.folder, pattern)
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
                raise AlbertError(
                    f"{file} has {size} bytes, {shard['bytes']} by the manifest: it is "
                    f"cut short or missing. {COPY_AGAIN}"
                )

    def _has_records(self, file):
        if file in self._shards:
            return self._shards[file]["records"] > 0
        return bool(record_lengths(file))

    @property
    def sequence_length(self):
        """Tokens of a sequence, an int."""
        return self.lengths["input_ids"]

    @property
    def is_masked(self):
        """Whether the records have masks, a bool."""
        return MASK_FEATURES["mask_ids"] in self.lengths

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
        if self.manifest:
            named = self.folder / self.manifest["vocabulary"]
            found = [named] if named.exists() else []
        if len(found) == 1:
            return load_tokenizer(found[0], self._settings["lowercase"])
        return None

    @property
    def vocabulary_size(self):
        """Tokens of the vocabulary among the records, an int, or `None`."""
        return self.tokenizer and self.tokenizer.vocabulary_size()

    @property
    def fingerprint(self):
        """What tells these records from others: file to checksum, or else size."""
        sums = {file: shard["sha256"] for file, shard in self._shards.items()}
        return {file.name: sums.get(file) or file.stat().st_size for file in self.files}

    @functools.cached_property
    def counts(self):
        """How many records each file has, a dict."""
        return {
            file: self._shards[file]["records"]
            if file in self._shards
            else sum(1 for _ in tf.data.TFRecordDataset(str(file)))
            for file in self.files
        }

    def verify(self):
        """Compare the files with the checksums of the manifest, if there is one.

        Raises:
            AlbertError: if a file is not as it was written.
        """
        for file, shard in self._shards.items():
            if file_digest(file) != shard["sha256"]:
                raise AlbertError(
                    f"{file} is damaged: its checksum is not that of the manifest. "
                    f"{COPY_AGAIN}"
                )

    def read_through(self):
        """Read every record, to find the damaged one.

        Raises:
            AlbertError: if a file is damaged, saying which.
        """
        for file in self.files:
            try:
                for serialized in tf.data.TFRecordDataset(str(file)).batch(256):
                    parse_records(serialized, self.lengths)
            except tf.errors.OpError as error:
                # Without the names of the graph's nodes.
                reason = re.sub(r"{{.*?}} | \[Op:.*", "", error.message.split("\n")[0])
                raise AlbertError(
                    f"{file} is damaged, or its records are not like those of "
                    f"{self.files[0].name} ({reason}). {COPY_AGAIN}"
                ) from error

    def masks(self, **settings):
        """What masks the records while they are read.

        Args:
            **settings: arguments of `WholeWordMaskGenerator.for_tokenizer`:
                `mask_selection_rate`, `mask_selection_length`, `ngram`,
                `whole_word`, `marked_labels` (whether labels have `##`, as in
                albert_zh) and others.
                By default those of masked records are as the manifest says, else
                `albert_tf.pretraining.masking.MASK_DEFAULTS`.

        Returns:
            A `WholeWordMaskGenerator`.

        Raises:
            AlbertError: if there is no vocabulary among the records, or a value is
                impossible.
        """
        if self.tokenizer is None:
            raise AlbertError(
                f"Masking needs the one vocabulary of {self.folder}: a vocab.txt or a "
                "SentencePiece model. Put it there"
                + (", or keep the masks of the records." if self.is_masked else ".")
            )
        if WORD_STARTS["word_starts"] not in self.lengths:
            warnings.warn(
                f"The records of {self.folder} do not say where words begin: single "
                "tokens are masked. For whole words keep the masks of the records.",
                stacklevel=2,
            )
        settings = {name: x for name, x in settings.items() if x is not None}
        masked_with = dict(self._masked_with)
        if "mask_selection_rate" in settings:
            masked_with.pop("mask_selection_length", None)
        return WholeWordMaskGenerator.for_tokenizer(
            self.tokenizer,
            **mask_settings(self.sequence_length, **{**masked_with, **settings}),
        )

    @property
    def _masked_with(self):
        """The settings that masked the records, if they have masks."""
        if not self.is_masked:
            return {}
        known = {x: y for x, y in self._settings.items() if x in MASK_DEFAULTS}
        known["mask_selection_length"] = self.lengths[MASK_FEATURES["mask_ids"]]
        return known

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
            masks: optional `WholeWordMaskGenerator` that draws masks for every
                sequence each time it is read. By default masked records keep theirs,
                and others get `masks()`.
            seed: int from 0 to 2**31 - 1. Of order and masks.
            training: bool. In random order, without end, in batches of like length;
                or else once through, each time with the same masks.
            skip: int. Batches to leave out, those of the steps already trained.
            num_shards: int. How many processes share the records; each reads files of
                its own.
            shard: int. Which of them this is.

        Returns:
            A `tf.data.Dataset` of `(x, y, sample_weight)`, as long as the longest
            sequence of the batch unless processes share the records. The weights of
            the predictions of a batch have the mean 1; a sequence of one segment has
            the weight 0 in sentence order.

        Raises:
            AlbertError: if there are fewer files than shards.
        """
        if len(self.files) < num_shards:
            raise AlbertError(
                f"{self.folder} has {len(self.files)} files of records, too few to "
                f"share among {num_shards}. Make them with a smaller `block_size=`."
            )
        if masks is None and not self.is_masked:
            masks = self.masks()
        own = self.files[shard::num_shards]
        records = serialized_records(list(map(str, own)), seed, training)
        # Hosts that train together need batches of one shape.
        trims = num_shards == 1
        if training and trims:
            count = sum(self.counts[file] for file in own)
            batches = grouped_by_length(
                records, count, batch_size, self.lengths, (seed, shard)
            )
        else:
            batches = records.batch(batch_size, drop_remainder=training)
        plain_ids = token_of_labels(self.tokenizer) if self.is_masked else None
        prepare = functools.partial(
            prepare_batch,
            lengths=self.lengths,
            masks=masks,
            plain_ids=plain_ids,
            seed=(seed, shard),
            has_order=self.order_classes > 0,
            trims=trims,
        )
        batches = (
            batches.enumerate()
            .skip(skip)
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
