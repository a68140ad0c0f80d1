"""Hugging Face directories: safetensors, or `pytorch_model.bin` read by torch."""

import functools
import json
import math
import pickle
import zipfile
import zlib

import numpy as np

from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.formats.base import Source, read_flag
from albert_tf.checkpoints.formats.errors import first_line, naming
from albert_tf.checkpoints.layout import CheckpointError, numbers_of
from albert_tf.checkpoints.layouts import HUGGINGFACE
from albert_tf.tokenizers import WordPieceTokenizer

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
# The format itself would not notice a changed byte: what we write says so.
CRC = "crc32"
# transformers, too, takes the first that is there.
WEIGHT_FILES = (
    WEIGHTS,
    f"{WEIGHTS}.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


class HuggingFaceFiles(Source):
    """A model that transformers has saved, in one file or several.

    Args:
        path: path of a file of weights, or of the index of several.

    Raises:
        FileNotFoundError: if a file is missing.
        CheckpointError: if a file is damaged, or the library that reads it is not
            installed.
    """

    layouts = (HUGGINGFACE,)
    config_patterns = ("config.json",)

    def __init__(self, path):
        self.path = path
        self.folders = [path.parent]
        self._files = [_open(file) for file in _weight_files(path)]
        self._file_of = {}
        for file in self._files:
            twice = sorted(file.shapes.keys() & self._file_of)
            if twice:
                raise CheckpointError(f"{path} names two files that hold {twice}.")
            self._file_of.update(dict.fromkeys(file.shapes, file))
        self.shapes = {
            name: list(file.shapes[name]) for name, file in self._file_of.items()
        }

    @classmethod
    def find(cls, folder):
        """The file of weights in a folder, in a list."""
        files = (folder / name for name in WEIGHT_FILES)
        return [file for file in files if file.exists()][:1]

    def read(self, name):
        """Read a tensor.

        Raises:
            CheckpointError: if it is not what was written.
        """
        return self._file_of[name].read(name)

    vocabulary_patterns = (*Source.vocabulary_patterns, TOKENIZER)

    def lowercase(self, config):
        """Whether the tokenizer is to lower-case, by `tokenizer_config.json`."""
        path = self.folders[0] / "tokenizer_config.json"
        if not path.exists():
            return super().lowercase(config)
        return read_flag(read_config(path), "do_lower_case", path)

    def tokenizer(self, lowercase):
        """The tokenizer beside; transformers 5 writes no vocabulary but in its own
        `tokenizer.json`."""
        path = self.vocabulary
        if path is None or path.name != TOKENIZER:
            return super().tokenizer(lowercase)
        with naming(path):
            return WordPieceTokenizer(_word_pieces(path), lowercase=lowercase)


def _word_pieces(path):
    """The tokens of a `tokenizer.json`, by id."""
    model = read_config(path).get("model")
    if not isinstance(model, dict) or model.get("type") != "WordPiece":
        raise CheckpointError(
            f"{path} holds no WordPiece tokenizer, the one kind that can be read from "
            "there. Put the vocab.txt or spiece.model beside it, or give it with "
            "`vocabulary=`."
        )
    ids = model.get("vocab")
    # One kind of number and each once: 0, 1, 2...
    if not isinstance(ids, dict) or set(map(repr, ids.values())) != set(
        map(repr, range(len(ids)))
    ):
        raise CheckpointError(
            f"{path} should give each token of model.vocab an id of its own, from 0 on."
        )
    return sorted(ids, key=ids.get)


def _weight_files(path):
    """The files of weights that a path stands for."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.suffix != ".json":
        return [path]
    names = read_config(path).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise CheckpointError(
            f"{path} should say under weight_map which file holds which tensor."
        )
    beside = {file.name for file in path.parent.iterdir()}
    files = sorted(set(map(str, names.values())))
    for name in files:
        if name not in beside or not name.endswith((".safetensors", ".bin")):
            raise CheckpointError(
                f"{path} names the file {name[:100]!r}, which is no file of weights "
                "beside it."
            )
    return [path.parent / name for name in files]


def _open(path):
    return (_SafetensorsFile if path.suffix == ".safetensors" else _TorchFile)(path)


class _SafetensorsFile:
    """Tensors of a `.safetensors` file."""

    def __init__(self, path):
        safetensors = _import("safetensors", path)
        self._damage = (safetensors.SafetensorError, OSError, ValueError, TypeError)
        self._path = path
        # Opened anew for each tensor: all that was read would stay in memory.
        self._open = functools.partial(safetensors.safe_open, path, "numpy")
        try:
            with self._open() as file:
                self.shapes = {
                    name: file.get_slice(name).get_shape()
                    for name in file.keys()  # noqa: SIM118 (it is no dict)
                }
                checksums = json.loads((file.metadata() or {}).get(CRC, "{}"))
                self._checksums = dict(checksums)
        except self._damage as error:
            raise CheckpointError(
                f"{path} is damaged or no safetensors file. Fetch it again. "
                f"({first_line(error)})"
            ) from error

    def read(self, name):
        try:
            with self._open() as file:
                value = file.get_tensor(name)
        except self._damage as error:
            raise CheckpointError(
                f"{name} cannot be read from {self._path}: {first_line(error)}"
            ) from error
        expected = self._checksums.get(name)
        if expected is not None and expected != _checksum(_bytes(value)):
            raise CheckpointError(
                f"{name} in {self._path} is damaged: its checksum is not the one it "
                "was written with. Fetch the file again."
            )
        return value


class _TorchFile:
    """Tensors of a `.bin` file, by torch, which runs no code of the file's."""

    def __init__(self, path):
        torch = _import("torch", path)
        self._path = path
        try:
            _check_zip(path)
            tensors = torch.load(path, map_location="cpu", weights_only=True)
        except _TORCH_DAMAGE as error:
            raise CheckpointError(
                f"{path} is damaged, or holds more than tensors, which torch refuses "
                f"to load. Fetch it again. ({first_line(error)})"
            ) from error
        odd = [
            name
            for name, tensor in (tensors.items() if isinstance(tensors, dict) else ())
            if not isinstance(name, str)
            or not isinstance(tensor, torch.Tensor)
            or tensor.layout is not torch.strided
            or tensor.is_meta
        ]
        if odd or not isinstance(tensors, dict):
            raise CheckpointError(
                f"{path} is no state dict of a model: expected dense tensors by name."
                + (f" Found: {odd[:3]}" if odd else "")
            )
        self._tensors = tensors
        self.shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}

    def read(self, name):
        tensor = self._tensors[name].detach()
        # bfloat16 is no type of NumPy's.
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def _check_zip(path):
    """Compare the checksums of a file's members, which torch does not."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            damaged = file.testzip()
        if damaged is not None:
            raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")


_TORCH_DAMAGE = (
    pickle.UnpicklingError,
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    zipfile.BadZipFile,
)


def _import(library, path):
    try:
        return __import__(library)
    except ImportError as error:
        raise CheckpointError(
            f"Reading {path.name} needs {library}. Run: "
            + (
                "pip install 'albert-tf[hf]'"
                if library == "safetensors"
                else "pip install torch (or have the model saved as "
                f"{WEIGHTS}, which needs no torch)"
            )
        ) from error


def write_model(directory, shapes, tensors):
    """Write `model.safetensors`, tensor by tensor.

    `safetensors.numpy.save_file` wants all arrays at once, which for the largest
    models are one more copy of the model than there may be memory for.

    Args:
        directory: path of an existing directory.
        shapes: dict of name to tuple of ints.
        tensors: iterable of pairs of name and float32 array, in the order of
            `shapes`.

    Returns:
        A dict, the config fields that say what was written.
    """
    checksums = dict.fromkeys(shapes, _checksum(b""))
    with open(directory / WEIGHTS, "wb") as file:
        file.write(_header(shapes, checksums))
        for name, value in tensors:
            data = _bytes(value)
            checksums[name] = _checksum(data)
            file.write(data)
        # As long as before, now that they are known.
        file.seek(0)
        file.write(_header(shapes, checksums))
    return {"architectures": [_architecture(shapes)]}


def _header(shapes, checksums):
    header = {"__metadata__": {"format": "pt", CRC: json.dumps(checksums)}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    header = json.dumps(header).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def _checksum(data):
    return f"{zlib.crc32(data):08x}"


def _bytes(array):
    return np.ascontiguousarray(numbers_of(array)).reshape(-1).view(np.uint8)


_ARCHITECTURES = {
    "classifier.weight": "AlbertForSequenceClassification",
    "sop_classifier.classifier.weight": "AlbertForPreTraining",
    "predictions.bias": "AlbertForMaskedLM",
}


def _architecture(names):
    """The class of transformers that has a place for all of the tensors."""
    for name, architecture in _ARCHITECTURES.items():
        if name in names:
            return architecture
    return "AlbertModel"


def write_tokenizer(directory, tokenizer, max_length):
    """Write a tokenizer's files, so that `AutoTokenizer` finds the right one.

    Without `tokenizer_class` transformers takes any ALBERT for one with
    SentencePiece and makes every word of a `vocab.txt` unknown.

    Args:
        directory: path of an existing directory.
        tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
        max_length: int. Positions of the model, in tokens.

    Returns:
        A dict, the config fields that say which tokens are special.
    """
    tokenizer.save_original(directory)
    config = {
        "tokenizer_class": _TOKENIZERS[tokenizer.original_file_name],
        "do_lower_case": tokenizer.lowercase,
        "model_max_length": max_length,
        **{
            f"{name}_token": getattr(tokenizer, f"{name}_token")
            for name in ("unk", "sep", "pad", "cls", "mask")
        },
    }
    text = json.dumps(config, ensure_ascii=False, indent=2)
    (directory / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")
    return {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }


_TOKENIZERS = {"vocab.txt": "BertTokenizer", "spiece.model": "AlbertTokenizer"}
