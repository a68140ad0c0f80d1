"""The command `albert-tf finetune`."""

import pathlib
import types
import warnings
from typing import Annotated, Any, Literal

import typer

from albert_tf.files import split_head
from albert_tf_cli import common, options
from albert_tf_cli.evaluation import checked_reader
from albert_tf_cli.new_models import choose_model_class, new_model
from albert_tf_cli.options import (
    advanced_option,
    data_option,
    directory_option,
    model_option,
    output_option,
    training_option,
)
from albert_tf_cli.tasks import TASKS, Columns, split
from albert_tf_cli.tasks.task import as_columns
from albert_tf_lite.errors import AlbertError, MissingPackageError
from albert_tf_lite.network_files import (
    LEAST_AGREEMENT,
    LEAST_EXAMPLES,
    NETWORK,
    int8_file,
    is_safe,
    preset_digest,
)
from albert_tf_lite.onnx_model import OnnxModel

_TASK_NAMES = tuple(name for name, task in TASKS.items() if task.read)
TaskName: Any = Literal[_TASK_NAMES]
Freeze = Literal["embeddings", "encoder"]
PoolingMode = Literal["cls", "mean", "max", "first_last_mean"]
# Minimum number of dev examples, and examples of the most frequent class per example of
# the rarest, without a warning.
LEAST_DEV, MOST_FREQUENT = 20, 50
# Most dev examples on which int8 is compared with float32.
MOST_COMPARED = 2000
# Scores that are not better if they are larger.
_NOT_TO_MAXIMISE = {"false_positive_rate", "mse", "total"}

# Options with a default by the data.
_RESOLVED = ("epochs", "batch_size")
# Options that identify a training. An interrupted one resumes with the same values.
IDENTIFYING = (
    *("task", "sequence_length", "epochs", "batch_size", "learning_rate", "patience"),
    *("monitor", "class_weight", "precision", "seed", "freeze", "pooling_mode"),
    *("early_exit", "ema_momentum", "gradient_accumulation_steps"),
)
# Options whose files identify it by their contents, and those of the output.
OTHERS = (
    *("train", "dev", "test", "checkpoint", "config", "vocab"),
    *("label_column", "text_column", "text_b_column", "label_separator"),
    *("encoding", "sheet", "skip_invalid", "output", "overwrite"),
)


def finetune(
    context: typer.Context,
    train: Annotated[str, data_option("File of labelled examples.")],
    output: Annotated[str, directory_option("Directory for the model.")],
    task: Annotated[
        TaskName,
        data_option(f"Task to learn: {', '.join(_TASK_NAMES)}.", metavar="TASK"),
    ] = "text-classification",
    dev: Annotated[
        str | None,
        data_option("Examples that choose the epoch. Default: a tenth of --train."),
    ] = None,
    test: Annotated[
        str | None, data_option("Labelled examples to score the model on.")
    ] = None,
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    label_separator: options.LabelSeparator = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    skip_invalid: options.SkipInvalid = False,
    checkpoint: options.StartCheckpoint = None,
    config: Annotated[
        str | None,
        model_option(
            "Config file of the checkpoint. Without --checkpoint: a size such as "
            "albert_tiny_zh or a config file, for random weights."
        ),
    ] = None,
    vocab: options.Vocab = None,
    sequence_length: Annotated[
        int,
        model_option("Maximum number of tokens; longer texts are truncated.", min=5),
    ] = 256,
    epochs: Annotated[
        int | None,
        training_option(
            "Passes over the training examples. Default: 3, and up to 30 for fewer "
            "than 1,500.",
            min=1,
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        training_option(
            "Examples per step. Default: 16, and 32 from 10,000 examples on.", min=1
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        training_option(
            "Peak learning rate. Default: that of the checkpoint, or by size: 1e-4 for "
            "tiny (3e-4 from random weights), 3e-5 for base. Lower for few examples "
            "of labels that the checkpoint has."
        ),
    ] = None,
    patience: Annotated[
        int | None,
        training_option("Stop after this many epochs without a better score.", min=1),
    ] = None,
    monitor: Annotated[
        str | None,
        training_option(
            "Dev score that chooses the epoch, such as macro_f1. Default: by task."
        ),
    ] = None,
    class_weight: Annotated[
        Literal["balanced"] | None,
        training_option("Weight the classes inversely to their frequency."),
    ] = None,
    precision: options.Precision = "float32",
    seed: options.Seed = 1,
    overwrite: Annotated[
        bool, output_option("Replace a model in --output.", "--overwrite")
    ] = False,
    freeze: Annotated[
        Freeze | None,
        advanced_option("Freeze the embeddings, or all but the head (encoder)."),
    ] = None,
    pooling_mode: Annotated[
        PoolingMode | None,
        advanced_option("Pooling of the token vectors. Default: by task."),
    ] = None,
    early_exit: Annotated[
        bool, advanced_option("Train every layer to classify.", "--early-exit")
    ] = False,
    ema_momentum: options.EmaMomentum = None,
    gradient_accumulation_steps: options.GradientAccumulationSteps = None,
):
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
    args, task = types.SimpleNamespace(**context.params), TASKS[task]
    _check_output(pathlib.Path(output), checkpoint, overwrite)
    data = _read(args, task)
    if not any(map(str.strip, as_columns(data["train"].x)[0])):
        raise AlbertError(f"All texts of {train} are empty.")
    _warn_of_copies(data)
    _check_start(args)
    _print_start(args, data)
    common.import_tensorflow()
    model = _build(args, data)
    args.monitor = _monitor(args, model, task, data)
    if args.class_weight is None:
        _warn_of_rare_class(task.class_counts(data["train"]), model)
    _warn_of_dev(data["dev"], task.class_counts(data["dev"]))
    args.epochs, args.batch_size = _defaults(args, model, len(data["train"]))
    metrics = _train(context, args, model, task, data)
    _write(context, args, model, task, data, metrics)


def _check_output(folder, checkpoint, overwrite):
    """Raise if the model would replace files that it may not replace."""
    start = split_head(checkpoint)[0] if checkpoint else None
    is_start = start and folder.resolve() == pathlib.Path(start).resolve()
    may_replace = overwrite or common.state_folder(folder).exists()
    if is_start or (folder.exists() and any(folder.iterdir()) and not may_replace):
        raise FileExistsError(
            f"--output {folder} contains files. Choose another directory, or pass "
            "--overwrite to replace a model other than --checkpoint."
        )


def _read(args, task):
    """Return the examples by part; without a dev file, a tenth of train is dev."""
    read = checked_reader(task, args.skip_invalid)
    columns = Columns(
        *(args.label_column, args.text_column, args.text_b_column),
        *(args.label_separator, args.encoding, args.sheet),
    )
    data = {"train": read(args.train, columns)}
    for name in ("dev", "test"):
        if file := getattr(args, name):
            data[name] = read(file, columns, data["train"].arguments)
    if "dev" not in data:
        data["train"], data["dev"] = split(data["train"], args.seed)
    return data


def _check_start(args):
    """Raise if there is nothing to start from."""
    if args.checkpoint:
        common.check_checkpoint(args.checkpoint)
    elif not (args.config and args.vocab):
        raise AlbertError(
            "Missing --checkpoint. To train from random weights, give --config and "
            "--vocab instead."
        )
    common.check_files(args.vocab)


def _print_start(args, data):
    """Print the labels, the number of examples and the start of a training."""
    counts = ", ".join(f"{name} {len(part):,}" for name, part in data.items())
    if labels := data["train"].arguments.get("labels"):
        counts = f"{len(labels)} labels: {common.format_value(labels)}. {counts}"
    start = args.checkpoint or f"random weights ({args.config})"
    common.console.print(f"{counts} examples, from {start}", soft_wrap=True)


def _build(args, data):
    import keras

    from albert_tf.backbone.precision import as_dtype
    from albert_tf.training import fine_tuning_learning_rate

    keras.utils.set_random_seed(args.seed)
    keras.config.set_dtype_policy(as_dtype(args.precision))
    pooling = {"pooling_mode": args.pooling_mode} if args.pooling_mode else {}
    model = new_model(
        choose_model_class(args.task, args.early_exit, args.class_weight, pooling),
        *(args.checkpoint, args.config, args.vocab, args.sequence_length),
        {**data["train"].arguments, **pooling},
    )
    learning_rate = args.learning_rate
    if learning_rate is None and args.checkpoint is None:
        width = model.backbone.hidden_dim
        learning_rate = fine_tuning_learning_rate(width, random_weights=True)
    model.compile(
        learning_rate=learning_rate,
        ema_momentum=args.ema_momentum,
        gradient_accumulation_steps=args.gradient_accumulation_steps,
    )
    return model


def _monitor(args, model, task, data):
    """Return the score that chooses the epoch; raise if the model has none such."""
    if args.monitor is None:
        return model.monitor
    example = data["dev"].select([0])
    scores = {model.monitor, *task.evaluate(model, example, args.batch_size)}
    if args.monitor not in scores - _NOT_TO_MAXIMISE:
        raise AlbertError(
            f"--monitor {args.monitor} is not a score to maximise. Expected one of: "
            f"{', '.join(sorted(scores - _NOT_TO_MAXIMISE))}"
        )
    return args.monitor


def _defaults(args, model, examples):
    """Return the number of epochs and the batch size for a number of examples."""
    from albert_tf.training import fine_tuning_batch_size, fine_tuning_epochs

    epochs = args.epochs or fine_tuning_epochs(examples)
    batch_size = args.batch_size or fine_tuning_batch_size(examples)
    rate, usual = model.peak_learning_rate(examples), model.default_learning_rate
    reason = ""
    if args.learning_rate is None and rate < usual:
        reason = (
            f", lower than {usual:g} because the checkpoint has these labels already "
            f"and there are only {examples:,} examples"
        )
    common.console.print(
        f"Epochs: {epochs}, batch size: {batch_size}, learning rate: {rate:g}{reason}",
        soft_wrap=True,
    )
    return epochs, batch_size


def _train(context, args, model, task, data):
    """Train and return the metrics, with those of the test examples."""
    from albert_tf.tools import class_weights
    from albert_tf.training.digests import model_digest
    from albert_tf.training.fine_tuning import FineTuning, fine_tune

    train, dev, size = data["train"], data["dev"], args.batch_size
    weights = args.class_weight and class_weights(train.y, train.arguments["labels"])
    # A resumed training must have the same settings and contents of files.
    settings = {name: context.params[name] for name in IDENTIFYING}
    settings |= {name: getattr(args, name) for name in _RESOLVED}
    settings |= {"arguments": train.arguments, "model": model_digest(model)}
    with common.interruptible(context) as progress:
        options = FineTuning(
            epochs=args.epochs,
            batch_size=size,
            maximise=args.monitor,
            tune=lambda model: task.tune(model, dev, size),
            scores=lambda model: task.evaluate(model, dev, size),
            freeze=args.freeze,
            patience=args.patience,
            seed=args.seed,
            class_weight=weights,
            settings=settings,
        )
        metrics = fine_tune(
            model,
            (train.x, train.y),
            (dev.x, dev.y),
            args.output,
            options,
            **progress,
        )
    if test := data.get("test"):
        metrics["test"] = {
            **model.evaluate(test.x, test.y, size, verbose=0, return_dict=True),
            **task.evaluate(model, test, size),
        }
    return metrics


def _write(context, args, model, task, data, metrics):
    """Write metrics.json, history.png, the exported models and the model card."""
    from albert_tf.checkpoints.layout import first_line
    from albert_tf.files import remove_directory, write_json
    from albert_tf.model_card import write_model_card
    from albert_tf.training.history_plot import plot_history

    folder, settings = pathlib.Path(args.output), dict(context.params)
    del settings["output"]
    metrics["settings"] = settings | {x: getattr(args, x) for x in _RESOLVED}
    if labels := data["train"].arguments.get("labels"):
        metrics["classes"] = labels
    card = _card(args, task, data, metrics)
    # An export uses the card of the same weights only.
    metrics["card"] = {preset_digest(folder): card}
    write_json(folder / "metrics.json", metrics)
    plot_history(
        *(metrics["history"], ("loss", args.monitor), folder / "history.png"),
        start=metrics.get("start"),
    )
    failure = _export(model, folder, data["dev"])
    write_model_card(folder, model, **card)
    # Last: until then, the same command completes an interrupted run.
    remove_directory(common.state_folder(folder))
    best = [
        f"{name} {args.monitor} {metrics[name][args.monitor]:.4f}"
        for name in ("dev", "test")
        if name in metrics
    ]
    common.console.print(
        f"{_outcome(metrics)}, {metrics['seconds']} s. "
        f"{', '.join(best)}. Model, README.md and metrics.json are in {args.output}",
        soft_wrap=True,
    )
    if failure is not None:
        raise AlbertError(
            f"The model in {folder} is complete, but {NETWORK} for answers without "
            f"TensorFlow could not be written: {first_line(failure)} To write it, run: "
            f"albert-tf export {folder} {folder / NETWORK}"
        ) from failure


def _export(model, folder, dev):
    """Write files for answers without TensorFlow, if the task has any.

    Return the error if that fails: the training is complete, and its other files are
    written.
    """
    network, int8 = folder / NETWORK, int8_file(folder / NETWORK)
    for file in (network, int8):
        # An earlier training may have left one.
        file.unlink(missing_ok=True)
    if model.exported_settings() is None:
        return None
    try:
        _write_networks(model, network, dev)
    except MissingPackageError as error:
        warnings.warn(
            f"The files for answers without TensorFlow are incomplete: {error}",
            stacklevel=2,
        )
    except Exception as error:
        return error
    return None


def _write_networks(model, network, dev):
    """Write the network in float32, and in int8 if that is safe."""
    from albert_tf.export import onnx
    from albert_tf.export.agreement import is_comparable

    folder, int8 = network.parent, int8_file(network)
    onnx(model, network, preset=folder)
    if len(dev) < LEAST_EXAMPLES or not is_comparable(model.name_of_task):
        return
    step = -(-len(dev) // MOST_COMPARED)
    texts = dev.select(range(0, len(dev), step)).x
    onnx(model, int8, precision="int8", preset=folder, compare=texts)
    settings = OnnxModel(int8, threads=1).settings
    found = settings["agreement"]
    answers, use = f"those of float32 for {found['answers']:.1%}", "int8"
    if not is_safe(settings):
        int8.unlink()
        use = f"float32, because {LEAST_AGREEMENT:.1%} is needed for int8"
    common.console.print(
        f"Answers in int8 are {answers} of {found['examples']:,} dev examples: "
        f"predict uses {use}",
        soft_wrap=True,
    )


def _outcome(metrics):
    if metrics["best_epoch"] == 0:
        return (
            "Best epoch 0, before training: training did not improve on the "
            "checkpoint; its weights are kept"
        )
    return f"Best epoch {metrics['best_epoch']}"


def _card(args, task, data, metrics):
    """Return what the model card has of a training."""
    from albert_tf.model_card import excerpt

    files = {name: getattr(args, name) for name in data}
    files["dev"] = files["dev"] or f"{args.train} (10%)"
    start = args.checkpoint or f"{args.config} (random weights)"
    if metrics["best_epoch"] == 0:
        start += " (unchanged, because training did not improve on it)"
    return {
        "start": start,
        "data": {
            name: (files[name], len(part), metrics.get(name, {}))
            for name, part in data.items()
        },
        "examples": {
            label: excerpt(text)
            for label, text in task.class_examples(data["train"]).items()
        },
    }


def _warn_of_copies(data):
    """Warn of training examples in dev and test, and of texts with other labels."""
    rows = {
        name: [repr(row) for row in zip(*as_columns(part.x), strict=True)]
        for name, part in data.items()
    }
    train = set(rows["train"])
    for name in ("dev", "test"):
        if count := sum(row in train for row in rows.get(name, ())):
            warnings.warn(
                f"{count:,} of {len(rows[name]):,} {name} examples are training "
                "examples, too. The score is too high for new texts.",
                stacklevel=2,
            )
    if not data["train"].arguments.get("labels"):
        return
    labels: dict[str, set[str]] = {}
    for row, label in zip(rows["train"], data["train"].y, strict=True):
        labels.setdefault(row, set()).add(repr(label))
    if several := [row for row, found in labels.items() if len(found) > 1]:
        warnings.warn(
            f"{len(several):,} training texts have different labels, such as "
            f"{several[0][1:-1].rstrip(','):.60}: "
            f"{' and '.join(sorted(labels[several[0]]))}.",
            stacklevel=2,
        )


def _warn_of_rare_class(counts, model):
    """Warn if a model may never predict the rarest class."""
    if not counts:
        return
    rarest, most = (choose(counts, key=counts.get) for choose in (min, max))
    if counts[most] < MOST_FREQUENT * counts[rarest]:
        return
    remedy = "Add examples of it"
    if model.takes_class_weight:
        remedy += ", or pass --class-weight balanced and --monitor macro_f1"
    warnings.warn(
        f"The class {rarest!r} has {counts[rarest]:,} training examples, {most!r} has "
        f"{counts[most]:,}. The model may never predict the rare class. {remedy}.",
        stacklevel=2,
    )


def _warn_of_dev(dev, counts):
    """Warn if dev hardly distinguishes good epochs from bad ones."""
    if len(dev) < LEAST_DEV:
        warnings.warn(
            f"Only {len(dev)} dev examples choose the epoch. A single one can change "
            f"the score by {1 / len(dev):.0%}. Pass --dev with 100 or more.",
            stacklevel=2,
        )
    if missing := [label for label, count in counts.items() if not count]:
        warnings.warn(
            f"{len(missing)} of {len(counts)} classes have no dev example: "
            f"{common.format_value(missing)}. Mistakes on them do not change the "
            "score. Pass --dev with examples of each class.",
            stacklevel=2,
        )
