"""What native code prints while TensorFlow is imported."""

import os
import sys

import pytest

from albert_tf.quiet_import import silent_stderr


def test_native_output_is_kept_silent(capfd):
    open_files = len(os.listdir("/proc/self/fd"))
    with silent_stderr():
        os.write(2, b"greeting\n")
        print("warning", file=sys.stderr, flush=True)
    os.write(2, b"after\n")
    assert capfd.readouterr().err.splitlines()[-1] == "after"
    assert len(os.listdir("/proc/self/fd")) == open_files


def test_native_output_is_shown_on_failure(capfd):
    open_files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(KeyboardInterrupt), silent_stderr():
        os.write(2, b"libcuda is broken\n")
        raise KeyboardInterrupt
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "libcuda is broken\nafter\n"
    assert len(os.listdir("/proc/self/fd")) == open_files
