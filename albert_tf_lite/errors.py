"""Errors that the user can fix, optional packages and silent native libraries."""

import contextlib
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from types import ModuleType

# Requirements by package; all others are in `albert-tf[evaluation]`.
_REQUIREMENTS = {
    **dict.fromkeys(("huggingface_hub", "pooch", "safetensors"), "'albert-tf[hf]'"),
    "ai_edge_litert": "'albert-tf[litert]' (or 'ai-edge-litert>=2.2' alone)",
    "gradio": "'albert-tf[demo]'",
    "onnx": "'albert-tf[onnx]'",
    "onnxruntime": "'albert-tf[onnx]' (or onnxruntime alone)",
    "openpyxl": "'albert-tf[cli]' (or openpyxl alone)",
    "pyarrow": "pyarrow",
    "ray": "'albert-tf[ray]'",
    "sentencepiece": "sentencepiece",
    "torch": "torch",
    "zstandard": "'albert-tf[fast]'",
}
_EVALUATION = "'albert-tf[evaluation]'"


class AlbertError(ValueError):
    """Base class of errors about arguments, files and data.

    The message names what is wrong, what was expected and what to do. The command
    line prints it in one line.
    """


class MissingPackageError(AlbertError, ImportError):
    """An optional package is not installed."""


def import_extra(module: str) -> ModuleType:
    """Import a module of an optional package, or name the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        requirement = _REQUIREMENTS.get(package, _EVALUATION)
        raise MissingPackageError(
            f"{package} is not installed. Run: pip install {requirement}"
        ) from error


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Hide what native code prints to standard error, unless an error is raised."""
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        saved = os.dup(2)
    except OSError:  # The process has no standard error.
        yield
        return
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            yield
        except BaseException:
            hidden.seek(0)
            os.write(saved, hidden.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
