"""The command `albert-tf pretrain`."""

import importlib.util
import json
import pathlib
import re
import shutil
from typing import Annotated, Literal

import typer

from albert_tf_cli.common import (
    Layout,
    check_checkpoint,
    console,
    import_tensorflow,
    random_backbone,
    state_folder,
)
from albert_tf_cli.pretrain_data import MarkedLabels, MaskSelectionLength, Ngram
from albert_tf_lite.errors import AlbertError, MissingPackageError

Masking = Literal["static", "dynamic"]
Optimizer = Literal["lamb", "adamw"]


def pretrain(
    context: typer.Context,
    data: Annotated[
        str, typer.Option(help="Directory of records from `pretrain-data`.")
    ],
    output: Annotated[str, typer.Option(help="Directory to write to.")],
    config: Annotated[
        str | None,
        typer.Option(help="A size such as albert_tiny_zh, or a config file."),
    ] = None,
    init: Annotated[
        str | None, typer.Option(help="Checkpoint to start from, of any layout.")
    ] = None,
    steps: Annotated[
        int, typer.Option(min=1, help="Number of training batches.")
    ] = 10_000,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences per step.")] = 128,
    accumulate: Annotated[
        int,
        typer.Option(min=1, help="Steps per update, whose gradients are averaged."),
    ] = 1,
    optimizer: Annotated[
        Optimizer, typer.Option(help="LAMB as in the paper, or AdamW.")
    ] = "lamb",
    learning_rate: Annotated[
        float,
        typer.Option(
            help="Peak of the learning rate, after warm-up and before linear decay."
        ),
    ] = 0.00176,
    warmup: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the steps for warm-up.")
    ] = 0.1,
    weight_average: Annotated[
        float | None,
        typer.Option(
            help="Write and evaluate the exponential moving average of the weights, "
            "with this share of its previous value per step, such as 0.999."
        ),
    ] = None,
    masking: Annotated[
        Masking,
        typer.Option(
            help="static keeps the masks of masked records; dynamic draws masks each "
            "time a record is read. The next five options are for dynamic masks; by "
            "default they are the settings of masked records."
        ),
    ] = "dynamic",
    mask_selection_rate: Annotated[
        str | None,
        typer.Option(
            help="Share of the tokens to predict, 0.15 by default; 0.3:0.15 falls "
            "linearly over the training."
        ),
    ] = None,
    mask_selection_length: MaskSelectionLength = None,
    ngram: Ngram = None,
    whole_word: Annotated[
        bool | None,
        typer.Option(help="Mask whole words (default) or single tokens."),
    ] = None,
    marked_labels: MarkedLabels = None,
    interval: Annotated[
        int, typer.Option(min=1, help="Steps between evaluations on --dev.")
    ] = 1000,
    dev: Annotated[str | None, typer.Option(help="Records to evaluate on.")] = None,
    layout: Annotated[
        Layout | None,
        typer.Option(
            help="Layout of the checkpoint; by default the TF1 layout that it fits."
        ),
    ] = None,
    tensorboard: Annotated[
        str | None, typer.Option(help="Directory for TensorBoard logs.")
    ] = None,
    mixed_precision: Annotated[
        bool, typer.Option("--mixed-precision", help="Compute in bfloat16.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**31 - 1, help="Seed of weights, order and masks."),
    ] = 1,
):
    """Pretrain on masked words and sentence order.

    Starts from random weights (--config) or from a checkpoint (--init). Writes the
    checkpoint, history.json and loss.png to --output. The same command resumes after an
    interruption: Ctrl-C and SIGTERM save the state, which is also saved every three
    minutes.

    Example: albert-tf pretrain --data records --config albert_tiny_zh --output my_model
    """
    interval = min(interval, steps)
    if (config is None) == (init is None):
        raise AlbertError(
            "Give --config to train from random weights, or --init to start from a "
            "checkpoint."
        )
    if init is not None:
        check_checkpoint(init)
    for records in filter(None, (data, dev)):
        if not list(pathlib.Path(records).parent.glob(pathlib.Path(records).name)):
            raise FileNotFoundError(f"There are no records in {records}.")
    _refuse_finished(pathlib.Path(output))
    import_tensorflow()
    import keras

    from albert_tf.checkpoints import save_checkpoint
    from albert_tf.checkpoints.layouts import original_layout
    from albert_tf.checkpoints.saving import check_saving
    from albert_tf.files import write_json
    from albert_tf.pretraining.dataset import PretrainingRecords
    from albert_tf.pretraining.training import (
        plot_pretraining,
        pretrain,
        pretraining_optimizer,
    )
    from albert_tf.training.run_state import weights_digest
    from albert_tf_cli.training_progress import TrainingProgress

    logs = []
    if tensorboard is not None:
        if importlib.util.find_spec("tensorboard") is None:
            raise MissingPackageError("--tensorboard needs: pip install tensorboard")
        logs = [keras.callbacks.TensorBoard(tensorboard, update_freq=100)]
    keras.utils.set_random_seed(seed)
    if mixed_precision:
        keras.config.set_dtype_policy("mixed_bfloat16")
    records = PretrainingRecords(data)
    dev_records = PretrainingRecords(dev) if dev else None
    masks = _masks(
        records,
        masking,
        mask_selection_rate=_rate(mask_selection_rate),
        mask_selection_length=mask_selection_length,
        ngram=ngram,
        whole_word=whole_word,
        marked_labels=marked_labels,
    )
    model = _pretrainer(config, init, records)
    model.compile(
        pretraining_optimizer(
            optimizer, learning_rate, steps, warmup, accumulate, weight_average
        )
    )
    # Report now what could not be written after the training.
    fitting = original_layout(model.backbone.get_config()).name
    layout = layout or fitting
    check_saving(model, output, layout, records.tokenizer)
    with TrainingProgress(steps, interval) as progress:
        done = pretrain(
            model,
            records,
            output,
            steps,
            batch_size,
            masks=masks,
            seed=seed,
            interval=interval,
            dev=dev_records,
            settings={"init": weights_digest(model.backbone)} if init else None,
            callbacks=[progress, *logs],
            verbose=0,
        )
    output = pathlib.Path(output)
    settings = {**context.params, "interval": interval, "layout": layout}
    del settings["output"]
    write_json(output / "history.json", {**done, "settings": settings})
    plot_pretraining(done["history"], interval, output / "loss.png")
    # Last, because an existing preset is not overwritten.
    save_checkpoint(model, output, layout, tokenizer=records.tokenizer)
    shutil.rmtree(state_folder(output))
    console.print(
        f"Checkpoint ({layout}), history.json and loss.png are in {output}",
        soft_wrap=True,
    )


def _refuse_finished(output):
    """Raise if the directory holds a finished training."""
    history = output / "history.json"
    if not history.exists() or state_folder(output).exists():
        return
    steps = json.loads(history.read_text("utf-8")).get("steps")
    raise FileExistsError(
        f"{output} holds a finished training of {steps} steps. To continue from it "
        f"use --init {output} and another --output; to start over, remove it."
    )


def _rate(text):
    """Parse a share such as "0.15", or the first and the last such as "0.3:0.15"."""
    if text is None:
        return None
    number = r"\d*\.?\d+"
    if not re.fullmatch(f"{number}(:{number})?", text):
        raise AlbertError(
            "--mask-selection-rate must be a share such as 0.15, or the first and the "
            f"last such as 0.3:0.15. Received: {text}"
        )
    first, *last = map(float, text.split(":"))
    return (first, *last) if last else first


def _masks(records, masking, **given):
    """Return the generator of the given options; `None` to keep the masks."""
    if masking == "dynamic":
        return records.masks(**given)
    if not records.is_masked:
        raise AlbertError(
            f"--masking static: the records of {records.folder} hold no masks. Leave "
            "it out, or make them with `albert-tf pretrain-data --masked`."
        )
    if names := [name for name, value in given.items() if value is not None]:
        raise AlbertError(
            f"{', '.join(names)}: --masking static keeps the masks of the records. "
            "Leave it out."
        )
    return None


def _pretrainer(config, init, records):
    """Return the model, with the classes of sentence order of the records."""
    from albert_tf.checkpoints import open_checkpoint
    from albert_tf.models import AlbertPretrainer
    from albert_tf.pretraining.training import check_same_tokens

    classes = records.order_classes
    if init is None:
        backbone = random_backbone(config, records.vocabulary_size)
        model = AlbertPretrainer(backbone, num_sop_classes=classes)
    else:
        checkpoint = open_checkpoint(init)
        check_same_tokens(
            records.folder, records.tokenizer, init, checkpoint.tokenizer()
        )
        model = AlbertPretrainer.from_opened(checkpoint, num_sop_classes=classes)
    if not classes and model.backbone.pooled_dense is not None:
        # Unused here, but a classifier starts from it.
        model.backbone.pooled_dense.trainable = False
    return model
