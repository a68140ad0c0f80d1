"""The command `albert-tf finetune`."""

import inspect
import pathlib
from typing import Annotated, Literal

import typer

from albert_tf_cli.common import (
    ADVANCED,
    DATA,
    MODEL,
    OUTPUT,
    TRAINING,
    LabelColumn,
    Precision,
    TextAColumn,
    TextBColumn,
    check_checkpoint,
    check_files,
    console,
    import_tensorflow,
    random_backbone,
    state_folder,
)
from albert_tf_cli.task_table import TASKS
from albert_tf_cli.task_table.row import Columns, split
from albert_tf_lite.errors import AlbertError

TASK_NAMES = tuple(row.name for row in TASKS.values() if row.read)
TaskName = Literal[*TASK_NAMES]
Freeze = Literal["embeddings", "encoder"]
PoolingMode = Literal["cls", "mean", "max", "first_last_mean"]


def finetune(
    context: typer.Context,
    train: Annotated[
        str, typer.Option(rich_help_panel=DATA, help="File of labelled examples.")
    ],
    output: Annotated[
        str, typer.Option(rich_help_panel=OUTPUT, help="Directory for the model.")
    ],
    task: Annotated[
        TaskName,
        typer.Option(
            rich_help_panel=DATA,
            metavar="TASK",
            help=f"Task to learn: {', '.join(TASK_NAMES)}.",
        ),
    ] = "text-classification",
    dev: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Labelled examples that choose the best epoch. Default: a share of "
            "--train.",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=DATA, help="Labelled examples to score the model on."
        ),
    ] = None,
    dev_split: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=0.9,
            rich_help_panel=DATA,
            help="Share of --train used as dev examples if there is no --dev.",
        ),
    ] = 0.1,
    label_column: LabelColumn = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Checkpoint to start from: a directory, an archive, a prefix or the "
            "name of a release.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Without --checkpoint: size of a model with random weights, a name "
            "such as albert_tiny_zh or a config file. With it: its config file, if it "
            "is elsewhere.",
        ),
    ] = None,
    vocab: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="vocab.txt or SentencePiece model, if it is not beside the "
            "checkpoint.",
        ),
    ] = None,
    sequence_length: Annotated[
        int,
        typer.Option(
            min=5,
            rich_help_panel=MODEL,
            help="Maximum number of tokens per example; longer texts are truncated.",
        ),
    ] = 256,
    epochs: Annotated[
        int,
        typer.Option(
            min=1, rich_help_panel=TRAINING, help="Passes over the training examples."
        ),
    ] = 3,
    batch_size: Annotated[
        int, typer.Option(min=1, rich_help_panel=TRAINING, help="Examples per step.")
    ] = 32,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TRAINING,
            help="Peak learning rate. Default by size: 5e-4 for micro, 1e-4 for tiny "
            "(3e-4 from random weights), 3e-5 for base.",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=TRAINING,
            help="Stop after this many epochs without a better dev score.",
        ),
    ] = None,
    precision: Annotated[
        Precision | None,
        typer.Option(
            rich_help_panel=TRAINING,
            help="Precision of the computation; auto picks bfloat16 where it is "
            "faster. Default: float32.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            rich_help_panel=TRAINING,
            help="Random seed of new weights, the order of examples and dropout.",
        ),
    ] = 1,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", rich_help_panel=OUTPUT, help="Replace a model in --output."
        ),
    ] = False,
    freeze: Annotated[
        Freeze | None,
        typer.Option(
            rich_help_panel=ADVANCED,
            help="Layers to freeze: the embeddings, or the whole encoder (trains the "
            "head only).",
        ),
    ] = None,
    dropout: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.9,
            rich_help_panel=ADVANCED,
            help="Dropout rate of the head. Default: 0.1.",
        ),
    ] = None,
    pooling_mode: Annotated[
        PoolingMode | None,
        typer.Option(
            rich_help_panel=ADVANCED,
            help="Pooling of the token vectors into one vector. The default depends on "
            "the task.",
        ),
    ] = None,
    early_exit: Annotated[
        bool,
        typer.Option(
            "--early-exit",
            rich_help_panel=ADVANCED,
            help="Train every layer to classify, for early exit at prediction time.",
        ),
    ] = False,
    ema_momentum: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.9999,
            rich_help_panel=ADVANCED,
            help="Momentum of averaged weights, which are scored and saved; for "
            "example 0.99.",
        ),
    ] = None,
    gradient_accumulation_steps: Annotated[
        int | None,
        typer.Option(
            min=2,
            rich_help_panel=ADVANCED,
            help="Batches per update of the weights.",
        ),
    ] = None,
):
    """Fine-tune a model on labelled examples.

    Files are .tsv, .csv or .jsonl, with the columns label, text and, for pairs,
    text_b. Use --label-column and --text-column for other names. The epoch with the
    best dev score is kept. The command writes the model, metrics.json and history.png
    to --output. After an interruption, the same command resumes the training.

    \b
    Example:
      albert-tf finetune --checkpoint albert_tiny_zh --train train.tsv \\
          --dev dev.tsv --output my_model
    """
    folder = pathlib.Path(output)
    _check_output(folder, checkpoint, overwrite)
    row = TASKS[task]
    columns = Columns(label_column, text_column, text_b_column)
    data = {"train": row.read(train, columns)}
    known = data["train"].arguments
    for name, path in (("dev", dev), ("test", test)):
        if path:
            data[name] = row.read(path, columns, known)
    if not dev:
        data["train"], data["dev"] = split(data["train"], dev_split, seed)
    counts = [f"{name} {part.count:,}" for name, part in data.items()]
    told = f"{row.summary(known)} {', '.join(counts)} {data['train'].unit}"
    console.print(told.strip(), soft_wrap=True)

    if checkpoint:
        check_checkpoint(checkpoint)
    elif not (config and vocab):
        raise AlbertError(
            "Missing --checkpoint. To train from random weights, give --config and "
            "--vocab instead."
        )
    check_files(vocab)
    import_tensorflow()
    import keras

    from albert_tf.backbone.precision import as_dtype
    from albert_tf.files import write_json
    from albert_tf.training import fine_tuning_learning_rate
    from albert_tf.training.fine_tuning import fine_tune, plot_history
    from albert_tf.training.run_state import weights_digest
    from albert_tf_cli.training_progress import TrainingProgress

    keras.utils.set_random_seed(seed)
    if precision:
        keras.config.set_dtype_policy(as_dtype(precision))
    chosen = {
        "dropout": dropout,
        "pooling_mode": pooling_mode,
    }
    model_class = row.model_class
    if early_exit:
        from albert_tf.models import AlbertEarlyExitClassifier as model_class

        if row.model_class.name_of_task != model_class.name_of_task:
            raise AlbertError(
                f"--early-exit does not apply to --task {row.name}. Leave it out."
            )
    arguments = {**known, **_taken(row, model_class, chosen)}
    model = new_model(
        model_class, checkpoint, config, vocab, sequence_length, arguments
    )
    if learning_rate is None and checkpoint is None:
        width = model.backbone.hidden_dim
        learning_rate = fine_tuning_learning_rate(width, random_weights=True)
    model.compile(
        learning_rate=learning_rate,
        ema_momentum=ema_momentum,
        gradient_accumulation_steps=gradient_accumulation_steps,
    )

    options = {name: x for name, x in context.params.items() if name != "output"}
    options["task"] = row.name

    def on_dev(function):
        return function and (lambda model: function(model, data["dev"], batch_size))

    with TrainingProgress() as progress:
        metrics = fine_tune(
            model,
            *((data[name].x, data[name].y) for name in ("train", "dev")),
            output,
            epochs=epochs,
            batch_size=batch_size,
            # A resumed training must have the same settings and contents of files.
            settings={
                **{name: x for name, x in options.items() if name not in _FILES},
                "arguments": known,
                "weights": weights_digest(model),
            },
            callbacks=[progress],
            maximise=row.monitor,
            tune=on_dev(row.tune),
            scores=on_dev(row.scores),
            freeze=freeze,
            patience=patience,
        )
    if test:
        metrics["test"] = _scores(row, model, data["test"], batch_size)
    if known.get("labels"):
        metrics["classes"] = known["labels"]
    metrics["settings"] = options
    write_json(folder / "metrics.json", metrics)
    plot_history(metrics["history"], folder / "history.png", row.monitor)
    done = len(metrics["history"]["loss"])
    scores = [
        f"{name} {row.monitor} {metrics[name][row.monitor]:.4f}"
        for name in ("dev", "test")
        if name in metrics
    ]
    console.print(
        f"Best epoch {metrics['best_epoch']} of {done}, {metrics['seconds']} s. "
        f"{', '.join(scores)}. Model, metrics.json and history.png are in {output}",
        soft_wrap=True,
    )


_FILES = (
    *("train", "dev", "test", "checkpoint", "config", "vocab"),
    *("label_column", "text_column", "text_b_column", "overwrite"),
)
# Patterns of model files.
_MODELS = ("config.json", "task.json", "*.index", "*.safetensors", "*.keras", "*.bin")


def _check_output(folder, checkpoint, overwrite):
    """Raise if the directory holds a finished model that may not be replaced."""
    if folder.is_file():
        raise FileExistsError(f"--output {folder} is a file. Expected a directory.")
    if state_folder(folder).exists():
        return
    start = pathlib.Path(checkpoint) if checkpoint else None
    if start and start.exists() and folder.exists() and start.samefile(folder):
        raise FileExistsError(
            f"--output {folder} is the same directory as --checkpoint. Choose another "
            "--output."
        )
    if not overwrite and any(list(folder.glob(pattern)) for pattern in _MODELS):
        raise FileExistsError(
            f"{folder} contains a model. Choose another --output, or pass --overwrite "
            "to replace it."
        )


def _taken(row, function, options):
    """Return the options that are not `None`, if the function takes them all."""
    options = {name: value for name, value in options.items() if value is not None}
    for name in options:
        if name not in inspect.signature(function).parameters:
            raise AlbertError(
                f"--{name.replace('_', '-')} does not apply to --task {row.name}. "
                "Leave it out."
            )
    return options


def _scores(row, model, examples, batch_size):
    """Compute the metrics of Keras and the scores of the task."""
    values = model.evaluate(
        examples.x, examples.y, batch_size=batch_size, return_dict=True, verbose=0
    )
    if row.scores:
        values.update(row.scores(model, examples, batch_size))
    return values


def new_model(model, checkpoint, config, vocab, sequence_length, arguments):
    """Build a model of a class from a checkpoint or with random weights."""
    from albert_tf.checkpoints import open_checkpoint
    from albert_tf.tokenizers import load_tokenizer

    if checkpoint:
        opened = open_checkpoint(checkpoint, config=config)
        length = min(sequence_length, opened.arguments["max_sequence_length"])
        return model.from_checkpoint(
            opened, vocabulary=vocab, sequence_length=length, **arguments
        )
    tokenizer = load_tokenizer(vocab)
    backbone = random_backbone(config, tokenizer.vocabulary_size())
    length = min(sequence_length, backbone.max_sequence_length)
    return model.from_backbone(backbone, tokenizer, sequence_length=length, **arguments)
