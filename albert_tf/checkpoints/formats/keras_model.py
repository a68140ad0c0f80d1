"""Keras models: `.keras` files, presets and instances, ours and KerasHub's."""

import functools
import json
import pathlib
import warnings
import zipfile
from typing import IO, Any

import h5py
import keras
import keras_hub
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.encoder_blocks import MOST_BLOCKS
from albert_tf.backbone.presets import check_head
from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.formats import Files
from albert_tf.checkpoints.layout import CheckpointError, name_damage
from albert_tf.checkpoints.layouts import KERASHUB, own_layout
from albert_tf.checkpoints.plan import plan_weights, without_initializing
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf.tokenizers.checks import check_bytes
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.archives import check_expansion, check_zip
from albert_tf_lite.changes import unchanged
from albert_tf_lite.network_files import preset_files
from albert_tf_lite.pointers import check_downloaded

# Keras raises these for truncated and changed files, and for configs of any content.
DAMAGE = (
    zipfile.BadZipFile,
    LookupError,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    RuntimeError,
    OverflowError,
    ZeroDivisionError,
    MemoryError,
    tf.errors.OpError,
)
# Lists the files of a large backbone.
_SHARDS = "model.weights.json"
# Arguments of the backbones, ours and KerasHub's.
_COUNTS = ("num_layers", "num_groups", "num_inner_repetitions")


def find(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the folder if it is a preset, and the `.keras` files in it."""
    files = sorted(folder.glob("[!.]*.keras"))
    has_config = (folder / "config.json").exists()
    others = (folder / "metadata.json", folder / "task.json")
    if has_config and any(file.exists() for file in others):
        return [folder, *files]
    return files


def open_files(path: pathlib.Path | keras.Model) -> Files:
    """Open a Keras model, `.keras` file or preset, of albert_tf or of KerasHub."""
    folders: list[pathlib.Path] = []
    name: str | pathlib.Path
    if isinstance(path, keras.Model):
        name, model = path.name, path
    elif path.is_dir():
        name, model = path, _load_preset(path)
        folders.append(path)
    else:
        name, model = path, _load_file(path)
    backbone = getattr(model, "backbone", model)
    config = backbone.get_config()
    if isinstance(backbone, AlbertBackbone):
        layout = own_layout(config)
        plan = plan_weights(layout, model)
        weights = {tensors.names[0]: weight for weight, tensors in plan}
    elif isinstance(backbone, keras_hub.models.AlbertBackbone):
        layout = KERASHUB
        weights = {weight.path: weight for weight in model.weights}
    else:
        raise CheckpointError(
            f"{name} is not an ALBERT but a {type(model).__name__}. "
            "Expected an AlbertBackbone or a task of albert_tf or KerasHub."
        )
    if hasattr(model, "pooling_mode"):
        config["classifier_pooling"] = model.pooling_mode
    return Files(
        path=name,
        folders=folders,
        shapes={tensor: list(weight.shape) for tensor, weight in weights.items()},
        read=lambda tensor: keras.ops.convert_to_tensor(weights[tensor]),
        layouts=(layout,),
        model=model,
        config=config,
        tokenizer=functools.cache(lambda: _tokenizer(model, folders)),
    )


def _tokenizer(model: keras.Model, folders: list[pathlib.Path]) -> TextTokenizer | None:
    """Return the tokenizer of a model, or the one beside a preset of a backbone."""
    tokenizer: Any = None
    if getattr(model, "preprocessor", None) is not None:
        tokenizer = model.preprocessor.tokenizer
    elif folders and (file := folders[0] / "tokenizer.json").exists():
        # KerasHub's `from_preset` refuses tokenizers of another backbone.
        with name_damage(file, *DAMAGE):
            tokenizer = keras.saving.deserialize_keras_object(read_config(file))
            tokenizer.load_preset_assets(str(folders[0]))
    if isinstance(tokenizer, keras_hub.tokenizers.AlbertTokenizer):
        return SentencePieceTokenizer(tokenizer.proto)
    return tokenizer


def files_of(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of weights of a preset, or a `.keras` file itself."""
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist.")
        return [path]
    names = ["model.weights.h5"]
    if (path / _SHARDS).is_file() and not (path / names[0]).is_file():
        # A layer may have several files.
        places = read_config(path / _SHARDS).get("weight_map", {})
        names = [_SHARDS, *sorted({*keras.tree.flatten(places)})]
    # KerasHub would draw random weights for a head whose file is missing. An embedder
    # has no heads.
    task = path / "task.json"
    if task.exists() and getattr(_registered(task), "heads", True):
        names.append("task.weights.h5")
    for name in names:
        if not (path / name).is_file():
            raise FileNotFoundError(f"{path} is an incomplete preset: it lacks {name}.")
    return [path / name for name in names]


def check_files(path: pathlib.Path) -> None:
    """Raise if files of a preset are missing, pointers or of different trainings."""
    check_downloaded(*files_of(path), *preset_files(path))
    check_head(path)


def _load_file(path: pathlib.Path) -> keras.Model:
    """Load a `.keras` file."""
    check_downloaded(*files_of(path))
    with name_damage(path, *DAMAGE), zipfile.ZipFile(path) as archive:
        check_zip(path)
        _check_layers(json.loads(archive.read("config.json")), path)
        with archive.open("model.weights.h5") as weights:
            stored = _stored_numbers(weights, path)
    with (
        name_damage(path, *DAMAGE),
        without_initializing(stored, path),
        warnings.catch_warnings(),
    ):
        # The optimizer is not needed here.
        warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
        return keras.saving.load_model(path, compile=False)


def _load_preset(path: pathlib.Path) -> keras.Model:
    """Load a preset.

    `from_preset` of our tasks calls `check_files`, which reads all weights of the
    backbone for their checksum. Here, only the sizes are read.
    """
    check_downloaded(*files_of(path))
    class_: Any = keras_hub.models.Backbone
    if (path / "task.json").exists():
        class_ = _registered(path / "task.json")
    with unchanged(*preset_files(path)), name_damage(path, *DAMAGE):
        check_downloaded(*preset_files(path))
        fields = read_config(path / "config.json")
        _check_layers(fields, path)
        size = fields.get("config", {}).get("vocabulary_size", 0)
        for file in path.glob("assets/tokenizer/*.txt"):
            check_bytes(file, size)
        files = sorted(path.glob("*.weights.h5"))
        stored = sum(_stored_numbers(file, file) for file in files)
        with without_initializing(stored, path):
            return class_.from_preset(str(path))


def _check_layers(fields: dict[str, Any], path: pathlib.Path) -> None:
    """Raise if a config of Keras has more layers than Keras can build."""
    for names, value in keras.tree.flatten_with_path(fields):
        if not names or names[-1] not in _COUNTS:
            continue
        if isinstance(value, (int, float)) and value > MOST_BLOCKS:
            raise CheckpointError(
                f"The config in {path} has {names[-1]}={value:g}. Expected at most "
                f"{MOST_BLOCKS}."
            )


def _stored_numbers(file: pathlib.Path | IO[bytes], path: pathlib.Path) -> int:
    """Return how many numbers an HDF5 file has."""
    arrays: list[h5py.Dataset] = []

    def keep(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset):
            arrays.append(item)

    with h5py.File(file) as weights:
        weights.visititems(keep)
        # Data that were never written take no room.
        check_expansion(path, sum(x.nbytes for x in arrays))
        return sum(x.size for x in arrays)


def _registered(config: pathlib.Path) -> Any:
    """Return the class in a config file of a preset."""
    name = read_config(config).get("registered_name")
    registered = keras.saving.get_registered_object(name)
    if registered is None:
        raise CheckpointError(
            f"{config} is of the unknown class {name!r}. Import the package that "
            "registers it first."
        )
    return registered
