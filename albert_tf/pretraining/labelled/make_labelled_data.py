"""Make the records of labelled texts, for the stage with heads."""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from albert_tf.files import file_digest
from albert_tf.pretraining.labelled.labelled_set import Heads, LabelledSet, find_heads
from albert_tf.pretraining.labelled.text_packer import TextPacker
from albert_tf.pretraining.records.records_directory import (
    Header,
    Manifest,
    Shard,
    claim,
    complete_shard,
    publish,
    shard_name,
)
from albert_tf.pretraining.records.shard_files import LABELLED_ARRAYS, Arrays
from albert_tf.pretraining.records.shard_maker import load_tokens

# Part of every shard's name: increase it when the same texts give other records.
FORMAT = 1

Pairs = tuple[Sequence[str], Sequence[str]]


def make_labelled_data(
    sets: Iterable[LabelledSet],
    output: str | os.PathLike,
    vocabulary: str | os.PathLike,
    sequence_length: int = 512,
    pairs: Pairs | None = None,
    lowercase: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Manifest:
    """Write the records of labelled texts: flat arrays of token ids and labels.

    To resume an interrupted run, start it again with the same sets. Long texts of
    `"token-classification"` and contexts are read in windows; others are truncated.

    Args:
        sets: list of `LabelledSet`.
        output: string, the directory to write: shards `pretrain-*`, the vocabulary and
            `manifest.json`.
        vocabulary: string, path of a `vocab.txt` or a SentencePiece model.
        sequence_length: int. Maximum number of tokens per text, special tokens
            included.
        pairs: optional tuple of two lists of texts. Texts at the same place are
            similar, and their vectors shall attract each other.
        lowercase: bool. Lower-case the texts.
        progress: optional callable that receives the sets done and their total.

    Returns:
        The manifest, a dict as that of `make_pretraining_data`; also `heads`, by name
        the `task` and `labels` of each.

    Raises:
        AlbertError: if the sets of a head have different tasks, a label is not among
            the `labels` of its set, or the directory holds other records.

    Example:
    ```python
    texts, labels = ["很好", "太差了"], ["好评", "差评"]
    reviews = albert_tf.pretraining.LabelledSet(
        "shops", "sentiment", "text-classification", texts, labels
    )
    albert_tf.pretraining.make_labelled_data(
        [reviews], "labelled", "examples/albert_micro_zh/vocab.txt"
    )
    ```
    """
    sets = list(sets)
    output = pathlib.Path(output)
    vocabulary = pathlib.Path(vocabulary).resolve()
    heads = find_heads(sets)
    tokenizer, tokens = load_tokens(str(vocabulary), lowercase)
    settings = {
        "format": FORMAT,
        "lowercase": lowercase,
        "sequence_length": sequence_length,
        "vocabulary_sha256": file_digest(vocabulary),
    }
    packer = TextPacker(tokenizer, sequence_length)
    jobs = [_set_job(packer, data, heads) for data in sets]
    if pairs is not None:
        jobs.append(_pairs_job(packer, pairs))
    digests = [_digest(settings, heads, job.content) for job in jobs]
    header = Header(vocabulary, tokens, {**settings, "texts": digests}, heads=heads)
    with claim(output, header):
        shards: list[Shard] = []
        for number, (digest, job) in enumerate(zip(digests, jobs, strict=True)):
            folder = output / shard_name(number, 0, digest)
            for shard in complete_shard(folder, job.make, LABELLED_ARRAYS):
                shards.append({**shard, **job.entry})
            if progress is not None:
                progress(number + 1, len(jobs))
        counts = {"heads": len(heads), "sets": len(sets)}
        return publish(output, header, shards, counts)


@dataclasses.dataclass(frozen=True)
class _Job:
    """A shard that is to be made."""

    content: Any  # The examples, on which the name of the shard depends.
    make: Callable[[], Arrays]
    entry: dict[str, Any]  # Further fields of its entry in the manifest.


def _set_job(packer: TextPacker, data: LabelledSet, heads: Heads) -> _Job:
    labels = None if data.labels is None else [str(label) for label in data.labels]
    return _Job(
        content=[getattr(data, field.name) for field in dataclasses.fields(data)],
        make=functools.partial(packer.pack_set, data, heads[data.head]),
        entry={
            "set": data.name,
            "head": data.head,
            "labels": labels,
            "balanced": data.balanced,
        },
    )


def _pairs_job(packer: TextPacker, pairs: Pairs) -> _Job:
    return _Job(
        content=pairs,
        make=functools.partial(packer.pack_pairs, *pairs),
        entry={"pairs": True},
    )


def _digest(settings: dict[str, Any], heads: Heads, content: Any) -> str:
    """Return the part of a shard's name that depends on its content."""
    text = json.dumps([settings, heads, content], ensure_ascii=False, default=_plain)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _plain(values: Any) -> Any:
    """Return a NumPy array or number, or a Series, as JSON can hold it."""
    return values.tolist()
