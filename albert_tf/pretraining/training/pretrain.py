"""Pretrain on records with both losses."""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import keras

from albert_tf.layers import WholeWordMaskGenerator
from albert_tf.pretraining.records.pretraining_records import PretrainingRecords
from albert_tf.pretraining.records.records_directory import check_same_tokens
from albert_tf.pretraining.training.keras_data import evaluation_data
from albert_tf.pretraining.training.network import backbone_of
from albert_tf.pretraining.training.pretraining_batches import PretrainingBatches
from albert_tf.pretraining.training.pretraining_model import PretrainingModel
from albert_tf.pretraining.training.run import BatchSettings, Run
from albert_tf.pretraining.training.training_loop import Watch, train
from albert_tf_lite.errors import AlbertError

AnyRun = TypeVar("AnyRun", bound=Run)


def pretrain(
    model: keras.Model,
    records: PretrainingRecords,
    output: str | os.PathLike,
    run: Run,
    dev: PretrainingRecords | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    verbose: int | str = 1,
    progress: Callable[[int, int], Any] | None = None,
) -> dict[str, Any]:
    """Train a compiled model on records, with the TensorFlow or JAX backend of Keras.

    To resume an interrupted run, start it again with the same model, optimizer, records
    and settings. Ctrl-C and SIGTERM save the state first; a killed run loses at most
    three minutes (on JAX: less than an interval).

    Args:
        model: a compiled `AlbertPretrainer`, or the result of `build_network`. If its
            optimizer averages the weights (`use_ema`), `dev` is evaluated with the
            averages, and the model has them afterwards.
        records: a `PretrainingRecords`.
        output: string, the directory for the state of the run.
        run: a `Run`, the settings.
        dev: optional `PretrainingRecords` to evaluate on.
        callbacks: list of `keras.callbacks.Callback`.
        verbose: 0 for silence, 1 for a progress bar, 2 for a line per epoch.
        progress: optional function, called during the training with the numbers of
            completed steps and of all steps.

    Returns:
        A dict: `history` (lists by metric with an entry per interval, `None` where an
        interval lacks it), `start` (the scores on `dev` before the first step),
        `steps`, `interval` and `seconds` (of all runs).

    Raises:
        AlbertError: if `steps` is not a multiple of `interval`, or that not of
            `steps_per_call`, the records do not fit the model, `output` holds the state
            of another training, or the training diverges.
        BlockingIOError: if another process trains into `output`.
        KeyboardInterrupt: after Ctrl-C or SIGTERM.

    Example:
    ```python
    records = albert_tf.pretraining.PretrainingRecords("records")
    pretrainer = albert_tf.models.AlbertPretrainer.from_checkpoint("albert_tiny_zh")
    pretrainer.compile(albert_tf.training.scheduled_optimizer("lamb", 1e-3))
    run = albert_tf.pretraining.Run(steps=10_000, learning_rate=1e-3)
    done = albert_tf.pretraining.pretrain(pretrainer, records, "out", run)
    ```
    """
    check_fits(model, records)
    if dev is not None:
        check_fits(model, dev)
        check_same_tokens(dev, records)
    run = with_masks(run, records)
    dev_batches = None
    if dev is not None:
        dev_batches = PretrainingBatches(dev, run, training=False)
    return train(
        PretrainingModel(same_network(model), run.masks),
        model.optimizer,
        functools.partial(PretrainingBatches, records, run),
        run,
        output,
        model_identity(model, records),
        Watch(callbacks, verbose, progress),
        dev_batches,
    )


def evaluate_pretraining(
    model: keras.Model,
    records: PretrainingRecords,
    batch_tokens: int = 65_536,
    masks: WholeWordMaskGenerator | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Score masked words and the order of segments on records, each sequence once.

    With `PretrainingRecords(path, order="nsp")` a model of sentence order is scored on
    BERT's next-sentence prediction, and the other way round.

    Args:
        model: an `AlbertPretrainer`, or the result of `build_network`.
        records: a `PretrainingRecords`.
        batch_tokens: int. Tokens per batch, padding included.
        masks: optional `WholeWordMaskGenerator`. By default masked records keep their
            masks, and others are masked with `records.masks()`.
        seed: int from 0 to 2**31 - 1, of segments and masks.

    Returns:
        A dict: `mlm_logits_loss`, `mlm_logits_accuracy` and the same of `sop_logits`.

    Raises:
        AlbertError: if the records do not fit the model.

    Example:
    ```python
    records = albert_tf.pretraining.PretrainingRecords("records", order="nsp")
    pretrainer = albert_tf.models.AlbertPretrainer.from_checkpoint("albert_micro_zh")
    albert_tf.pretraining.evaluate_pretraining(pretrainer, records)
    ```
    """
    check_fits(model, records)
    if masks is None and not records.is_masked:
        masks = records.masks()
    step = PretrainingModel(same_network(model), masks)
    step.compile()
    settings = BatchSettings(batch_tokens=batch_tokens, seed=seed)
    batches = PretrainingBatches(records, settings, training=False)
    scores = step.evaluate(evaluation_data(batches), return_dict=True, verbose=0)
    return {name: float(scores[name]) for name in step.means}


def with_masks(run: AnyRun, records: PretrainingRecords) -> AnyRun:
    """Return the settings with the default masks of records, unless they hold masks."""
    if run.masks is not None or records.is_masked:
        return run
    return dataclasses.replace(run, masks=records.masks())


def same_network(model: keras.Model) -> keras.Model:
    """Return a network of the layers of a model.

    The state of a training then fits the network of any machine.
    """
    return keras.Model(model.input, model.output)


def model_identity(model: keras.Model, records: PretrainingRecords) -> dict[str, Any]:
    """Return what a resumed training must have in common beside its settings."""
    return {
        "model": _config(model),
        "optimizer": keras.saving.serialize_keras_object(model.optimizer),
        # The names contain a hash of the text.
        "records": {
            shard["name"]: shard["sequences"] for shard in records.manifest["shards"]
        },
        "order": records.order,
    }


def check_fits(model: keras.Model, records: PretrainingRecords) -> None:
    """Raise if a model cannot be trained on records."""
    config = _config(model)
    outputs, size = model.output, records.tokens["size"]
    classes = outputs["sop_logits"].shape[-1] if "sop_logits" in outputs else 0
    length, longest = records.sequence_length, config["max_sequence_length"]
    for name, count, expected in (
        ("classes of sentence order", records.order_classes, classes),
        ("tokens in their vocabulary", size, min(size, config["vocabulary_size"])),
        ("tokens per sequence", length, min(length, longest)),
    ):
        if count != expected:
            raise AlbertError(
                f"The records of {records.folder} have {count} {name}, but the model "
                f"has {expected}."
            )


def _config(model: keras.Model) -> dict[str, Any]:
    """Return the sizes of a network."""
    return {**backbone_of(model).get_config(), "heads": [*model.output]}
