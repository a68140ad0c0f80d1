"""The command `albert-tf convert`."""

import dataclasses
import math
import pathlib
from typing import Annotated

import typer

from albert_tf_cli.shared.console import print_summary
from albert_tf_cli.shared.early_checks import (
    check_checkpoint,
    check_files,
    check_output,
)
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.options import (
    Checkpoint,
    Config,
    OutputDirectory,
    Overwrite,
    To,
    Vocab,
    output_option,
    takes_options,
)
from albert_tf_lite.errors import AlbertError

# Two implementations differ by about 5e-6 in float32, misplaced weights by far more.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """The options of `albert-tf convert`."""

    checkpoint: Checkpoint
    output: OutputDirectory
    to: To
    config: Config = None
    vocab: Vocab = None
    verify: Annotated[
        bool, output_option("Compare the outputs on a random batch.", "--verify")
    ] = False
    overwrite: Overwrite = False


@takes_options
def convert(context: typer.Context, options: ConvertOptions) -> None:
    """Convert a checkpoint to another layout.

    \b
    Example:
      albert-tf convert albert_base_zh_google hf_model --to huggingface --verify
    """
    check_checkpoint(options.checkpoint)
    check_files(options.config, options.vocab)
    check_output(options.output, options.overwrite)
    import_tensorflow()
    from albert_tf import convert_checkpoint, verify_conversion

    done = convert_checkpoint(
        options.checkpoint,
        options.output,
        options.to,
        config=options.config,
        vocabulary=options.vocab,
    )
    sizes = [math.prod(shape) for *_, shape in done.moved]
    written = sorted(file.name for file in pathlib.Path(options.output).iterdir())
    print_summary(
        {
            "read": f"{options.checkpoint} ({done.layout})",
            "wrote": f"{options.output} ({options.to})",
            "files": written,
            "weights": f"{len(sizes):,}, {sum(sizes):,} numbers",
            "left_out": done.left_out,
        }
    )
    if not options.verify:
        return
    differences = verify_conversion(
        options.checkpoint, options.output, config=options.config
    )
    print_summary({f"difference of {name}": x for name, x in differences.items()})
    if not all(difference <= TOLERANCE for difference in differences.values()):
        raise AlbertError(
            "The outputs of the converted checkpoint differ from the original by more "
            f"than {TOLERANCE:.0e}."
        )
