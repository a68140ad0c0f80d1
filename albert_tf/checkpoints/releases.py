"""The checkpoints ALBERT was released in, read from `releases.json`."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pathlib
from typing import Any

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import file_config
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE
from albert_tf.files import file_digest

_LAYOUTS = {layout.name: layout for layout in (GOOGLE, ALBERT_ZH)}


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
    mirrors: tuple[str, ...] = ()  # Hugging Face names of the same weights.
    tf_hub: tuple[str, ...] = ()  # TF-Hub addresses, the oldest version first.
    # Published figures in percent: task, split ("" if the source does not name it),
    # metric, value, page and an optional note.
    accuracy: tuple[tuple, ...] = ()
    confused_with: tuple[str, ...] = ()  # The releases whose index may be this one's.
    note: str = ""

    @property
    def config(self) -> dict[str, Any]:
        """The fields of the config file that belongs to the checkpoint."""
        parameters = inspect.signature(AlbertBackbone).parameters.values()
        defaults = {x.name: x.default for x in parameters}
        layout = _LAYOUTS[self.layout]
        return file_config(layout, {**defaults, **layout.fixed, **self.arguments})


def _read_releases() -> dict[str, Release]:
    path = pathlib.Path(__file__).with_name("releases.json")
    table = json.loads(path.read_text(encoding="utf-8"))
    releases = {}
    for name, fields in table["releases"].items():
        scores = [
            (task, split, metric, value, table["pages"][page], *note)
            for task, split, metric, value, page, *note in fields.pop("accuracy", ())
        ]
        fields = {
            field: tuple(value) if isinstance(value, list) else value
            for field, value in {**fields, "accuracy": scores}.items()
        }
        releases[name] = Release(name, **fields)
    return releases


RELEASES = _read_releases()


def find_release(index: pathlib.Path) -> Release | None:
    """Return the release that an `.index` file belongs to, found by its SHA-256."""
    digest = file_digest(index)
    return next((x for x in RELEASES.values() if x.index_sha256 == digest), None)
