"""The checkpoints ALBERT was released in, read from `releases.json`."""

import dataclasses
import inspect
import pathlib
from collections.abc import Sequence
from typing import Any

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import file_config
from albert_tf.checkpoints.layouts import LAYOUTS
from albert_tf.files import file_digest, read_releases


@dataclasses.dataclass(frozen=True)
class Release:
    """A released checkpoint."""

    name: str
    language: str  # "en" or "zh".
    layout: str  # "google" or "albert_zh".
    arguments: dict[str, Any]  # Arguments of `AlbertBackbone`.
    vocabulary: str | None  # The name of the file in the archive.
    lowercase: bool  # True if the text is lower-cased.
    url: str | None  # The address of the archive, if a public one is known.
    index_sha256: str | None = None  # SHA-256 of the `.index` file, if known.
    mirrors: Sequence[str] = ()  # Hugging Face names of the same weights.
    # Published figures in percent: task, split ("" if the source does not name it),
    # metric, value, source (in `pages` of releases.json) and an optional note.
    accuracy: Sequence[Sequence] = ()
    confused_with: Sequence[str] = ()  # The releases whose index may be this one's.
    note: str = ""

    @property
    def config(self) -> dict[str, Any]:
        """The fields of the config file that belongs to the checkpoint."""
        parameters = inspect.signature(AlbertBackbone).parameters.values()
        defaults = {x.name: x.default for x in parameters}
        layout = LAYOUTS[self.layout]
        return file_config(layout, {**defaults, **layout.fixed, **self.arguments})


RELEASES = {name: Release(name, **x) for name, x in read_releases().items()}


def find_release(index: pathlib.Path) -> Release | None:
    """Return the release that an `.index` file belongs to, found by its SHA-256."""
    digest = file_digest(index)
    return next((x for x in RELEASES.values() if x.index_sha256 == digest), None)
