"""Base class of the backbone and of all tasks, with the presets of KerasHub."""

import functools
import hashlib
import json
import os
import pathlib
import threading
from collections.abc import Callable
from typing import Any

import h5py
import keras

from albert_tf.backbone.traced_weights import TracedWeights
from albert_tf.files import (
    check_space,
    complete_directory,
    complete_file,
    write_text,
)
from albert_tf.layers.arguments import check_arguments
from albert_tf.model_card import write_model_card
from albert_tf_lite.errors import AlbertError, first_line

# Keras replaces the bases of the class of a functional model, KerasHub resets them for
# each task, and tasks on one backbone add nodes to its layers. Two threads that do so
# at once would break the class or the graph.
_CONSTRUCTION = threading.RLock()


def _locked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that one thread at a time runs."""

    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        with _CONSTRUCTION:
            return method(*args, **kwargs)

    return wrapper


def _is_graph(value: object) -> bool:
    """Return whether a value is the inputs of a graph, as `clone_model` passes them."""
    leaves = keras.tree.flatten(value) if isinstance(value, dict) else []
    return any(isinstance(leaf, keras.KerasTensor) for leaf in leaves)


class Presets:
    """Base class of the backbone and of all tasks.

    One thread at a time builds a model; arguments are checked by name; functions are
    traced again for other weights; and a preset has a model card.

    Attributes:
        pipeline_tag: string, the kind of model on the Hugging Face Hub, in the card.
        summaries: strings that complete "An ALBERT model that ..." in the card and
            "ALBERT 模型，用于..." in its Chinese part.
    """

    pipeline_tag: str | None = None
    summaries: tuple[str, str] | None = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _locked(cls.__init__)

    @_locked
    def __new__(cls, *args, **kwargs):
        if args and _is_graph(args[0]):
            raise AlbertError(
                f"keras.models.clone_model cannot clone {cls.__name__}, which is more "
                "than its layers: labels, preprocessor and tied weights would be lost. "
                f"`copy = {cls.__name__}.from_config(model.get_config())` builds a "
                "copy with new weights. For a task, then set `copy.preprocessor = "
                "model.preprocessor`. `copy.set_weights(model.get_weights())` copies "
                "the weights."
            )
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, *args, **kwargs):
        check_arguments(type(self), kwargs)
        super().__init__(*args, **kwargs)
        self._traced_weights = TracedWeights()

    def make_train_function(self, force=False):
        weights = self.trainable_weights
        return super().make_train_function(force or self._are_others("train", weights))

    def make_test_function(self, force=False):
        return super().make_test_function(force or self._are_others("test"))

    def make_predict_function(self, force=False):
        return super().make_predict_function(force or self._are_others("predict"))

    def _are_others(self, function, weights=None):
        """Return whether a function of Keras was traced with other weights."""
        weights = self.weights if weights is None else weights
        return self._traced_weights.update(function, weights)

    def save_to_preset(self, preset_dir, **kwargs):
        """Write a preset, as in KerasHub, with a model card (README.md).

        Its files appear when all are written.
        """
        with complete_directory(preset_dir) as folder:
            check_space(folder, self.variables)
            super().save_to_preset(str(folder), **kwargs)
            policy = getattr(self, "backbone", self).dtype_policy
            if policy.name.startswith("mixed_"):
                _write_type_of_weights(folder, policy.variable_dtype)
            _bind_head(folder)
            write_model_card(folder, self)

    def save(self, filepath, overwrite=True, zipped=None, **kwargs):
        """Save the model as Keras does, completely or not at all."""
        if zipped is False or not _is_replaced(filepath, (".keras", ".h5"), overwrite):
            super().save(filepath, overwrite=overwrite, zipped=zipped, **kwargs)
            return
        check_space(filepath, self._stored_variables())
        with complete_file(filepath) as temporary:
            super().save(temporary, zipped=zipped, **kwargs)

    def save_weights(self, filepath, overwrite=True, max_shard_size=None):
        """Save the weights as Keras does, one file completely or not at all."""
        if max_shard_size or not _is_replaced(filepath, (".weights.h5",), overwrite):
            super().save_weights(filepath, overwrite, max_shard_size)
            return
        check_space(filepath, self._stored_variables())
        with complete_file(filepath) as temporary:
            super().save_weights(temporary)

    def _stored_variables(self):
        """Return the variables of the model and of its optimizer."""
        optimizer = getattr(self, "optimizer", None)
        return [*self.variables, *(optimizer.variables if optimizer else ())]


def _is_replaced(path: object, suffixes: tuple[str, ...], overwrite: bool) -> bool:
    """Return whether Keras would write a local file without a question."""
    if not isinstance(path, str | os.PathLike) or "://" in os.fspath(path):
        return False
    is_known = os.fspath(path).endswith(suffixes)
    return is_known and (overwrite or not os.path.exists(path))


def _write_type_of_weights(preset: pathlib.Path, dtype: str) -> None:
    """Replace the mixed policy in the configs of a preset by the type of the weights.

    KerasHub's `from_preset` reads the name of a policy as that of a type.
    """
    stored = keras.dtype_policies.serialize(keras.DTypePolicy(dtype))
    config = json.loads((preset / "config.json").read_text("utf-8"))
    config["config"]["dtype"] = stored
    write_text(preset / "config.json", json.dumps(config, indent=4))
    if (preset / "task.json").exists():
        task = json.loads((preset / "task.json").read_text("utf-8"))
        task["config"]["backbone"]["config"]["dtype"] = stored
        write_text(preset / "task.json", json.dumps(task, indent=4))


# === The files of weights of a task ===

# An attribute of the file of the head: the SHA-256 of the weights of the backbone.
_BACKBONE = "albert_tf_backbone_sha256"
_HEAD = "task.weights.h5"


def check_head(preset: str | os.PathLike) -> None:
    """Raise if the head in a preset is not of the backbone in it.

    The head of another training would fit. Presets of KerasHub have no checksum.
    """
    head = pathlib.Path(preset, _HEAD)
    if not head.is_file():
        return
    try:
        with h5py.File(head) as file:
            expected = file.attrs.get(_BACKBONE)
    # HDF5 raises these for damaged files.
    except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:
        raise AlbertError(
            f"{head} is damaged or truncated: {first_line(error)}. Copy it again."
        ) from error
    if expected is not None and expected != _backbone_digest(head.parent):
        raise AlbertError(
            f"{head} and the model.weights.h5 beside it are of different trainings: "
            "the checksum of the backbone is another. Copy all files of one preset "
            "again."
        )


def _bind_head(preset: pathlib.Path) -> None:
    """Write the checksum of the backbone into the file of the head, if there is one."""
    if (preset / _HEAD).is_file():
        with h5py.File(preset / _HEAD, "r+") as file:
            file.attrs[_BACKBONE] = _backbone_digest(preset)


def _backbone_digest(preset: pathlib.Path) -> str:
    """Return the SHA-256 of the weights of the backbone in a preset."""
    digest = hashlib.sha256()
    # Large backbones are in several files.
    for file in sorted(preset.glob("model*.weights.h5")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
