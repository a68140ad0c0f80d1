"""Make the records of a corpus.

Each block of the corpus becomes one shard per duplicate, which depends on the block,
its index and the settings only: any number of processes or machines makes the same
records.
"""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator

from albert_tf.executors import run_jobs, with_warnings
from albert_tf.pretraining.records.corpus import Corpus
from albert_tf.pretraining.records.corpus_files import printable
from albert_tf.pretraining.records.records_directory import (
    Header,
    Manifest,
    Shard,
    claim,
    publish,
)
from albert_tf.pretraining.records.segment_pairs import ORDERS
from albert_tf.pretraining.records.shard_maker import PretrainingData, ShardMaker
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.unknown import issue_once


def make_pretraining_data(
    files: str | os.PathLike | Iterable[str | os.PathLike],
    output: str | os.PathLike,
    settings: PretrainingData,
    engine: str = "process",
    workers: int | None = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Manifest:
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
    maker = ShardMaker(settings, output.resolve(), config)
    header = Header(
        vocabulary,
        maker.tokens,
        config,
        files=[printable(file.resolve()) for file in corpus.files],
    )
    with claim(output, header):
        shards: list[Shard] = []
        for position, made in _made_shards(corpus, maker, engine, workers):
            shards += made
            if progress is not None:
                progress(position, corpus.total_bytes)
        _check_sequences(corpus, shards)
        used = sum(shard["documents"] for shard in shards) // settings.duplicates
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


def _made_shards(
    corpus: Corpus, maker: ShardMaker, engine: str, workers: int | None
) -> Iterator[tuple[int, list[Shard]]]:
    """Yield the shards of each block, and the bytes of the corpus that were read."""
    jobs = (
        (position, (index, documents))
        for index, (position, documents) in enumerate(corpus.blocks())
    )
    make = functools.partial(with_warnings, maker)
    issued: set[str] = set()
    for position, (shards, messages) in run_jobs(make, jobs, engine, workers):
        for message in messages:
            issue_once(message, issued)
        yield position, shards


def _check_sequences(corpus: Corpus, shards: list[Shard]) -> None:
    """Raise if a corpus made no sequence."""
    documents = corpus.counts["documents"]
    if not documents:
        raise AlbertError("The corpus has no text.")
    if not shards:
        raise AlbertError(
            f"No sequence could be made from {documents:,} documents: two segments "
            "need two sentences. Use order='none' for one segment. "
            f"{' '.join(corpus.warnings)}"
        )
