"""What Keras warns of and is meant so here."""

import contextlib
import warnings


@contextlib.contextmanager
def of_unknown_length(bucketed):
    """Without Keras' warning that a dataset of unknown length has come to its end."""
    with warnings.catch_warnings():
        if bucketed:
            warnings.filterwarnings("ignore", "Your input ran out of data")
        yield


@contextlib.contextmanager
def with_unread_pooler():
    """Without Keras' warning that nothing trains a pooler which the task only keeps."""
    pooler = r"\['pooled_dense/kernel', 'pooled_dense/bias'\]"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f"Gradients do not exist .* {pooler} when")
        yield
