"""The options of `albert-tf finetune`."""

import dataclasses
from typing import Annotated, Any, Literal

from albert_tf_cli.shared.options import (
    EmaMomentum,
    Encoding,
    GradientAccumulationSteps,
    LabelColumn,
    LabelMap,
    LabelSeparator,
    Precision,
    Seed,
    Sheet,
    SkipInvalid,
    StartCheckpoint,
    TextBColumn,
    TextColumn,
    Vocab,
    advanced_option,
    data_option,
    directory_option,
    model_option,
    output_option,
    training_option,
)
from albert_tf_cli.tasks import TASKS

_TASK_NAMES = tuple(name for name, task in TASKS.items() if task.read)
TaskName: Any = Literal[_TASK_NAMES]
Freeze = Literal["embeddings", "encoder"]
PoolingMode = Literal["cls", "mean", "max", "first_last_mean"]
# Options that identify a training. An interrupted one resumes with the same values.
IDENTIFYING = (
    "task",
    "sequence_length",
    "epochs",
    "batch_size",
    "learning_rate",
    "minutes",
    "patience",
    "monitor",
    "class_weight",
    "precision",
    "seed",
    "freeze",
    "pooling_mode",
    "early_exit",
    "ema_momentum",
    "gradient_accumulation_steps",
)
# Options whose files identify it by their contents, and those of the output.
OTHERS = (
    "train",
    "dev",
    "test",
    "unlabelled",
    "checkpoint",
    "config",
    "vocab",
    "label_column",
    "text_column",
    "text_b_column",
    "label_separator",
    "label_map",
    "encoding",
    "sheet",
    "skip_invalid",
    "output",
    "overwrite",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneOptions:
    """The options of `albert-tf finetune`."""

    train: Annotated[str, data_option("File of labelled examples.")]
    output: Annotated[str, directory_option("Directory for the model.")]
    task: Annotated[
        TaskName,
        data_option(f"Task to learn: {', '.join(_TASK_NAMES)}.", metavar="TASK"),
    ] = "text-classification"
    dev: Annotated[
        str | None,
        data_option("Examples that choose the epoch. Default: a tenth of --train."),
    ] = None
    test: Annotated[
        str | None, data_option("Labelled examples to score the model on.")
    ] = None
    unlabelled: Annotated[
        list[str] | None,
        data_option(
            "Texts without labels, which the checkpoint learns before: a file that "
            "`predict` reads. Repeatable.",
            metavar="<str>",
        ),
    ] = None
    label_column: LabelColumn = None
    text_column: TextColumn = None
    text_b_column: TextBColumn = None
    label_separator: LabelSeparator = None
    label_map: LabelMap = None
    encoding: Encoding = None
    sheet: Sheet = None
    skip_invalid: SkipInvalid = False
    checkpoint: StartCheckpoint = None
    config: Annotated[
        str | None,
        model_option(
            "Config file of the checkpoint. Without --checkpoint: a size such as "
            "albert_tiny_zh or a config file, for random weights."
        ),
    ] = None
    vocab: Vocab = None
    sequence_length: Annotated[
        int,
        model_option("Maximum number of tokens; longer texts are truncated.", min=5),
    ] = 256
    epochs: Annotated[
        int | None,
        training_option(
            "Passes over the training examples. Default: 3, and up to 30 for fewer "
            "than 1,500.",
            min=1,
        ),
    ] = None
    batch_size: Annotated[
        int | None,
        training_option(
            "Examples per step. Default: 16, and 32 from 10,000 examples on.", min=1
        ),
    ] = None
    learning_rate: Annotated[
        float | None,
        training_option(
            "Peak learning rate. Default: that of the checkpoint, or by size: 1e-4 for "
            "tiny (3e-4 from random weights), 3e-5 for base. Lower for few examples "
            "of labels that the checkpoint has."
        ),
    ] = None
    patience: Annotated[
        int | None,
        training_option("Stop after this many epochs without a better score.", min=1),
    ] = None
    monitor: Annotated[
        str | None,
        training_option(
            "Dev score that chooses the epoch, such as macro_f1. Default: by task."
        ),
    ] = None
    class_weight: Annotated[
        Literal["balanced"] | None,
        training_option("Weight the classes inversely to their frequency."),
    ] = None
    minutes: Annotated[
        float | None,
        training_option(
            "Maximum minutes for --unlabelled. Default: 6 epochs, fewer for more than "
            "5,000 texts.",
            min=0.01,
        ),
    ] = None
    precision: Precision = "float32"
    seed: Seed = 1
    overwrite: Annotated[
        bool, output_option("Replace a model in --output.", "--overwrite")
    ] = False
    freeze: Annotated[
        Freeze | None,
        advanced_option("Freeze the embeddings, or all but the head (encoder)."),
    ] = None
    pooling_mode: Annotated[
        PoolingMode | None,
        advanced_option("Pooling of the token vectors. Default: by task."),
    ] = None
    early_exit: Annotated[
        bool, advanced_option("Train every layer to classify.", "--early-exit")
    ] = False
    ema_momentum: EmaMomentum = None
    gradient_accumulation_steps: GradientAccumulationSteps = None
