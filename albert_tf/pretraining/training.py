"""Pretrain on records with both losses, and resume after an interruption."""

import functools
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np

from albert_tf.files import BACKUP, write_json
from albert_tf.layers import WholeWordMaskGenerator
from albert_tf.pretraining.batches import (
    WIDTHS,
    PretrainingBatches,
    evaluation_data,
    training_data,
)
from albert_tf.pretraining.dataset import PretrainingRecords
from albert_tf.pretraining.model import PretrainingModel
from albert_tf.pretraining.network import backbone_of
from albert_tf.pretraining.step import StepModel
from albert_tf.step_counts import interval_of
from albert_tf.training.optimizers import WarmupLinearDecay
from albert_tf.training.run_state import TrainingState, hold_state, without_names
from albert_tf_lite.errors import AlbertError

# Entries of the history of a training whose length is in minutes.
INTERVALS = 20
# The share of the minutes in which a training trains.
TRAINING_SHARE = 0.95
TIMED_CALLS = 3


def pretrain(
    model: keras.Model,
    records: PretrainingRecords,
    output: str | os.PathLike,
    steps: int | None = None,
    batch_tokens: int = 65_536,
    masks: WholeWordMaskGenerator | None = None,
    seed: int = 0,
    interval: int | None = None,
    dev: PretrainingRecords | None = None,
    settings: dict[str, Any] | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    verbose: int | str = 1,
    progress: Callable[[int, int], Any] | None = None,
    *,
    minutes: float | None = None,
    learning_rate: float | None = None,
    warmup_share: float = 0.1,
    steps_per_call: int = 1,
    padded_lengths: Sequence[int] = WIDTHS,
    hosts: int = 1,
    host: int = 0,
) -> dict[str, Any]:
    """Train a compiled model on records, with the TensorFlow or JAX backend of Keras.

    To resume an interrupted run, start it again with the same model, optimizer, records
    and numbers. Ctrl-C and SIGTERM save the state first; a killed run loses at most
    three minutes (on JAX: less than an interval).

    Args:
        model: a compiled `AlbertPretrainer`, or the result of `build_network`. If its
            optimizer averages the weights (`use_ema`), `dev` is evaluated with the
            averages, and the model has them afterwards.
        records: a `PretrainingRecords`.
        output: string, the directory for the state of the run.
        steps: int. Number of training batches.
        batch_tokens: int. Tokens per batch, padding included.
        masks: optional `WholeWordMaskGenerator`. By default masked records keep their
            masks, and others are masked with `records.masks()`.
        seed: int from 0 to 2**31 - 1, of order, segments and masks.
        interval: optional int. Steps between two entries of the history and evaluations
            on `dev`. By default the largest number from 100 to 1,000 that divides the
            steps, or all steps; with `minutes` a twentieth of them.
        dev: optional `PretrainingRecords` to evaluate on.
        settings: optional dict, further values that identify the run, such as the
            `data_digest` of the initial weights.
        callbacks, verbose: as for `keras.Model.fit`.
        progress: optional function, called during the training with the numbers of
            completed steps and of all steps.
        minutes: optional float, instead of `steps`: the number of steps follows from a
            trial of each length of batches.
        learning_rate: optional float, the peak of a warm-up and linear decay over the
            steps, instead of the rate of the optimizer.
        warmup_share: float. Share of the steps in which that rate rises.
        steps_per_call: int. Steps that a call of the device trains, more for a small
            model on a GPU.
        padded_lengths: ints. Sequences are padded to the next of these lengths, or to
            that of the longest. XLA compiles a program for each.
        hosts, host: ints. Number of processes that train together, and the index of
            this one. They share `output`; the first writes there.

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
    done = albert_tf.pretraining.pretrain(
        pretrainer, records, "out", steps=10_000, learning_rate=1e-3
    )
    ```
    """
    check_fits(model, records)
    if dev is not None:
        check_fits(model, dev)
        check_same_tokens(dev, records)
    if masks is None and not records.is_masked:
        masks = records.masks()
    # The same layers, so that the state fits the network of any machine.
    network = keras.Model(model.input, model.output)
    batches = functools.partial(
        PretrainingBatches,
        batch_tokens=batch_tokens,
        seed=seed,
        widths=padded_lengths,
        hosts=hosts,
        host=host,
    )
    identity = {
        "batch_tokens": batch_tokens,
        "padded_lengths": [*padded_lengths],
        "seed": seed,
        "hosts": hosts,
    }
    return train(
        PretrainingModel(network, masks),
        model.optimizer,
        functools.partial(batches, records, steps_per_call=steps_per_call),
        output,
        {**model_identity(model, records, masks), **identity, **(settings or {})},
        steps=steps,
        minutes=minutes,
        interval=interval,
        learning_rate=learning_rate,
        warmup_share=warmup_share,
        steps_per_call=steps_per_call,
        dev=dev and batches(dev, training=False),
        callbacks=callbacks,
        verbose=verbose,
        progress=progress,
        writes=host == 0,
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
        records, batch_tokens, masks, seed: as for `pretrain`.

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
    step = PretrainingModel(keras.Model(model.input, model.output), masks)
    step.compile()
    batches = PretrainingBatches(records, batch_tokens, seed, training=False)
    found = step.evaluate(evaluation_data(batches), return_dict=True, verbose=0)
    return {name: float(found[name]) for name in step.means}


def model_identity(
    model: keras.Model,
    records: PretrainingRecords,
    masks: WholeWordMaskGenerator | None,
) -> dict[str, Any]:
    """Return what a resumed training must have in common with the first."""
    return {
        "model": _config(model),
        "optimizer": keras.saving.serialize_keras_object(model.optimizer),
        "masks": masks and masks.get_config(),
        # The names contain a hash of the text.
        "records": {x["name"]: x["sequences"] for x in records.manifest["shards"]},
        "order": records.order,
    }


def settable_optimizer(optimizer: Any, learning_rate: float | None) -> Any:
    """Return an optimizer whose learning rate is a variable, which each step sets."""
    if learning_rate is None:
        return optimizer
    config = {**optimizer.get_config(), "learning_rate": learning_rate}
    return type(optimizer).from_config(config)


def train(
    model: StepModel,
    optimizer: Any,
    batches: Callable[..., Any],
    output: str | os.PathLike,
    identity: dict[str, Any],
    *,
    steps: int | None,
    minutes: float | None,
    interval: int | None,
    learning_rate: float | None,
    warmup_share: float,
    steps_per_call: int,
    dev: Any = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    verbose: int | str = 1,
    progress: Callable[[int, int], Any] | None = None,
    writes: bool = True,
) -> dict[str, Any]:
    """Train a model on stacked batches, and resume from the state in `output`.

    `batches` returns the batches of a training for its number of `steps` and the
    `schedule` of its rate; `identity` are values that a resumed training must have,
    beside those named here. The rest is as for `pretrain`.
    """
    if (steps is None) == (minutes is None):
        raise AlbertError("Pass `steps` or `minutes`.")
    identity = {
        **identity,
        "steps": steps,
        "minutes": minutes,
        "interval": interval,
        "learning_rate": learning_rate,
        "warmup_share": warmup_share,
        "steps_per_call": steps_per_call,
    }
    optimizer = settable_optimizer(optimizer, learning_rate)
    model.compile(optimizer)
    optimizer.build(model.trainable_variables)

    def scheduled(steps: int) -> Any:
        schedule = None
        if learning_rate is not None:
            warmup = int(steps * warmup_share)
            schedule = WarmupLinearDecay(learning_rate, steps, warmup)
        return batches(steps=steps, schedule=schedule)

    backup = pathlib.Path(output) / BACKUP
    with hold_state(backup, without_names(identity), writes):
        if steps is None:
            steps, interval = _planned(
                model, scheduled, backup, minutes, steps_per_call, writes
            )
        interval = interval_of(steps, interval, steps_per_call)
        calls = interval // steps_per_call
        state = TrainingState(
            backup,
            writes=writes,
            interval=calls,
            progress=progress,
            scale=steps_per_call,
        )
        if dev is not None:
            dev = evaluation_data(dev)
            _score_start(model, dev, state, verbose)
        _fit(
            model,
            scheduled(steps),
            state,
            calls,
            steps // interval,
            validation_data=dev,
            callbacks=[state, *callbacks],
            verbose=verbose,
        )
    return {
        "history": state.history,
        "start": state.start,
        "steps": steps,
        "interval": interval,
        "seconds": state.seconds,
    }


def _score_start(model, dev, state, verbose):
    """Score a model on dev before its first step, for the state to keep."""
    if state.steps:
        return
    scores = model.evaluate(dev, return_dict=True, verbose=0)
    state.start = {name: float(value) for name, value in scores.items()}
    if verbose:
        shown = " - ".join(f"val_{name}: {x:.4f}" for name, x in state.start.items())
        print(f"Step 0, before training - {shown}")


def _fit(model, data, state, calls, epochs, callbacks, **options):
    """Train what is left of `epochs` of a number of calls each."""
    optimizer = model.optimizer
    if optimizer.use_ema:
        # Evaluates with the averages.
        callbacks = [keras.callbacks.SwapEMAWeights(), *callbacks]
    total = epochs * calls

    def rest() -> dict[str, Any]:
        return {
            "x": training_data(data, state.steps, total - state.steps),
            "steps_per_epoch": calls - state.step,
        }

    if state.steps == total:
        state.load(model)
        # With `use_ema` the averages become the weights, as at the end of `fit`.
        optimizer.finalize_variable_values(model.trainable_variables)
        return
    # The batches are shuffled.
    state.fit(model, epochs, rest, shuffle=False, callbacks=callbacks, **options)


def _planned(model, batches, backup, minutes, steps_per_call, writes):
    """Return the steps and the interval of a training of `minutes`, stored once.

    The first of several hosts decides: clocks differ, and hosts with different numbers
    of steps would wait for each other for ever.
    """
    file = backup / "steps.json"
    stored = json.loads(file.read_text("utf-8")) if file.exists() else [0, 0]
    # Also whether there is a trial, in which all hosts take part.
    steps, interval = _of_first_host(stored)
    if steps:
        return steps, interval
    calls = 60 * TRAINING_SHARE * minutes / seconds_per_call(model, batches(10**9))
    interval = max(int(calls / INTERVALS), 1) * steps_per_call
    steps, interval = _of_first_host([interval * INTERVALS, interval])
    if writes:
        write_json(file, [steps, interval])
    return steps, interval


def _of_first_host(numbers: Any) -> list[int]:
    """Return the numbers of the first of the hosts that train together."""
    if keras.backend.backend() != "jax":
        return numbers
    from jax.experimental import multihost_utils

    numbers = np.array(numbers, "int32")
    return multihost_utils.broadcast_one_to_all(numbers).tolist()


def seconds_per_call(model: StepModel, batches: Any) -> float:
    """Return the mean duration of a call of an epoch, and keep the model as it was."""
    variables = [*model.variables, *model.optimizer.variables]
    before = [keras.ops.convert_to_numpy(x) for x in variables]
    widths = [width for width, _ in batches.plan.epoch(0)]
    seconds = 0.0
    for width in dict.fromkeys(widths):
        first = widths.index(width)
        for count in (1, TIMED_CALLS):
            data = training_data([batches[first]] * count, 0, count)
            start = time.monotonic()
            model.fit(data, steps_per_epoch=count, shuffle=False, verbose=0)
            duration = (time.monotonic() - start) / count
            # Also because on JAX, averaged weights would share memory with averages.
            for variable, value in zip(variables, before, strict=True):
                variable.assign(value)
        seconds += duration * widths.count(width)
    return seconds / len(widths)


def _config(model: keras.Model) -> dict[str, Any]:
    """Return the sizes of a network."""
    return {**backbone_of(model).get_config(), "heads": [*model.output]}


def check_fits(model: keras.Model, records: PretrainingRecords) -> None:
    """Raise if a model cannot be trained on records."""
    config = _config(model)
    outputs, size = model.output, records.tokens["size"]
    classes = outputs["sop_logits"].shape[-1] if "sop_logits" in outputs else 0
    length, longest = records.sequence_length, config["max_sequence_length"]
    for name, found, expected in (
        ("classes of sentence order", records.order_classes, classes),
        ("tokens in their vocabulary", size, min(size, config["vocabulary_size"])),
        ("tokens per sequence", length, min(length, longest)),
    ):
        if found != expected:
            raise AlbertError(
                f"The records of {records.folder} have {found} {name}, but the model "
                f"has {expected}."
            )


def check_same_tokens(first: Any, second: Any) -> None:
    """Raise if two records have different vocabularies."""
    if first.vocabulary.read_bytes() != second.vocabulary.read_bytes():
        raise AlbertError(
            f"{first.folder} and {second.folder} have different vocabularies. Make the "
            "records with the same vocabulary."
        )
