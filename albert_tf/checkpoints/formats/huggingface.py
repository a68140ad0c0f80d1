"""Hugging Face directories: safetensors, or `pytorch_model.bin` read by torch."""

from __future__ import annotations

import contextlib
import importlib
import json
import pathlib
import pickle
import types
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.formats.base import Source, read_flag
from albert_tf.checkpoints.layout import CheckpointError, first_line, numbers_of
from albert_tf.checkpoints.layouts import HUGGINGFACE
from albert_tf.files import write_json
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
# Metadata of the files written here, because the format has no checksums.
CRC = "crc32"
# transformers also takes the first that exists.
WEIGHT_FILES = (
    WEIGHTS,
    f"{WEIGHTS}.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


class HuggingFaceFiles(Source):
    """A model saved by transformers, in one file or several.

    Args:
        path: path of a file of weights, or of the index of several.
    """

    layouts = (HUGGINGFACE,)
    config_patterns = ("config.json",)
    vocabulary_patterns = (*Source.vocabulary_patterns, TOKENIZER)

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.folders = [path.parent]
        self._file_of: dict[str, _SafetensorsFile | _TorchFile] = {}
        for weights in _weight_files(path):
            is_torch = weights.suffix != ".safetensors"
            file = (_TorchFile if is_torch else _SafetensorsFile)(weights)
            twice = sorted(file.shapes.keys() & self._file_of)
            if twice:
                raise CheckpointError(f"{path} names two files that hold {twice}.")
            self._file_of.update(dict.fromkeys(file.shapes, file))
        self.shapes = {
            name: list(file.shapes[name]) for name, file in self._file_of.items()
        }

    @classmethod
    def find(cls, folder: pathlib.Path) -> list[pathlib.Path]:
        """Return the file of weights in a folder, in a list."""
        files = (folder / name for name in WEIGHT_FILES)
        return [file for file in files if file.exists()][:1]

    def read(self, name: str) -> np.ndarray:
        return self._file_of[name].read(name)

    def lowercase(self, config: dict) -> bool:
        path = self.folders[0] / "tokenizer_config.json"
        if not path.exists():
            return super().lowercase(config)
        return read_flag(read_config(path), "do_lower_case", path)

    def tokenizer(self, lowercase: bool) -> TextTokenizer | None:
        path = self.vocabulary
        if path is None or path.name != TOKENIZER:
            return super().tokenizer(lowercase)
        # transformers 5 writes no other vocabulary.
        return WordPieceTokenizer(_word_pieces(path), lowercase=lowercase)


def _word_pieces(path: pathlib.Path) -> list[str]:
    """Return the tokens of a `tokenizer.json`, by id."""
    model = read_config(path).get("model")
    if not isinstance(model, dict) or model.get("type") != "WordPiece":
        raise CheckpointError(
            f"{path} holds no WordPiece tokenizer, the only kind that is read from "
            "such a file. Put the vocab.txt or spiece.model beside it, or pass it with "
            "`vocabulary=`."
        )
    ids = model.get("vocab")
    # By `repr`, because True and 1.0 would equal 1.
    if not isinstance(ids, dict) or set(map(repr, ids.values())) != set(
        map(repr, range(len(ids)))
    ):
        raise CheckpointError(
            f"{path} should give each token of model.vocab another id, from 0 on."
        )
    return sorted(ids, key=lambda token: ids[token])


def _weight_files(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of weights that a path stands for."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.suffix != ".json":
        return [path]
    names = read_config(path).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise CheckpointError(
            f"{path} should map each tensor to its file under weight_map."
        )
    beside = {file.name for file in path.parent.iterdir()}
    files = sorted(set(map(str, names.values())))
    for name in files:
        if name not in beside or not name.endswith((".safetensors", ".bin")):
            raise CheckpointError(
                f"{path} names {name[:100]!r}, which is not a file of weights beside "
                "it."
            )
    return [path.parent / name for name in files]


class _SafetensorsFile:
    """Tensors of a `.safetensors` file."""

    def __init__(self, path: pathlib.Path) -> None:
        self._safetensors = _import("safetensors", path)
        self._path = path
        with self._open() as file:
            self.shapes = {
                name: file.get_slice(name).get_shape()
                for name in file.keys()  # noqa: SIM118 (not a dict)
            }
            metadata = file.metadata() or {}
        self._checksums = json.loads(metadata.get(CRC, "{}"))

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        # Opened for each tensor, because an open file keeps what it has read in memory.
        try:
            with self._safetensors.safe_open(self._path, "numpy") as file:
                yield file
        except (self._safetensors.SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{self._path} is damaged or not a safetensors file. Download it "
                f"again. ({first_line(error)})"
            ) from error

    def read(self, name: str) -> np.ndarray:
        with self._open() as file:
            value = file.get_tensor(name)
        expected = self._checksums.get(name)
        if expected is not None and expected != _checksum(value):
            raise CheckpointError(
                f"{name} in {self._path} is damaged: its checksum is wrong. Download "
                "the file again."
            )
        return value


class _TorchFile:
    """Tensors of a `.bin` file, read by torch without running code in it."""

    def __init__(self, path: pathlib.Path) -> None:
        torch = _import("torch", path)
        try:
            _check_zip(path)
            tensors = torch.load(path, map_location="cpu", weights_only=True)
        except _TORCH_DAMAGE as error:
            raise CheckpointError(
                f"{path} is damaged, or holds objects other than tensors, which torch "
                f"refuses to load. Download it again. ({first_line(error)})"
            ) from error
        if not isinstance(tensors, dict) or not all(
            isinstance(name, str) and isinstance(tensor, torch.Tensor)
            for name, tensor in tensors.items()
        ):
            raise CheckpointError(
                f"{path} is not a state dict of a model: expected tensors by name."
            )
        self._tensors = tensors
        self.shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}

    def read(self, name: str) -> np.ndarray:
        tensor = self._tensors[name].detach()
        # NumPy has no bfloat16.
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def _check_zip(path: pathlib.Path) -> None:
    """Check the checksums of a zip file, which torch does not."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            damaged = file.testzip()
        if damaged is not None:
            raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")


# `torch.load` raises these for files that are truncated, changed, or of another kind.
_TORCH_DAMAGE = (pickle.UnpicklingError, RuntimeError, EOFError, zipfile.BadZipFile)
_EXTRAS = {
    "safetensors": "pip install 'albert-tf[hf]'",
    "torch": f"pip install torch (or save the model as {WEIGHTS})",
}


def _import(library: str, path: pathlib.Path) -> types.ModuleType:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise CheckpointError(
            f"{path.name} needs {library}. Run: {_EXTRAS[library.split('.')[0]]}"
        ) from error


def write_model(directory: pathlib.Path, tensors: Iterable[tuple[str, Any]]) -> None:
    """Write pairs of name and array as `model.safetensors`, with their checksums."""
    path = directory / WEIGHTS
    save = _import("safetensors.numpy", path).save_file
    arrays = {name: np.ascontiguousarray(numbers_of(x)) for name, x in tensors}
    checksums = {name: _checksum(array) for name, array in arrays.items()}
    save(arrays, path, {"format": "pt", CRC: json.dumps(checksums)})


def _checksum(array: np.ndarray) -> str:
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return f"{zlib.crc32(data):08x}"


def write_tokenizer(
    directory: pathlib.Path, tokenizer: TextTokenizer, max_length: int
) -> dict[str, int]:
    """Write a tokenizer for `AutoTokenizer`; return config fields of special tokens.

    Without `tokenizer_class` transformers builds a SentencePiece tokenizer for any
    ALBERT, and every word of a `vocab.txt` is unknown.
    """
    tokenizer.save_original(directory)
    config = {
        "tokenizer_class": _TOKENIZERS[str(tokenizer.original_file_name)],
        "do_lower_case": tokenizer.lowercase,
        "model_max_length": max_length,
        **{
            f"{name}_token": getattr(tokenizer, f"{name}_token")
            for name in ("unk", "sep", "pad", "cls", "mask")
        },
    }
    write_json(directory / "tokenizer_config.json", config)
    return {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }


_TOKENIZERS = {"vocab.txt": "BertTokenizer", "spiece.model": "AlbertTokenizer"}
