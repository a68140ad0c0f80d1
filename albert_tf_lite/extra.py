"""Import optional packages, or report how to install them."""

from __future__ import annotations

import importlib
from types import ModuleType

from albert_tf_lite.errors import MissingPackageError

# Requirements by package; all others are in `albert-tf[evaluation]`.
_REQUIREMENTS = {
    "ai_edge_litert": "'albert-tf[litert]' (or 'ai-edge-litert>=2.2' alone)",
    "onnx": "'albert-tf[onnx]'",
    "onnxruntime": "'albert-tf[onnx]' (or onnxruntime alone)",
    "sentencepiece": "sentencepiece",
}
_EVALUATION = (
    "'albert-tf[evaluation]' (seqeval on Python 3.12 and newer: see docs/tasks.md)"
)


def import_extra(module: str) -> ModuleType:
    """Import a module of an optional package.

    Raises:
        MissingPackageError: if the package is not installed, with the command to run.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        requirement = _REQUIREMENTS.get(package, _EVALUATION)
        raise MissingPackageError(
            f"{package} is not installed. Run: pip install {requirement}"
        ) from error
