"""The command `albert-tf pretrain`."""

import dataclasses
import importlib.util
import pathlib
from typing import TYPE_CHECKING, Any

import typer

from albert_tf.step_counts import LONGEST_INTERVAL, interval_of
from albert_tf_cli.commands.pretrain_options import PretrainOptions
from albert_tf_cli.shared.console import console
from albert_tf_cli.shared.early_checks import check_checkpoint, state_folder
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.new_models import new_network, new_pretrainer
from albert_tf_cli.shared.options import takes_options
from albert_tf_cli.shared.progress import interruptible
from albert_tf_lite.errors import AlbertError

if TYPE_CHECKING:
    from albert_tf.checkpoints.saving import Saving

_HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
# The default number of steps per call on a GPU.
MOST_STEPS_PER_CALL = 32
DEFAULT_STEPS = 10_000
# What is written without TensorFlow, and which the checkpoint replaces.
_WEIGHTS, _HEADS = "weights.npz", ("heads.npz", "heads.json")
# Metrics in loss.png.
PLOTTED = (
    "loss",
    "mlm_logits_accuracy",
    "sop_logits_accuracy",
    "classes_accuracy",
    "tags_accuracy",
    "spans_accuracy",
    "pairs_accuracy",
)


@takes_options
def pretrain(context: typer.Context, options: PretrainOptions) -> None:
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
    given = dataclasses.asdict(options)
    if options.steps is None and options.minutes is None:
        options = dataclasses.replace(options, steps=DEFAULT_STEPS)
    _check(options)
    _print_start(options)
    steps_per_call = _start_backend(options)
    parts = _open_records(options)
    masks = _masks(options, parts["train"])
    model = _build(options, parts["train"])
    layout = _layout(options, model)
    saving = None
    if layout is not None:
        # Raises before the training if the checkpoint could not be written.
        saving = _saving(options, layout, model, parts["train"])
    done = _train(context, options, steps_per_call, model, masks, parts)
    if options.host != 0:
        return
    settings = given | {"to": layout or options.to}
    del settings["output"]
    _write(options, model, saving, parts, done, settings)
    _end(options, layout)


def _print_start(options: PretrainOptions) -> None:
    """Print how long the training takes, and what it starts from."""
    if options.steps is not None:
        length = f"{options.steps:,} steps"
    else:
        length = f"{options.minutes:g} minutes"
    start = options.checkpoint or f"random weights ({options.config})"
    console.print(
        f"{length} with {options.batch_tokens:,} tokens per step of {options.data}, "
        f"from {start}",
        soft_wrap=True,
    )


def _open_records(options: PretrainOptions) -> dict[str, Any]:
    """Return the records by part: `"train"`, and perhaps `"dev"` and `"labelled"`."""
    from albert_tf.pretraining import PretrainingRecords

    parts: dict[str, Any] = {"train": PretrainingRecords(options.data, options.order)}
    count = f"{len(parts['train']):,} sequences in {options.data}"
    console.print(count, soft_wrap=True)
    if options.dev:
        parts["dev"] = PretrainingRecords(options.dev, options.order)
    if options.labelled:
        from albert_tf.pretraining import LabelledRecords

        parts["labelled"] = LabelledRecords(options.labelled)
        count = f"{len(parts['labelled']):,} labelled texts in {options.labelled}"
        console.print(count, soft_wrap=True)
    return parts


def _check(options: PretrainOptions) -> None:
    """Raise if an option is wrong, or --output holds a finished training."""
    if (options.config is None) == (options.checkpoint is None):
        raise AlbertError(
            "Give --config to train from random weights, or --checkpoint to start from "
            "a checkpoint."
        )
    if options.steps is not None and options.minutes is not None:
        raise AlbertError("Give --steps or --minutes, not both.")
    if options.steps is not None:
        # Before anything is loaded.
        interval_of(options.steps, options.interval, options.steps_per_call or 1)
    if options.checkpoint is not None:
        check_checkpoint(options.checkpoint)
        if not _HAS_TENSORFLOW and not options.checkpoint.endswith(".npz"):
            raise AlbertError(
                "Without TensorFlow, --checkpoint reads the file of "
                f"`albert_tf.pretraining.write_weights`. Received: {options.checkpoint}"
            )
    if options.labelled and (options.dev or options.hosts > 1):
        raise AlbertError(
            "--labelled trains on one host and without --dev. Leave out --dev, "
            "--coordinator, --hosts and --host."
        )
    if options.labelled and options.to in ("keras", "kerashub"):
        raise AlbertError(
            f"--labelled writes several heads, for which --to {options.to} has no "
            "place. Choose google, albert_zh or huggingface."
        )
    for path in (options.data, options.dev, options.labelled):
        if path and not pathlib.Path(path).is_dir():
            raise FileNotFoundError(f"There are no records in {path}.")
    is_unfinished = state_folder(options.output).exists()
    if pathlib.Path(options.output, "history.json").exists() and not is_unfinished:
        raise FileExistsError(
            f"{options.output} holds a finished training. To continue from it use "
            f"--checkpoint {options.output} and another --output; to start over, "
            "remove it."
        )


def _start_backend(options: PretrainOptions) -> int:
    """Import the backend of Keras and join the hosts; return the steps per call."""
    if _HAS_TENSORFLOW:
        import_tensorflow()
    import keras

    from albert_tf.backbone.precision import as_dtype

    backend = keras.backend.backend()
    if options.hosts > 1:
        if backend != "jax" or not options.coordinator:
            raise AlbertError(
                "Several hosts need --coordinator and the environment variable "
                f"KERAS_BACKEND=jax. Received: {backend}, {options.coordinator}"
            )
        keras.distribution.initialize(options.coordinator, options.hosts, options.host)
    devices = keras.distribution.list_devices()
    if backend == "jax" and len(devices) > 1:
        # Every host makes its own part of each batch.
        distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
        keras.distribution.set_distribution(distribution)
    # All hosts start from the same weights.
    keras.utils.set_random_seed(options.seed)
    keras.config.set_dtype_policy(as_dtype(options.precision))
    has_gpu = backend == "jax" and devices[0].startswith(("gpu", "cuda"))
    return options.steps_per_call or _steps_per_call(options, has_gpu)


def _steps_per_call(options: PretrainOptions, has_gpu: bool) -> int:
    """Return the default number of steps per call, a divisor of the interval."""
    interval = options.interval or LONGEST_INTERVAL
    if options.steps is not None:
        interval = interval_of(options.steps, options.interval, 1)
    most = MOST_STEPS_PER_CALL if has_gpu else 1
    return next(steps for steps in range(most, 0, -1) if interval % steps == 0)


def _build(options: PretrainOptions, records: Any) -> Any:
    """Return the compiled model."""
    from albert_tf.training import scheduled_optimizer

    build = new_pretrainer if _HAS_TENSORFLOW else new_network
    model = build(options.config, options.checkpoint, records)
    model.compile(
        scheduled_optimizer(
            options.optimizer,
            options.learning_rate,
            ema_momentum=options.ema_momentum,
            gradient_accumulation_steps=options.gradient_accumulation_steps,
        )
    )
    return model


def _layout(options: PretrainOptions, model: Any) -> str | None:
    """Return the layout to write; `None` without TensorFlow, which layouts need."""
    if not _HAS_TENSORFLOW:
        return None
    if options.to:
        return options.to
    from albert_tf.checkpoints.layouts import original_layout

    return original_layout(model.backbone.get_config()).name


def _saving(
    options: PretrainOptions, layout: str, model: Any, records: Any
) -> "Saving":
    """Return what writes the checkpoint."""
    from albert_tf.checkpoints.saving import Saving
    from albert_tf.tokenizers import load_tokenizer

    lowercase = records.manifest["settings"]["lowercase"]
    tokenizer = load_tokenizer(records.vocabulary, lowercase)
    return Saving(model, options.output, layout, tokenizer)


def _train(
    context: typer.Context,
    options: PretrainOptions,
    steps_per_call: int,
    model: Any,
    masks: Any,
    parts: dict[str, Any],
) -> dict[str, Any]:
    """Train and return the history."""
    from albert_tf.pretraining import LabelledRun, Run, pretrain, pretrain_labelled
    from albert_tf.training.digests import data_digest

    start = None
    if options.checkpoint is not None:
        start = data_digest(model.get_weights())
    settings = {
        "steps": options.steps,
        "minutes": options.minutes,
        "batch_tokens": options.batch_tokens,
        "learning_rate": options.learning_rate,
        "warmup_share": options.warmup,
        "masks": masks,
        "seed": options.seed,
        "interval": options.interval,
        "steps_per_call": steps_per_call,
        "settings": {"checkpoint": start},
    }
    records, output = parts["train"], options.output
    with interruptible(context) as watch:
        if options.labelled:
            labelled = parts["labelled"]
            stage = LabelledRun(**settings)
            return pretrain_labelled(model, labelled, records, output, stage, **watch)
        run = Run(**settings, hosts=options.hosts, host=options.host)
        return pretrain(model, records, output, run, parts.get("dev"), **watch)


def _write(
    options: PretrainOptions,
    model: Any,
    saving: "Saving | None",
    parts: dict[str, Any],
    done: dict[str, Any],
    settings: dict[str, Any],
) -> None:
    """Write the results, which appear together."""
    from albert_tf.files import complete_directory
    from albert_tf.pretraining import write_weights

    if saving is None:
        # Without TensorFlow, which the layouts need.
        with complete_directory(options.output) as folder:
            _write_history(folder, done, settings)
            write_weights(model, folder / _WEIGHTS)
        return
    with complete_directory(options.output, (_WEIGHTS, *_HEADS)) as folder:
        _write_history(folder, done, settings)
        _write_checkpoint(options, saving, parts, done["history"], folder)


def _write_history(
    folder: pathlib.Path, done: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Write history.json and loss.png."""
    from albert_tf.files import write_json
    from albert_tf.training.history_plot import plot_history

    write_json(folder / "history.json", {**done, "settings": settings})
    plot_history(
        done["history"],
        PLOTTED,
        folder / "loss.png",
        interval=done["interval"],
        xlabel="step",
        start=done["start"],
    )


def _write_checkpoint(
    options: PretrainOptions,
    saving: "Saving",
    parts: dict[str, Any],
    history: dict[str, list[float]],
    folder: pathlib.Path,
) -> None:
    """Write the checkpoint and the model card into a new directory."""
    from albert_tf.checkpoints.saving import with_heads
    from albert_tf.model_card import write_model_card
    from albert_tf.pretraining import build_heads

    model, tokenizer = saving.model, saving.tokenizer
    if options.labelled:
        heads = build_heads(model.backbone, options.output)
        layout = options.to or saving.layout.name
        saving = with_heads(model, options.output, layout, tokenizer, heads)
    saving.write_into(folder)
    write_model_card(
        folder,
        model,
        tokenizer=tokenizer,
        start=options.checkpoint or f"{options.config} (random weights)",
        data={
            name: _card_row(records, history, is_dev=name == "dev")
            for name, records in parts.items()
        },
    )


def _end(options: PretrainOptions, layout: str | None) -> None:
    """Remove the state of a complete training, and print what was written."""
    from albert_tf.files import remove_directory

    if layout is not None:
        remove_directory(state_folder(options.output))
        console.print(
            f"Checkpoint ({layout}), README.md, history.json and loss.png are in "
            f"{options.output}",
            soft_wrap=True,
        )
        return
    names = _WEIGHTS
    if options.labelled:
        names += ", heads.npz"
    console.print(
        f"{names}, history.json and loss.png are in {options.output}. The same "
        "command with TensorFlow installed writes the checkpoint.",
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


def _mask_selection_rate(text: str | None) -> float | tuple[float, ...] | None:
    """Parse a share such as "0.15", or the first and the last such as "0.3:0.15"."""
    if text is None:
        return None
    try:
        shares = tuple(map(float, text.split(":")))
    except ValueError:
        raise AlbertError(
            "--mask-selection-rate must be a share such as 0.15, or the first and the "
            f"last such as 0.3:0.15. Received: {text}"
        ) from None
    return shares if len(shares) > 1 else shares[0]


def _masks(options: PretrainOptions, records: Any) -> Any:
    """Return the generator of the options; `None` to keep the masks of the records."""
    given = {
        "mask_selection_rate": _mask_selection_rate(options.mask_selection_rate),
        "ngram": options.ngram,
        "whole_word": options.whole_word,
        "marked_labels": options.marked_labels,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    if not records.is_masked:
        return records.masks(**settings)
    if settings:
        raise AlbertError(
            f"The records of {records.folder} hold masks, which are kept. Leave out "
            f"the options of masks. Received: {', '.join(settings)}"
        )
    return None
