"""The arguments of tasks: named in the help, and checked by name."""

from __future__ import annotations

import difflib
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any


def with_own_arguments(cls: type, function: Callable) -> Callable:
    """Return `from_checkpoint` with a task's arguments in its signature."""

    @functools.wraps(function)
    def from_checkpoint(cls, *args, **kwargs):
        return function(cls, *args, **kwargs)

    *shared, rest = inspect.signature(function).parameters.values()
    there = {"self", "backbone", "preprocessor", *(x.name for x in shared)}
    own = [
        x.replace(kind=x.KEYWORD_ONLY)
        for x in inspect.signature(cls.__init__).parameters.values()
        if x.name not in there and x.kind in (x.POSITIONAL_OR_KEYWORD, x.KEYWORD_ONLY)
    ]
    from_checkpoint.__signature__ = inspect.Signature([*shared, *own, rest])
    return from_checkpoint


def check_arguments(cls: type, given: dict[str, Any]) -> None:
    """Raise a `TypeError` for arguments that no constructor of a task names.

    Keras would ignore them.
    """
    known = {"trainable"}.union(
        *(inspect.signature(base.__init__).parameters for base in cls.__mro__)
    )
    for name in sorted(set(given) - known):
        own = [x for x in inspect.signature(cls.__init__).parameters if x != "self"]
        similar = difflib.get_close_matches(name, own, 1)
        raise TypeError(
            f"{cls.__name__} has no argument `{name}`. "
            + (f"Did you mean `{similar[0]}`?" if similar else f"It has {own[1:-1]}.")
        )


def warn_of_new_head(checkpoint: Any, head: str, wanted: int) -> None:
    """Warn that a head of the checkpoint has another number of classes."""
    warnings.warn(
        f"The {head} of {checkpoint.path} has {checkpoint.num_classes(head)} classes, "
        f"not {wanted}: the model begins with a new one, with random weights.",
        # The caller of `from_checkpoint`.
        stacklevel=6,
    )
