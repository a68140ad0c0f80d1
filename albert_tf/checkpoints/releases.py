"""The checkpoints ALBERT was released in.

`releases.json` is the table, with its sources; `release_checksums.json` has the
tensors of those whose `.index` file is public.
"""

import dataclasses
import functools
import inspect
import json
import pathlib

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import file_config
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE

_LAYOUTS = {layout.name: layout for layout in (GOOGLE, ALBERT_ZH)}


@dataclasses.dataclass(frozen=True)
class Score:
    """A published figure.

    Attributes:
        task: string, the data set.
        split: string, such as `"dev"`, or `""` if the source does not say.
        metric: string.
        value: float, in percent.
        source: string, address of the page that publishes it.
        note: string, what to know before comparing.
    """

    task: str
    split: str
    metric: str
    value: float
    source: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Release:
    """A released checkpoint.

    Attributes:
        name: string.
        language: string, `"en"` or `"zh"`.
        layout: string, `"google"` or `"albert_zh"`.
        arguments: dict of `AlbertBackbone` arguments.
        vocabulary: string, name of the file in the archive, or `None`.
        lowercase: bool, whether text is lower-cased before it is cut into pieces.
        url: string, address of the archive, or `None` if no public one is known.
        mirrors: tuple of the Hugging Face names that hold the same weights.
        tf_hub: tuple of TF-Hub addresses, the oldest version first.
        accuracy: tuple of `Score`.
        confused_with: tuple of the releases whose checksums may be this one's, and
            the other way round.
        note: string, what else there is to know.
    """

    name: str
    language: str
    layout: str
    arguments: dict
    vocabulary: str | None
    lowercase: bool
    url: str | None
    mirrors: tuple = ()
    tf_hub: tuple = ()
    accuracy: tuple = ()
    confused_with: tuple = ()
    note: str = ""

    @property
    def checksums(self):
        """Dict of tensor name to CRC32C (masked, as in the index), or empty."""
        tensors = _checksums().get(self.name, {})
        return {tensor: crc32c for tensor, (crc32c, _) in tensors.items()}

    @property
    def shapes(self):
        """Dict of tensor name to shape, or empty where no index is known."""
        tensors = _checksums().get(self.name, {})
        return {tensor: tuple(shape) for tensor, (_, shape) in tensors.items()}

    @property
    def config(self):
        """The fields of the config file that belongs to the checkpoint."""
        parameters = inspect.signature(AlbertBackbone).parameters.values()
        defaults = {x.name: x.default for x in parameters}
        layout = _LAYOUTS[self.layout]
        return file_config(layout, {**defaults, **layout.fixed, **self.arguments})


@functools.cache
def _checksums():
    """{release: {tensor: [crc32c, shape]}}, the CRC32C masked as TensorFlow stores it.

    Weights only, and only of the releases whose `.index` file is public.
    """
    return _read_table("release_checksums.json")


def _read_table(name):
    path = pathlib.Path(__file__).with_name(name)
    return json.loads(path.read_text(encoding="utf-8"))


def identify(checksums):
    """Find the release a checkpoint is, or was made from, by its checksums.

    Args:
        checksums: dict of tensor name to CRC32C, as in the checkpoint's index.

    Returns:
        `(release, differences)`: a `Release` that more than half of whose tensors
        are in the checkpoint unchanged, and a list of short texts that say which
        are not, empty for the complete release. `(None, [])` if there is none.
        Optimizer slots and the step counter do not count.
    """
    # An optimizer slot is named after its variable: "VARIABLE/adam_m".
    tensors = {
        name: crc32c
        for name, crc32c in checksums.items()
        if name != "global_step" and name.rpartition("/")[0] not in checksums
    }

    def num_equal(release):
        return len(release.checksums.items() & tensors.items())

    known = [RELEASES[name] for name in _checksums() if name in RELEASES]
    release = max(known, key=num_equal, default=None)
    if release is None or 2 * num_equal(release) <= len(release.checksums):
        return None, []
    released = release.checksums
    return release, [
        *(
            f"{name} has other values"
            for name, crc32c in released.items()
            if tensors.get(name, crc32c) != crc32c
        ),
        *(f"{name} is missing" for name in released if name not in tensors),
        *(f"{name} is not in the release" for name in tensors if name not in released),
    ]


def _releases():
    table = _read_table("releases.json")
    found = {}
    for name, fields in table["releases"].items():
        scores = fields.pop("accuracy", ())
        fields = {
            field: tuple(value) if isinstance(value, list) else value
            for field, value in fields.items()
        }
        fields["accuracy"] = tuple(
            Score(task, split, metric, value, table["pages"][page], *note)
            for task, split, metric, value, page, *note in scores
        )
        found[name] = Release(name, **fields)
    return found


RELEASES = _releases()
