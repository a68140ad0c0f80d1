"""Make the records of a corpus.

Each block of the corpus becomes one shard per duplicate, which depends on the block,
its index and the settings only: any number of processes or machines makes the same
records. A shard gets its final name, which contains a hash of the settings and the
text, when it is complete. The manifest names the shards when all are complete.
"""

import dataclasses
import functools
import hashlib
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

from albert_tf.executors import run_jobs, with_warnings
from albert_tf.files import (
    complete_file,
    only_writer,
    remove_abandoned,
    remove_directory,
    write_json,
)
from albert_tf.pretraining.corpus import Corpus, printable
from albert_tf.pretraining.records import MANIFEST, ORDERS, SHARDS, read_manifest
from albert_tf.pretraining.shards import PretrainingData, ShardMaker
from albert_tf.training.run_state import differences
from albert_tf_lite.changes import changed_error
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.unknown import issue_once


def make_pretraining_data(
    files: str | os.PathLike | Iterable[str | os.PathLike],
    output: str | os.PathLike,
    settings: PretrainingData,
    engine: str = "process",
    workers: int | None = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write the records of a corpus.

    To resume an interrupted run, start it again with the same files and settings. Only
    missing and damaged shards and those of changed text are written.

    Args:
        files: list of strings: paths and patterns such as `"corpus/**/*.txt"` of text
            files and JSON lines (`.jsonl`), also with `.gz` or `.zst`. An empty line
            ends a document, see `document_per_line` of the settings. Patterns leave out
            the vocabulary and `output`.
        output: string, the directory to write: shards `pretrain-*`, directories of
            memory-mapped arrays, the vocabulary and `manifest.json`.
        settings: a `PretrainingData`.
        engine: `"process"`, or `"ray"` for the machines of the Ray cluster in the
            environment variable `RAY_ADDRESS`, which share the files of `output` and
            the vocabulary.
        workers: optional int. Number of processes or Ray tasks; `None` for one per CPU.
        progress: optional callable that receives the bytes done and their total.

    Returns:
        The manifest, a dict: `counts`, `warnings`, `shards`, `files`, `settings`,
        `vocabulary`, the name of its file, and `tokens`, the size of the vocabulary and
        the ids of special tokens.

    Raises:
        FileNotFoundError: if a file is missing.
        AlbertError: if the vocabulary has no mask token, the directory holds records of
            other settings, or the text makes no records.
        OSError: if a shard cannot be written, or another process writes to the
            directory. Complete shards are kept.

    Example:
    ```python
    settings = albert_tf.pretraining.PretrainingData(
        "examples/albert_micro_zh/vocab.txt", sequence_length=64
    )
    albert_tf.pretraining.make_pretraining_data("corpus/*.txt", "records", settings)
    ```
    """
    if engine not in ("process", "ray"):
        raise AlbertError(f"`engine` must be 'process' or 'ray'. Received: {engine!r}")
    output = pathlib.Path(output)
    vocabulary = pathlib.Path(settings.vocabulary).resolve()
    settings = dataclasses.replace(settings, vocabulary=str(vocabulary))
    corpus = Corpus(
        files,
        block_bytes=settings.block_bytes,
        text_field=settings.text_field,
        excluded=(vocabulary, output),
        encoding=settings.encoding,
        document_per_line=settings.document_per_line,
    )
    # Check the vocabulary before writing anything.
    config = settings.get_config()
    # Absolute, because other machines have other working directories.
    make_shards = ShardMaker(settings, output.resolve(), config)
    output.mkdir(parents=True, exist_ok=True)
    with only_writer(output):
        header = {
            "files": [printable(x.resolve()) for x in corpus.files],
            "settings": config,
            "vocabulary": vocabulary.name,
            "tokens": make_shards.tokens,
        }
        claim(output, header, vocabulary)
        shards: list[dict[str, Any]] = []
        jobs = (
            (position, (index, documents))
            for index, (position, documents) in enumerate(corpus.blocks())
        )
        make, issued = functools.partial(with_warnings, make_shards), set[str]()
        for position, (made, messages) in run_jobs(make, jobs, engine, workers):
            shards += made
            for message in messages:
                issue_once(message, issued)
            if progress is not None:
                progress(position, corpus.total_bytes)
        if not corpus.counts["documents"]:
            raise AlbertError("The corpus has no text.")
        if not shards:
            raise AlbertError(
                f"No sequence could be made from {corpus.counts['documents']:,} "
                "documents: two segments need two sentences. Use order='none' for one "
                f"segment. {' '.join(corpus.warnings)}"
            )
        used = sum(x["documents"] for x in shards) // settings.duplicates
        left_out = corpus.counts["documents"] - used
        warnings = corpus.warnings
        if left_out and ORDERS[settings.order]:
            warnings.append(
                f"{left_out:,} of {corpus.counts['documents']:,} documents have one "
                "sentence, which makes no pair, and were left out. --keep-unpaired "
                "(`keep_unpaired=True`) keeps them, without labels of sentence order."
            )
        counts = {**corpus.counts, "left_out": left_out}
        return publish(output, header, shards, counts, warnings)


def claim(
    output: pathlib.Path, header: dict[str, Any], vocabulary: pathlib.Path
) -> None:
    """Write the vocabulary and a manifest without shards.

    Raise if the directory holds records of other files or settings.
    """
    before = read_manifest(output)
    copy, content = output / vocabulary.name, vocabulary.read_bytes()
    if hashlib.sha256(content).hexdigest() != header["settings"]["vocabulary_sha256"]:
        raise changed_error(vocabulary)
    if not before and copy.exists() and copy.read_bytes() != content:
        raise AlbertError(
            f"{copy} exists and is another vocabulary. Choose another directory, or "
            "remove it."
        )
    # While there are no records, a mistake in the settings can be corrected.
    if before and any(output.glob(SHARDS)):
        old, new = (
            {**x["settings"], "file": dict.fromkeys(x["files"], "given")}
            for x in (before, header)
        )
        if differ := differences(old, new):
            raise AlbertError(
                f"{output} holds records made with other settings ({differ}). Choose "
                "another directory, or remove it."
            )
    remove_abandoned(output, "pretrain-*")
    write_json(output / MANIFEST, header)
    with complete_file(copy) as temporary:
        temporary.write_bytes(content)


def publish(
    output: pathlib.Path,
    header: dict[str, Any],
    shards: list[dict[str, Any]],
    counts: dict[str, int],
    warnings: Iterable[str] = (),
) -> dict[str, Any]:
    """Write the manifest of complete records and return it."""
    # Shards of text that has changed since.
    for folder in set(output.glob(SHARDS)) - {output / x["name"] for x in shards}:
        remove_directory(folder)
    sums = {name: sum(x[name] for x in shards) for name in ("sequences", "tokens")}
    manifest: dict[str, Any] = {
        "counts": {**counts, **sums},
        "warnings": list(warnings),
        "shards": shards,
        **header,
    }
    write_json(output / MANIFEST, manifest)
    return manifest
