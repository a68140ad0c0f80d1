"""Write the ONNX graphs of the bundled checkpoints again.

    python scripts/bundled_networks.py [--force]

Beside a checkpoint with one head the file is `model.onnx`; each named head has one with
its name. They read the weights of the checkpoint. Without `--force`, graphs that fit
the checkpoint stay.
"""

import argparse
import pathlib

import albert_tf
from albert_tf.checkpoints import open_checkpoint
from albert_tf.files import BUNDLED, find_bundled
from albert_tf.models.task_of_checkpoint import task_class
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.network_files import NETWORK, open_exported


def is_current(folder: pathlib.Path, file: str) -> bool:
    """Return whether a graph exists that fits the checkpoint in a folder."""
    try:
        open_exported(folder, file=file)
    except AlbertError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true")
    given = parser.parse_args()
    for name in BUNDLED:
        folder, checkpoint = find_bundled(name), open_checkpoint(name)
        (weights,) = folder.glob("*.data-*")
        unnamed = [None] if task_class(checkpoint) else []
        for head in [*checkpoint.named_heads, *unnamed]:
            file = f"{head}.onnx" if head else NETWORK
            if is_current(folder, file) and not given.force:
                continue
            task = albert_tf.pipeline(None, checkpoint, head=head).model
            albert_tf.export.onnx(task, folder / file, preset=folder, weights=weights)
            print(folder / file)


if __name__ == "__main__":
    main()
