"""Errors that the user can fix, optional packages and silent native libraries."""

import atexit
import contextlib
import importlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from albert_tf_lite.environment import environment, unless_set
from albert_tf_lite.lines import split_lines

# Requirements of the packages that run exported files.
_REQUIREMENTS = {
    "ai_edge_litert": "'albert-tf-lite[litert]'",
    "onnxruntime": "'albert-tf-lite[onnx]'",
    "sentencepiece": "'albert-tf-lite[sentencepiece]'",
}
# Environment variables that packages read when they are imported. ONNX Runtime would
# keep a device id in the home folder, and send events.
_VARIABLES = {"onnxruntime": {"ORT_DISABLE_TELEMETRY": "1"}}


class AlbertError(ValueError):
    """Base class of errors about arguments, files and data.

    The message names what is wrong, what was expected and what to do. The command
    line prints it in one line.
    """


def listed(values: Iterable, maximum: int = 5) -> str:
    """Return the first values for a message, and the number of the others."""
    values = list(values)
    more = f" and {len(values) - maximum:,} more" if len(values) > maximum else ""
    return f"{values[:maximum]}{more}"


def first_line(error: BaseException) -> str:
    """Return the first line of an exception of a library, at most 300 characters."""
    return split_lines(str(error).strip() or repr(error))[0][:300]


class MissingPackageError(AlbertError, ImportError):
    """An optional package is not installed."""


def import_extra(module: str, requirement: str | None = None) -> ModuleType:
    """Import a module of an optional package, or name the command that installs it.

    `requirement` is the argument of `pip install` for a package of another extra than
    those of albert-tf-lite.
    """
    package = module.partition(".")[0]
    variables = unless_set(_VARIABLES.get(package, {}))
    try:
        with environment(variables):
            return importlib.import_module(module)
    except ImportError as error:
        requirement = requirement or _REQUIREMENTS[package]
        raise MissingPackageError(
            f"{package} is not installed. Run: pip install {requirement}"
        ) from error


class Process:
    """State of this process."""

    # Only the command line and its workers set it: file descriptor 2 belongs to the
    # process, and a thread of the user may be logging to it.
    is_ours = False


def hide_exit() -> None:
    """Hide what native code prints after Python has ended, in a process of ours."""
    if Process.is_ours:
        atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))


def _memory_file() -> Any:
    """Return a temporary file, where possible without a folder for such files."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stderr"), "r+b")
    return tempfile.TemporaryFile()


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Hide what native code prints to standard error, unless an error is raised.

    Python's own output is shown. Does nothing in a process of the user.
    """
    try:
        saved = os.dup(2) if Process.is_ours else None
    except OSError:  # The process has no standard error.
        saved = None
    if saved is None:
        yield
        return
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    with (
        _memory_file() as hidden,
        os.fdopen(saved, "w", 1, encoding, "backslashreplace") as shown,
    ):
        os.dup2(hidden.fileno(), 2)
        python = shown if sys.stderr is sys.__stderr__ else sys.stderr
        try:
            with contextlib.redirect_stderr(python):
                yield
        except BaseException:
            hidden.seek(0)
            os.write(saved, hidden.read())
            raise
        finally:
            os.dup2(saved, 2)
