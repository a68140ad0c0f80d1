"""Converting checkpoints by loading and saving, and comparing the results."""

import dataclasses
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from albert_tf.checkpoints import open_checkpoint
from albert_tf.checkpoints.checkpoint import Checkpoint, Config
from albert_tf.checkpoints.named_heads import head_prefix
from albert_tf.checkpoints.opening import CheckpointPath
from albert_tf.checkpoints.plan import plan_weights
from albert_tf.checkpoints.saving import Saving
from albert_tf.models.task_of_checkpoint import build_model
from albert_tf_lite.errors import AlbertError


class Moved(NamedTuple):
    """A weight: the names of its tensors that were read and written, and its shape."""

    read: tuple[str, ...]
    written: tuple[str, ...]
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Conversion:
    """The result of `convert_checkpoint`."""

    layout: str  # The layout that was read.
    moved: list[Moved]
    # Optimizer slots, the step counter, heads and settings without a place.
    left_out: list[str]


def convert_checkpoint(
    source: CheckpointPath,
    destination: str | os.PathLike,
    layout: str,
    config: Config | None = None,
    vocabulary: str | os.PathLike | None = None,
) -> Conversion:
    """Convert a checkpoint: load its model, and save it in another layout.

    Args:
        source: a checkpoint of any form: a directory, an archive, a prefix or any file
            of it, the name of a release, `"hf://user/name"`, or a Keras model.
        destination: string, the directory to write.
        layout: string: `"google"`, `"albert_zh"`, `"huggingface"`, `"kerashub"` or
            `"keras"`, see `save_checkpoint`.
        config: optional path or dict, the config of the source. By default the one
            beside it.
        vocabulary: optional path of the vocabulary. By default the one beside the
            source.

    Returns:
        A `Conversion`.

    Raises:
        FileNotFoundError: if a file of the source is missing.
        CheckpointError: if the source is damaged, of an unknown layout or of other
            sizes than its config, or if the layout cannot hold the model.
        AlbertError: if the layout is unknown, or the directory holds the source.
        FileExistsError: if the directory holds files of another layout. A checkpoint of
            the same layout is replaced.

    Example:
    ```python
    albert_tf.convert_checkpoint("albert_micro_zh", "converted", "keras")
    ```
    """
    opened = open_checkpoint(source, config=config)
    folders = [folder.resolve() for folder in opened.folders]
    if pathlib.Path(destination).resolve() in folders:
        raise AlbertError(f"{destination} holds the source. Choose another directory.")
    tokenizer = opened.tokenizer(vocabulary=vocabulary)
    model = opened.model or build_model(opened)
    saving = Saving(
        model, destination, layout, tokenizer, partly=True, heads=opened.views()
    )
    saving.write()
    written = {id(weight): tensors.names for weight, tensors in saving.plan}
    moved = [
        Moved(tensors.names, written[id(weight)], tuple(weight.shape))
        for weight, tensors in plan_weights(opened.layout, model, saving.parts)
    ]
    # Heads without a place are in `saving.left_out`.
    known = {name for row in moved for name in row.read}
    known.update(opened.layout.names(opened.heads))
    left_out = sorted(set(opened.shapes) - known) + saving.left_out
    for name in saving.heads:
        moved += _moved_head(saving, name)
    return Conversion(opened.layout.name, moved, left_out)


def _moved_head(saving: Saving, name: str) -> list[Moved]:
    """Return the rows of `Conversion.moved` of a named head."""
    source = saving.heads[name]
    before = head_prefix(source.layout, name)
    after = head_prefix(saving.layout, name)
    moved = []
    for row in saving.head_plan(name):
        shape = source.shapes[row.read.names[0]]
        if row.read.transpose:
            shape = shape[::-1]
        moved.append(
            Moved(
                read=tuple(before + tensor for tensor in row.read.names),
                written=tuple(after + tensor for tensor in row.written.names),
                shape=tuple(shape),
            )
        )
    return moved


def verify_conversion(
    source: CheckpointPath, destination: CheckpointPath, config: Config | None = None
) -> dict[str, float]:
    """Run two checkpoints on a random batch and compare their outputs.

    KerasHub's presets are run by KerasHub's own code.

    Args:
        source: the checkpoint that was converted.
        destination: string, the converted checkpoint.
        config: optional path or dict, the config of the source. By default the one
            beside it.

    Returns:
        The largest absolute difference of each output that both have, a dict. Those
        of a named head begin with its name.

    Example:
    ```python
    path = "albert_micro_zh"
    albert_tf.convert_checkpoint(path, "converted", "keras")
    albert_tf.verify_conversion(path, "converted")
    ```
    """
    first = _outputs(open_checkpoint(source, config=config))
    second = _outputs(open_checkpoint(destination))
    return {
        name: float(np.abs(first[name] - second[name]).max())
        for name in first
        if name in second
    }


def _outputs(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """Return the outputs of the backbone and of all heads."""
    outputs = _model_outputs(checkpoint)
    for name, view in checkpoint.views().items():
        for output, value in _model_outputs(view).items():
            if "logits" in output:
                outputs[f"{name}/{output}"] = value
    return outputs


def _model_outputs(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """Return the outputs of the backbone and of the heads without a name."""
    random, arguments = np.random.default_rng(0), checkpoint.arguments
    shape = (3, min(17, arguments["max_sequence_length"]))
    lengths = random.integers(1, shape[1] + 1, (shape[0], 1))
    inputs = {
        "token_ids": random.integers(0, arguments["vocabulary_size"], shape),
        "segment_ids": random.integers(0, arguments["num_segments"], shape),
        "padding_mask": (np.arange(shape[1]) < lengths).astype("int64"),
        "mask_positions": random.integers(0, shape[1], (3, 4)),
    }
    # A model of albert_tf is built again, to compute in float32.
    is_hub = checkpoint.layout.name == "kerashub"
    model: Any = checkpoint.files.model if is_hub else build_model(checkpoint)
    backbone = getattr(model, "backbone", model)
    outputs = dict(backbone({name: inputs[name] for name in backbone.input}))
    if model is not backbone:
        heads = model({name: inputs[name] for name in model.input})
        outputs.update(heads if isinstance(heads, dict) else {"logits": heads})
    return {name: np.asarray(array) for name, array in outputs.items()}
