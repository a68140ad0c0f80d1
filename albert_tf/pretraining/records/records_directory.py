"""Records: a directory with a manifest, the vocabulary and shards.

Writers of records `claim` the directory, make each shard by `complete_shard`, and
`publish` the manifest. After an interruption the same steps resume: complete shards,
known by their final names, are not made again. `training.run_identity` compares this
with the states of other runs.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from albert_tf.files import (
    complete_file,
    remove_abandoned,
    remove_directory,
    write_json,
)
from albert_tf.locks import only_writer
from albert_tf.pretraining.records.shard_files import (
    ARRAYS,
    Arrays,
    read_shard,
    write_shard,
)
from albert_tf.training.run_identity import refuse_another_run
from albert_tf.writing_errors import name_final_path
from albert_tf_lite.changes import changed_error
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_downloaded

MANIFEST = "manifest.json"
SHARDS = f"pretrain-*-{16 * '[0-9a-f]'}"

# An entry of the manifest: `name`, `sequences`, `tokens` and more.
Shard = dict[str, Any]
Manifest = dict[str, Any]


def shard_name(number: int, duplicate: int, digest: str) -> str:
    """Return the name of a shard.

    `digest` depends on the settings and the content.
    """
    return f"pretrain-{number:05d}-{duplicate:02d}-{digest}"


# === Writing ===


@dataclasses.dataclass(frozen=True)
class Header:
    """Fields of the manifest beside the shards. They identify the records.

    Args:
        vocabulary: path of the file that is copied into the directory.
        tokens: dict, the `size` of the vocabulary and the ids `cls`, `sep`, `pad`,
            `mask`.
        settings: dict that JSON can hold. `vocabulary_sha256` is the hash of the
            vocabulary.
        files: list of strings, the paths of the text.
        heads: optional dict, the heads of labelled texts.
    """

    vocabulary: pathlib.Path
    tokens: dict[str, int]
    settings: dict[str, Any]
    files: Iterable[str] = ()
    heads: dict[str, dict[str, Any]] | None = None

    def fields(self) -> Manifest:
        """Return the fields of the manifest."""
        fields: Manifest = {
            "files": list(self.files),
            "settings": self.settings,
            "vocabulary": self.vocabulary.name,
            "tokens": self.tokens,
        }
        if self.heads is not None:
            fields["heads"] = self.heads
        return fields


@contextlib.contextmanager
def claim(output: pathlib.Path, header: Header) -> Iterator[None]:
    """Lock a directory, and write the vocabulary and a manifest without shards.

    Complete records of these settings keep their manifest until the new ones are.
    Raise if the directory holds records of other files or settings.
    """
    with contextlib.ExitStack() as stack:
        with name_final_path(output):
            output.mkdir(parents=True, exist_ok=True)
            stack.enter_context(only_writer(output))
        before = read_manifest(output)
        content = header.vocabulary.read_bytes()
        if hashlib.sha256(content).hexdigest() != header.settings["vocabulary_sha256"]:
            raise changed_error(header.vocabulary)
        copy = output / header.vocabulary.name
        if not before and copy.exists() and copy.read_bytes() != content:
            raise AlbertError(
                f"{copy} exists and is another vocabulary. Choose another directory, "
                "or remove it."
            )
        # While there are no records, a mistake in the settings can be corrected.
        if before and any(output.glob(SHARDS)):
            refuse_another_run(
                _identity(before),
                _identity(header.fields()),
                f"{output} holds records made with other settings",
                "Choose another directory, or remove it.",
            )
        remove_abandoned(output, "pretrain-*")
        if "shards" not in before or _identity(before) != _identity(header.fields()):
            write_json(output / MANIFEST, header.fields())
            with complete_file(copy) as temporary:
                temporary.write_bytes(content)
        yield


def _identity(manifest: Manifest) -> dict[str, Any]:
    return {**manifest["settings"], "file": dict.fromkeys(manifest["files"], "given")}


def complete_shard(
    folder: pathlib.Path,
    make: Callable[[], Arrays],
    needed: Iterable[str] = ARRAYS,
) -> list[Shard]:
    """Write the arrays that `make` returns, unless the shard is complete.

    Returns its entry in the manifest, none for a shard without sequences. `needed` are
    the names of its arrays.
    """
    arrays = None
    with contextlib.suppress(AlbertError):
        arrays = read_shard(folder, needed)
    # Not where the error is handled: its frames hold files of a damaged shard open, and
    # Windows replaces no open files.
    if arrays is None:
        arrays = make()
        if not len(arrays["lengths"]):
            return []
        try:
            write_shard(folder, arrays)
        except OSError as error:
            raise OSError(
                f"{folder} cannot be written: {error}. Complete shards are kept; run "
                "the same command to resume."
            ) from error
    shard: Shard = {
        "name": folder.name,
        "sequences": len(arrays["lengths"]),
        "tokens": len(arrays["token_ids"]),
    }
    if "documents" in arrays:
        # Documents that make a sequence.
        shard["documents"] = len(np.unique(arrays["documents"]))
    return [shard]


def publish(
    output: pathlib.Path,
    header: Header,
    shards: list[Shard],
    counts: dict[str, int] | None = None,
    warnings: Iterable[str] = (),
) -> Manifest:
    """Write the manifest of complete records and return it."""
    manifest: Manifest = {
        "counts": {
            **(counts or {}),
            "sequences": sum(shard["sequences"] for shard in shards),
            "tokens": sum(shard["tokens"] for shard in shards),
        },
        "warnings": list(warnings),
        "shards": shards,
        **header.fields(),
    }
    write_json(output / MANIFEST, manifest)
    # Shards of text that has changed since.
    named = {output / shard["name"] for shard in shards}
    for folder in set(output.glob(SHARDS)) - named:
        remove_directory(folder)
    return manifest


# === Reading ===


def read_manifest(folder: pathlib.Path) -> Manifest:
    """Return the manifest of records; an empty dict without one.

    While the records are being made, it has no `shards`.
    """
    file = folder / MANIFEST
    if not file.exists():
        return {}
    check_downloaded(file)
    with naming_damage(file):
        manifest = json.loads(file.read_text(encoding="utf-8"))
        _check_manifest(manifest)
    return manifest


@contextlib.contextmanager
def naming_damage(manifest: pathlib.Path) -> Iterator[None]:
    """Name a manifest in errors about fields that are missing or of other types."""
    try:
        yield
    except AlbertError:
        raise
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise AlbertError(
            f"{manifest} is damaged, or was not written by this version of `albert-tf "
            "pretrain-data`. Copy the directory again, or choose another directory."
        ) from error


def _check_manifest(manifest: Manifest) -> None:
    """Raise if a field is missing or of another type, or a file lies elsewhere."""
    shards, settings = manifest.get("shards", []), manifest["settings"]
    names = [*(shard["name"] for shard in shards), manifest["vocabulary"]]
    if any(pathlib.Path(name).name != name for name in names):
        raise ValueError("a file lies in another folder")
    tokens = manifest["tokens"]
    ids = [tokens[name] for name in ("cls", "sep", "pad", "mask")]
    numbers = [shard["sequences"] for shard in shards]
    numbers += [settings.get("sequence_length", 0), tokens["size"], *ids]
    if any(type(number) is not int or number < 0 for number in numbers):
        raise TypeError("a number is of another type or negative")
    if max(ids) >= tokens["size"]:
        raise ValueError("the id of a token is not in the vocabulary")
    if not isinstance(manifest["files"], list):
        raise TypeError("the files are not a list")


class Records:
    """Base class of open records.

    Args:
        path: string, the directory.

    Attributes:
        folder: `pathlib.Path`.
        manifest: dict, empty without one.
    """

    def __init__(self, path: str | os.PathLike):
        self.folder = pathlib.Path(path)
        self.manifest = read_manifest(self.folder)

    def read_shards(self, needed: Iterable[str] = ARRAYS) -> list[Arrays]:
        """Return the arrays of all shards; raise if they are incomplete or damaged."""
        if "shards" not in self.manifest:
            raise AlbertError(
                f"{self.folder} holds only a part of its records: `albert-tf "
                "pretrain-data` was interrupted. Run the same command again to resume."
            )
        return [self._read_shard(entry, needed) for entry in self.manifest["shards"]]

    def _read_shard(self, entry: Shard, needed: Iterable[str]) -> Arrays:
        folder = self.folder / entry["name"]
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder} is missing. Copy the records again.")
        arrays = read_shard(folder, needed)
        if len(arrays["lengths"]) != entry["sequences"]:
            raise AlbertError(f"{folder} is not of these records. Copy them again.")
        return arrays

    @property
    def sequence_length(self) -> int:
        """Maximum number of tokens per sequence, with special tokens."""
        return self.manifest["settings"]["sequence_length"]

    @property
    def tokens(self) -> dict[str, int]:
        """The `size` of the vocabulary, and the ids `cls`, `sep`, `pad` and `mask`."""
        return self.manifest["tokens"]

    @property
    def vocabulary(self) -> pathlib.Path:
        """The path of the vocabulary."""
        path = self.folder / self.manifest["vocabulary"]
        if path.is_file():
            check_downloaded(path)
        return path


def check_same_tokens(first: Records, second: Records) -> None:
    """Raise if two records have different vocabularies."""
    if first.vocabulary.read_bytes() != second.vocabulary.read_bytes():
        raise AlbertError(
            f"{first.folder} and {second.folder} have different vocabularies. Make the "
            "records with the same vocabulary."
        )
