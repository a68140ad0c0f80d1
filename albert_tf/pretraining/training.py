"""Pretraining on records with both losses, resumed if cut off."""

import contextlib
import itertools
import pathlib

import keras
import tensorflow as tf

from albert_tf.files import BACKUP
from albert_tf.pretraining.step_state import StepState
from albert_tf.training.lamb import Lamb
from albert_tf.training.muon import Muon
from albert_tf.training.optimizers import AdamW
from albert_tf.training.plots import draw
from albert_tf.training.run_state import hold_state
from albert_tf.training.schedules import WarmupLinearDecay
from albert_tf_lite.errors import AlbertError

OPTIMIZERS = {"lamb": Lamb, "adamw": AdamW, "muon": Muon}
# The titles of what is drawn, by metric.
PANELS = {
    "loss": "loss",
    "mlm_logits_accuracy": "masked words: accuracy",
    "sop_logits_accuracy": "sentence order: accuracy",
}


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
    num_shards=1,
    shard=0,
):
    """Train a compiled model on records.

    A run that was cut off is resumed, if it is started again with the same model,
    optimizer, records and numbers. Ctrl-C and SIGTERM save it first; what else ends it
    loses three minutes at most (on JAX: less than an interval).

    Args:
        model: a compiled `AlbertPretrainer`.
        records: a `PretrainingRecords`.
        output: string, the directory for the state of the run.
        steps: int. Batches to train on.
        batch_size: int, sequences.
        masks: as for `PretrainingRecords.dataset`. Records of `dev` that hold no masks
            get these, too, the same ones at each evaluation.
        seed: int, as for `PretrainingRecords.dataset`.
        interval: int. Steps from one entry of the history, and evaluation on `dev`, to
            the next.
        dev: optional `PretrainingRecords` to evaluate on after each interval.
        settings: optional dict, what identifies the run besides, such as the
            `weights_digest` of a checkpoint that it begins with.
        callbacks: further Keras callbacks.
        verbose: int, as for `keras.Model.fit`.
        num_shards, shard: as for `PretrainingRecords.dataset`. Hosts that train
            together share `output`; the first writes there.

    Returns:
        A dict: `history` (lists by metric, an entry an interval, `None` where one had
        no such metric), `steps` and `seconds` (of all starts).

    Raises:
        AlbertError: if `steps` is no multiple of `interval`, the records do not fit the
            model or are damaged, `output` holds the state of another training, or the
            training diverges.
        BlockingIOError: if another process trains into `output`.
        Interrupted: a `KeyboardInterrupt`, if it was told to end.
    """
    _check_steps(steps, interval)
    _check_fits(model, records)
    if dev is not None:
        _check_fits(model, dev)
        check_same_tokens(dev.folder, dev.tokenizer, records.folder, records.tokenizer)
    if masks is None and not records.is_masked:
        masks = records.masks()
    backup = pathlib.Path(output) / BACKUP
    identity = {
        **_identity(model, records, masks),
        "steps": steps,
        "batch_size": batch_size,
        "seed": seed,
        "interval": interval,
        "num_shards": num_shards,
        **(settings or {}),
    }
    writes = shard == 0
    with hold_state(backup, identity, writes), _naming_damage(records, dev):
        for part in filter(None, (records, dev)):
            part.verify()
        state = StepState(backup, interval, steps, writes)
        evaluated = dev and dev.dataset(
            batch_size, None if dev.is_masked else masks, training=False
        )
        if state.steps == steps:
            state.load(model)
        # The rest of an interval that was cut off, then whole ones.
        while state.steps < steps:
            last = state.epochs + 1 if state.step else steps // interval
            with state.handling_signals():
                model.fit(
                    records.dataset(
                        batch_size,
                        masks,
                        seed,
                        skip=state.steps,
                        num_shards=num_shards,
                        shard=shard,
                    ),
                    epochs=last,
                    initial_epoch=state.epochs,
                    steps_per_epoch=interval - state.step,
                    validation_data=evaluated,
                    callbacks=[state, *callbacks],
                    verbose=verbose,
                    # The dataset does.
                    shuffle=False,
                )
    return {"history": state.history, "steps": steps, "seconds": state.seconds}


def _check_steps(steps, interval):
    if min(steps, interval) < 1 or steps % interval:
        raise AlbertError(
            "`steps` should be a multiple of `interval`, and both 1 at least. "
            f"Received: {steps:,} steps, an interval of {interval:,}."
        )


def _identity(model, records, masks):
    """What tells this training from others, a dict."""
    # Without names, which count how many of a kind the process has made.
    backbone = {**model.backbone.get_config(), "name": None}
    optimizer = keras.saving.serialize_keras_object(model.optimizer)
    return {
        "model": {**backbone, "num_sop_classes": model.num_sop_classes},
        "optimizer": _without_names(optimizer),
        "masks": None if masks is None else {**masks.get_config(), "name": None},
        "records": records.fingerprint,
    }


def _without_names(config):
    if not isinstance(config, dict):
        return config
    return {x: _without_names(y) for x, y in config.items() if x != "name"}


@contextlib.contextmanager
def _naming_damage(*parts):
    """Say which file is damaged, where TensorFlow says only that one is."""
    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
    ):
        for records in filter(None, parts):
            records.read_through()
        raise


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
        AlbertError: if `steps` is no multiple of `accumulate`, or the rate
            below 0.
    """
    if not learning_rate >= 0:
        raise AlbertError(
            "`learning_rate` should not be below 0, but such as 1e-3. Received: "
            f"{learning_rate}"
        )
    if steps % accumulate:
        raise AlbertError(
            "The steps should be a multiple of those accumulated. Received: "
            f"{steps}, {accumulate}"
        )
    # Those of google-research/albert, `optimization.py`.
    original = {"weight_decay": 0.01, "epsilon": 1e-6, "global_clipnorm": 1.0}
    if accumulate > 1:
        original["gradient_accumulation_steps"] = accumulate
    # Keras counts batches here, whether they make an update or not.
    schedule = WarmupLinearDecay(learning_rate, steps, int(steps * warmup))
    return OPTIMIZERS[name](schedule, **{**original, **kwargs})


def _check_fits(model, records):
    """Refuse records that a model cannot be trained on."""
    positions = model.backbone.max_sequence_length
    if records.sequence_length > positions:
        raise AlbertError(
            f"The records of {records.folder} have {records.sequence_length} tokens, "
            f"the model {positions} positions. Make records with "
            f"`sequence_length=` {positions}, or take a larger model."
        )
    if records.order_classes != model.num_sop_classes:
        raise AlbertError(
            f"The records of {records.folder} have {records.order_classes} classes of "
            f"sentence order, the model {model.num_sop_classes}. Give "
            f"`num_sop_classes={records.order_classes}` to the model."
        )
    tokens, rows = records.vocabulary_size, model.backbone.vocabulary_size
    if tokens not in (None, rows):
        raise AlbertError(
            f"The vocabulary of {records.folder} has {tokens} tokens, the model "
            f"{rows}. Use the one that the model is for."
        )


def check_same_tokens(name, tokenizer, other_name, other):
    """Refuse two tokenizers, if they are known, whose tokens differ."""
    if tokenizer is None or other is None:
        return
    pairs = itertools.zip_longest(tokenizer.get_vocabulary(), other.get_vocabulary())
    for number, (token, there) in enumerate(pairs):
        if token != there:
            raise AlbertError(
                f"{name} and {other_name} have different vocabularies: token {number} "
                f"is {token!r} in the one, {there!r} in the other. Make the records "
                "with the same vocabulary."
            )


def plot_pretraining(history, interval, path):
    """Draw the loss and the accuracy of the heads by step, as a PNG file."""
    draw(history, PANELS, path, interval, "step")
