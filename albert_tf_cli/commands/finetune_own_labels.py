"""The last step of `finetune --unlabelled`: one round of the model's own labels."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from albert_tf_cli.commands.finetune_training import (
    Run,
    batch_size_for,
    epochs_for,
    train_model,
)
from albert_tf_cli.shared.console import console
from albert_tf_cli.tasks.task import Examples, as_columns, as_inputs
from albert_tf_cli.tasks.unlabelled import Unlabelled

if TYPE_CHECKING:
    from albert_tf.models import AlbertTask

# The model of the round, in the directory of the model until that is complete.
OWN_LABELS = "own_labels"


def learn_own_labels(
    context: typer.Context,
    run: Run,
    model: "AlbertTask",
    metrics: dict[str, Any],
    unlabelled: Unlabelled,
    build: Callable[[], "AlbertTask"],
) -> tuple[Run, "AlbertTask", dict[str, Any]]:
    """Train again on the labels and on the sure answers of the model.

    The new model is kept if it is better on dev. A few dev examples cannot tell, and a
    round of own labels helps as a rule, so that by default it is also kept if it is
    worse by no more than chance.

    Args:
        context: the context of the command.
        run: the training of the model.
        model: the trained model.
        metrics: its metrics, as of `train_model`.
        unlabelled: the texts to answer.
        build: function that returns the model before its training.

    Returns:
        The training of the kept model, that model and its metrics.
    """
    from albert_tf.training.run_state import rank

    own = None
    # A pair with one text of dev is learned, but has no label of its own.
    if any(as_columns(unlabelled.examples)[0]):
        own = run.task.own_labels(model, unlabelled.examples, run.batch_size)
    if own is None or not len(own.sure):
        return run, model, metrics
    train = _joined(run.parts["train"], own.sure)
    count = len(own.sure)
    console.print(
        f"Learning {count:,} examples with labels of the model's own", soft_wrap=True
    )
    # For their number.
    resized = dataclasses.replace(
        run,
        epochs=epochs_for(run.options, len(train)),
        batch_size=batch_size_for(run.options, len(train)),
    )
    second = dataclasses.replace(
        resized,
        parts={**run.parts, "train": train},
        folder=run.folder / OWN_LABELS,
        reference=own.reference,
    )
    learned = build()
    scores = train_model(context, second, learned)
    is_kept = rank(scores["dev"], run.monitor) > rank(metrics["dev"], run.monitor)
    if not is_kept and run.options.monitor is None:
        dev = run.parts["dev"]
        is_kept = run.task.is_as_good(learned, model, dev, run.batch_size)
    summary = {
        "examples": count,
        "kept": is_kept,
        "dev before": metrics["dev"],
        "dev after": scores["dev"],
    }
    console.print(_outcome(run, summary), soft_wrap=True)
    if not is_kept:
        return run, model, {**metrics, "own_labels": summary}
    learned.save_to_preset(str(run.folder))
    return resized, learned, {**scores, "own_labels": summary}


def remove_round(folder: pathlib.Path) -> None:
    """Remove the model of the round, of which a copy was kept if it is better."""
    from albert_tf.files import remove_directory

    if (folder / OWN_LABELS).is_dir():
        remove_directory(folder / OWN_LABELS)


def _joined(train: Examples, others: Examples) -> Examples:
    """Return the training examples and others after them."""
    pairs = zip(as_columns(train.x), as_columns(others.x), strict=True)
    columns = [[*known, *new] for known, new in pairs]
    return dataclasses.replace(train, x=as_inputs(columns), y=[*train.y, *others.y])


def _outcome(run: Run, summary: dict[str, Any]) -> str:
    before = summary["dev before"][run.monitor]
    after = summary["dev after"][run.monitor]
    kept = "kept" if summary["kept"] else "not kept"
    if summary["kept"] and after < before:
        kept += " because that may be chance"
    return f"Own labels: dev {run.monitor} {before:.4f} to {after:.4f}, {kept}"
