"""Keras models: `.keras` files, presets and instances, ours and KerasHub's."""

import contextlib
import functools
import pathlib
import zipfile

import h5py
import keras
import keras_hub

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.formats.base import Source
from albert_tf.checkpoints.initialization import without_initializing
from albert_tf.checkpoints.layout import CheckpointError, first_line
from albert_tf.checkpoints.layouts import KERASHUB, own_layout
from albert_tf.checkpoints.weights import model_weights
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf_lite.errors import AlbertError


class KerasModel(Source):
    """A Keras model with an `AlbertBackbone` of ours or of KerasHub's.

    Args:
        path: path of a `.keras` file or of a preset's directory, or the model.
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
            raise AlbertError(
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

    def head_config(self, part, config, name):
        defaults = super().head_config(part, {}, name)
        return {x: getattr(self.model, x, default) for x, default in defaults.items()}

    def lowercase(self, config):
        return getattr(self._tokenizer, "lowercase", True)

    @property
    def vocabulary(self):
        return super().vocabulary if self._tokenizer is None else self.path

    def tokenizer(self, lowercase):
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
        return _load_file(path)
    is_task = (path / "task.json").exists()
    class_ = _registered(path / "task.json") if is_task else keras_hub.models.Backbone
    # An embedder has none.
    has_heads = is_task and getattr(class_, "heads", True)
    # KerasHub would give a head without weights random ones.
    for name in ("model.weights.h5", *["task.weights.h5"] * bool(has_heads)):
        if not (path / name).is_file():
            raise FileNotFoundError(f"{path} is not a whole preset: it has no {name}.")
        with _naming(path / name, OSError), h5py.File(path / name):
            pass
    read_config(path / "config.json")
    with without_initializing():
        return class_.from_preset(str(path))


def _load_file(path):
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    damage = (zipfile.BadZipFile, KeyError, OSError)
    with _naming(path, *damage), zipfile.ZipFile(path) as file:
        file.getinfo("config.json")
        with file.open("model.weights.h5") as weights, h5py.File(weights):
            pass
    with without_initializing():
        return keras.saving.load_model(path, compile=False)


@contextlib.contextmanager
def _naming(path, *damage):
    """Make the errors that a damaged file causes one of ours, which names it."""
    try:
        yield
    except damage as error:
        raise CheckpointError(
            f"{path} cannot be read: it is damaged, or another kind of file. "
            f"({first_line(error)})"
        ) from error


def _registered(config):
    """The class that a config file of a preset is of."""
    name = read_config(config).get("registered_name")
    found = keras.saving.get_registered_object(name)
    if not hasattr(found, "from_preset"):
        raise CheckpointError(
            f"{config} is of the class {name!r}, which has no presets here. Import the "
            "package that registers it first."
        )
    return found


def write_preset(directory, model, tokenizer):
    """Write a preset that `from_preset` reads; the tokenizer if the model has none."""
    model.save_to_preset(str(directory))
    if tokenizer is not None and getattr(model, "preprocessor", None) is None:
        tokenizer.save_to_preset(str(directory))


def build_keras_hub(config, num_classes, head, tokenizer):
    """Build KerasHub's model, its weights still zero.

    Args:
        config: dict, the fields of KerasHub's `AlbertBackbone`.
        num_classes: int, of a text classifier; 0 for a backbone.
        head: dict, `dropout` and `activation` of the classifier.
        tokenizer: optional `keras_hub.tokenizers.AlbertTokenizer`, for the classifier.
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
            tokenizer, sequence_length=config["max_sequence_length"]
        )
        theirs = keras_hub.models.AlbertTextClassifier(
            theirs, num_classes, preprocessor=preprocessor, **head
        )
    return theirs
