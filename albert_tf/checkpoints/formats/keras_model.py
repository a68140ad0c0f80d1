"""Keras models: `.keras` files, presets and instances, ours and KerasHub's."""

import functools
import json
import math
import pathlib
import zipfile

import keras
import keras_hub
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.presets import preprocessor_may_lack
from albert_tf.checkpoints.config import MAX_BLOCKS, read_config
from albert_tf.checkpoints.formats.base import Source
from albert_tf.checkpoints.formats.errors import first_line, naming
from albert_tf.checkpoints.initialization import without_initializing
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.layouts import KERASHUB, own_layout
from albert_tf.checkpoints.weights import model_weights
from albert_tf.tokenizers import SentencePieceTokenizer

_DAMAGE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    IndexError,
    OSError,
    RuntimeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    tf.errors.OpError,
    zipfile.BadZipFile,
)


class KerasModel(Source):
    """A Keras model with an `AlbertBackbone` of ours or of KerasHub's.

    Args:
        path: path of a `.keras` file or of a preset's directory, or the model.

    Raises:
        CheckpointError: if it cannot be loaded or there is no ALBERT in it.
    """

    def __init__(self, path):
        if isinstance(path, keras.Model):
            self.path, whole = path.name, path
        else:
            self.path, whole = path, _load(path)
        self.model = _albert_in(whole, self.path)
        is_folder = isinstance(path, pathlib.Path) and path.is_dir()
        self.folders = [path] if is_folder else []
        self._backbone = getattr(self.model, "backbone", self.model)
        if self.is_ours:
            self._weights = {
                tensors.names[0]: variable
                for variable, tensors in model_weights(self.find_layout(), self.model)
            }
        else:
            self._weights = {weight.path: weight for weight in self.model.weights}
        self.shapes = {name: list(x.shape) for name, x in self._weights.items()}
        inside = set(map(id, self._weights.values()))
        self.outside = [x.path for x in whole.weights if id(x) not in inside]

    @classmethod
    def find(cls, folder):
        """The folder, if it is a preset, and the `.keras` files in it."""
        is_preset = (folder / "config.json").exists() and (
            (folder / "metadata.json").exists() or (folder / "task.json").exists()
        )
        return [folder] * is_preset + sorted(
            file
            for file in folder.glob("*.keras")
            if file.is_file() and not file.name.startswith(".")
        )

    @property
    def is_ours(self):
        return not isinstance(self._backbone, keras_hub.models.AlbertBackbone)

    def find_layout(self):
        return own_layout(self._backbone.get_config()) if self.is_ours else KERASHUB

    def find_config(self, config=None):
        if config is not None:
            raise ValueError(
                f"{self.path} is a Keras model and knows its sizes. Leave out "
                f"`config=`. Received: {config}"
            )
        return f"the config of {self.path}", self._backbone.get_config()

    def read(self, name):
        weight = keras.ops.convert_to_tensor(self._weights[name])
        dtype = keras.backend.standardize_dtype(weight.dtype)
        if dtype == "int8":
            raise CheckpointError(
                f"{self.path} is quantized: its {name} is {dtype}. Only "
                "`.keras` files and presets hold that; read and write them by Keras."
            )
        return weight

    def has_text_classifier(self, config):
        return True

    def classifier(self, config, name):
        return {
            "labels": getattr(self.model, "labels", None),
            "dropout": getattr(self.model, "dropout", 0.1),
            "activation": getattr(self.model, "activation", None),
        }

    def lowercase(self, config):
        return getattr(self._tokenizer, "lowercase", True)

    @property
    def vocabulary(self):
        return super().vocabulary if self._tokenizer is None else self.path

    def tokenizer(self, lowercase):
        """The model's own tokenizer, else that of a vocabulary beside."""
        tokenizer = self._tokenizer
        if tokenizer is None:
            return super().tokenizer(lowercase)
        if isinstance(tokenizer, keras_hub.tokenizers.AlbertTokenizer):
            return SentencePieceTokenizer(tokenizer.proto, lowercase=lowercase)
        if tokenizer.lowercase == lowercase:
            return tokenizer
        return tokenizer.with_lowercase(lowercase)

    @functools.cached_property
    def _tokenizer(self):
        preprocessor = getattr(self.model, "preprocessor", None)
        if preprocessor is not None:
            return preprocessor.tokenizer
        for folder in self.folders:
            config = folder / "tokenizer.json"
            if config.exists():
                with naming(config, *_DAMAGE):
                    return _registered(config).from_preset(str(folder))
        return None


def _albert_in(model, path):
    """The task or backbone that a model is or has as a layer."""
    backbones = (AlbertBackbone, keras_hub.models.AlbertBackbone)
    for found in (model, *getattr(model, "layers", ())):
        if isinstance(getattr(found, "backbone", found), backbones):
            return found
    raise CheckpointError(
        f"There is no ALBERT in {path}: expected a model of albert_tf, or KerasHub's "
        f"AlbertBackbone or a task on it. Found: {type(model).__name__}"
    )


def _load(path):
    if path.suffix == ".keras" and not path.is_dir():
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {path}.")
        with naming(path, *_DAMAGE):
            _check_sizes(path, *_keras_file(path))
            with without_initializing():
                return keras.saving.load_model(path, compile=False)
    task = path / "task.json"
    weights = "task.weights.h5" if task.exists() else "model.weights.h5"
    # KerasHub would give a head without weights random ones.
    for name in ("model.weights.h5", weights):
        if not (path / name).is_file():
            raise FileNotFoundError(f"{path} is not a whole preset: it has no {name}.")
    with naming(path, *_DAMAGE):
        weight_bytes = (path / "model.weights.h5").stat().st_size
        _check_sizes(path, read_config(path / "config.json"), weight_bytes)
        class_ = keras_hub.models.Backbone
        if task.exists():
            # The task has the backbone's config a second time.
            _check_sizes(path, read_config(task), weight_bytes)
            class_ = _registered(task)
        with without_initializing():
            return class_.from_preset(str(path))


def _registered(config):
    """The class that a config file of a preset is of."""
    name = read_config(config)["registered_name"]
    return keras.saving.get_registered_object(name)


def _keras_file(path):
    """The config in a `.keras` file, and the bytes of the weights in it."""
    with zipfile.ZipFile(path) as file:
        weight_bytes = file.getinfo("model.weights.h5").file_size
        return json.loads(file.read("config.json")), weight_bytes


def _check_sizes(path, config, weight_bytes):
    """Refuse a config whose model would be larger than the weights there are.

    Keras builds the model first, with all the time and memory that takes.
    """
    if isinstance(config, list):
        config = dict(enumerate(config))
    if not isinstance(config, dict):
        return
    for value in config.values():
        _check_sizes(path, value, weight_bytes)
    sizes = {name: config[name] for name in (*_SIZES, *_COUNTS) if name in config}
    for name, size in sizes.items():
        if type(size) is not int or size < 1:
            raise CheckpointError(
                f"{path} has {name}={size!r} in its config. Expected a whole number "
                "above 0."
            )
    vocabulary, positions, segments, embedding, hidden, intermediate, *depth = (
        sizes.get(name, 1) for name in _SIZES
    )
    tables = (vocabulary + positions + segments) * embedding
    numbers = tables + hidden * (hidden + intermediate)
    # Half precision has two bytes a number.
    if 2 * numbers > weight_bytes or math.prod(depth) > MAX_BLOCKS:
        raise CheckpointError(
            f"{path}: its config describes a model that is larger than its weights "
            f"({weight_bytes:,} bytes). One of them is damaged."
        )


_SIZES = (
    "vocabulary_size",
    "max_sequence_length",
    "num_segments",
    "embedding_dim",
    "hidden_dim",
    "intermediate_dim",
    "num_layers",
    "num_inner_repetitions",
    "num_inner_repetitions",
)
_COUNTS = ("num_heads", "num_groups", "num_attention_groups", "num_ffn_groups")


def write_preset(directory, model, tokenizer=None):
    """Write a preset that `from_preset` reads.

    Args:
        directory: path of an existing directory.
        model: a backbone or task of Keras.
        tokenizer: optional tokenizer, written beside a model that has none.
    """
    with preprocessor_may_lack(model):
        model.save_to_preset(str(directory))
    if tokenizer is not None and getattr(model, "preprocessor", None) is None:
        tokenizer.save_to_preset(str(directory))


def build_keras_hub(config, num_classes, head, tokenizer=None):
    """Build KerasHub's model, its weights still zero.

    Args:
        config: dict, the fields of KerasHub's `AlbertBackbone`.
        num_classes: int, of a text classifier; 0 for a backbone.
        head: dict, `dropout` and `activation` of the classifier.
        tokenizer: optional `keras_hub.tokenizers.AlbertTokenizer`, for the classifier.

    Returns:
        A `keras_hub.models.AlbertBackbone`, or an `AlbertTextClassifier` on it.

    Raises:
        CheckpointError: if KerasHub cannot build such a model.
    """
    try:
        with without_initializing():
            theirs = keras_hub.models.AlbertBackbone(**config)
    except ValueError as error:
        raise CheckpointError(
            f'The "kerashub" layout cannot hold this model: {first_line(error)}'
        ) from error
    if num_classes:
        preprocessor = tokenizer and keras_hub.models.AlbertTextClassifierPreprocessor(
            tokenizer,
            sequence_length=config["max_sequence_length"],
        )
        theirs = keras_hub.models.AlbertTextClassifier(
            theirs, num_classes, preprocessor=preprocessor, **head
        )
    return theirs
