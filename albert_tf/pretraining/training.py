"""Pretrain on records with both losses, and resume after an interruption."""

import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import keras

from albert_tf.files import BACKUP
from albert_tf.models import AlbertPretrainer
from albert_tf.preprocessing.masking import WholeWordMaskGenerator
from albert_tf.pretraining.dataset import PretrainingRecords
from albert_tf.training.run_state import TrainingState, hold_state, without_names
from albert_tf_lite.errors import AlbertError


def pretrain(
    model: AlbertPretrainer,
    records: PretrainingRecords,
    output: str | os.PathLike,
    steps: int,
    batch_size: int = 128,
    masks: WholeWordMaskGenerator | None = None,
    seed: int = 0,
    interval: int = 1000,
    dev: PretrainingRecords | None = None,
    settings: dict[str, Any] | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    verbose: int | str = 1,
    progress: Callable[[int, int], Any] | None = None,
    num_shards: int = 1,
    shard: int = 0,
) -> dict[str, Any]:
    """Train a compiled model on records.

    To resume an interrupted run, start it again with the same model, optimizer, records
    and numbers. Ctrl-C and SIGTERM save the state first; a killed run loses at most
    three minutes (on JAX: less than an interval).

    Args:
        model: a compiled `AlbertPretrainer`. If its optimizer averages the weights
            (`use_ema`), `dev` is evaluated with the averages, and the model has them
            afterwards.
        records: a `PretrainingRecords`.
        output: string, the directory for the state of the run.
        steps: int. Number of training batches.
        batch_size, masks, seed: as for `PretrainingRecords.dataset`.
        interval: int. Steps between two entries of the history and evaluations on
            `dev`.
        dev: optional `PretrainingRecords` to evaluate on.
        settings: optional dict, further values that identify the run, such as the
            `data_digest` of the initial weights.
        callbacks, verbose: as for `keras.Model.fit`.
        progress: optional function, called after each step with the numbers of
            completed steps and of all steps.
        num_shards, shard: as for `PretrainingRecords.dataset`. Hosts that train
            together share `output`; the first writes there.

    Returns:
        A dict: `history` (lists by metric with an entry per interval, `None` where an
        interval lacks it), `steps` and `seconds` (of all runs).

    Raises:
        AlbertError: if `steps` is not a multiple of `interval`, the records do not fit
            the model, `output` holds the state of another training, or the training
            diverges.
        BlockingIOError: if another process trains into `output`.
        KeyboardInterrupt: after Ctrl-C or SIGTERM.

    Example:
    ```python
    records = albert_tf.pretraining.PretrainingRecords("records")
    pretrainer = albert_tf.models.AlbertPretrainer.from_checkpoint("albert_tiny_zh")
    pretrainer.compile(
        albert_tf.training.scheduled_optimizer("lamb", 1e-3, total_steps=10_000)
    )
    done = albert_tf.pretraining.pretrain(pretrainer, records, "out", steps=10_000)
    ```
    """
    if min(steps, interval) < 1 or steps % interval:
        raise AlbertError(
            f"`steps` must be a multiple of `interval`. Received: {steps}, {interval}"
        )
    _check_fits(model, records)
    if dev is not None:
        _check_fits(model, dev)
        check_same_tokens(dev.folder, dev.tokenizer, records.folder, records.tokenizer)
    if masks is None and not records.is_masked:
        masks = records.masks()
    backup = pathlib.Path(output) / BACKUP
    optimizer: Any = model.optimizer
    identity = {
        "model": model.backbone.get_config(),
        "num_sop_classes": model.num_sop_classes,
        "optimizer": keras.saving.serialize_keras_object(optimizer),
        "masks": masks and masks.get_config(),
        # The names of ours contain a hash of the text.
        "records": {file.name: file.stat().st_size for file in records.counts},
        "steps": steps,
        "batch_size": batch_size,
        "seed": seed,
        "interval": interval,
        "num_shards": num_shards,
        **(settings or {}),
    }
    writes = shard == 0
    with hold_state(backup, without_names(identity), writes):
        evaluated = dev and dev.dataset(
            batch_size, None if dev.is_masked else masks, training=False
        )
        state = TrainingState(
            backup, writes=writes, interval=interval, progress=progress
        )
        callbacks = [state, *callbacks]
        if optimizer.use_ema:
            # Evaluates with the averages.
            callbacks.insert(0, keras.callbacks.SwapEMAWeights())

        def data() -> dict[str, Any]:
            batches = records.dataset(
                batch_size,
                masks,
                seed,
                skip=state.steps,
                num_shards=num_shards,
                shard=shard,
                steps=steps,
            )
            return {"x": batches, "steps_per_epoch": interval - state.step}

        if state.steps == steps:
            state.load(model)
            # With `use_ema` the averages become the weights, as at the end of `fit`.
            optimizer.finalize_variable_values(model.trainable_variables)
        else:
            state.fit(
                model,
                steps // interval,
                data,
                # The batches are shuffled.
                shuffle=False,
                validation_data=evaluated,
                callbacks=callbacks,
                verbose=verbose,
            )
    return {"history": state.history, "steps": steps, "seconds": state.seconds}


def _check_fits(model: AlbertPretrainer, records: PretrainingRecords) -> None:
    """Raise if a model cannot be trained on records."""
    backbone, tokenizer = model.backbone, records.tokenizer
    length, longest = records.sequence_length, backbone.max_sequence_length
    size = tokenizer.vocabulary_size() if tokenizer else backbone.vocabulary_size
    for name, found, expected in (
        ("classes of sentence order", records.order_classes, model.num_sop_classes),
        ("tokens in their vocabulary", size, min(size, backbone.vocabulary_size)),
        ("tokens per sequence", length, min(length, longest)),
    ):
        if found != expected:
            raise AlbertError(
                f"The records of {records.folder} have {found} {name}, but the model "
                f"has {expected}."
            )


def check_same_tokens(name: Any, tokenizer: Any, other_name: Any, other: Any) -> None:
    """Raise if two tokenizers, unless one is `None`, have different tokens."""
    if tokenizer is None or other is None:
        return
    if tokenizer.get_vocabulary() != other.get_vocabulary():
        raise AlbertError(
            f"{name} and {other_name} have different vocabularies. Make the records "
            "with the same vocabulary."
        )
