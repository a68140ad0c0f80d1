"""Ctrl-C and SIGTERM during a training, which then ends after its step."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interruption:
    """The request to end a training, made by Ctrl-C or SIGTERM.

    A second signal ends the training at once.

    Attributes:
        is_requested: bool.
    """

    def __init__(self) -> None:
        self.is_requested = False

    @contextlib.contextmanager
    def awaited(self) -> Iterator[None]:
        """Take the signals as requests within a block."""
        handlers = {}
        # Python allows handlers in the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                # Neither one that is not of Python and could not be restored, nor a
                # signal that the program ignores, as after `nohup` and `&`.
                if handler not in (None, signal.SIG_IGN):
                    handlers[number] = signal.signal(number, self._request)
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.is_requested:
            raise KeyboardInterrupt
        self.is_requested = True
