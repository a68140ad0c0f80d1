"""Compare a release, once fetched, with what its authors published."""

import dataclasses
import functools
import json
import os
import pathlib
import struct
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import RELEASES, open_checkpoint
from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.layout import float32_of
from albert_tf.checkpoints.layouts import LAYOUTS
from albert_tf.checkpoints.plan import plan_weights
from albert_tf.checkpoints.releases import Release
from albert_tf.models import AlbertMaskedLM
from albert_tf.models.task_of_checkpoint import build_model
from albert_tf_lite.errors import listed

# Checksums in the index of a TensorFlow checkpoint by the name of the tensor.
Checksums = dict[str, int]


@dataclasses.dataclass(frozen=True)
class Answer:
    """A published answer of a model, and that of a folder."""

    question: str
    published: list[float]
    found: list[float]
    tolerance: float
    source: str

    @property
    def is_equal(self) -> bool:
        differences = np.abs(np.subtract(self.published, self.found))
        return bool(differences.max() <= self.tolerance)

    def __str__(self) -> str:
        found, published = (_shown(x) for x in (self.found, self.published))
        return f"{self.question}: {found}, published {published} ({self.source})"


def _shown(values: list[float]) -> str:
    # As many decimals as the cards print.
    return " ".join(f"{value:.6g}" for value in np.round(values, 6))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `compare_with_published` found in a folder.

    Attributes:
        equal: names of tensors whose checksum is the published one.
        different: names of tensors with another checksum.
        absent: names of published tensors that the folder lacks. Conversions leave
            out heads.
        sizes: the arguments of the backbone that differ from the release.
        answers: the published answers, and those of the folder.
    """

    equal: list[str]
    different: list[str]
    absent: list[str]
    sizes: list[str]
    answers: list[Answer]

    @property
    def problems(self) -> list[str]:
        """What differs from the published release, a sentence each."""
        found = []
        if self.sizes:
            found.append(f"the config has {', '.join(self.sizes)}")
        if self.different:
            count = len(self.different) + len(self.equal)
            found.append(
                f"{len(self.different)} of {count} tensors have another checksum: "
                f"{listed(self.different)}"
            )
        found += [f"another answer, {x}" for x in self.answers if not x.is_equal]
        return found

    def lines(self) -> Iterator[str]:
        """Yield what was compared, for a person."""
        if self.equal or self.different:
            count = len(self.equal) + len(self.different)
            yield f"{len(self.equal)} of {count} tensors have the published checksum."
        else:
            yield "No checksums of its tensors are public."
        if self.absent:
            yield f"The folder lacks {listed(self.absent)}."
        if not self.answers:
            yield "No answers of it are public."
        yield from map(str, self.answers)


def compare_with_published(
    name: str, folder: str | os.PathLike, release: Release | None = None
) -> Comparison:
    """Compare a folder with what the authors of a release published.

    The checksums are those of the tensors in the layout of the release, so that a
    mirror in another layout is compared, too.

    Args:
        name: string, the name of a release, or an address on the Hub with known
            answers.
        folder: path of the checkpoint, as `download_release` returns it.
        release: optional `Release`, by default that of the name.

    Returns:
        A `Comparison`, whose `problems` are empty if all is as published.

    Raises:
        CheckpointError: if the checkpoint is damaged, or its shapes are not those of
            its config.
        AlbertError: if there are known answers, and it has no head to answer.

    Example:
    ```python
    from albert_tf.published import compare_with_published

    folder = albert_tf.checkpoints.download_release("albert_tiny_zh_google")
    print(*compare_with_published("albert_tiny_zh_google", folder).lines(), sep="\\n")
    ```
    """
    opened = open_checkpoint(folder)
    release = release or RELEASES.get(name)
    found = {} if release is None else checksums_of(opened, release.layout)
    known = _closest(found, name, release)
    answers = [x for x in read_published()["answers"] if x["release"] == name]
    return Comparison(
        equal=[x for x in known if found.get(x) == known[x]],
        different=[x for x in known if x in found and found[x] != known[x]],
        absent=[x for x in known if x not in found],
        sizes=[] if release is None else _other_sizes(opened, release),
        answers=[_answer(opened, x) for x in answers],
    )


@functools.cache
def read_published() -> dict[str, Any]:
    """Return the table of what was published, by kind."""
    file = pathlib.Path(__file__).with_suffix(".json")
    return json.loads(file.read_text("utf-8"))


def _closest(found: Checksums, name: str, release: Release | None) -> Checksums:
    """Return the published checksums, of several sets those with the most equal."""
    # Two trainings of albert_tiny_zh are known, but not which of them has which name.
    names = (name, *(release.confused_with if release else ()))
    table = read_published()["crc32c"]
    known = [table[x] for x in names if x in table]
    return max(known, key=lambda x: len(x.items() & found.items()), default={})


def _other_sizes(opened: Checkpoint, release: Release) -> list[str]:
    return [
        f"{argument}={opened.arguments[argument]!r} instead of {value!r}"
        for argument, value in release.arguments.items()
        if opened.arguments[argument] != value and "dropout" not in argument
    ]


def checksums_of(opened: Checkpoint, layout: str) -> Checksums:
    """Return the checksum of each tensor that a checkpoint has in a layout."""
    model = opened.model or build_model(opened)
    parts = [x for x in opened.parts if x in LAYOUTS[layout].weights]
    found: Checksums = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        record = pathlib.Path(scratch, "record")
        for weight, tensors in plan_weights(LAYOUTS[layout], model, parts):
            value = float32_of(weight.value, tensors.names[0], opened.path)
            arrays = tensors.from_weight(value)
            for name, array in zip(tensors.names, arrays, strict=True):
                found[name] = _checksum(np.asarray(array), record)
    return found


def _checksum(array: np.ndarray, record: pathlib.Path) -> int:
    """Return the masked CRC32C of an array, as TensorFlow's checkpoints store it."""
    # TensorFlow writes it after the data of a record, too. Python has no CRC32C.
    with tf.io.TFRecordWriter(str(record)) as writer:
        writer.write(array.astype("<f4").tobytes())
    with record.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        (checksum,) = struct.unpack("<I", file.read())
    return checksum


def _answer(opened: Checkpoint, published: dict[str, Any]) -> Answer:
    """Let a checkpoint answer a published question."""
    answer = functools.partial(
        Answer, tolerance=read_published()["tolerance"], source=published["source"]
    )
    if "tokens" in published:
        model = AlbertMaskedLM.from_checkpoint(opened)
        (filled,) = model.fill([published["text"]], top_k=10)
        scores = {x["token_str"]: x["score"] for x in filled}
        tokens = published["tokens"]
        return answer(
            question=f"{published['text']} {' '.join(tokens)}",
            published=list(tokens.values()),
            # A token that is not among the first has a lower probability than they.
            found=[float(scores.get(token, 0.0)) for token in tokens],
        )
    ids, mask = (np.array([published[x]]) for x in ("ids", "mask"))
    backbone = opened.build_backbone(pooler=opened.has_pooler)
    opened.load_into(backbone)
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
    hidden = np.asarray(backbone(inputs)["sequence_output"], "float32")
    return answer(
        question="hidden state [1:4, 1:4]",
        published=np.ravel(published["hidden"]).tolist(),
        found=hidden[0, 1:4, 1:4].ravel().tolist(),
    )
