"""`albert-tf pretrain-data`."""

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

# How sequences are masked: options of `pretrain`, and of `pretrain-data --masked`.
MaskSelectionRate = Annotated[
    float | None,
    typer.Option(
        help="Share of the tokens to predict, 0.15 by default; albert_zh has 0.10."
    ),
]
MaskSelectionLength = Annotated[
    int | None,
    typer.Option(help="Most predictions of a sequence; a quarter more by default."),
]
Ngram = Annotated[
    int | None, typer.Option(help="Most words masked together, 3 by default.")
]
MarkedLabels = Annotated[
    bool | None, typer.Option(help="Labels with ##, to continue from albert_zh.")
]


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
    whole_word: Annotated[
        bool, typer.Option(help="Words to be masked whole, or single tokens.")
    ] = True,
    segmenter: Annotated[
        Segmenter, typer.Option(help="jieba, or white space in segmented text.")
    ] = "jieba",
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
    ] = "sop",
    keep_unpaired: Annotated[
        bool,
        typer.Option(
            "--keep-unpaired",
            help="Keep a sentence that has no second, as a sequence of one segment.",
        ),
    ] = False,
    masked: Annotated[
        bool,
        typer.Option(
            "--masked",
            help="Mask the sequences now, as the original code reads them. By default "
            "`pretrain` does, each time it reads one. The next four options are for "
            "this.",
        ),
    ] = False,
    mask_selection_rate: MaskSelectionRate = None,
    mask_selection_length: MaskSelectionLength = None,
    ngram: Ngram = None,
    marked_labels: MarkedLabels = None,
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
    ] = "process",
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster, such as auto.")
    ] = None,
    block_size: Annotated[
        int, typer.Option(help="Bytes of text in a file of records.")
    ] = 4_000_000,
    seed: Annotated[int, typer.Option(help="Of pairs and order.")] = 0,
):
    """Turn text into TFRecords, to pretrain on.

    The records have the feature names of google-research/albert and albert_zh. The same
    seed gives the same records, whatever the number of workers. A run that was cut off
    resumes if it is started again.

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
