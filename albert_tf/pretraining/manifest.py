"""A directory of records: how it was made, which blocks are done, the manifest.

While records are made, `progress.jsonl` grows: a line with the files and settings,
then one for each block of text that is done. `manifest.json` is written when all are.
"""

import collections
import hashlib
import json
import pathlib

from albert_tf.files import complete_file, file_digest, write_json, write_text
from albert_tf.pretraining.corpus_files import printable
from albert_tf.pretraining.shards import ONE_DOCUMENT
from albert_tf.training.run_state import differences
from albert_tf_lite.errors import AlbertError

MANIFEST, PROGRESS = "manifest.json", "progress.jsonl"


def read_manifest(folder):
    """What `make_pretraining_data` says of a folder; empty for other programs' records.

    Raises:
        AlbertError: if it is damaged, or the records were not made to the end.
    """
    file = folder / MANIFEST
    if not file.exists():
        if (folder / PROGRESS).exists():
            raise AlbertError(
                f"{folder} holds a part of its records at most: `albert-tf "
                "pretrain-data` did not end there. Run the same command again, to "
                "resume or to see what stopped it."
            )
        return {}
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        for shard in manifest["shards"]:
            shard["file"], shard["bytes"], shard["sha256"], shard["records"]
        manifest["settings"], manifest["vocabulary"]
    except (ValueError, LookupError, TypeError) as error:
        raise AlbertError(
            f"{file} is cut short, or no manifest of `albert-tf pretrain-data` "
            f"({error!r}). Copy it again, or rebuild the records."
        ) from error
    return manifest


class RecordsDirectory:
    """Knows which records of a corpus are done, and completes them.

    Refuses a directory that holds records of other files or settings, or files of
    others under the names that are needed.
    """

    def __init__(self, path, corpus, settings):
        self._path = path
        self._corpus = corpus
        vocabulary = pathlib.Path(settings.vocabulary)
        self._header = {
            "files": [[printable(x.resolve()), x.stat().st_size] for x in corpus.files],
            "settings": settings.described(),
            "vocabulary": vocabulary.name,
        }
        content = vocabulary.read_bytes()
        header, before = self._read_progress()
        if header is None:
            self._refuse_files_of_others(vocabulary.name, content)
        # What may be removed at the end: this run's, and what earlier ones have noted.
        self._own = {shard["file"] for x in before.values() for shard in x["shards"]}
        before = {block: x for block, x in before.items() if self._is_there(x)}
        if any(shard["records"] for x in before.values() for shard in x["shards"]):
            self._refuse_other_settings(header)
        else:
            # Nothing is lost: a mistake in the settings may be corrected.
            before = {}
            (path / MANIFEST).unlink(missing_ok=True)
        self._before = before
        # The entries of the blocks met in this run.
        self._done = {}
        # What a process that was killed had begun.
        for file in path.glob(".pretrain-*.part"):
            file.unlink(missing_ok=True)
        # First what says that the others are ours.
        lines = map(_line, [self._header, *before.values()])
        write_text(path / PROGRESS, "".join(lines))
        with complete_file(path / vocabulary.name) as temporary:
            temporary.write_bytes(content)

    def _read_progress(self):
        """How earlier runs were made, or `None`, and their entries by block."""
        file = self._path / PROGRESS
        if not file.exists():
            return None, {}
        first, *lines = file.read_bytes().split(b"\n")
        done = {}
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # It was cut off; its block is done again.
            done[entry["block"]] = entry
        try:
            return json.loads(first), done
        except ValueError as error:
            raise AlbertError(
                f"{file} is damaged ({error}), so that the run cannot be resumed. "
                "Remove the directory, or give another one."
            ) from error

    def _is_there(self, entry):
        """Whether the files of a block are as they were written."""
        files = ((self._path / x["file"], x["sha256"]) for x in entry["shards"])
        return all(file.exists() and file_digest(file) == x for file, x in files)

    def _refuse_files_of_others(self, vocabulary, content):
        """Refuse what would be replaced and is of no earlier run."""
        copy = self._path / vocabulary
        found = [*self._path.glob(MANIFEST), *self._path.glob("pretrain-*.tfrecord")]
        if copy.exists() and copy.read_bytes() != content:
            found.append(copy)
        if found:
            raise AlbertError(
                f"{found[0]} is there, which is to be written, but no {PROGRESS} that "
                "says it was written by this command. Give another directory, or "
                "remove it."
            )

    def _refuse_other_settings(self, header):
        # Not the files' sizes: of text that has changed the records are rebuilt.
        there, now = (
            {**x["settings"], **{f"file {name}": "given" for name, _ in x["files"]}}
            for x in (header, self._header)
        )
        if differ := differences(there, now):
            raise AlbertError(
                f"{self._path} holds records made with other settings ({differ}). Give "
                "another directory, or remove it."
            )

    def is_done(self, block):
        """Whether the records of a `Block` are there, of this very text."""
        entry = self._before.get(block.index)
        if entry is None or entry["text_sha256"] != text_digest(block):
            return False
        self._done[block.index] = entry
        return True

    def add(self, block, digest, made):
        """Note what the `ShardMaker` made of a block, of text with this digest."""
        (self._path / MANIFEST).unlink(missing_ok=True)
        self._done[block] = {"block": block, "text_sha256": digest, **made}
        with open(self._path / PROGRESS, "a") as log:
            log.write(_line(self._done[block]))

    def finish(self):
        """Write the manifest, when all blocks were met, and return it, a dict.

        Raises:
            AlbertError: if there is no record.
        """
        entries = [self._done[block] for block in sorted(self._done)]
        shards = [shard for entry in entries for shard in entry["shards"]]
        # All of the text was read in this run, but for what made the records.
        counts = collections.Counter(self._corpus.counts)
        for entry in entries:
            counts.update(entry["counts"])
        warnings = self._corpus.warnings
        if not counts["records"]:
            raise AlbertError(" ".join([_no_records(counts), *warnings]))
        if counts[ONE_DOCUMENT]:
            warnings.append(
                f"{counts[ONE_DOCUMENT]:,} sequences are of blocks with one document, "
                "so that nothing of another could follow. Take larger blocks, and "
                "check that empty lines end the documents."
            )
        for name in self._own - {shard["file"] for shard in shards}:
            # Of text that was longer once.
            (self._path / name).unlink(missing_ok=True)
        found = {"counts": dict(counts), "warnings": warnings, "shards": shards}
        manifest = {**found, **self._header}
        write_json(self._path / MANIFEST, manifest)
        return manifest


def text_digest(block):
    """The SHA-256 of the text of a `Block`, a string."""
    text = "\n\n".join("\n".join(document) for document in block.documents)
    return hashlib.sha256(text.encode()).hexdigest()


def _no_records(counts):
    if not counts["documents"]:
        return "There is no text in the files."
    return (
        f"No sequence could be made of {counts['documents']:,} documents: two segments "
        "need two sentences. If each line is a part of one text, leave out "
        "document_per_line; if there is no order to learn, take order='none'."
    )


def _line(entry):
    return json.dumps(entry) + "\n"
