"""Errors that the user can fix."""


class AlbertError(ValueError):
    """Base class of errors about arguments, files and data.

    The message names what is wrong, what was expected and what to do. The command
    line prints it in one line.
    """


class MissingPackageError(AlbertError, ImportError):
    """An optional package is not installed."""
