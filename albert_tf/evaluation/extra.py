"""The libraries of the extra `evaluation`."""

from __future__ import annotations

import importlib
from types import ModuleType

from albert_tf_lite.errors import MissingPackageError


def import_extra(module: str) -> ModuleType:
    """Import what computes or draws scores, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            f"This needs {module}. Run: pip install 'albert-tf[evaluation]' "
            "(seqeval on Python 3.12 and newer: see docs/tasks.md)"
        ) from error
