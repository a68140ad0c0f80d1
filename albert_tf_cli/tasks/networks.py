"""Files beside a fine-tuned model that answer without TensorFlow."""

import pathlib
import warnings
from typing import TYPE_CHECKING

from albert_tf_cli.shared.console import console
from albert_tf_cli.tasks.task import Examples
from albert_tf_lite.errors import MissingPackageError
from albert_tf_lite.network_files import (
    LEAST_AGREEMENT,
    LEAST_EXAMPLES,
    NETWORK,
    int8_file,
    is_safe,
)
from albert_tf_lite.onnx_model import OnnxModel

if TYPE_CHECKING:
    from albert_tf.models import AlbertTask

# Most dev examples on which int8 is compared with float32.
MOST_COMPARED = 2000


def write_networks(
    model: "AlbertTask", preset: pathlib.Path, folder: pathlib.Path, dev: Examples
) -> Exception | None:
    """Write files for answers without TensorFlow, if the task has any.

    They answer for `preset`, whose directory the files in `folder` join.

    Return an error of the export: the training is complete, and its other files are
    written. Those of the operating system are raised.
    """
    if model.exported_settings() is None:
        return None
    try:
        _write(model, preset, folder / NETWORK, dev)
    except MissingPackageError as error:
        warnings.warn(
            f"The files for answers without TensorFlow are incomplete: {error}",
            stacklevel=2,
        )
    except OSError:
        raise
    except Exception as error:
        return error
    return None


def _write(model, preset, network, dev):
    """Write the network in float32, and in int8 if that is safe."""
    from albert_tf.export import onnx
    from albert_tf.export.agreement import is_comparable

    int8 = int8_file(network)
    onnx(model, network, preset=preset)
    if len(dev) < LEAST_EXAMPLES or not is_comparable(model.name_of_task):
        return
    step = -(-len(dev) // MOST_COMPARED)
    texts = dev.select(range(0, len(dev), step)).x
    onnx(model, int8, precision="int8", preset=preset, compare=texts)
    settings = OnnxModel(int8, threads=1).settings
    agreement = settings["agreement"]
    use = "int8"
    if not is_safe(settings):
        int8.unlink()
        use = f"float32, because {LEAST_AGREEMENT:.1%} is needed for int8"
    console.print(
        f"Answers in int8 are those of float32 for {agreement['answers']:.1%} of "
        f"{agreement['examples']:,} dev examples: predict uses {use}",
        soft_wrap=True,
    )
