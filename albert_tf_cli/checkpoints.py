"""The commands `albert-tf convert`, `inspect`, `prune` and `download`."""

import dataclasses
import json
import math
import os
import pathlib
from typing import Annotated, Any

import typer

from albert_tf_cli import common, options
from albert_tf_cli.options import data_option, model_option, output_option
from albert_tf_cli.streaming import file_blocks
from albert_tf_cli.tasks import Columns, Task
from albert_tf_cli.tasks.task import as_columns
from albert_tf_lite.errors import AlbertError

# Two implementations differ by about 5e-6 in float32, misplaced weights by far more.
TOLERANCE = 1e-4
# Rows that `inspect` prints even if they are empty.
_ALWAYS = ("release", "vocabulary", "heads", "missing", "damaged")


def convert(
    checkpoint: options.Checkpoint,
    output: options.OutputDirectory,
    to: options.To,
    config: options.Config = None,
    vocab: options.Vocab = None,
    verify: Annotated[
        bool, output_option("Compare the outputs on a random batch.", "--verify")
    ] = False,
):
    """Convert a checkpoint to another layout.

    \b
    Example:
      albert-tf convert albert_base_zh_google hf_model --to huggingface --verify
    """
    common.check_checkpoint(checkpoint)
    common.check_files(config, vocab)
    common.import_tensorflow()
    from albert_tf import convert_checkpoint, verify_conversion

    done = convert_checkpoint(checkpoint, output, to, config=config, vocabulary=vocab)
    sizes = [math.prod(shape) for *_, shape in done.moved]
    common.print_summary(
        {
            "read": f"{checkpoint} ({done.layout})",
            "wrote": f"{output} ({to})",
            "files": sorted(file.name for file in pathlib.Path(output).iterdir()),
            "weights": f"{len(sizes):,}, {sum(sizes):,} numbers",
            "left_out": done.left_out,
        }
    )
    if not verify:
        return
    differences = verify_conversion(checkpoint, output, config=config)
    common.print_summary({f"difference of {x}": y for x, y in differences.items()})
    if not all(difference <= TOLERANCE for difference in differences.values()):
        raise AlbertError(
            "The outputs of the converted checkpoint differ from the original by more "
            f"than {TOLERANCE:.0e}."
        )


def inspect(
    checkpoint: options.Checkpoint,
    config: options.Config = None,
    as_json: options.Json = False,
):
    """Inspect a checkpoint and list missing weights.

    \b
    Example:
      albert-tf inspect albert_tiny_zh/albert_model.ckpt
    """
    common.check_checkpoint(checkpoint)
    common.check_files(config)
    common.import_tensorflow()
    from albert_tf.checkpoints import RELEASES, inspect_checkpoint

    report = dataclasses.asdict(inspect_checkpoint(checkpoint, config=config))
    if as_json:
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return
    if report["release"]:
        others = RELEASES[report["release"]].confused_with
        report["release"] = " or ".join((report["release"], *others))
        if report["damaged"]:
            report["release"] += " by its index, but the data are damaged (see below)"
    number, dtypes = report["parameters"], report["dtypes"]
    report["parameters"] = f"{number / 1e6:.3g} M ({number:,})"
    report["dtypes"] = {x: f"{size / 1e6:.3g} MB" for x, size in dtypes.items()}
    rows = {name: x for name, x in report.items() if x or name in _ALWAYS}
    common.print_summary(rows)


def prune(
    checkpoint: options.Checkpoint,
    output: options.OutputDirectory,
    corpus: Annotated[
        list[str],
        data_option(
            "File with typical texts: .txt with one text per line, .csv, .tsv or "
            ".jsonl. May be repeated."
        ),
    ],
    min_count: Annotated[
        int, model_option("Remove tokens that occur less often.", min=1)
    ] = 1,
    to: options.To = "keras",
    config: options.Config = None,
    vocab: options.Vocab = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    encoding: options.Encoding = None,
):
    """Remove the tokens that a corpus does not need.

    Predictions on texts of the kept tokens do not change.

    \b
    Example:
      albert-tf prune my_model my_small_model --corpus train.tsv --min-count 2
    """
    common.check_checkpoint(checkpoint)
    common.check_files(config, vocab, *corpus)
    common.import_tensorflow()
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.checkpoints import (
        open_checkpoint,
        prune_vocabulary,
        save_checkpoint,
    )
    from albert_tf.models.albert_pretrainer import build_model

    opened = open_checkpoint(checkpoint, config=config)
    # A preset is opened as its model. Prune those of KerasHub as models of ours.
    model: Any = opened.model
    if not isinstance(getattr(model, "backbone", model), AlbertBackbone):
        model = build_model(opened)
    tokenizer = opened.tokenizer(vocabulary=vocab)
    if tokenizer is None:
        raise FileNotFoundError(
            f"There is no vocabulary beside {checkpoint}. Pass --vocab."
        )
    pairs = getattr(model, "pairs", False)
    columns = Columns(None, text_column, text_b_column, encoding=encoding)
    fields = ("text", "text_pair") if pairs else ("text",)
    blocks = (file_blocks(Task(), file, columns, fields)() for file in corpus)
    texts = (x for part in blocks for y, _ in part for z in as_columns(y) for x in z)
    small, kept = prune_vocabulary(model, texts, tokenizer, min_count)
    save_checkpoint(small, output, layout=to, tokenizer=kept)
    before, after = (sum(x.numpy().nbytes for x in y.weights) for y in (model, small))
    common.print_summary(
        {
            "read": checkpoint,
            "wrote": f"{output} ({to})",
            "tokens": f"{kept.vocabulary_size():,} of {tokenizer.vocabulary_size():,}",
            "weights": f"{after / 1e6:.2f} MB of {before / 1e6:.2f} MB",
        }
    )


def download(
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the release. Without it, list all releases."),
    ] = None,
):
    """Download a released checkpoint and verify it.

    Set ALBERT_TF_CACHE to change the cache directory and ALBERT_TF_MIRROR to download
    from a mirror.

    \b
    Example:
      albert-tf download albert_tiny_zh
    """
    if name is None:
        print(*common.releases(), sep="\n")
        return
    if not os.path.exists(name):
        common.check_checkpoint(name)
    common.import_tensorflow()
    from albert_tf.checkpoints.download import download_release

    folder = download_release(name, progress=common.console.is_terminal)
    common.console.print(f"{name} is in {folder}", soft_wrap=True)
