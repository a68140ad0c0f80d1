"""The command `albert-tf pretrain-data`."""

from typing import Annotated, Any, Literal

import typer

from albert_tf_cli import common
from albert_tf_cli.options import (
    Encoding,
    Seed,
    Workers,
    advanced_option,
    data_option,
    directory_option,
    mask_option,
    output_option,
)
from albert_tf_lite.errors import AlbertError

Engine = Literal["process", "ray"]
Segmenter = Literal["jieba", "whitespace"]

# Options of `pretrain` and of `pretrain-data --masked`.
Ngram = Annotated[int | None, mask_option("Maximum words masked together. Default: 3.")]
MarkedLabels = Annotated[
    bool | None, mask_option("Label inner characters with ##, as albert_zh.")
]


def pretrain_data(
    context: typer.Context,
    files: Annotated[
        list[str],
        data_option(
            "Text file or pattern such as 'corpus/*.txt'; may be repeated. Also .gz, "
            ".zst and JSON lines (.jsonl).",
            "--input",
        ),
    ],
    vocab: Annotated[str, data_option("A vocab.txt or SentencePiece model.")],
    output: Annotated[str, directory_option("Directory for the records.")],
    sequence_length: Annotated[int, output_option("Tokens per sequence.")] = 512,
    order: Annotated[
        Literal["sop", "nsp", "three_way", "none"],
        output_option(
            "Labels of pairs: sop (ALBERT), nsp (BERT), three_way (StructBERT), none "
            "(RoBERTa)."
        ),
    ] = "sop",
    duplicates: Annotated[
        int, output_option("Number of times the text is used, in other pairs.")
    ] = 1,
    keep_unpaired: Annotated[
        bool, output_option("Keep sentences without a second.", "--keep-unpaired")
    ] = False,
    whole_word: Annotated[
        bool, data_option("Mark words, to mask whole words instead of tokens.")
    ] = True,
    segmenter: Annotated[
        Segmenter, data_option("Word segmenter; whitespace for segmented text.")
    ] = "jieba",
    user_dictionary: Annotated[
        str | None, data_option("Your dictionary, in jieba's format.")
    ] = None,
    text_field: Annotated[
        str, data_option("Field of the JSON lines with the text.")
    ] = "text",
    encoding: Encoding = None,
    cased: Annotated[bool, data_option("Do not lower-case.", "--cased")] = False,
    masked: Annotated[
        bool,
        mask_option(
            "Write masked records, with the options below. Default: `pretrain` draws "
            "masks each time a record is read.",
            "--masked",
        ),
    ] = False,
    mask_selection_rate: Annotated[
        float | None, mask_option("Share of the tokens to predict. Default: 0.15.")
    ] = None,
    ngram: Ngram = None,
    marked_labels: MarkedLabels = None,
    seed: Seed = 1,
    workers: Workers = None,
    engine: Annotated[
        Engine, advanced_option("This machine, or the Ray cluster in RAY_ADDRESS.")
    ] = "process",
):
    """Turn text into TFRecords for pretraining.

    The records have the feature names of google-research/albert and albert_zh. They
    depend on the seed, not on the number of workers. The same command resumes after an
    interruption.

    \b
    Example:
      albert-tf pretrain-data --input 'corpus/*.txt' --vocab vocab.txt \\
          --output records
    """
    names = ("mask_selection_rate", "ngram", "marked_labels")
    masks = {x: y for x in names if (y := context.params[x]) is not None}
    if masks and not masked:
        raise AlbertError(
            f"{', '.join(masks)}: records hold no masks, which `pretrain` draws. Give "
            "this to `pretrain`, or make records with --masked."
        )
    common.import_tensorflow()
    import zh
    from albert_tf.pretraining import PretrainingData, make_pretraining_data

    words: Any = zh.Whitespace()
    if segmenter == "jieba":
        words = zh.Jieba(user_dictionary=user_dictionary)
    settings = PretrainingData(
        vocab,
        lowercase=not cased,
        sequence_length=sequence_length,
        segmenter=words if whole_word else None,
        split_sentences=zh.split_sentences,
        duplicates=duplicates,
        order=order,
        keep_unpaired=keep_unpaired,
        masks=masks if masked else None,
        text_field=text_field,
        encoding=encoding,
        seed=seed,
    )
    with common.progress_bar("Text", context) as progress:
        manifest = make_pretraining_data(
            files, output, settings, engine=engine, workers=workers, progress=progress
        )
    common.print_summary(manifest["counts"])
    for warning in manifest["warnings"]:
        common.console.print(f"Warning: {warning}", soft_wrap=True)
    count = len(manifest["shards"])
    common.console.print(f"Files of records in {output}: {count}", soft_wrap=True)
