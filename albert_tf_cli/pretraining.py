"""The command `albert-tf pretrain`."""

import pathlib
import types
from typing import Annotated, Literal

import typer

from albert_tf_cli import common, options
from albert_tf_cli.new_models import random_backbone
from albert_tf_cli.options import (
    data_option,
    directory_option,
    mask_option,
    model_option,
    output_option,
    training_option,
)
from albert_tf_cli.pretraining_data import MarkedLabels, Ngram
from albert_tf_lite.errors import AlbertError

Optimizer = Literal["lamb", "adamw"]


def pretrain(
    context: typer.Context,
    data: Annotated[str, data_option("Directory of records from `pretrain-data`.")],
    output: Annotated[str, directory_option("Directory for the checkpoint.")],
    dev: Annotated[str | None, data_option("Records to evaluate on.")] = None,
    config: Annotated[
        str | None, model_option("A size such as albert_tiny_zh, or a config file.")
    ] = None,
    checkpoint: options.StartCheckpoint = None,
    masking: Annotated[
        Literal["static", "dynamic"],
        mask_option(
            "static keeps the masks of masked records; dynamic draws masks each time a "
            "record is read, with the options below or the settings of masked records."
        ),
    ] = "dynamic",
    mask_selection_rate: Annotated[
        str | None,
        mask_option(
            "Share of the tokens to predict. Default: 0.15; 0.3:0.15 falls linearly."
        ),
    ] = None,
    ngram: Ngram = None,
    whole_word: Annotated[
        bool | None, mask_option("Mask whole words (default) or single tokens.")
    ] = None,
    marked_labels: MarkedLabels = None,
    steps: Annotated[
        int, training_option("Number of training batches.", min=1)
    ] = 10_000,
    batch_size: Annotated[int, training_option("Sequences per step.", min=1)] = 128,
    optimizer: Annotated[
        Optimizer, training_option("LAMB as in the paper, or AdamW.")
    ] = "lamb",
    learning_rate: Annotated[
        float, training_option("Peak learning rate, before its linear decay.")
    ] = 0.00176,
    warmup: Annotated[
        float, training_option("Share of the steps for warm-up.", min=0, max=1)
    ] = 0.1,
    interval: Annotated[
        int, training_option("Steps between evaluations on --dev.", min=1)
    ] = 1000,
    precision: options.Precision = "float32",
    seed: options.Seed = 1,
    to: Annotated[
        options.Layout | None,
        output_option("Layout to write. Default: the fitting TF1 layout."),
    ] = None,
    ema_momentum: options.EmaMomentum = None,
    gradient_accumulation_steps: options.GradientAccumulationSteps = None,
):
    """Pretrain on masked words and sentence order.

    Starts from random weights (--config) or from a checkpoint (--checkpoint). Writes
    the checkpoint, history.json and loss.png to --output. The same command resumes
    after an interruption: Ctrl-C and SIGTERM save the state, which is also saved every
    three minutes.

    \b
    Example:
      albert-tf pretrain --data records --config albert_tiny_zh --output my_albert
    """
    args = types.SimpleNamespace(**context.params)
    args.interval = min(interval, steps)
    args.mask_selection_rate = _rate(mask_selection_rate)
    _check(args)
    common.console.print(
        f"{steps:,} steps of {batch_size} sequences of {data}, from "
        f"{checkpoint or f'random weights ({config})'}",
        soft_wrap=True,
    )
    common.import_tensorflow()
    from albert_tf.checkpoints.layouts import original_layout
    from albert_tf.checkpoints.saving import Saving
    from albert_tf.pretraining.dataset import PretrainingRecords

    parts = {"train": PretrainingRecords(data)}
    records = parts["train"]
    count = sum(records.counts.values())
    common.console.print(f"{count:,} sequences in {data}", soft_wrap=True)
    if dev:
        parts["dev"] = PretrainingRecords(dev)
    model, masks = _build(args, records)
    # Report now what could not be written after the training.
    args.to = to or original_layout(model.backbone.get_config()).name
    saving = Saving(model, output, args.to, records.tokenizer)
    done = _train(context, args, model, masks, parts)
    _write(context, args, model, saving, parts, done)


def _check(args):
    """Raise if an option is wrong, or --output holds a finished training."""
    if (args.config is None) == (args.checkpoint is None):
        raise AlbertError(
            "Give --config to train from random weights, or --checkpoint to start from "
            "a checkpoint."
        )
    if args.checkpoint is not None:
        common.check_checkpoint(args.checkpoint)
    for path in filter(None, (args.data, args.dev)):
        if not pathlib.Path(path).is_dir():
            raise FileNotFoundError(f"There are no records in {path}.")
    is_unfinished = common.state_folder(args.output).exists()
    if pathlib.Path(args.output, "history.json").exists() and not is_unfinished:
        raise FileExistsError(
            f"{args.output} holds a finished training. To continue from it use "
            f"--checkpoint {args.output} and another --output; to start over, remove "
            "it."
        )


def _build(args, records):
    """Return the compiled model, and the generator of masks."""
    import keras

    from albert_tf.backbone.precision import as_dtype
    from albert_tf.training import scheduled_optimizer

    keras.utils.set_random_seed(args.seed)
    keras.config.set_dtype_policy(as_dtype(args.precision))
    masks = _masks(args, records)
    model = _pretrainer(args.config, args.checkpoint, records)
    model.compile(
        scheduled_optimizer(
            *(args.optimizer, args.learning_rate, args.steps, args.warmup),
            args.ema_momentum,
            gradient_accumulation_steps=args.gradient_accumulation_steps,
        )
    )
    return model, masks


def _train(context, args, model, masks, parts):
    from albert_tf.pretraining.training import pretrain
    from albert_tf.training.run_state import data_digest

    is_new = args.checkpoint is None
    start = None if is_new else data_digest(model.backbone.get_weights())
    with common.interruptible(context) as progress:
        return pretrain(
            model,
            parts["train"],
            args.output,
            args.steps,
            args.batch_size,
            masks=masks,
            seed=args.seed,
            interval=args.interval,
            dev=parts.get("dev"),
            settings={"checkpoint": start},
            **progress,
        )


def _write(context, args, model, saving, parts, done):
    """Write history.json, loss.png, the checkpoint and the model card."""
    from albert_tf.files import remove_directory, write_json
    from albert_tf.model_card import write_model_card
    from albert_tf.training.run_state import plot_history

    folder, history = pathlib.Path(args.output), done["history"]
    settings = {**context.params, "interval": args.interval, "to": args.to}
    del settings["output"]
    write_json(folder / "history.json", {**done, "settings": settings})
    metrics = ("loss", "mlm_logits_accuracy", "sop_logits_accuracy")
    plot_history(history, metrics, folder / "loss.png", args.interval, "step")
    # Last, because an existing preset is not overwritten.
    saving.write()
    write_model_card(
        folder,
        model,
        tokenizer=saving.tokenizer,
        start=args.checkpoint or f"{args.config} (random weights)",
        data={name: _card_row(x, history, name == "dev") for name, x in parts.items()},
    )
    remove_directory(common.state_folder(folder))
    common.console.print(
        f"Checkpoint ({args.to}), README.md, history.json and loss.png are in "
        f"{args.output}",
        soft_wrap=True,
    )


def _card_row(records, history, is_dev):
    """Return folder, size and last scores of records, as the model card has them."""
    scores = {
        name.removeprefix("val_"): values[-1]
        for name, values in history.items()
        if name.startswith("val_") == is_dev
    }
    return str(records.folder), sum(records.counts.values()), scores


def _rate(text):
    """Parse a share such as "0.15", or the first and the last such as "0.3:0.15"."""
    if text is None:
        return None
    try:
        first, *last = map(float, text.split(":"))
    except ValueError:
        raise AlbertError(
            "--mask-selection-rate must be a share such as 0.15, or the first and the "
            f"last such as 0.3:0.15. Received: {text}"
        ) from None
    return (first, *last) if last else first


def _masks(args, records):
    """Return the generator of the options; `None` to keep the masks."""
    names = ("mask_selection_rate", "ngram", "whole_word", "marked_labels")
    settings = {name: getattr(args, name) for name in names}
    if args.masking == "dynamic":
        return records.masks(**settings)
    names = [name for name, value in settings.items() if value is not None]
    if names or not records.is_masked:
        raise AlbertError(
            "--masking static needs records of `pretrain-data --masked` and no options "
            f"of masks. Received: {', '.join([str(records.folder), *names])}"
        )
    return None


def _pretrainer(config, checkpoint, records):
    """Return the model, with the classes of sentence order of the records."""
    from albert_tf.checkpoints import open_checkpoint
    from albert_tf.models import AlbertPretrainer
    from albert_tf.pretraining.training import check_same_tokens

    classes = records.order_classes
    if checkpoint is None:
        tokenizer = records.tokenizer
        size = tokenizer and tokenizer.vocabulary_size()
        backbone = random_backbone(config, size)
        model = AlbertPretrainer(backbone, num_sop_classes=classes)
    else:
        opened = open_checkpoint(checkpoint)
        tokenizer = opened.tokenizer()
        check_same_tokens(records.folder, records.tokenizer, checkpoint, tokenizer)
        model = AlbertPretrainer.from_opened(opened, num_sop_classes=classes)
    if not classes and model.backbone.pooled_dense is not None:
        # Unused here, but a classifier starts from it.
        model.backbone.pooled_dense.trainable = False
    return model
