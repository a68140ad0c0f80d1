"""`albert-tf finetune`."""

import inspect
import pathlib
from typing import Annotated

import typer

from albert_tf_cli.common import (
    BatchSize,
    Config,
    LabelColumn,
    TextAColumn,
    TextBColumn,
    Vocab,
    app,
    check_checkpoint,
    check_files,
    choices,
    console,
    import_readers,
    import_tensorflow,
    random_backbone,
    state_folder,
)
from albert_tf_cli.task_table import TASKS
from albert_tf_cli.task_table.row import Columns, split
from albert_tf_lite.errors import AlbertError

TaskName = choices("TaskName", *(row.name for row in TASKS.values() if row.read))
Freeze = choices("Freeze", "embeddings", "encoder")
Precision = choices("Precision", "float32", "bfloat16", "auto")
PoolingMode = choices("PoolingMode", "cls", "mean", "max", "first_last_mean")


@app.command()
def finetune(
    context: typer.Context,
    train: Annotated[str, typer.Option(help="Labelled examples to train on.")],
    output: Annotated[str, typer.Option(help="Directory to write the model to.")],
    dev: Annotated[
        str | None,
        typer.Option(
            help="Labelled examples to choose the epoch on; by default a share of "
            "--train."
        ),
    ] = None,
    dev_split: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="That share, without --dev.")
    ] = 0.1,
    task: Annotated[TaskName, typer.Option(help="What is to be learned.")] = TaskName[
        "text-classification"
    ],
    checkpoint: Annotated[
        str | None, typer.Option(help="The checkpoint to start from.")
    ] = None,
    config: Config = None,
    vocab: Vocab = None,
    test: Annotated[
        str | None, typer.Option(help="Labelled examples to score the result on.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 3,
    batch_size: BatchSize = 32,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Peak of the learning rate. By default by size, 5e-4 for micro, 1e-4 "
            "for tiny (3e-4 from random weights), 3e-5 for base."
        ),
    ] = None,
    sequence_length: Annotated[
        int, typer.Option(min=5, help="Most tokens of an example; longer is cut.")
    ] = 256,
    dropout: Annotated[
        float | None,
        typer.Option(min=0, max=0.9, help="Of the head; by default 0.1."),
    ] = None,
    pooling_mode: Annotated[
        PoolingMode | None,
        typer.Option(help="How a text's tokens become one vector; by task."),
    ] = None,
    freeze: Annotated[
        Freeze | None,
        typer.Option(help="What does not train; without the encoder only the head."),
    ] = None,
    early_exit: Annotated[
        bool,
        typer.Option("--early-exit", help="Every layer of a classifier classifies."),
    ] = False,
    ema_momentum: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.9999,
            help="Score and keep averaged weights; such as 0.99.",
        ),
    ] = None,
    gradient_accumulation_steps: Annotated[
        int | None, typer.Option(min=2, help="Batches an update.")
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after so many epochs that are no better."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order and dropout.")] = 1,
    precision: Annotated[
        Precision | None, typer.Option(help="auto: bfloat16 where that is faster.")
    ] = None,
    mixed_precision: Annotated[
        bool, typer.Option("--mixed-precision", help="As --precision bfloat16.")
    ] = False,
    label_column: LabelColumn = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model in --output.")
    ] = False,
):
    """Fine-tune a model on labelled examples.

    Files of texts are .tsv, .csv or .jsonl, with a header (label, text, and for pairs
    text_b) or without; see --label-column and --text-column for others. The epoch
    with the best score on --dev is kept. Writes the model, metrics.json and
    history.png to --output. A run that was cut off resumes when it is started again.

    Example: albert-tf finetune --checkpoint albert_tiny_zh --train train.tsv
    --dev dev.tsv --output my_model
    """
    folder = pathlib.Path(output)
    _check_output(folder, checkpoint, overwrite)
    import_readers()
    row = TASKS[task.value]
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
            "Give --checkpoint to start from, or --config and --vocab to train from "
            "random weights."
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
    if mixed_precision or precision:
        asked = "bfloat16" if mixed_precision else precision.value
        keras.config.set_dtype_policy(as_dtype(asked))
    chosen = {
        "dropout": dropout,
        "pooling_mode": pooling_mode and pooling_mode.value,
    }
    model_class = row.model_class
    if early_exit:
        from albert_tf.models import AlbertEarlyExitClassifier as model_class

        if row.model_class.name_of_task != model_class.name_of_task:
            raise AlbertError(
                f"--early-exit is not for --task {row.name}: leave it out."
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
            # What makes it another training: of files, what is in them.
            settings={
                **{name: x for name, x in options.items() if name not in _FILES},
                "arguments": known,
                "weights": weights_digest(model),
            },
            callbacks=[progress],
            verbose=0,
            maximise=row.monitor,
            tune=on_dev(row.tune),
            scores=on_dev(row.scores),
            freeze=freeze and freeze.value,
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
# Files of models, of this package or others.
_MODELS = ("config.json", "task.json", "*.index", "*.safetensors", "*.keras", "*.bin")


def _check_output(folder, checkpoint, overwrite):
    """Refuse a directory with a model that is done, unless it is to be replaced."""
    if folder.is_file():
        raise FileExistsError(f"--output {folder} is a file. Give a directory.")
    if state_folder(folder).exists():
        return
    start = pathlib.Path(checkpoint) if checkpoint else None
    if start and start.exists() and folder.exists() and start.samefile(folder):
        raise FileExistsError(
            f"--output {folder} is the checkpoint to start from. Give another "
            "directory."
        )
    if not overwrite and any(list(folder.glob(pattern)) for pattern in _MODELS):
        raise FileExistsError(
            f"{folder} holds a model. Give another --output, or --overwrite to replace "
            "it."
        )


def _taken(row, function, options):
    """The options that were given, if a function takes them all."""
    options = {name: value for name, value in options.items() if value is not None}
    for name in options:
        if name not in inspect.signature(function).parameters:
            raise AlbertError(
                f"--{name.replace('_', '-')} is not for --task {row.name}: leave it "
                "out."
            )
    return options


def _scores(row, model, examples, batch_size):
    """The scores of Keras, and those of the task."""
    values = model.evaluate(
        examples.x, examples.y, batch_size=batch_size, return_dict=True, verbose=0
    )
    if row.scores:
        values.update(row.scores(model, examples, batch_size))
    return values


def new_model(model, checkpoint, config, vocab, sequence_length, arguments):
    """Return a model of a class on a checkpoint, or with random weights."""
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
