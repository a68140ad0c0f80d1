"""The options of `albert-tf predict`."""

import dataclasses
from typing import Annotated, Literal

import typer

from albert_tf_cli.shared.options import (
    BatchSize,
    Encoding,
    LabelMap,
    Sheet,
    TextBColumn,
    TextColumn,
    Workers,
    model_option,
    output_option,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """The options of `albert-tf predict`."""

    model: Annotated[
        str,
        typer.Argument(
            help="Directory written by `finetune`, a .onnx or .tflite file written by "
            "`export`, or any checkpoint with a head (of several, CHECKPOINT:HEAD)."
        ),
    ]
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts, or one file: a .txt with a text per line, or any that "
            "`finetune` reads. Default, or for -: the lines of standard input."
        ),
    ] = None
    task_name: Annotated[
        str | None,
        model_option(
            "Task, one of those of `finetune`, fill-mask, sentence-order or "
            "zero-shot-classification. Default: the task of the model.",
            "--task",
        ),
    ] = None
    candidate_labels: Annotated[
        str | None, model_option("Classes of zero-shot-classification: 体育,财经.")
    ] = None
    engine: Annotated[
        Literal["onnx", "litert", "ray"] | None,
        model_option(
            "onnx, litert: compute in int8, often faster. ray: compute on the Ray "
            "cluster in RAY_ADDRESS, which shares the file of the model."
        ),
    ] = None
    precision: Annotated[
        Literal["float32", "int8"] | None,
        model_option(
            "Precision of a model that `finetune` wrote. Default: int8, if it gave the "
            "answers of float32 on dev, otherwise float32."
        ),
    ] = None
    top_k: Annotated[
        int | None,
        output_option("Answers per text, the most likely first; 0 for all.", min=0),
    ] = None
    abstain: Annotated[
        float | None,
        output_option(
            "Score below which a class or an entity is no answer: the label is empty.",
            min=0,
            max=1,
        ),
    ] = None
    label_map: LabelMap = None
    explain: Annotated[
        bool,
        output_option(
            "Colour the characters by their contribution to the answer: blue for, "
            "orange against. With --json, print the numbers.",
            "--explain",
        ),
    ] = False
    as_json: Annotated[
        bool, output_option("Print one JSON value per text.", "--json")
    ] = False
    output: Annotated[
        str | None,
        output_option(
            "New file for the answers beside all columns of the input: .csv, .jsonl, "
            ".tsv or .parquet (needs pyarrow). The same command resumes after an "
            "interruption."
        ),
    ] = None
    text_column: TextColumn = None
    text_b_column: TextBColumn = None
    encoding: Encoding = None
    sheet: Sheet = None
    batch_size: BatchSize = None
    workers: Workers = None
