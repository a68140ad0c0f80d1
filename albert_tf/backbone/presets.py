"""Presets that KerasHub reads again, where it would write others."""

import contextlib

import keras


@contextlib.contextmanager
def preprocessor_may_lack(task):
    """Save a task without preprocessor, which KerasHub 0.25 fails to.

    That version (the last for Python 3.10) writes everything and then fails on the
    preprocessor that is not there. Later ones do not.
    """
    try:
        yield
    except AttributeError:
        if getattr(task, "preprocessor", None) is not None:
            raise


@contextlib.contextmanager
def without_mixed_precision(backbone):
    """Write a backbone's config with the type of its weights.

    KerasHub's `from_preset` takes the name of a policy for that of a type, which
    "mixed_bfloat16" is not. What to compute in is for the reader to say.
    """
    policy = backbone.dtype_policy
    if policy.name.startswith("mixed_"):
        backbone.dtype_policy = keras.DTypePolicy(policy.variable_dtype)
    try:
        yield
    finally:
        backbone.dtype_policy = policy


class ReadablePresets:
    """A task whose presets can be read, with preprocessor and without."""

    def save_to_preset(self, preset_dir, **kwargs):
        with without_mixed_precision(self.backbone), preprocessor_may_lack(self):
            super().save_to_preset(preset_dir, **kwargs)
