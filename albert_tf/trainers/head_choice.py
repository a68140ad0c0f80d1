"""The head of a checkpoint that a task starts from.

`albert_tf.checkpoints.heads` lists the heads and reads their configs; a task decides in
`has_heads_in` and `read_heads` which of them are its own. Here one is chosen.
"""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import keras

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.heads import HEADS
from albert_tf.layers.arguments import argument_names
from albert_tf.trainers.task_hooks import TaskHooks
from albert_tf_lite.errors import AlbertError, listed

# Arguments that start with a new head, those for users first.
_NEW_HEADS = ("labels", "num_classes", "tags")
# Heads of pretraining, which are of no fine-tuned task.
_PRETRAINED = ("masked_lm_head", "sop_head")


def only_fitting_head(
    checkpoint: Checkpoint,
    fits: Callable[[Checkpoint], bool],
    must_fit: bool = True,
    new: str = "",
) -> Checkpoint:
    """Return a checkpoint with the head to use: its own, or its only named head.

    Args:
        checkpoint: a `Checkpoint`.
        fits: function of a checkpoint with one head; true if that can be used.
        must_fit: bool. Raise if several named heads fit; else return the checkpoint.
        new: string, arguments that start with a new head, for the message.

    Raises:
        AlbertError: if its own head does not fit, and several named heads do.
    """
    if checkpoint.head or not checkpoint.named_heads or fits(checkpoint):
        return checkpoint
    views = [view for view in checkpoint.views().values() if fits(view)]
    if len(views) == 1:
        return views[0]
    if views and must_fit:
        raise several_heads(checkpoint, [view.head for view in views], new)
    return checkpoint


def choose_head(
    cls: type[TaskHooks], checkpoint: Checkpoint, arguments: dict[str, Any]
) -> Checkpoint:
    """Return a checkpoint with the head that a task with these arguments starts from.

    If several fit, an argument that starts with a new head decides for that.
    """
    if not cls.heads:
        return checkpoint
    names = argument_names(cls, keras.Model)
    new_heads = [name for name in _NEW_HEADS if name in names]
    is_new = any(arguments.get(name) is not None for name in new_heads)
    return only_fitting_head(
        checkpoint,
        lambda view: _starts_with(cls, view, arguments),
        must_fit=bool(new_heads) and not is_new,
        new=" or ".join(f"`{name}=`" for name in new_heads),
    )


def _starts_with(
    cls: type[TaskHooks], checkpoint: Checkpoint, arguments: dict[str, Any]
) -> bool:
    """Return whether the task would have the head of a checkpoint, without warning."""
    if not cls.has_heads_in(checkpoint):
        return False
    is_named = arguments.get("labels") is not None or arguments.get("tags") is not None
    if arguments.get("num_classes") and not is_named:
        # As many classes may be others.
        return checkpoint.head is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, new_heads = cls.read_heads(checkpoint, dict(arguments))
    return not new_heads


def several_heads(
    checkpoint: Checkpoint, names: Iterable[str | None], new: str = ""
) -> AlbertError:
    """Return the error for a checkpoint of which one named head must be chosen.

    `new` are arguments that start with a new head instead.
    """
    heads = list(names)
    choices = ", ".join(f"{checkpoint.name}:{name}" for name in heads)
    start = f" Pass {new} to start with a new one." if new else ""
    return AlbertError(
        f"{checkpoint.name} has several heads. Choose one: {choices}, or as "
        f"`head={heads[0]!r}`.{start}"
    )


def other_heads(checkpoint: Checkpoint) -> str:
    """Return a sentence with the heads of other tasks in a checkpoint, if any."""
    if checkpoint.named_heads:
        names = ", ".join(checkpoint.named_heads)
        return f" Its named heads, to choose by `head=`, are of other tasks: {names}."
    fine_tuned = [head for head in checkpoint.heads if head not in _PRETRAINED]
    if fine_tuned:
        return f" Its head is of another task: {', '.join(fine_tuned)}."
    return ""


def check_masked_lm_head(checkpoint: Checkpoint) -> None:
    """Raise if a checkpoint has no head that fills masked words, nor a part of it."""
    part = "masked_lm_head"
    if part in checkpoint.heads or part in checkpoint.incomplete_heads:
        return
    raise AlbertError(
        f"{checkpoint.path} has no masked language model head, like most fine-tuned "
        "models. Use a pretraining checkpoint, such as albert_tiny_zh or the bundled "
        f"albert_micro_zh.{other_heads(checkpoint)}"
    )


def warn_of_new_head(checkpoint: Checkpoint, head: str, wanted: object) -> None:
    """Warn that a head of the checkpoint has another number of classes."""
    warnings.warn(
        f"The {head} of {checkpoint.path} has {checkpoint.num_classes(head)} classes, "
        f"not {wanted}: the model starts with a new head with random weights.",
        # The caller of `from_checkpoint`.
        stacklevel=5,
    )


def warn_of_unnamed_outputs(
    checkpoint: Checkpoint, kind: str, names: list, argument: str
) -> None:
    """Warn that names were given to the outputs of a head that has none.

    Args:
        checkpoint: the checkpoint with the head.
        kind: string, what the names are: "classes" or "tags".
        names: list, in the order of the outputs.
        argument: string, the argument that takes another order.
    """
    warnings.warn(
        f"{checkpoint.path} does not name its {kind}. Its {len(names)} outputs are "
        f"read as {listed(names, 10)}. Pass `{argument}=` if this is another order.",
        # The caller of `from_checkpoint`.
        stacklevel=5,
    )


def reads_pooler(
    cls: type[TaskHooks],
    checkpoint: Checkpoint,
    arguments: dict[str, Any],
    new_heads: list[str],
) -> bool:
    """Return whether the task has a pooler on a checkpoint, perhaps a new one."""
    if cls.heads and all(HEADS[head].reads == "sequence" for head in cls.heads):
        # A pooler that no head reads would stay untrained.
        return cls.keeps_pooler and checkpoint.has_pooler
    if checkpoint.has_pooler:
        return True
    tuned = checkpoint.arguments.get("fine_tuning") or {}
    mode = arguments.get("pooling_mode") or tuned.get("pooling_mode")
    built = {*new_heads, *checkpoint.heads}
    return any(HEADS[head].reads_pooler(mode) for head in cls.heads if head in built)


def has_same_labels(task: TaskHooks, checkpoint: Checkpoint) -> bool:
    """Return whether the heads of a task have their meaning in the checkpoint."""
    for head in task.heads:
        config = checkpoint.head_config(head)
        count = checkpoint.num_classes(head)
        for field in {"labels", "tags"} & config.keys():
            stored = _names(config[field], count)
            if stored != _names(getattr(task, field), count):
                return False
    return task.has_heads_in(checkpoint)


def _names(labels, count):
    """Return the names of classes, sorted; the numbers are those of unnamed ones."""
    return sorted(map(str, labels or range(count)))
