"""Models by the name of a release, or of a repository on the Hugging Face Hub."""

import pathlib

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints import RELEASES, load_checkpoint, open_checkpoint
from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.hub import fetch_from_hub, is_on_hub
from albert_tf_lite.errors import AlbertError


def is_checkpoint(preset):
    """Whether `from_preset` takes it for a checkpoint, not for KerasHub's."""
    if is_on_hub(preset):
        return True
    path = pathlib.Path(preset)
    if path.is_dir():
        return not (path / "config.json").exists()
    return path.is_file() or preset in RELEASES


def from_checkpoint(class_, preset, load_weights=True, **kwargs):
    """A model of ours, whatever class the repository or release was saved from.

    Args:
        class_: `AlbertBackbone` or the class of a task on it.
        preset: string, which `is_checkpoint`.
        load_weights: bool. `False` for a backbone with random weights.
        **kwargs: passed on to `from_checkpoint`, or `load_checkpoint`.
    """
    if is_on_hub(preset):
        preset = fetch_from_hub(preset)
        if _is_preset_of_ours(preset):
            return class_.from_preset(str(preset), load_weights=load_weights, **kwargs)
    if not load_weights:
        if not issubclass(class_, AlbertBackbone):
            raise AlbertError(
                "A task on random weights is built on a backbone of its own: "
                "AlbertBackbone.from_preset(..., load_weights=False)."
            )
        return class_(**{**open_checkpoint(preset).arguments, **kwargs})
    if issubclass(class_, AlbertBackbone):
        return load_checkpoint(preset, **kwargs)
    return class_.from_checkpoint(preset, **kwargs)


def _is_preset_of_ours(folder):
    config = folder / "config.json"
    if not config.exists():
        return False
    return str(read_config(config).get("registered_name")).startswith("albert_tf>")
