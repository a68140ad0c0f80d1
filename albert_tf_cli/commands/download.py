"""The command `albert-tf download`."""

import dataclasses
import os
import pathlib
from typing import Annotated

import typer

from albert_tf.files import HUB, read_releases
from albert_tf_cli.shared.console import console
from albert_tf_cli.shared.early_checks import check_checkpoint
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.options import takes_options


@dataclasses.dataclass(frozen=True, kw_only=True)
class DownloadOptions:
    """The options of `albert-tf download`."""

    name: Annotated[
        str | None,
        typer.Argument(help="Name of the release. Without it, list all releases."),
    ] = None
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare tensors and answers with what was published."
        ),
    ] = False


@takes_options
def download(context: typer.Context, options: DownloadOptions) -> None:
    """Download a released checkpoint and verify it.

    Set ALBERT_TF_CACHE to change the cache directory and ALBERT_TF_MIRROR to download
    from a mirror.

    \b
    Examples:
      albert-tf download albert_tiny_zh
      albert-tf download albert_tiny_zh_google --check
    """
    if options.name is None:
        print(*read_releases(), sep="\n")
        return
    if not os.path.exists(options.name):
        check_checkpoint(options.name)
    import_tensorflow()
    from albert_tf.checkpoints.download import download_release, fetch_from_hub

    if options.name.startswith(HUB):
        folder = fetch_from_hub(options.name)
    else:
        folder = download_release(options.name, progress=console.is_terminal)
    console.print(f"{options.name} is in {folder}", soft_wrap=True)
    if options.check:
        _compare(options.name, folder)


def _compare(name: str, folder: pathlib.Path) -> None:
    """Print what a release has as published; raise if something differs."""
    from albert_tf.checkpoints.layout import CheckpointError
    from albert_tf.published import compare_with_published

    comparison = compare_with_published(name, folder)
    for line in comparison.lines():
        console.print(line, soft_wrap=True)
    if problems := comparison.problems:
        raise CheckpointError(
            f"{folder} is not {name} as it was published: {'; '.join(problems)}. "
            "Remove the folder and download it again."
        )
    console.print(f"{name} is as it was published.", soft_wrap=True)
