"""The commands `albert-tf inspect`, `convert` and `download`."""

import dataclasses
import json
import math
import pathlib
from typing import Annotated
from urllib.parse import urlsplit

import typer
from rich.table import Table

from albert_tf_cli.common import (
    Checkpoint,
    Config,
    Json,
    Layout,
    Vocab,
    bytes_bar,
    check_checkpoint,
    check_files,
    console,
    import_tensorflow,
    print_summary,
    releases,
)
from albert_tf_lite.errors import AlbertError

# Two implementations differ by about 5e-6 in float32, misplaced weights by far more.
TOLERANCE = 1e-4
# Rows that `inspect` prints even if they are empty.
_ALWAYS = ("release", "vocabulary", "heads", "missing", "damaged")


def inspect(
    checkpoint: Checkpoint,
    config: Config = None,
    as_json: Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print the empty rows.")
    ] = False,
):
    """Inspect a checkpoint: layout, sizes, heads, missing weights.

    \b
    Example:
      albert-tf inspect albert_tiny_zh/albert_model.ckpt
    """
    check_checkpoint(checkpoint)
    check_files(config)
    import_tensorflow()

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
    print_summary(
        {
            name: value
            for name, value in report.items()
            if value or verbose or name in _ALWAYS
        }
    )


def convert(
    source: Checkpoint,
    destination: Annotated[str, typer.Argument(help="Output directory.")],
    to: Annotated[Layout, typer.Option(help="Layout to write.")],
    config: Config = None,
    vocab: Vocab = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Compare the outputs of both on a random batch."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List all weights.")
    ] = False,
):
    """Convert a checkpoint: weights, heads, config and vocabulary.

    \b
    Example:
      albert-tf convert albert_base_zh_google hf_model --to huggingface --verify
    """
    check_checkpoint(source)
    check_files(config, vocab)
    import_tensorflow()

    from albert_tf.checkpoints import convert_checkpoint, verify_conversion

    done = convert_checkpoint(source, destination, to, config=config, vocabulary=vocab)
    if verbose:
        _show_names(done, to)
    sizes = [math.prod(shape) for *_, shape in done.moved]
    print_summary(
        {
            "read": f"{source} ({done.layout})",
            "wrote": f"{destination} ({to})",
            "files": sorted(file.name for file in pathlib.Path(destination).iterdir()),
            "weights": f"{len(sizes):,}, {sum(sizes):,} numbers",
            "left out": done.left_out,
        }
    )
    if verify:
        _show_differences(verify_conversion(source, destination, config=config))


def _show_names(done, layout):
    table = Table("shape")
    for title in (f"read ({done.layout})", f"written ({layout})"):
        table.add_column(title, overflow="fold")
    for read, written, shape in done.moved:
        shape = " x ".join(map(str, shape))
        table.add_row(shape, "\n".join(read), "\n".join(written))
    console.print(table)


def _show_differences(differences):
    table = Table("output", "largest difference")
    for output, difference in differences.items():
        table.add_row(output, f"{difference:.1e}")
    console.print(table)
    if not all(difference <= TOLERANCE for difference in differences.values()):
        raise AlbertError(
            "The outputs of the converted checkpoint differ from those of the source. "
            f"Expected differences of at most {TOLERANCE:.0e}."
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
    known = releases()
    if name is None:
        table = Table(box=None, pad_edge=False)
        table.add_column("release", no_wrap=True)
        table.add_column("from", overflow="fold")
        for release, fields in known.items():
            places = [urlsplit(fields["url"]).hostname] if fields.get("url") else []
            places += [f"hf://{mirror}" for mirror in fields.get("mirrors", ())]
            table.add_row(release, "\n".join(places))
        console.print(table)
        return
    if name not in known:
        check_checkpoint(name)
        raise AlbertError(
            f"{name} is not the name of a release. `albert-tf download` lists them."
        )
    import_tensorflow()

    from albert_tf.checkpoints.download import download_release

    with bytes_bar(name) as progress:
        folder = download_release(name, progress=progress)
    console.print(f"{name} is in {folder}", soft_wrap=True)
