"""Building models whose weights a checkpoint fills at once."""

import contextlib
import functools

import tensorflow as tf


@contextlib.contextmanager
def without_initializing():
    """Build models with zeros where their initialisers would draw random numbers.

    Those of 222 million weights take seconds and twice their memory. On other
    backends than TensorFlow they are drawn.
    """

    def create(next_creator, initial_value=None, **kwargs):
        if not callable(initial_value):
            return next_creator(initial_value=initial_value, **kwargs)
        # In a graph nothing is drawn: it is for shape and type.
        with tf.Graph().as_default():
            drawn = initial_value()
        # Whole numbers are the seeds of dropout, which are no weights.
        if drawn.dtype.is_floating:
            initial_value = functools.partial(tf.zeros, drawn.shape, drawn.dtype)
        return next_creator(initial_value=initial_value, **kwargs)

    with tf.variable_creator_scope(create):
        yield
