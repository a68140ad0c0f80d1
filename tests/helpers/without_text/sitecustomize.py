"""Run Python as on Windows, without TensorFlow Text and `fcntl`: `make test-notext`."""

import sys

# On Windows it does not need `fcntl`.
import filelock  # noqa: F401

sys.modules.update(dict.fromkeys(("fcntl", "tensorflow_text")))
