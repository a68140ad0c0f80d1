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
    """A released checkpoint.

    Attributes:
        name: string.
        language: string, `"en"` or `"zh"`.
        layout: string, `"google"` or `"albert_zh"`.
        arguments: dict of `AlbertBackbone` arguments.
        vocabulary: string, name of the file in the archive, or `None`.
        lowercase: bool. If `True`, the text is lower-cased.
        url: string, address of the archive, or `None` if no public one is known.
        index_sha256: string, SHA-256 of the `.index` file, or `None` if unknown.
        mirrors: tuple of the Hugging Face names that hold the same weights.
        tf_hub: tuple of TF-Hub addresses, the oldest version first.
        accuracy: tuple of published figures in percent: task, split (`""` if the
            source does not name it), metric, value, page and an optional note.
        confused_with: tuple of the releases whose index may be this one's, and the
            other way round.
        note: string, further remarks.
    """

    name: str
    language: str
    layout: str
    arguments: dict[str, Any]
    vocabulary: str | None
    lowercase: bool
    url: str | None
    index_sha256: str | None = None
    mirrors: tuple[str, ...] = ()
    tf_hub: tuple[str, ...] = ()
    accuracy: tuple[tuple, ...] = ()
    confused_with: tuple[str, ...] = ()
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
