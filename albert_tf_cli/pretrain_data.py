"""The command `albert-tf pretrain-data`."""

from typing import Annotated, Literal

import typer

from albert_tf_cli.common import (
    bytes_bar,
    console,
    import_tensorflow,
    print_summary,
)

Order = Literal["sop", "nsp", "three_way", "none"]
Engine = Literal["process", "ray"]
Segmenter = Literal["jieba", "whitespace"]

# Masking options of `pretrain` and of `pretrain-data --masked`.
MaskSelectionLength = Annotated[
    int | None,
    typer.Option(
        help="Maximum predictions per sequence; by default the rate plus a quarter."
    ),
]
Ngram = Annotated[
    int | None, typer.Option(help="Maximum words masked together, 3 by default.")
]
MarkedLabels = Annotated[
    bool | None,
    typer.Option(help="Label inner characters with ##, to continue from albert_zh."),
]


def pretrain_data(
    files: Annotated[
        list[str],
        typer.Option(
            "--input",
            help="Text file or pattern such as 'corpus/*.txt'; may be repeated. Also "
            ".gz, .zst and JSON lines (.jsonl).",
        ),
    ],
    vocab: Annotated[str, typer.Option(help="A vocab.txt or SentencePiece model.")],
    output: Annotated[str, typer.Option(help="Directory for the records.")],
    sequence_length: Annotated[int, typer.Option(help="Tokens per sequence.")] = 512,
    whole_word: Annotated[
        bool, typer.Option(help="Mask whole words instead of single tokens.")
    ] = True,
    segmenter: Annotated[
        Segmenter,
        typer.Option(help="Word segmenter: jieba, or white space for segmented text."),
    ] = "jieba",
    hmm: Annotated[
        bool, typer.Option(help="Find words that are not in the dictionary of jieba.")
    ] = True,
    user_dictionary: Annotated[
        str | None, typer.Option(help="Your dictionary, in jieba's format.")
    ] = None,
    duplicates: Annotated[
        int, typer.Option(help="Number of times the text is used, in other pairs each.")
    ] = 1,
    order: Annotated[
        Order,
        typer.Option(
            help="Labels of pairs: sop (ALBERT), nsp (BERT), three_way (StructBERT), "
            "none (RoBERTa)."
        ),
    ] = "sop",
    keep_unpaired: Annotated[
        bool,
        typer.Option(
            "--keep-unpaired",
            help="Keep a sentence without a second as a sequence of one segment.",
        ),
    ] = False,
    masked: Annotated[
        bool,
        typer.Option(
            "--masked",
            help="Write masked records for the original code. By default `pretrain` "
            "masks a sequence each time it is read. The next four options are for "
            "--masked.",
        ),
    ] = False,
    mask_selection_rate: Annotated[
        float | None,
        typer.Option(
            help="Share of the tokens to predict, 0.15 by default; albert_zh has 0.10."
        ),
    ] = None,
    mask_selection_length: MaskSelectionLength = None,
    ngram: Ngram = None,
    marked_labels: MarkedLabels = None,
    document_per_line: Annotated[
        bool,
        typer.Option(
            "--document-per-line",
            help="Each line is a document. By default a line is a sentence or "
            "paragraph and an empty line ends a document.",
        ),
    ] = False,
    text_field: Annotated[
        str, typer.Option(help="Field of the JSON lines with the text.")
    ] = "text",
    cased: Annotated[bool, typer.Option("--cased", help="Do not lower-case.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of processes; one per CPU by default."),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Run on this machine or on a Ray cluster.")
    ] = "process",
    address: Annotated[
        str | None, typer.Option(help="Address of the Ray cluster, for example auto.")
    ] = None,
    block_size: Annotated[
        int, typer.Option(help="Bytes of text per file of records.")
    ] = 4_000_000,
    seed: Annotated[int, typer.Option(help="Seed of the pairs and their order.")] = 0,
):
    """Turn text into TFRecords for pretraining.

    The records have the feature names of google-research/albert and albert_zh. They
    depend on the seed, not on the number of workers. The same command resumes after an
    interruption.

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
        segmenter=(_segmenter(segmenter, hmm, user_dictionary) if whole_word else None),
        split_sentences=zh.split_sentences,
        duplicates=duplicates,
        order=order,
        keep_unpaired=keep_unpaired,
        masked=masked,
        mask_selection_rate=mask_selection_rate,
        mask_selection_length=mask_selection_length,
        ngram=ngram,
        marked_labels=marked_labels,
        document_per_line=document_per_line,
        text_field=text_field,
        block_bytes=block_size,
        seed=seed,
    )
    with bytes_bar("Text") as progress:
        manifest = make_pretraining_data(
            files,
            output,
            settings,
            engine=engine,
            workers=workers,
            address=address,
            progress=progress,
        )
    print_summary(manifest["counts"])
    for warning in manifest["warnings"]:
        console.print(f"Warning: {warning}", soft_wrap=True)
    count = len(manifest["shards"])
    files = "1 file of records is" if count == 1 else f"{count} files of records are"
    console.print(f"{files} in {output}", soft_wrap=True)


def _segmenter(name, hmm, user_dictionary):
    import zh

    if name == "whitespace":
        return zh.Whitespace()
    return zh.Jieba(hmm=hmm, user_dictionary=user_dictionary)
