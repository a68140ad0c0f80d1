"""Pretraining: records into batches, `fit` with both losses, resumed if cut off."""

import functools
import json
import pathlib
import time

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing import load_tokenizer
from albert_tf.preprocessing.pretraining_records import (
    parse_records,
    record_lengths,
    unmask,
)
from albert_tf.preprocessing.whole_word_mask_generator import WholeWordMaskGenerator
from albert_tf.training.fine_tuning import TrainingRecord, start_anew_unless_same
from albert_tf.training.lamb import Lamb
from albert_tf.training.optimizers import AdamW
from albert_tf.training.schedules import WarmupLinearDecay

BACKUP = ".training"
# Records that are mixed, besides the files' order and what was mixed in them.
SHUFFLED = 8192
FILES_AT_ONCE = 4


class PretrainingRecords:
    """The TFRecords of a corpus.

    Args:
        path: string: a directory that `albert-tf pretrain-data` has written, or with
            records of google-research/albert or albert_zh; or a pattern of files.

    Attributes:
        files: list of paths, sorted.
        manifest: dict, what `pretrain-data` says of them, or empty.
        lengths: dict of feature name to how many values a record has.

    Raises:
        FileNotFoundError: if there are no records.
        ValueError: if a file is damaged, or the data were not made to the end.
    """

    def __init__(self, path):
        folder = pathlib.Path(path)
        self.folder = folder if folder.is_dir() else folder.parent
        self.manifest = self._read_manifest(path)
        self._settings = self.manifest.get("settings", {})
        names = [shard["file"] for shard in self.manifest.get("shards", [])]
        self.files = [self.folder / name for name in names] or sorted(
            file
            for file in self.folder.glob("*" if folder.is_dir() else folder.name)
            if file.is_file() and "tfrecord" in file.name and file.name[0] != "."
        )
        self._check_sizes()
        found = (record_lengths(file) for file in self.files)
        self.lengths = next(filter(None, found), {})
        if not self.lengths:
            raise FileNotFoundError(
                f"There are no records in {path}. Expected *.tfrecord files, such as "
                "`albert-tf pretrain-data` writes."
            )

    def _read_manifest(self, path):
        file = self.folder / "manifest.json"
        if (self.folder / "settings.json").exists() and not file.exists():
            raise ValueError(
                f"{path} holds a part of its records: `albert-tf pretrain-data` was "
                "cut off. Run the same command again to go on."
            )
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}

    def _check_sizes(self):
        for shard in self.manifest.get("shards", []):
            file = self.folder / shard["file"]
            size = file.stat().st_size if file.exists() else 0
            if size != shard["bytes"]:
                raise ValueError(
                    f"{file} has {size} bytes, {shard['bytes']} by the manifest: it is "
                    "cut short or missing. Copy it again, or make the data again."
                )

    @property
    def sequence_length(self):
        """Tokens of a sequence, an int."""
        return self.lengths["input_ids"]

    @property
    def order_classes(self):
        """How many classes the sentence order has, 0 if there is none."""
        # Of the original's records nothing says so; it writes two.
        order = self._settings.get("order", "sop")
        return {"none": 0, "three_way": 3}.get(order, 2)

    @functools.cached_property
    def tokenizer(self):
        """The tokenizer of the vocabulary among the records, or `None`."""
        found = [*self.folder.glob("*.txt"), *self.folder.glob("*.model")]
        if len(found) != 1:
            return None
        return load_tokenizer(found[0], self._settings.get("lowercase", True))

    @property
    def vocabulary_size(self):
        """Tokens of the vocabulary among the records, an int, or `None`."""
        tokenizer = self.tokenizer
        return tokenizer and tokenizer.vocabulary_size()

    def masks(self, **changes):
        """What masks the records anew, as they were masked.

        Args:
            **changes: other arguments of `WholeWordMaskGenerator`.

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
        settings = self._settings
        arguments = {
            "mask_selection_rate": settings.get("mask_rate", 0.15),
            "mask_selection_length": self.lengths["masked_lm_positions"],
            "marked_labels": settings.get("marked_labels", False),
            "ngram": settings.get("ngram", 3),
        }
        return WholeWordMaskGenerator.for_tokenizer(
            tokenizer, **{**arguments, **changes}
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
            seed: int. Of order and masks.
            training: bool. In random order, without end; or else once through.
            skip: int. Batches to leave out, those of the steps already trained.
            num_shards: int. How many processes share the records; each reads files of
                its own.
            shard: int. Which of them this is.

        Returns:
            A `tf.data.Dataset` of `(x, y, sample_weight)`. The weights of the
            predictions of a batch have the mean 1.

        Raises:
            ValueError: if there are fewer files than shards.
        """
        files = [str(file) for file in self.files[shard::num_shards]]
        if not files:
            raise ValueError(
                f"{self.folder} has {len(self.files)} files of records, too few to "
                f"share among {num_shards}. Make them with a smaller --block-size."
            )
        records = _records(files)
        if training:
            # Each epoch by a seed of its own: whoever iterates a second time, as Keras
            # does to look at a batch, gets the same order.
            epochs = tf.data.Dataset.counter(start=seed * 2**32)
            records = epochs.flat_map(lambda epoch: _records(files, epoch))
        batches = records.batch(batch_size, drop_remainder=training).enumerate()
        prepare = _Batches(self.lengths, masks, (seed, shard), self.order_classes)
        return (
            batches.skip(skip)
            .map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
            .prefetch(2)
        )


def _records(files, seed=None):
    """The serialized records of files, mixed if there is a seed."""
    names = tf.data.Dataset.from_tensor_slices(files)
    if seed is not None:
        names = names.shuffle(len(files), seed, reshuffle_each_iteration=False)
    records = names.interleave(
        tf.data.TFRecordDataset, cycle_length=FILES_AT_ONCE, block_length=16
    )
    if seed is None:
        return records
    return records.shuffle(SHUFFLED, seed, reshuffle_each_iteration=False)


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


def pretrain(
    model,
    records,
    output,
    steps,
    batch_size=128,
    masks=None,
    seed=0,
    interval=1000,
    dev=None,
    settings=None,
    callbacks=(),
    verbose=1,
):
    """Train a compiled model on records.

    A run that was cut off goes on where it was, if it is started again with the same
    `settings`; what it loses is less than an interval.

    Args:
        model: a compiled `AlbertPretrainer`.
        records: a `PretrainingRecords`.
        output: string, the directory for the state of the run.
        steps: int. Batches to train on.
        batch_size: int, sequences.
        masks: as for `PretrainingRecords.dataset`.
        seed: int.
        interval: int. Steps from one saved state to the next.
        dev: optional `PretrainingRecords` to evaluate on after each interval.
        settings: optional dict, what identifies the run.
        callbacks: further Keras callbacks.
        verbose: int, as for `keras.Model.fit`.

    Returns:
        A dict: `history` (lists by metric, an entry an interval), `steps` and `seconds`
        (of this start).

    Raises:
        ValueError: if `steps` is no multiple of `interval`, or the sequences are longer
            than the model has positions for.
    """
    if steps % interval:
        raise ValueError(
            f"`steps` should be a multiple of `interval`. Received: {steps}, {interval}"
        )
    _check_fits(model, records)
    backup = pathlib.Path(output) / BACKUP
    settings = {**(settings or {}), "batch_size": batch_size, "seed": seed}
    start_anew_unless_same(backup, {**settings, "interval": interval})
    record = TrainingRecord(backup, monitor=None)
    dataset = records.dataset(batch_size, masks, seed, skip=record.epochs * interval)
    start = time.perf_counter()
    if record.epochs < steps // interval:
        model.fit(
            dataset,
            epochs=steps // interval,
            initial_epoch=record.epochs,
            steps_per_epoch=interval,
            validation_data=dev and dev.dataset(batch_size, training=False),
            callbacks=[record, *callbacks],
            verbose=verbose,
            # The dataset does.
            shuffle=False,
        )
    else:
        record.set_model(model)
        record.on_train_begin()
    seconds = round(time.perf_counter() - start, 1)
    return {"history": record.history, "steps": steps, "seconds": seconds}


def pretraining_optimizer(
    name, learning_rate, steps, warmup=0.1, accumulate=1, **kwargs
):
    """The optimizer ALBERT is pretrained with, warming up and falling to 0.

    Args:
        name: `"lamb"`, as in the paper, or `"adamw"`.
        learning_rate: float, the peak.
        steps: int. Batches of the training.
        warmup: float. The share of the steps in which the rate rises.
        accumulate: int. Batches whose gradients make one update.
        **kwargs: other arguments of the optimizer, in place of those of the original.

    Raises:
        ValueError: if `steps` is no multiple of `accumulate`.
    """
    if steps % accumulate:
        raise ValueError(
            "The steps should be a multiple of those accumulated. Received: "
            f"{steps}, {accumulate}"
        )
    # Keras counts batches here, whether they make an update or not.
    schedule = WarmupLinearDecay(learning_rate, steps, int(steps * warmup))
    arguments = {"weight_decay": 0.01, "epsilon": 1e-6, "global_clipnorm": 1.0}
    if accumulate > 1:
        arguments["gradient_accumulation_steps"] = accumulate
    return OPTIMIZERS[name](schedule, **{**arguments, **kwargs})


OPTIMIZERS = {"lamb": Lamb, "adamw": AdamW}


def _check_fits(model, records):
    positions = model.backbone.max_sequence_length
    if records.sequence_length > positions:
        raise ValueError(
            f"The records of {records.folder} have {records.sequence_length} tokens, "
            f"the model {positions} positions. Make records with --sequence-length "
            f"{positions}, or take a larger model."
        )
    if records.order_classes != model.num_sop_classes:
        raise ValueError(
            f"The records of {records.folder} have {records.order_classes} classes of "
            f"sentence order, the model {model.num_sop_classes}. Give "
            f"`num_sop_classes={records.order_classes}` to the model."
        )
    tokens, rows = records.vocabulary_size, model.backbone.vocabulary_size
    if tokens not in (None, rows):
        raise ValueError(
            f"The vocabulary of {records.folder} has {tokens} tokens, the model "
            f"{rows}. Use the one that the model is for."
        )


def plot_pretraining(history, interval, path):
    """Draw the loss and the accuracy of both heads by step.

    Args:
        history: dict of lists by metric, an entry an interval.
        interval: int, steps.
        path: string, the PNG file to write.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    titles = {
        "loss": "loss",
        "masked words: accuracy": "mlm_logits_accuracy",
        "sentence order: accuracy": "sop_logits_accuracy",
    }
    figure, axes = plt.subplots(1, len(titles), figsize=(13, 3.5), layout="constrained")
    for axis, (title, metric) in zip(axes, titles.items(), strict=True):
        for name, label in ((metric, "training"), (f"val_{metric}", "dev")):
            values = history.get(name, [])
            if values:
                axis.plot(interval * np.arange(1, len(values) + 1), values, label=label)
        axis.set(xlabel="step", title=title)
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend()
    temporary = pathlib.Path(path).with_name(f".{pathlib.Path(path).name}.part")
    figure.savefig(temporary, dpi=120, format="png")
    temporary.replace(path)
    plt.close(figure)
