"""Presets that KerasHub reads again, where it would write others."""

import contextlib

import keras


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


# What `albert_tf.conversion`, some floors above, puts in when it is imported, which
# `import albert_tf` does.
_checkpoints = {}


def register_checkpoints(is_checkpoint, load, save):
    """Set how `Presets` tells, loads and saves checkpoints."""
    _checkpoints.update(is_checkpoint=is_checkpoint, load=load, save=save)


class Presets:
    """Presets that can be read again, and models from and to others' checkpoints."""

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Build the model from a preset, a release or the Hugging Face Hub.

        Args:
            preset: string: the directory of a preset, or of a checkpoint without
                `config.json`; the name of a release, such as `"albert_tiny_zh"`;
                `"hf://user/name"`, a preset or a checkpoint of
                any form on the Hub; or what else KerasHub takes.
            load_weights: bool. `False` for random weights.
            **kwargs: passed on, to `from_checkpoint` where it is no preset.
        """
        if _checkpoints and _checkpoints["is_checkpoint"](preset):
            return _checkpoints["load"](cls, preset, load_weights, **kwargs)
        # A task without `backbone_cls` is hidden from KerasHub, which would pick any of
        # several classes, and is loaded by its base.
        owner = cls if getattr(cls, "backbone_cls", cls) else cls.__base__
        model = super(Presets, owner).from_preset(
            preset, load_weights=load_weights, **kwargs
        )
        return (
            model if isinstance(model, cls) else cls.from_checkpoint(preset, **kwargs)
        )

    def export_to_transformers(self, path):
        """Write a directory that `transformers` reads."""
        _checkpoints["save"](self, path, layout="huggingface")

    def save_to_preset(self, preset_dir, **kwargs):
        backbone = getattr(self, "backbone", self)
        with without_mixed_precision(backbone):
            super().save_to_preset(preset_dir, **kwargs)
