"""The command `albert-tf pretrain`."""

import importlib.util
import pathlib
import types
from typing import Annotated, Any, Literal

import typer

from albert_tf.step_counts import LONGEST_INTERVAL, interval_of
from albert_tf_cli import common, options
from albert_tf_cli.new_models import new_network, new_pretrainer
from albert_tf_cli.options import (
    advanced_option,
    data_option,
    directory_option,
    mask_option,
    model_option,
    output_option,
    training_option,
)
from albert_tf_cli.pretraining_data import MarkedLabels, Ngram, Order
from albert_tf_lite.errors import AlbertError

_HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
# The default number of steps per call on a GPU.
MOST_STEPS_PER_CALL = 32
Optimizer = Literal["lamb", "adamw"]


def pretrain(
    context: typer.Context,
    data: Annotated[str, data_option("Directory of records from `pretrain-data`.")],
    output: Annotated[str, directory_option("Directory for the checkpoint.")],
    dev: Annotated[str | None, data_option("Records to evaluate on.")] = None,
    order: Annotated[
        Order | None,
        data_option(
            "Labels of pairs, instead of those of the records: sop (ALBERT), nsp "
            "(BERT), three_way (StructBERT), none (RoBERTa)."
        ),
    ] = None,
    labelled: Annotated[
        str | None,
        data_option(
            "Labelled records from `pretrain-data`, for a second stage with a head "
            "for each kind of label. Text of --data joins each batch."
        ),
    ] = None,
    config: Annotated[
        str | None, model_option("A size such as albert_tiny_zh, or a config file.")
    ] = None,
    checkpoint: options.StartCheckpoint = None,
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
        int | None,
        training_option("Number of training batches. Default: 10,000.", min=1),
    ] = None,
    minutes: Annotated[
        float | None,
        training_option(
            "Duration of the training, instead of --steps, whose number then follows "
            "from a trial."
        ),
    ] = None,
    batch_tokens: Annotated[
        int, training_option("Tokens per step, padding included.", min=1)
    ] = 65_536,
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
        int | None,
        training_option(
            "Steps between evaluations on --dev. Default: the largest number from 100 "
            "to 1,000 that divides --steps, or all steps; a twentieth of --minutes.",
            min=1,
        ),
    ] = None,
    steps_per_call: Annotated[
        int | None,
        training_option(
            "Steps that a call of the device trains. Default: up to 32 for JAX on a "
            "GPU, else 1.",
            min=1,
        ),
    ] = None,
    precision: options.Precision = "float32",
    seed: options.Seed = 1,
    to: Annotated[
        options.Layout | None,
        output_option("Layout to write. Default: the fitting TF1 layout."),
    ] = None,
    ema_momentum: options.EmaMomentum = None,
    gradient_accumulation_steps: options.GradientAccumulationSteps = None,
    coordinator: Annotated[
        str | None,
        advanced_option(
            "Address of the first of several hosts that train together, such as "
            "host:1234 (JAX only)."
        ),
    ] = None,
    hosts: Annotated[int, advanced_option("Number of hosts.", min=1)] = 1,
    host: Annotated[int, advanced_option("Index of this host, from 0.", min=0)] = 0,
):
    """Pretrain on masked words and sentence order.

    Starts from random weights (--config) or from a checkpoint (--checkpoint). Writes
    the checkpoint, history.json and loss.png to --output. The same command resumes
    after an interruption: Ctrl-C and SIGTERM save the state, which is also saved every
    three minutes. On JAX, it is saved after each interval. With --labelled, the
    checkpoint has a named head for each NAME of `pretrain-data`.

    \b
    Examples:
      albert-tf pretrain --data records --config albert_tiny_zh --output my_albert
      albert-tf pretrain --labelled labelled --data records --output my_heads \\
          --checkpoint my_albert --optimizer adamw --learning-rate 0.0008
    """
    args = types.SimpleNamespace(**context.params)
    args.mask_selection_rate = _rate(mask_selection_rate)
    if minutes is None:
        args.steps = steps or 10_000
    _check(args)
    length = f"{minutes:g} minutes" if minutes else f"{args.steps:,} steps"
    common.console.print(
        f"{length} with {batch_tokens:,} tokens per step of {data}, from "
        f"{checkpoint or f'random weights ({config})'}",
        soft_wrap=True,
    )
    _start_backend(args)
    from albert_tf.pretraining import PretrainingRecords

    parts: dict[str, Any] = {"train": PretrainingRecords(data, order)}
    common.console.print(f"{len(parts['train']):,} sequences in {data}", soft_wrap=True)
    if dev:
        parts["dev"] = PretrainingRecords(dev, order)
    if labelled:
        from albert_tf.pretraining import LabelledRecords

        parts["labelled"] = LabelledRecords(labelled)
        count = f"{len(parts['labelled']):,} labelled texts in {labelled}"
        common.console.print(count, soft_wrap=True)
    model, masks = _build(args, parts["train"])
    saving = _saving(args, model, parts["train"])
    done = _train(context, args, model, masks, parts)
    if host == 0:
        _write(context, args, model, saving, parts, done)


def _check(args):
    """Raise if an option is wrong, or --output holds a finished training."""
    if (args.config is None) == (args.checkpoint is None):
        raise AlbertError(
            "Give --config to train from random weights, or --checkpoint to start from "
            "a checkpoint."
        )
    if args.steps is not None and args.minutes is not None:
        raise AlbertError("Give --steps or --minutes, not both.")
    if args.steps is not None:
        # Before anything is loaded.
        interval_of(args.steps, args.interval, args.steps_per_call or 1)
    if args.checkpoint is not None:
        common.check_checkpoint(args.checkpoint)
    if not _HAS_TENSORFLOW and not (args.checkpoint or ".npz").endswith(".npz"):
        raise AlbertError(
            "Without TensorFlow, --checkpoint reads the file of "
            f"`albert_tf.pretraining.write_weights`. Received: {args.checkpoint}"
        )
    if args.labelled and (args.dev or args.hosts > 1):
        raise AlbertError(
            "--labelled trains on one host and without --dev. Leave out --dev, "
            "--coordinator, --hosts and --host."
        )
    if args.labelled and args.to in ("keras", "kerashub"):
        raise AlbertError(
            f"--labelled writes several heads, for which --to {args.to} has no place. "
            "Choose google, albert_zh or huggingface."
        )
    for path in filter(None, (args.data, args.dev, args.labelled)):
        if not pathlib.Path(path).is_dir():
            raise FileNotFoundError(f"There are no records in {path}.")
    is_unfinished = common.state_folder(args.output).exists()
    if pathlib.Path(args.output, "history.json").exists() and not is_unfinished:
        raise FileExistsError(
            f"{args.output} holds a finished training. To continue from it use "
            f"--checkpoint {args.output} and another --output; to start over, remove "
            "it."
        )


def _start_backend(args):
    """Import the backend of Keras, join the hosts and choose the steps per call."""
    if _HAS_TENSORFLOW:
        common.import_tensorflow()
    import keras

    from albert_tf.backbone.precision import as_dtype

    backend = keras.backend.backend()
    if args.hosts > 1:
        if backend != "jax" or not args.coordinator:
            raise AlbertError(
                "Several hosts need --coordinator and the environment variable "
                f"KERAS_BACKEND=jax. Received: {backend}, {args.coordinator}"
            )
        keras.distribution.initialize(args.coordinator, args.hosts, args.host)
    devices = keras.distribution.list_devices()
    if backend == "jax" and len(devices) > 1:
        # Every host makes its own part of each batch.
        distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
        keras.distribution.set_distribution(distribution)
    if args.steps_per_call is None:
        has_gpu = backend == "jax" and devices[0].startswith(("gpu", "cuda"))
        # A divisor of the interval.
        unit = args.interval or LONGEST_INTERVAL
        if args.steps is not None:
            unit = interval_of(args.steps, args.interval, 1)
        counts = range(MOST_STEPS_PER_CALL if has_gpu else 1, 0, -1)
        args.steps_per_call = next(x for x in counts if unit % x == 0)
    # All hosts start from the same weights.
    keras.utils.set_random_seed(args.seed)
    keras.config.set_dtype_policy(as_dtype(args.precision))


def _build(args, records):
    """Return the compiled model, and the generator of masks."""
    from albert_tf.training import scheduled_optimizer

    masks = _masks(args, records)
    build = new_pretrainer if _HAS_TENSORFLOW else new_network
    model = build(args.config, args.checkpoint, records)
    model.compile(
        scheduled_optimizer(
            *(args.optimizer, args.learning_rate),
            ema_momentum=args.ema_momentum,
            gradient_accumulation_steps=args.gradient_accumulation_steps,
        )
    )
    return model, masks


def _saving(args, model, records):
    """Return what writes the checkpoint, or raise now if it could not be written.

    `None` without TensorFlow, which the layouts need.
    """
    if not _HAS_TENSORFLOW:
        return None
    from albert_tf.checkpoints.layouts import original_layout
    from albert_tf.checkpoints.saving import Saving
    from albert_tf.tokenizers import load_tokenizer

    args.to = args.to or original_layout(model.backbone.get_config()).name
    lowercase = records.manifest["settings"]["lowercase"]
    tokenizer = load_tokenizer(records.vocabulary, lowercase)
    return Saving(model, args.output, args.to, tokenizer)


def _train(context, args, model, masks, parts):
    from albert_tf.pretraining import LabelledRun, Run, pretrain, pretrain_labelled
    from albert_tf.training.digests import data_digest

    is_new = args.checkpoint is None
    start = None if is_new else data_digest(model.get_weights())
    settings = {
        "steps": args.steps,
        "minutes": args.minutes,
        "batch_tokens": args.batch_tokens,
        "learning_rate": args.learning_rate,
        "warmup_share": args.warmup,
        "masks": masks,
        "seed": args.seed,
        "interval": args.interval,
        "steps_per_call": args.steps_per_call,
        "settings": {"checkpoint": start},
    }
    records, output = parts["train"], args.output
    with common.interruptible(context) as watch:
        if args.labelled:
            run = LabelledRun(**settings)
            labelled = parts["labelled"]
            return pretrain_labelled(model, labelled, records, output, run, **watch)
        run = Run(**settings, hosts=args.hosts, host=args.host)
        return pretrain(model, records, output, run, parts.get("dev"), **watch)


def _write(context, args, model, saving, parts, done):
    """Write history.json, loss.png, the checkpoint and the model card."""
    from albert_tf.files import remove_directory, write_json
    from albert_tf.training.history_plot import plot_history

    folder, history = pathlib.Path(args.output), done["history"]
    settings = {**context.params, "to": args.to}
    del settings["output"]
    write_json(folder / "history.json", {**done, "settings": settings})
    metrics = ["loss", "mlm_logits_accuracy", "sop_logits_accuracy"]
    metrics += ["classes_accuracy", "tags_accuracy", "spans_accuracy", "pairs_accuracy"]
    plot_history(
        history,
        metrics,
        folder / "loss.png",
        interval=done["interval"],
        xlabel="step",
        start=done["start"],
    )
    if saving is None:
        from albert_tf.pretraining import write_weights

        write_weights(model, folder / "weights.npz")
        names = "weights.npz, heads.npz" if args.labelled else "weights.npz"
        common.console.print(
            f"{names}, history.json and loss.png are in {args.output}. The same "
            "command with TensorFlow installed writes the checkpoint.",
            soft_wrap=True,
        )
        return
    from albert_tf.checkpoints import save_checkpoint
    from albert_tf.model_card import write_model_card
    from albert_tf.pretraining import build_heads

    # Last, because an existing preset is not overwritten.
    heads = build_heads(model.backbone, folder) if args.labelled else {}
    save_checkpoint(model, folder, args.to, saving.tokenizer, heads=heads)
    for name in ("weights.npz", "heads.npz", "heads.json"):
        (folder / name).unlink(missing_ok=True)
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
    return str(records.folder), len(records), scores


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
    """Return the generator of the options; `None` to keep the masks of the records."""
    names = ("mask_selection_rate", "ngram", "whole_word", "marked_labels")
    settings = {x: y for x in names if (y := getattr(args, x)) is not None}
    if not records.is_masked:
        return records.masks(**settings)
    if settings:
        raise AlbertError(
            f"The records of {records.folder} hold masks, which are kept. Leave out "
            f"the options of masks. Received: {', '.join(settings)}"
        )
    return None
