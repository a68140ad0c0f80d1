"""`albert-tf pretrain-data | pretrain`."""

import json
import pathlib
import sys
from typing import Annotated

import typer
from rich.table import Table

from albert_tf_cli.common import (
    Layout,
    app,
    bytes_bar,
    choices,
    console,
    import_tensorflow,
    random_backbone,
    silent_stderr,
)

Order = choices("Order", "sop", "nsp", "three_way", "none")
Engine = choices("Engine", "process", "ray")
Segmenter = choices("Segmenter", "jieba", "whitespace")
Masking = choices("Masking", "static", "dynamic")
Optimizer = choices("Optimizer", "lamb", "adamw")


@app.command("pretrain-data")
def pretrain_data(
    files: Annotated[
        list[str],
        typer.Option(
            "--input",
            help="Text file or pattern, such as 'corpus/*.txt'; may be repeated. Also "
            ".gz, .zst and JSON lines (.jsonl).",
        ),
    ],
    vocab: Annotated[str, typer.Option(help="vocab.txt or a SentencePiece model.")],
    output: Annotated[str, typer.Option(help="Directory for the records.")],
    sequence_length: Annotated[int, typer.Option(help="Tokens of a sequence.")] = 512,
    mask_rate: Annotated[
        float, typer.Option(help="Share of the tokens to predict; albert_zh has 0.10.")
    ] = 0.15,
    ngram: Annotated[int, typer.Option(help="Most words masked together.")] = 3,
    max_predictions: Annotated[
        int | None,
        typer.Option(help="Most predictions of a sequence; a quarter more by default."),
    ] = None,
    whole_word: Annotated[
        bool, typer.Option(help="Mask whole words, or single tokens.")
    ] = True,
    segmenter: Annotated[
        Segmenter, typer.Option(help="jieba, or white space in segmented text.")
    ] = Segmenter.jieba,
    hmm: Annotated[bool, typer.Option(help="Find words jieba does not know.")] = True,
    user_dictionary: Annotated[
        str | None, typer.Option(help="A dictionary of yours, in jieba's format.")
    ] = None,
    duplicates: Annotated[
        int, typer.Option(help="Times the text is used, each in other pairs.")
    ] = 1,
    order: Annotated[
        Order,
        typer.Option(
            help="sop (ALBERT), nsp (BERT), three_way (StructBERT), none (RoBERTa)."
        ),
    ] = Order.sop,
    marked_labels: Annotated[
        bool,
        typer.Option(
            "--marked-labels", help="Labels with ##, to go on from albert_zh."
        ),
    ] = False,
    document_per_line: Annotated[
        bool,
        typer.Option(
            "--document-per-line",
            help="A line is a document. By default a line is a sentence or paragraph "
            "and an empty line ends a document.",
        ),
    ] = False,
    text_field: Annotated[
        str, typer.Option(help="The field of JSON lines that holds the text.")
    ] = "text",
    cased: Annotated[bool, typer.Option("--cased", help="Do not lower-case.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="At once; by default one a CPU.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Processes here, or a Ray cluster.")
    ] = Engine.process,
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster, such as auto.")
    ] = None,
    block_size: Annotated[
        int, typer.Option(help="Bytes of text in a file of records.")
    ] = 4_000_000,
    seed: Annotated[int, typer.Option(help="Of masks and order.")] = 0,
):
    """Turn text into masked TFRecords, to pretrain on.

    The records have the feature names of google-research/albert and albert_zh. The same
    seed gives the same records, whatever the number of workers. A run that was cut off
    goes on if it is started again.

    Example: albert-tf pretrain-data --input 'corpus/*.txt' --vocab vocab.txt
    --output records
    """
    import_tensorflow()
    import zh
    from albert_tf.pretraining import PretrainingData, make_pretraining_data

    settings = PretrainingData(
        vocab,
        lowercase=not cased,
        sequence_length=sequence_length,
        mask_rate=mask_rate,
        ngram=ngram,
        max_predictions=max_predictions,
        word_boundaries=(
            zh.WordBoundaries(_segmenter(segmenter, hmm, user_dictionary))
            if whole_word
            else None
        ),
        split_sentences=zh.split_sentences,
        duplicates=duplicates,
        order=order.value,
        marked_labels=marked_labels,
        document_per_line=document_per_line,
        text_field=text_field,
        block_bytes=block_size,
        seed=seed,
    )
    # What TensorFlow says of itself in each worker is kept back.
    with silent_stderr(), bytes_bar("Text") as progress:
        manifest = make_pretraining_data(
            files,
            output,
            settings,
            engine=engine.value,
            workers=workers,
            address=address,
            progress=progress,
        )
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, count in manifest["counts"].items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    console.print(table)
    for complaint in manifest["complaints"]:
        console.print(f"Warning: {complaint}", soft_wrap=True)
    count = len(manifest["shards"])
    files = "1 file of records is" if count == 1 else f"{count} files of records are"
    console.print(f"{files} in {output}", soft_wrap=True)


def _segmenter(name, hmm, user_dictionary):
    import zh

    if name is Segmenter.jieba:
        return zh.Jieba(hmm=hmm, user_dictionary=user_dictionary)
    if user_dictionary or not hmm:
        raise ValueError(
            "--user-dictionary and --no-hmm are jieba's; --segmenter whitespace has "
            "neither. Leave them out, or take jieba."
        )
    return zh.Whitespace()


@app.command()
def pretrain(
    data: Annotated[str, typer.Option(help="Directory of `pretrain-data`.")],
    output: Annotated[str, typer.Option(help="Directory to write to.")],
    config: Annotated[
        str | None,
        typer.Option(help="A size such as albert_tiny_zh, or a config file."),
    ] = None,
    init: Annotated[
        str | None, typer.Option(help="Checkpoint to go on from, of any form.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Batches to train on.")] = 10_000,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences a step.")] = 128,
    accumulate: Annotated[
        int,
        typer.Option(min=1, help="Steps whose gradients are averaged for an update."),
    ] = 1,
    optimizer: Annotated[
        Optimizer, typer.Option(help="LAMB as in the paper, or AdamW.")
    ] = Optimizer.lamb,
    learning_rate: Annotated[
        float, typer.Option(help="The peak, after warm-up; then linearly to 0.")
    ] = 0.00176,
    warmup: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the steps to warm up in.")
    ] = 0.1,
    masking: Annotated[
        Masking, typer.Option(help="The masks of the records, or new ones each time.")
    ] = Masking.dynamic,
    interval: Annotated[
        int, typer.Option(min=1, help="Steps from one saved state to the next.")
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
    checkpoint, history.json and loss.png to --output. A run that was cut off goes on if
    it is started again with the same data and training, and loses less than an
    --interval.

    Example: albert-tf pretrain --data records --config albert_tiny_zh --output my_model
    """
    interval = min(interval, steps)
    settings = {key: value for key, value in locals().items() if key != "output"}
    if (config is None) == (init is None):
        raise ValueError(
            "Give --config to train from random weights, or --init to go on from a "
            "checkpoint."
        )
    import_tensorflow()
    import keras

    from albert_tf.checkpoints.layouts import original_layout
    from albert_tf.conversion import save_checkpoint
    from albert_tf.conversion.saving import check_saving
    from albert_tf.files import write_text
    from albert_tf.pretraining.dataset import PretrainingRecords
    from albert_tf.pretraining.training import (
        plot_pretraining,
        pretrain,
        pretraining_optimizer,
    )
    from albert_tf.training.run_state import weights_digest

    keras.utils.set_random_seed(seed)
    if mixed_precision:
        keras.config.set_dtype_policy("mixed_bfloat16")
    records = PretrainingRecords(data)
    dev_records = PretrainingRecords(dev) if dev else None
    model = _pretrainer(config, init, records)
    model.compile(
        pretraining_optimizer(optimizer.value, learning_rate, steps, warmup, accumulate)
    )
    # Before the training what cannot be written afterwards.
    fitting = original_layout(model.backbone.get_config()).name
    layout = layout.value if layout else fitting
    check_saving(model, output, layout, records.tokenizer)
    done = pretrain(
        model,
        records,
        output,
        steps,
        batch_size,
        masks=records.masks() if masking is Masking.dynamic else None,
        seed=seed,
        interval=interval,
        dev=dev_records,
        settings={"init": weights_digest(model.backbone)} if init else None,
        callbacks=_logs(tensorboard),
        verbose=1 if sys.stdout.isatty() else 2,
    )
    output = pathlib.Path(output)
    settings["layout"] = layout
    text = json.dumps({**done, "settings": settings}, ensure_ascii=False, indent=2)
    write_text(output / "history.json", text + "\n")
    plot_pretraining(done["history"], interval, output / "loss.png")
    # Last: a preset is written once only.
    save_checkpoint(model, output, layout, tokenizer=records.tokenizer)
    last = [(name, values[-1]) for name, values in done["history"].items()]
    console.print(
        ", ".join(f"{name} {value:.4f}" for name, value in last if value is not None)
        + f". Checkpoint ({layout}), history.json and loss.png are in {output}",
        soft_wrap=True,
    )


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
            (records.folder, records.tokenizer), (init, checkpoint.tokenizer())
        )
        model = AlbertPretrainer.from_opened(checkpoint, num_sop_classes=classes)
    if not classes and model.backbone.pooled_dense is not None:
        # Nothing reads it, but a classifier that begins with this checkpoint will.
        model.backbone.pooled_dense.trainable = False
    return model


def _logs(tensorboard):
    """The callback that writes logs for TensorBoard, in a list, if it is asked for."""
    if tensorboard is None:
        return []
    try:
        import tensorboard as _  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "--tensorboard needs TensorBoard. Run: pip install tensorboard"
        ) from error
    import keras

    return [keras.callbacks.TensorBoard(tensorboard, update_freq=100)]
