"""`albert-tf pretrain`, with `pretrain-data` beside it."""

import importlib.util
import json
import pathlib
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
from albert_tf_cli.pretrain_data import (
    MarkedLabels,
    MaskSelectionLength,
    MaskSelectionRate,
    Ngram,
)
from albert_tf_lite.errors import AlbertError, MissingPackageError

Masking = Literal["static", "dynamic"]
Optimizer = Literal["lamb", "adamw", "muon"]


def pretrain(
    context: typer.Context,
    data: Annotated[str, typer.Option(help="Directory of `pretrain-data`.")],
    output: Annotated[str, typer.Option(help="Directory to write to.")],
    config: Annotated[
        str | None,
        typer.Option(help="A size such as albert_tiny_zh, or a config file."),
    ] = None,
    init: Annotated[
        str | None, typer.Option(help="Checkpoint to start from, of any form.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Batches to train on.")] = 10_000,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences a step.")] = 128,
    accumulate: Annotated[
        int,
        typer.Option(min=1, help="Steps whose gradients are averaged for an update."),
    ] = 1,
    optimizer: Annotated[
        Optimizer, typer.Option(help="LAMB as in the paper, AdamW, or Muon.")
    ] = "lamb",
    learning_rate: Annotated[
        float, typer.Option(help="The peak, after warm-up; then linearly to 0.")
    ] = 0.00176,
    warmup: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the steps to warm up in.")
    ] = 0.1,
    masking: Annotated[
        Masking,
        typer.Option(
            help="The masks of masked records, or new ones each time a record is read. "
            "The next five options are for new ones, by default as masked records were."
        ),
    ] = "dynamic",
    mask_selection_rate: MaskSelectionRate = None,
    mask_selection_length: MaskSelectionLength = None,
    ngram: Ngram = None,
    whole_word: Annotated[
        bool | None,
        typer.Option(help="Mask words whole, by default, or single tokens."),
    ] = None,
    marked_labels: MarkedLabels = None,
    interval: Annotated[
        int, typer.Option(min=1, help="Steps from one evaluation on --dev to the next.")
    ] = 1000,
    dev: Annotated[
        str | None, typer.Option(help="Further records, to evaluate on.")
    ] = None,
    layout: Annotated[
        Layout | None,
        typer.Option(help="Of the checkpoint; by default the TF1 layout it fits."),
    ] = None,
    tensorboard: Annotated[
        str | None, typer.Option(help="Directory for TensorBoard's logs.")
    ] = None,
    mixed_precision: Annotated[
        bool, typer.Option("--mixed-precision", help="Compute in bfloat16.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**31 - 1, help="Of weights, order and masks."),
    ] = 1,
):
    """Pretrain on masked words and sentence order.

    Starts from random weights (--config) or from a checkpoint (--init). Writes the
    checkpoint, history.json and loss.png to --output. A run that was cut off resumes if
    it is started again with the same data and training: Ctrl-C and SIGTERM save it, and
    nothing loses more than three minutes.

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
        mask_selection_rate=mask_selection_rate,
        mask_selection_length=mask_selection_length,
        ngram=ngram,
        whole_word=whole_word,
        marked_labels=marked_labels,
    )
    model = _pretrainer(config, init, records)
    model.compile(
        pretraining_optimizer(optimizer, learning_rate, steps, warmup, accumulate)
    )
    # Before the training what cannot be written afterwards.
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
    # Last: a preset is written once only.
    save_checkpoint(model, output, layout, tokenizer=records.tokenizer)
    shutil.rmtree(state_folder(output))
    console.print(
        f"Checkpoint ({layout}), history.json and loss.png are in {output}",
        soft_wrap=True,
    )


def _refuse_finished(output):
    """A training that is done is neither resumed nor trained over."""
    history = output / "history.json"
    if not history.exists() or state_folder(output).exists():
        return
    steps = json.loads(history.read_text("utf-8")).get("steps")
    raise FileExistsError(
        f"{output} holds a finished training of {steps} steps. To train on from it "
        f"give --init {output} and another --output; to start over, remove it."
    )


def _masks(records, masking, **given):
    """What masks the records, by the options given; `None` to keep their masks."""
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
    """The model to train, with as many classes of sentence order as the records."""
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
        # Nothing reads it, but a classifier that begins with this checkpoint will.
        model.backbone.pooled_dense.trainable = False
    return model
