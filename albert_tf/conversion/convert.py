"""From any form of a checkpoint to any other that can hold it."""

import dataclasses
import pathlib

import numpy as np

from albert_tf.checkpoints.checkpoint import open_checkpoint
from albert_tf.checkpoints.layout import numbers_of
from albert_tf.conversion.build import build_model
from albert_tf.conversion.contents import contents_of
from albert_tf.conversion.saving import write_checkpoint
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What `convert_checkpoint` did.

    Attributes:
        layout: string, the layout that was read.
        moved: list of `(names read, names written, shape of the weight)`, the names
            tuples of strings.
        left_out: list of what was not converted: optimizer slots, the step counter,
            heads and labels the other layout has no place for, and what is no part
            of an ALBERT.
    """

    layout: str
    moved: list
    left_out: list


def convert_checkpoint(
    source, destination, layout, config=None, vocabulary=None, progress=None
):
    """Convert a checkpoint: weights, heads, config and vocabulary.

    Args:
        source: what `load_checkpoint` takes.
        destination: string, the directory to write.
        layout: string, as for `save_checkpoint`.
        config: optional path or dict, the config of the source. By default the one
            beside it.
        vocabulary: optional path of the vocabulary. By default the one beside the
            source.
        progress: optional callable, given the weights read and those to read.

    Returns:
        A `Conversion`.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`, and if the layout
            cannot hold the model.
        AlbertError: if the layout is unknown, or source and destination are one.
    """
    checkpoint = open_checkpoint(source, config=config, progress=progress)
    folders = [folder.resolve() for folder in checkpoint.source.folders]
    if pathlib.Path(destination).resolve() in folders:
        raise AlbertError(
            f"{destination} is where the source is. Give another directory."
        )
    contents = contents_of(checkpoint, layout, vocabulary)
    write_checkpoint(contents, destination, layout)
    moved = [
        (row.tensors.names, row.target.names, row.shape) for row in contents.plan.rows
    ]
    read = {name for names, _, _ in moved for name in names}
    left_out = sorted(set(checkpoint.shapes) - read)
    left_out += checkpoint.source.outside + contents.lost
    return Conversion(checkpoint.layout.name, moved, left_out)


def verify_conversion(source, destination, config=None, seed=0):
    """Run source and result on the same random batch.

    A preset of KerasHub is run by KerasHub's own code.

    Args:
        source: what was converted.
        destination: string, what came of it.
        config: optional path or dict, the config of the source.
        seed: int. Of the batch.

    Returns:
        A dict of output to the largest absolute difference, for every output that
        both have.
    """
    first, second = (
        _outputs(open_checkpoint(path, config=given), seed)
        for path, given in ((source, config), (destination, None))
    )
    return {
        name: float(np.abs(first[name] - second[name]).max())
        for name in first
        if name in second
    }


def _outputs(checkpoint, seed):
    inputs = _random_batch(checkpoint.arguments, seed)
    # Ours is rebuilt, to compute in float32 whatever it was saved to compute in.
    model = (
        build_model(checkpoint)
        if checkpoint.source.is_ours
        else checkpoint.source.model
    )
    backbone = getattr(model, "backbone", model)
    outputs = dict(backbone({name: inputs[name] for name in backbone.input}))
    if model is not backbone:
        heads = model({name: inputs[name] for name in model.input})
        outputs.update(heads if isinstance(heads, dict) else {"logits": heads})
    return {name: numbers_of(array) for name, array in outputs.items()}


def _random_batch(arguments, seed):
    random = np.random.default_rng(seed)
    shape = (3, min(17, arguments["max_sequence_length"]))
    lengths = random.integers(1, shape[1] + 1, (shape[0], 1))
    return {
        "token_ids": random.integers(0, arguments["vocabulary_size"], shape),
        "segment_ids": random.integers(0, arguments["num_segments"], shape),
        "padding_mask": (np.arange(shape[1]) < lengths).astype("int64"),
        "mask_positions": random.integers(0, shape[1], (3, 4)),
    }
