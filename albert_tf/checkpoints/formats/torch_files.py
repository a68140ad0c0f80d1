"""Files of weights of PyTorch: safetensors and pickles, whole or in shards."""

import contextlib
import dataclasses
import pathlib
import pickle
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.layout import CheckpointError, name_damage
from albert_tf.extras import import_extra
from albert_tf_lite.archives import check_zip
from albert_tf_lite.changes import change_check
from albert_tf_lite.errors import first_line, listed
from albert_tf_lite.pointers import check_downloaded

WEIGHTS = "model.safetensors"
_PICKLE = "pytorch_model.bin"
# Suffixes of pickles, which are read by torch.
PICKLES = (".bin", ".ckpt", ".pt", ".pth")
# `model.safetensors.index.json`, and that of a variant: `.index.fp16.json`.
_INDEX = re.compile(r"\.index(\.[^.]+)?\.json$")
_SHARD = re.compile(r"-\d{5}-of-\d{5}\b")
# Bytes of a name in most file systems.
_LONGEST_NAME = 255
# Where trainers keep the weights in a file with the rest of their state.
_WRAPPERS = ("state_dict", "model_state_dict", "model", "module")


def find(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of weights in a folder, one for all shards."""
    names = (WEIGHTS, f"{WEIGHTS}.index.json", _PICKLE, f"{_PICKLE}.index.json")
    # transformers also takes the first that exists.
    for name in names:
        if (folder / name).exists():
            return [folder / name]
    indexes = sorted(x for x in folder.glob("*.json") if is_index(x))
    if indexes:
        return indexes
    # Variants such as model.fp16.safetensors.
    stem, suffix = WEIGHTS.split(".")
    files = [*folder.glob(f"{stem}[.-]*.{suffix}"), *folder.glob("pytorch_model*.bin")]
    shards = sorted(x for x in files if _SHARD.search(x.name))
    # Opening a shard names the index that it needs.
    return sorted({*files} - {*shards}) or shards[:1]


def is_index(path: pathlib.Path) -> bool:
    """Return whether a file has the name of the index of a checkpoint in shards."""
    return _INDEX.search(path.name) is not None


def files_of(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of the tensors of a file, or of all shards."""
    if is_index(path):
        return sorted({*_places(path).values()})
    return files_of(_index_of(path)) if _SHARD.search(path.name) else [path]


@dataclasses.dataclass(frozen=True)
class Weights:
    """The tensors of one file, or of all shards."""

    path: pathlib.Path  # For messages.
    shapes: dict[str, list[int]]  # By the names in the file.
    read: Callable[[str], Any]  # Returns a tensor by its name.
    check_unchanged: Callable[[], None]
    # Strings beside the tensors of a single safetensors file.
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)


def open_weights(path: pathlib.Path) -> Weights:
    """Open a file of weights, an index of shards, or all shards by one of them."""
    if is_index(path):
        return _open_shards(path)
    if _SHARD.search(path.name):
        return _open_shards(_index_of(path))
    return _open_file(path)


# === Shards ===


def _index_of(shard: pathlib.Path) -> pathlib.Path:
    """Return the index that lists a shard; raise if there is none."""
    indexes = sorted(x for x in shard.parent.glob("*.json") if is_index(x))
    listing = [x for x in indexes if shard in _read_index(x).values()]
    if len(listing) == 1:
        return listing[0]
    start, end = _SHARD.split(shard.name)
    expected = shard.with_name(f"{start}{end}.index.json")
    others = f" Found: {[x.name for x in indexes]}" if indexes else ""
    raise FileNotFoundError(
        f"{shard} is one of several files of a checkpoint, and {expected.name}, which "
        f"lists them, is not beside it. Download it into {shard.parent}.{others}"
    )


def _read_index(path: pathlib.Path) -> dict[str, pathlib.Path]:
    """Return the file of each tensor that an index lists."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    places = read_config(path).get("weight_map")
    are_names = isinstance(places, dict) and all(map(_is_name, places.values()))
    if not places or not are_names:
        raise CheckpointError(
            f'{path} is not the index of a checkpoint. Expected {{"weight_map": '
            '{"name of a tensor": "name of a file beside the index", ...}}. Found: '
            f"{places!r:.200}"
        )
    return {name: path.with_name(file) for name, file in places.items()}


def _is_name(file: object) -> bool:
    """Return whether a file lies beside its index, which may be a stranger's."""
    if not isinstance(file, str) or file != pathlib.Path(file).name:
        return False
    return 0 < len(file.encode("utf-8", "surrogatepass")) <= _LONGEST_NAME


def _places(index: pathlib.Path) -> dict[str, pathlib.Path]:
    """Return the file of each tensor; raise if one of the files is missing."""
    places = _read_index(index)
    files = sorted({*places.values()})
    if missing := [file.name for file in files if not file.is_file()]:
        raise FileNotFoundError(
            f"{index} lists {len(files)} files, of which {listed(missing)} are not in "
            f"{index.parent}. Download them into it."
        )
    return places


def _open_shards(index: pathlib.Path) -> Weights:
    places = _places(index)
    shards = {file: _open_file(file) for file in sorted({*places.values()})}
    for file, shard in shards.items():
        expected = {name for name, place in places.items() if place == file}
        lacking = sorted(expected - {*shard.shapes})
        more = sorted({*shard.shapes} - expected)
        if lacking or more:
            raise CheckpointError(
                f"{file} does not fit {index.name}: it lacks "
                f"{listed(lacking) if lacking else 'none'} of the tensors listed there "
                f"and has {listed(more) if more else 'no'} others. The files are of "
                "two checkpoints. Download all files of one of them."
            )

    def check_unchanged() -> None:
        for shard in shards.values():
            shard.check_unchanged()

    return Weights(
        path=index,
        shapes={name: shards[file].shapes[name] for name, file in places.items()},
        read=lambda name: shards[places[name]].read(name),
        check_unchanged=check_unchanged,
    )


# === One file ===


def _open_file(path: pathlib.Path) -> Weights:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    check_downloaded(path)
    if path.suffix in PICKLES:
        arrays = _load_by_torch(path)
        return Weights(
            path=path,
            shapes={name: list(x.shape) for name, x in arrays.items()},
            read=arrays.__getitem__,
            check_unchanged=lambda: None,
        )
    check_unchanged = change_check(path)
    with _safetensors(path) as file:
        # The file is not iterable itself.
        names = list(file.keys())
        shapes = {name: file.get_slice(name).get_shape() for name in names}
        metadata = file.metadata() or {}

    def read(name: str) -> np.ndarray:
        # Opened for each tensor, because an open file keeps what it has read in memory.
        with _safetensors(path) as file:
            return file.get_tensor(name)

    return Weights(
        path=path,
        shapes=shapes,
        read=read,
        check_unchanged=check_unchanged,
        metadata=metadata,
    )


@contextlib.contextmanager
def _safetensors(path: pathlib.Path) -> Iterator[Any]:
    """Open a file of safetensors; errors name it."""
    safetensors = import_extra("safetensors")
    with (
        name_damage(path, safetensors.SafetensorError, OSError),
        safetensors.safe_open(path, "numpy") as file,
    ):
        yield file


def _load_by_torch(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Load a pickle without running code in it."""
    torch = import_extra("torch")
    if zipfile.is_zipfile(path):
        check_zip(path)
    # For files that are truncated or of another kind.
    with name_damage(path, RuntimeError, EOFError):
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise CheckpointError(
                f"{path} is damaged, or holds other objects than tensors, which could "
                "run code and are not read. Save the weights alone, by "
                "`torch.save(model.state_dict(), path)` or `save_pretrained`. "
                f"({first_line(error)})"
            ) from error
    tensors = _state_dict(content, torch, path)
    # NumPy has no bfloat16.
    return {
        name: (x.detach().float() if x.is_floating_point() else x).numpy()
        for name, x in tensors.items()
    }


def _state_dict(content: Any, torch: Any, path: pathlib.Path) -> dict[str, Any]:
    """Return the dict of tensors in the content of a file, or in a trainer's state."""
    inner = content
    while isinstance(inner, dict):
        if all(map(torch.is_tensor, inner.values())):
            return inner
        found = [inner[x] for x in _WRAPPERS if isinstance(inner.get(x), dict)]
        inner = found[0] if len(found) == 1 else None
    keys = listed(list(map(str, content))) if isinstance(content, dict) else ""
    raise CheckpointError(
        f"{path} is not a dict of tensors, nor has one under one of "
        f"{', '.join(_WRAPPERS)}. Found: {keys or type(content).__name__}. Save "
        "`model.state_dict()` in it."
    )
