"""The libraries of the extras `litert` and `onnx`."""

from __future__ import annotations

import importlib
from types import ModuleType

from albert_tf_lite.errors import MissingPackageError

# By package, how to install it.
HOW_TO_INSTALL = {
    "ai_edge_litert": "'albert-tf[litert]' (or 'ai-edge-litert>=2.2' alone)",
    "onnx": "'albert-tf[onnx]'",
    "onnxruntime": "'albert-tf[onnx]' (or onnxruntime alone)",
    "sentencepiece": "sentencepiece",
}


def import_extra(module: str) -> ModuleType:
    """Import what reads, writes or runs an exported file, or say how to install it."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            f"This needs {package}. Run: pip install {HOW_TO_INSTALL[package]}"
        ) from error
