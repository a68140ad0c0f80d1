"""Hugging Face directories: safetensors, or `pytorch_model.bin` read by torch."""

import contextlib
import pathlib
import pickle
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.layout import CheckpointError, name_damage
from albert_tf.checkpoints.layouts import HUGGINGFACE
from albert_tf.files import write_json
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.archives import check_zip
from albert_tf_lite.changes import change_check
from albert_tf_lite.errors import import_extra

WEIGHTS = "model.safetensors"
_TOKENIZER = "tokenizer.json"


class HuggingFaceFiles(Checkpoint):
    """A model saved by transformers, by its file of weights."""

    layouts = (HUGGINGFACE,)
    config_patterns = ("config.json",)
    vocabulary_patterns = (*Checkpoint.vocabulary_patterns, _TOKENIZER)

    def __init__(self, path: pathlib.Path) -> None:
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist.")
        self.path, self.folders = path, [path.parent]
        self._arrays = _load_by_torch(path) if path.suffix == ".bin" else {}
        if self._arrays:
            self.file_shapes = {x: list(y.shape) for x, y in self._arrays.items()}
            return
        self.check_unchanged = change_check(path)
        with self._open() as file:
            names = file.keys()
            self.file_shapes = {x: file.get_slice(x).get_shape() for x in names}

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        # Opened for each tensor, because an open file keeps what it has read in memory.
        safetensors = import_extra("safetensors")
        with (
            name_damage(self.path, safetensors.SafetensorError, OSError),
            safetensors.safe_open(self.path, "numpy") as file,
        ):
            yield file

    def read_tensor(self, name: str) -> np.ndarray:
        if self._arrays:
            return self._arrays[name]
        with self._open() as file:
            return file.get_tensor(name)

    @classmethod
    def find(cls, folder: pathlib.Path) -> list[pathlib.Path]:
        """Return the file of weights in a folder, in a list."""
        # transformers also takes the first that exists.
        files = (folder / name for name in (WEIGHTS, "pytorch_model.bin"))
        return [file for file in files if file.exists()][:1]

    @property
    def lowercase(self) -> bool:
        path = self.folders[0] / "tokenizer_config.json"
        config = read_config(path) if path.exists() else self.config
        return config.get("do_lower_case", True)

    def find_tokenizer(self, lowercase: bool) -> TextTokenizer | None:
        path = self.vocabulary
        if path is None or path.name != _TOKENIZER:
            return super().find_tokenizer(lowercase)
        # transformers 5 writes no other vocabulary.
        return WordPieceTokenizer(_word_pieces(path), lowercase=lowercase)


def _word_pieces(path: pathlib.Path) -> list[str]:
    """Return the tokens of a `tokenizer.json`, by id."""
    model = read_config(path).get("model", {})
    ids = model.get("vocab", {})
    if model.get("type") != "WordPiece" or set(ids.values()) != set(range(len(ids))):
        raise CheckpointError(
            f"{path} holds no WordPiece tokenizer with an id for each token. Put the "
            "vocab.txt or spiece.model beside it, or pass it with `vocabulary=`."
        )
    return sorted(ids, key=lambda token: ids[token])


def _load_by_torch(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Load a `.bin` file without running code in it."""
    torch = import_extra("torch")
    if zipfile.is_zipfile(path):
        check_zip(path)
    # For files that are truncated, of another kind, or hold code.
    with name_damage(path, pickle.UnpicklingError, RuntimeError, EOFError):
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict) or not all(map(torch.is_tensor, tensors.values())):
        raise CheckpointError(
            f"{path} is not a dict of tensors. Save `model.state_dict()` in it."
        )
    # NumPy has no bfloat16.
    return {
        name: (x.detach().float() if x.is_floating_point() else x).numpy()
        for name, x in tensors.items()
    }


# === Writing ===


def write_model(directory: pathlib.Path, tensors: Iterable[tuple[str, Any]]) -> None:
    """Write pairs of name and array as `model.safetensors`."""
    arrays = {name: np.ascontiguousarray(value) for name, value in tensors}
    save = import_extra("safetensors.numpy").save_file
    save(arrays, directory / WEIGHTS, {"format": "pt"})


def write_tokenizer(
    directory: pathlib.Path, tokenizer: TextTokenizer, max_length: int
) -> dict[str, int]:
    """Write a tokenizer for `AutoTokenizer`; return config fields of special tokens.

    Without `tokenizer_class` transformers builds a SentencePiece tokenizer for any
    ALBERT, and every word of a `vocab.txt` is unknown.
    """
    tokenizer.save_original(directory)
    classes = {"vocab.txt": "BertTokenizer", "spiece.model": "AlbertTokenizer"}
    config = {
        "tokenizer_class": classes[str(tokenizer.original_file_name)],
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
