"""A training of `albert-tf finetune`: its settings, and its scores."""

import dataclasses
import pathlib
from typing import TYPE_CHECKING, Any

import typer

from albert_tf_cli.commands.finetune_options import IDENTIFYING, FinetuneOptions
from albert_tf_cli.commands.finetune_unlabelled import Adapted
from albert_tf_cli.shared.console import console
from albert_tf_cli.shared.progress import interruptible
from albert_tf_cli.tasks import Examples, Task
from albert_tf_lite.errors import AlbertError

if TYPE_CHECKING:
    from albert_tf.models import AlbertTask

# Scores that are not better if they are larger.
_NOT_TO_MAXIMISE = {"false_positive_rate", "mse", "total"}


@dataclasses.dataclass(frozen=True)
class Run:
    """A training whose settings are decided.

    Attributes:
        options: the options of the command.
        task: the task.
        parts: dict, the examples of `"train"`, `"dev"` and perhaps `"test"`.
        monitor: string, the dev score that chooses the epoch.
        adapted: optional `Adapted`, the checkpoint after --unlabelled.
        folder: the directory of the model.
        epochs, batch_size: ints.
        reference: optional `Examples` as of `OwnLabels`, to calibrate the model to.
    """

    options: FinetuneOptions
    task: Task
    parts: dict[str, Examples]
    monitor: str
    adapted: Adapted | None
    folder: pathlib.Path
    epochs: int
    batch_size: int
    reference: Examples | None = None

    @property
    def labels(self) -> list[str] | None:
        """The classes of the training examples, if they have any."""
        return self.parts["train"].arguments.get("labels")

    @property
    def settings(self) -> dict[str, Any]:
        """The options with what was decided in place of defaults by the data."""
        decided = {"epochs": self.epochs, "batch_size": self.batch_size}
        return dataclasses.asdict(self.options) | decided

    def calibrate(self, model: "AlbertTask", training_loss: float | None) -> None:
        """Set the temperature of the model, by dev or by the reference."""
        if self.reference is not None:
            self.task.calibrate_to(model, self.reference, self.batch_size)
        else:
            dev = self.parts["dev"]
            self.task.calibrate(model, dev, self.batch_size, training_loss)


def epochs_for(options: FinetuneOptions, count: int) -> int:
    """Return the number of epochs for a number of training examples."""
    from albert_tf.training import fine_tuning_epochs

    return options.epochs or fine_tuning_epochs(count)


def batch_size_for(options: FinetuneOptions, count: int) -> int:
    """Return the batch size for a number of training examples."""
    from albert_tf.training import fine_tuning_batch_size

    return options.batch_size or fine_tuning_batch_size(count)


def decide_run(
    options: FinetuneOptions,
    model: "AlbertTask",
    task: Task,
    parts: dict[str, Examples],
    adapted: Adapted | None,
) -> Run:
    """Return the training, with the settings that depend on model and examples."""
    count = len(parts["train"])
    run = Run(
        options,
        task,
        parts,
        monitor=_monitor(options, model, task, parts["dev"]),
        adapted=adapted,
        folder=pathlib.Path(options.output),
        epochs=epochs_for(options, count),
        batch_size=batch_size_for(options, count),
    )
    rate = model.peak_learning_rate(count)
    usual = model.default_learning_rate
    reason = ""
    if options.learning_rate is None and rate < usual:
        reason = (
            f", lower than {usual:g} because the checkpoint has these labels already "
            f"and there are only {count:,} examples"
        )
    console.print(
        f"Epochs: {run.epochs}, batch size: {run.batch_size}, "
        f"learning rate: {rate:g}{reason}",
        soft_wrap=True,
    )
    return run


def _monitor(
    options: FinetuneOptions, model: "AlbertTask", task: Task, dev: Examples
) -> str:
    """Return the score that chooses the epoch; raise if the model has none such."""
    default: Any = model.monitor
    if options.monitor is None:
        return default
    scores = {default}
    scores.update(task.evaluate(model, dev.select([0]), options.batch_size))
    scores -= _NOT_TO_MAXIMISE
    if options.monitor not in scores:
        raise AlbertError(
            f"--monitor {options.monitor} is not a score to maximise. Expected one "
            f"of: {', '.join(sorted(scores))}"
        )
    return options.monitor


def train_model(
    context: typer.Context, run: Run, model: "AlbertTask"
) -> dict[str, Any]:
    """Train and return the metrics, with those of the test examples."""
    from albert_tf.tools import class_weights
    from albert_tf.training.digests import model_digest
    from albert_tf.training.fine_tuning import FineTuning, fine_tune

    options, task, size = run.options, run.task, run.batch_size
    train, dev = run.parts["train"], run.parts["dev"]
    weights = None
    if options.class_weight:
        weights = class_weights(train.y, run.labels)
    # A resumed training must have the same settings and contents of files.
    identity = {name: run.settings[name] for name in IDENTIFYING}
    identity["arguments"] = train.arguments
    identity["model"] = model_digest(model)
    settings = FineTuning(
        epochs=run.epochs,
        batch_size=size,
        maximise=run.monitor,
        tune=lambda model: task.tune(model, dev, size),
        calibrate=run.calibrate,
        scores=lambda model: task.evaluate(model, dev, size),
        freeze=options.freeze,
        patience=options.patience,
        seed=options.seed,
        class_weight=weights,
        settings=identity,
    )
    with interruptible(context) as progress:
        metrics = fine_tune(
            model,
            (train.x, train.y),
            (dev.x, dev.y),
            run.folder,
            settings,
            **progress,
        )
    if hasattr(model, "temperature"):
        metrics["temperature"] = model.temperature
    if test := run.parts.get("test"):
        losses = model.evaluate(test.x, test.y, size, verbose=0, return_dict=True)
        metrics["test"] = losses | task.evaluate(model, test, size)
    return metrics
