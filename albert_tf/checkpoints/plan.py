"""Plan, check, fill: what every weight of a model has to do with the tensors of a file.

Loading and converting are one plan: a row for every weight, checked as a whole before
anything is changed, then filled row by row.
"""

import dataclasses

import numpy as np

from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import CheckpointError, Tensors, listed, numbers_of
from albert_tf.checkpoints.weights import model_weights, parts_of, weight_shape


@dataclasses.dataclass(frozen=True)
class Row:
    """One weight."""

    target: object  # What takes it: a `keras.Variable`, or the `Tensors` to write.
    tensors: Tensors  # Those of the file that hold it.
    shape: tuple


@dataclasses.dataclass(frozen=True)
class Plan:
    """The rows of some parts of a checkpoint; checked when it is made.

    Raises:
        CheckpointError: if a weight is not in the file or has another shape there,
            two copies of one tensor differ, or the file has a tensor that no part
            has a place for.
    """

    checkpoint: object
    parts: list  # Of strings, as in `HEADS` and `ENCODER_PARTS`.
    rows: list

    def __post_init__(self):
        self._check_names()
        self._check_shapes()
        self._check_tied()

    def __iter__(self):
        """The rows, one after the other, with the progress shown."""
        for done, row in enumerate(self.rows, start=1):
            yield row
            self.checkpoint.progress(done, len(self.rows))

    def weight(self, row):
        """Read one weight. Nothing here keeps it: it may be a quarter of a GB."""
        values = [self.checkpoint.read(name) for name in row.tensors.names]
        return row.tensors.to_weight(values)

    def _check_names(self):
        checkpoint = self.checkpoint
        wanted = {name for row in self.rows for name in row.tensors.names}
        missing = sorted(wanted - set(checkpoint.shapes))
        unused = checkpoint.unknown_tensors(wanted)
        problems = []
        if missing:
            problems.append(f"it lacks {listed(missing)}")
        if unused:
            problems.append(
                f"it has {listed(unused)}, for which the model has no place"
            )
        if not problems:
            return
        message = (
            f"{checkpoint.path} does not fit the model: {'; '.join(problems)}. "
            "Nothing was loaded. Compare num_hidden_groups and inner_group_num "
            f"of {checkpoint.config_source}, or look with `albert-tf inspect`."
        )
        if set(missing) == set(checkpoint.layout.names(["pooler"])):
            message += (
                " A model saved without its pooler, such as a masked language model, "
                "loads with `pooler=False`."
            )
        raise CheckpointError(message)

    def _check_shapes(self):
        checkpoint = self.checkpoint
        differ = [
            f"{name} is {tuple(checkpoint.shapes[name])} and should be {shape}"
            for row in self.rows
            for shape in [row.tensors.shapes(row.shape)]
            for name in row.tensors.names
            if tuple(checkpoint.shapes[name]) != shape
        ]
        if differ:
            if len(differ) > 5:
                differ[5:] = [f"and {len(differ) - 5} more"]
            raise CheckpointError(
                f"{checkpoint.path} does not have the shapes of the model (from "
                f"{checkpoint.config_source}): {'; '.join(differ)}. Nothing was loaded."
            )

    def _check_tied(self):
        """Refuse what a file holds twice where the two are not one."""
        checkpoint = self.checkpoint
        if "masked_lm_head" not in self.parts:
            return
        for copy in checkpoint.layout.tied.items():
            if checkpoint.shapes.keys() >= set(copy) and not np.array_equal(
                *(numbers_of(checkpoint.read(name)) for name in copy)
            ):
                raise CheckpointError(
                    f"{checkpoint.path} has a {copy[0]} other than its {copy[1]}. In "
                    "an ALBERT they are one: its masked language head was trained by "
                    "other code, or the file is damaged. Nothing was loaded."
                )


def plan_loading(checkpoint, model, new_heads=()):
    """The plan that fills a backbone or a task; see `Checkpoint.load_into`."""
    parts = [part for part in parts_of(model) if part not in new_heads]
    layout = checkpoint.layout
    unplaced = [part for part in parts if part not in layout.weights]
    if unplaced:
        raise CheckpointError(
            f"{checkpoint.path} has no {', '.join(unplaced)}: the "
            f'"{layout.name}" layout has no place for it.'
        )
    rows = [
        Row(variable, tensors, tuple(variable.shape))
        for variable, tensors in model_weights(layout, model, parts)
    ]
    return Plan(checkpoint, parts, rows)


def plan_writing(checkpoint, layout, parts):
    """The plan that reads parts of a checkpoint as the tensors of another layout."""
    arguments = checkpoint.arguments
    targets = {row[:2]: row[2] for row in layout.rows(parts, arguments)}
    rows = []
    for key, attribute, tensors in checkpoint.layout.rows(parts, arguments):
        part = key[0]
        classes = checkpoint.num_classes(part) if part in HEADS else 0
        shape = weight_shape(part, attribute, arguments, classes)
        rows.append(Row(targets[key, attribute], tensors, shape))
    return Plan(checkpoint, parts, rows)
