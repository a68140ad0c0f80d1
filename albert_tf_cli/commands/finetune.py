"""The command `albert-tf finetune`."""

import pathlib
from typing import TYPE_CHECKING, Any

import typer

from albert_tf.files import split_head
from albert_tf_cli.commands.finetune_options import FinetuneOptions
from albert_tf_cli.commands.finetune_own_labels import learn_own_labels, remove_round
from albert_tf_cli.commands.finetune_training import Run, decide_run, train_model
from albert_tf_cli.commands.finetune_unlabelled import (
    ADAPTED,
    Adapted,
    adapt_to,
    distrust_head,
    read_texts,
)
from albert_tf_cli.shared.column_options import columns_of
from albert_tf_cli.shared.console import console, format_value
from albert_tf_cli.shared.early_checks import (
    check_checkpoint,
    check_files,
    state_folder,
)
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.label_map import head_option
from albert_tf_cli.shared.new_models import choose_model_class, new_model
from albert_tf_cli.shared.options import takes_options
from albert_tf_cli.tasks import TASKS, Examples, Task, split
from albert_tf_cli.tasks.baselines import (
    baselines_by,
    score_baselines,
    warn_if_beaten,
)
from albert_tf_cli.tasks.data_warnings import (
    warn_of_copies,
    warn_of_dev,
    warn_of_rare_class,
)
from albert_tf_cli.tasks.networks import write_networks
from albert_tf_cli.tasks.reading import checked_reader
from albert_tf_cli.tasks.task import as_columns
from albert_tf_lite.errors import AlbertError, first_line
from albert_tf_lite.network_files import NETWORK, preset_digest

if TYPE_CHECKING:
    from albert_tf.models import AlbertTask


@takes_options
def finetune(context: typer.Context, options: FinetuneOptions) -> None:
    """Fine-tune a model on labelled examples.

    Files are .tsv, .csv, .xlsx or .jsonl, with the columns label, text and, for pairs,
    text_b. Use --label-column and --text-column for other names. The epoch with the
    best dev score is kept. The command writes the model, metrics.json and history.png
    to --output. After an interruption, the same command resumes the training.

    \b
    Example:
      albert-tf finetune --checkpoint albert_tiny_zh --train train.tsv \\
          --dev dev.tsv --output my_model
    """
    task = TASKS[options.task]
    _check_output(options)
    parts = _read(options, task)
    if not any(map(str.strip, as_columns(parts["train"].x)[0])):
        raise AlbertError(f"All texts of {options.train} are empty.")
    warn_of_copies(parts)
    unlabelled = read_texts(options, task, parts)
    _check_start(options)
    _print_start(options, parts)
    import_tensorflow()
    if task.takes_label_map and not options.label_map:
        _print_head_option(options, parts["train"])
    _set_up_keras(options)
    adapted = None
    if unlabelled is not None:
        adapted = adapt_to(context, options, unlabelled)
    model = _build(options, parts["train"], adapted)
    run = decide_run(options, model, task, parts, adapted)
    if options.class_weight is None:
        warn_of_rare_class(task.class_counts(parts["train"]), model)
    warn_of_dev(parts["dev"], task.class_counts(parts["dev"]))
    metrics = train_model(context, run, model)
    if unlabelled is not None:
        run, model, metrics = learn_own_labels(
            context,
            run,
            model,
            metrics,
            unlabelled,
            lambda: _build(options, parts["train"], adapted),
        )
    metrics["baselines"] = score_baselines(task, parts)
    _write(run, model, metrics)
    warn_if_beaten(run.monitor, metrics, may_adapt=not options.unlabelled)


def _check_output(options: FinetuneOptions) -> None:
    """Raise if the model would replace files that it may not replace."""
    folder = pathlib.Path(options.output)
    is_start = False
    if options.checkpoint:
        start, _ = split_head(options.checkpoint)
        is_start = folder.resolve() == pathlib.Path(start).resolve()
    folders = (folder, folder / ADAPTED)
    is_unfinished = any(state_folder(x).exists() for x in folders)
    may_replace = options.overwrite or is_unfinished
    if is_start or (folder.exists() and any(folder.iterdir()) and not may_replace):
        raise FileExistsError(
            f"--output {folder} contains files. Choose another directory, or pass "
            "--overwrite to replace a model other than --checkpoint."
        )


def _read(options: FinetuneOptions, task: Task) -> dict[str, Examples]:
    """Return the examples by part; without a dev file, a tenth of train is dev."""
    read = checked_reader(task, options.skip_invalid)
    columns = columns_of(options)
    train = read(options.train, columns)
    parts = {"train": train}
    if options.dev:
        parts["dev"] = read(options.dev, columns, train.arguments)
    if options.test:
        parts["test"] = read(options.test, columns, train.arguments)
    if not options.dev:
        parts["train"], parts["dev"] = split(train, options.seed)
    return parts


def _check_start(options: FinetuneOptions) -> None:
    """Raise if there is nothing to start from."""
    if options.checkpoint:
        check_checkpoint(options.checkpoint)
    elif not (options.config and options.vocab):
        raise AlbertError(
            "Missing --checkpoint. To train from random weights, give --config and "
            "--vocab instead."
        )
    check_files(options.vocab)


def _print_start(options: FinetuneOptions, parts: dict[str, Examples]) -> None:
    """Print the labels, the number of examples and the start of a training."""
    counts = ", ".join(f"{name} {len(part):,}" for name, part in parts.items())
    if labels := parts["train"].arguments.get("labels"):
        counts = f"{len(labels)} labels: {format_value(labels)}. {counts}"
    start = options.checkpoint or f"random weights ({options.config})"
    console.print(f"{counts} examples, from {start}", soft_wrap=True)


def _print_head_option(options: FinetuneOptions, train: Examples) -> None:
    """Print a --label-map if a head seems to have the labels by other names."""
    if options.checkpoint is None:
        return
    line = head_option(
        options.checkpoint, options.config, options.task, train.arguments
    )
    if line:
        console.print(line, soft_wrap=True)


def _set_up_keras(options: FinetuneOptions) -> None:
    """Set the precision and the random seed."""
    import keras

    from albert_tf.backbone.precision import as_dtype

    keras.config.set_dtype_policy(as_dtype(options.precision))
    keras.utils.set_random_seed(options.seed)


def _build(
    options: FinetuneOptions, train: Examples, adapted: Adapted | None
) -> "AlbertTask":
    """Return the compiled model, with the weights of an adapted checkpoint."""
    import keras

    from albert_tf.training import fine_tuning_learning_rate

    # Whether a checkpoint was adapted now or by an interrupted run.
    keras.utils.set_random_seed(options.seed)
    pooling = {}
    if options.pooling_mode:
        pooling["pooling_mode"] = options.pooling_mode
    model_class = choose_model_class(
        options.task, options.early_exit, options.class_weight, pooling
    )
    model = new_model(
        model_class,
        options.checkpoint,
        options.config,
        options.vocab,
        options.sequence_length,
        {**train.arguments, **pooling},
    )
    learning_rate = options.learning_rate
    if learning_rate is None and options.checkpoint is None:
        width = model.backbone.hidden_dim
        learning_rate = fine_tuning_learning_rate(width, random_weights=True)
    if adapted is not None:
        adapted.load_into(model.backbone)
        distrust_head(model, train)
    model.compile(
        learning_rate=learning_rate,
        ema_momentum=options.ema_momentum,
        gradient_accumulation_steps=options.gradient_accumulation_steps,
    )
    return model


def _write(run: Run, model: "AlbertTask", metrics: dict[str, Any]) -> None:
    """Write metrics.json, history.png, the exported models and the model card."""
    from albert_tf.files import complete_directory, remove_directory, write_json
    from albert_tf.model_card import write_model_card
    from albert_tf.training.history_plot import plot_history

    folder, settings = run.folder, run.settings
    del settings["output"]
    metrics["settings"] = settings
    if run.labels:
        metrics["classes"] = run.labels
    if run.adapted is not None:
        metrics["adaptation"] = run.adapted.metrics
    card = _card(run, metrics)
    # An export uses the card of the same weights only.
    metrics["card"] = {preset_digest(folder): card}
    with complete_directory(folder) as new:
        write_json(new / "metrics.json", metrics)
        plot_history(
            metrics["history"],
            ("loss", run.monitor),
            new / "history.png",
            start=metrics.get("start"),
        )
        failure = write_networks(model, folder, new, run.parts["dev"])
        write_model_card(new, model, **card)
    # Last: until then, the same command completes an interrupted run.
    if run.adapted is not None:
        remove_directory(state_folder(folder / ADAPTED))
        remove_round(folder)
    remove_directory(state_folder(folder))
    best = [
        f"{name} {run.monitor} {metrics[name][run.monitor]:.4f}"
        for name in ("dev", "test")
        if name in metrics
    ]
    console.print(
        f"{_outcome(metrics)}, {metrics['seconds']} s. {', '.join(best)}. "
        f"{_calibration(metrics)}"
        f"Model, README.md and metrics.json are in {folder}",
        soft_wrap=True,
    )
    _print_baselines(run, metrics)
    if failure is not None:
        raise AlbertError(
            f"The model in {folder} is complete, but {NETWORK} for answers without "
            f"TensorFlow could not be written: {first_line(failure)} To write it, run: "
            f"albert-tf export {folder} {folder / NETWORK}"
        ) from failure


def _outcome(metrics: dict[str, Any]) -> str:
    if metrics["best_epoch"] == 0:
        return (
            "Best epoch 0, before training: training did not improve on the "
            "checkpoint; its weights are kept"
        )
    return f"Best epoch {metrics['best_epoch']}"


def _calibration(metrics: dict[str, Any]) -> str:
    if "temperature" not in metrics:
        return ""
    return f"Temperature of the scores {metrics['temperature']:.2f}. "


def _print_baselines(run: Run, metrics: dict[str, Any]) -> None:
    """Print the monitored score of each baseline."""
    shown = []
    for name, scores in baselines_by(run.monitor, metrics["baselines"]).items():
        values = ", ".join(f"{part} {score:.4f}" for part, score in scores.items())
        shown.append(f"{name} ({values})")
    if shown:
        line = f"Baselines by {run.monitor}: {', '.join(shown)}"
        console.print(line, soft_wrap=True)


def _card(run: Run, metrics: dict[str, Any]) -> dict[str, Any]:
    """Return what the model card has of a training."""
    from albert_tf.model_card import excerpt

    options = run.options
    files = {
        "train": options.train,
        "dev": options.dev or f"{options.train} (10%)",
        "test": options.test,
    }
    start = options.checkpoint or f"{options.config} (random weights)"
    if run.adapted is not None:
        start += f", adapted to {run.adapted.metrics['texts']:,} texts without labels"
    if metrics["best_epoch"] == 0:
        start += " (unchanged, because training did not improve on it)"
    examples = run.task.class_examples(run.parts["train"])
    return {
        "start": start,
        "data": {
            name: (files[name], len(part), metrics.get(name, {}))
            for name, part in run.parts.items()
        },
        "examples": {label: excerpt(text) for label, text in examples.items()},
        "baselines": baselines_by(run.monitor, metrics["baselines"]),
        "monitor": run.monitor,
    }
