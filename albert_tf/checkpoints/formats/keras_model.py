"""Keras models: `.keras` files, presets and instances, ours and KerasHub's."""

import functools
import json
import pathlib
import warnings
import zipfile
from typing import Any

import h5py
import keras
import keras_hub
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.encoder_blocks import MOST_BLOCKS
from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.layout import CheckpointError, Layout, name_damage
from albert_tf.checkpoints.layouts import KERASHUB, own_layout
from albert_tf.checkpoints.plan import plan_weights, without_initializing
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf.tokenizers.checks import check_bytes
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.archives import check_expansion, check_zip
from albert_tf_lite.changes import unchanged
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.opening import preset_files

# Keras raises these for truncated and changed files, and for configs of any content.
_DAMAGE = (
    *(zipfile.BadZipFile, LookupError, OSError, ValueError, TypeError, AttributeError),
    *(RuntimeError, OverflowError, ZeroDivisionError, MemoryError, tf.errors.OpError),
)
# Arguments of the backbones, ours and KerasHub's.
_COUNTS = ("num_layers", "num_groups", "num_inner_repetitions")


class KerasModel(Checkpoint):
    """A Keras model, `.keras` file or preset, of albert_tf or of KerasHub."""

    def __init__(self, path: pathlib.Path | keras.Model, config: Any = None) -> None:
        if isinstance(path, keras.Model):
            self.path, self._model, self.folders = path.name, path, []
        else:
            self.path, self._model = path, _load(path)
            self.folders = [path] if path.is_dir() else []
        model = self._model
        self._backbone = backbone = getattr(model, "backbone", model)
        if isinstance(backbone, AlbertBackbone):
            self.model = model
            plan = plan_weights(self.find_layout(), model)
            self._weights = {tensors.names[0]: weight for weight, tensors in plan}
        elif isinstance(backbone, keras_hub.models.AlbertBackbone):
            self.keras_hub_model = model
            self._weights = {weight.path: weight for weight in model.weights}
        else:
            raise CheckpointError(
                f"{self.path} is not an ALBERT but a {type(model).__name__}. "
                "Expected an AlbertBackbone or a task of albert_tf or KerasHub."
            )
        self.file_shapes = {name: list(x.shape) for name, x in self._weights.items()}
        super().__init__(config)

    @classmethod
    def find(cls, folder: pathlib.Path) -> list[pathlib.Path]:
        is_preset = (folder / "config.json").exists() and (
            (folder / "metadata.json").exists() or (folder / "task.json").exists()
        )
        return [folder] * is_preset + sorted(folder.glob("[!.]*.keras"))

    def find_layout(self) -> Layout:
        return own_layout(self._backbone.get_config()) if self.model else KERASHUB

    def find_config(self, config: Any) -> tuple[str, dict[str, Any]]:
        if config is not None:
            raise AlbertError(
                f"{self.path} is a Keras model, which has its own config. Leave out "
                f"`config=`. Received: {config}"
            )
        config = self._backbone.get_config()
        if hasattr(self._model, "pooling_mode"):
            config["classifier_pooling"] = self._model.pooling_mode
        return f"the config of {self.path}", config

    def read_tensor(self, name: str) -> Any:
        return keras.ops.convert_to_tensor(self._weights[name])

    def head_config(self, part: str) -> dict[str, Any]:
        defaults = super().head_config(part).items()
        return {name: getattr(self._model, name, x) for name, x in defaults}

    @property
    def tokenizer_settings(self) -> dict[str, Any]:
        is_ours = isinstance(self._tokenizer, TextTokenizer)
        return self._tokenizer.get_settings() if is_ours else {}

    @property
    def vocabulary(self) -> Any:
        return super().vocabulary if self._tokenizer is None else self.path

    def find_tokenizer(
        self, vocabulary: Any, settings: dict[str, Any]
    ) -> TextTokenizer | None:
        tokenizer = self._tokenizer
        if tokenizer is None or vocabulary is not None:
            return super().find_tokenizer(vocabulary, settings)
        if isinstance(tokenizer, keras_hub.tokenizers.AlbertTokenizer):
            return SentencePieceTokenizer(tokenizer.proto, **settings)
        return tokenizer.with_settings(**settings)

    @functools.cached_property
    def _tokenizer(self) -> Any:
        preprocessor = getattr(self._model, "preprocessor", None)
        if preprocessor is not None:
            return preprocessor.tokenizer
        for folder in self.folders:
            config = folder / "tokenizer.json"
            if config.exists():
                # KerasHub's `from_preset` refuses tokenizers of another backbone.
                fields = read_config(config)
                tokenizer = keras.saving.deserialize_keras_object(fields)
                tokenizer.load_preset_assets(str(folder))
                return tokenizer
        return None


def _load(path: pathlib.Path) -> keras.Model:
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist.")
        with name_damage(path, *_DAMAGE), zipfile.ZipFile(path) as archive:
            check_zip(path)
            _check_layers(json.loads(archive.read("config.json")), path)
            with archive.open("model.weights.h5") as weights:
                stored = _stored_numbers(weights, path)
        with (
            name_damage(path, *_DAMAGE),
            without_initializing(stored, path),
            warnings.catch_warnings(),
        ):
            # The optimizer is not needed here.
            warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
            return keras.saving.load_model(path, compile=False)
    is_task = (path / "task.json").exists()
    class_ = _registered(path / "task.json") if is_task else keras_hub.models.Backbone
    # KerasHub would draw random weights for a head whose file is missing. An embedder
    # has no heads.
    has_heads = is_task and getattr(class_, "heads", True)
    for name in ("model.weights.h5", *["task.weights.h5"] * bool(has_heads)):
        if not (path / name).is_file():
            raise FileNotFoundError(f"{path} is an incomplete preset: it lacks {name}.")
    with unchanged(*preset_files(path)), name_damage(path, *_DAMAGE):
        fields = read_config(path / "config.json")
        _check_layers(fields, path)
        size = fields.get("config", {}).get("vocabulary_size", 0)
        for file in path.glob("assets/tokenizer/*.txt"):
            check_bytes(file, size)
        files = sorted(path.glob("*.weights.h5"))
        stored = sum(_stored_numbers(file, file) for file in files)
        with without_initializing(stored, path):
            return class_.from_preset(str(path))


def _check_layers(fields: Any, path: pathlib.Path) -> None:
    """Raise if a config of Keras has more layers than Keras can build."""
    left = [fields]
    while left:
        part = left.pop()
        values = part.values() if isinstance(part, dict) else part
        left += [x for x in values if isinstance(x, (dict, list))]
        for name in _COUNTS if isinstance(part, dict) else ():
            value = part.get(name)
            if isinstance(value, (int, float)) and value > MOST_BLOCKS:
                raise CheckpointError(
                    f"The config in {path} has {name}={value:g}. Expected at most "
                    f"{MOST_BLOCKS}."
                )


def _stored_numbers(file: Any, path: pathlib.Path) -> int:
    """Return how many numbers an HDF5 file has."""
    found: list[Any] = []
    with h5py.File(file) as weights:
        weights.visititems(lambda _, x: found.append(x))
        arrays = [x for x in found if isinstance(x, h5py.Dataset)]
        # Data that were never written take no room.
        check_expansion(path, sum(x.nbytes for x in arrays))
        return sum(x.size for x in arrays)


def _registered(config: pathlib.Path) -> Any:
    """Return the class in a config file of a preset."""
    name = read_config(config).get("registered_name")
    found = keras.saving.get_registered_object(name)
    if found is None:
        raise CheckpointError(
            f"{config} is of the unknown class {name!r}. Import the package that "
            "registers it first."
        )
    return found
