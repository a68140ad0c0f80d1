"""The command `albert-tf download`."""

import dataclasses
import os
from typing import Annotated

import typer

from albert_tf.files import read_releases
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


@takes_options
def download(context: typer.Context, options: DownloadOptions) -> None:
    """Download a released checkpoint and verify it.

    Set ALBERT_TF_CACHE to change the cache directory and ALBERT_TF_MIRROR to download
    from a mirror.

    \b
    Example:
      albert-tf download albert_tiny_zh
    """
    if options.name is None:
        print(*read_releases(), sep="\n")
        return
    if not os.path.exists(options.name):
        check_checkpoint(options.name)
    import_tensorflow()
    from albert_tf.checkpoints.download import download_release

    folder = download_release(options.name, progress=console.is_terminal)
    console.print(f"{options.name} is in {folder}", soft_wrap=True)
