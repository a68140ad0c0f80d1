"""The directory of records: by what they were made, which are done, the manifest."""

import hashlib
import json
import pathlib

from albert_tf.files import complete_file, file_digest
from albert_tf.pretraining.corpus import printable
from albert_tf.pretraining.shards import LONELY

MANIFEST = "manifest.json"
SETTINGS = "settings.json"
# A line for each block of text that is done.
DONE = "shards.jsonl"


class RecordsDirectory:
    """Knows which records of a corpus are done, and completes them.

    Args:
        path: path of the directory.
        corpus: a `Corpus`.
        settings: a `PretrainingData`.

    Raises:
        ValueError: if the directory holds records of other files or settings, or files
            of others under the names that are needed.
    """

    def __init__(self, path, corpus, settings):
        self._path = path
        self._corpus = corpus
        vocabulary = pathlib.Path(settings.vocabulary)
        self._described = {
            "files": [[printable(x.resolve()), x.stat().st_size] for x in corpus.files],
            "settings": settings.described(),
            "vocabulary": vocabulary.name,
        }
        before = self._read_done()
        # What may be removed at the end: this run's, and what earlier ones have noted.
        self._own = {shard["file"] for x in before.values() for shard in x["shards"]}
        self._refuse_files_of_others(vocabulary)
        before = {block: x for block, x in before.items() if self._is_there(x)}
        if any(shard["records"] for x in before.values() for shard in x["shards"]):
            self._refuse_other_settings()
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
        self._keep(DONE, _lines(before.values()))
        self._keep(SETTINGS, _json(self._described))
        self._keep(vocabulary.name, vocabulary.read_bytes())

    def _read_done(self):
        """The entries of earlier runs, by block."""
        path = self._path / DONE
        done = {}
        for line in path.read_bytes().split(b"\n") if path.exists() else ():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # It was cut off; its block is made again.
            done[entry["block"]] = entry
        return done

    def _is_there(self, entry):
        """Whether the files of a block are as they were written."""
        files = ((self._path / x["file"], x["sha256"]) for x in entry["shards"])
        return all(file.exists() and file_digest(file) == x for file, x in files)

    def _refuse_files_of_others(self, vocabulary):
        """Refuse what would be replaced and is of no earlier run."""
        if (self._path / DONE).exists():
            return
        copy = self._path / vocabulary.name
        ours = [self._path / MANIFEST, self._path / SETTINGS]
        if copy.exists() and copy.read_bytes() != vocabulary.read_bytes():
            ours.append(copy)
        for file in (*ours, *self._path.glob("pretrain-*.tfrecord")):
            if file.exists():
                raise ValueError(
                    f"{file} is there, which is to be written, but no {DONE} that says "
                    "it was written by this command. Give another directory, or "
                    "remove it."
                )

    def _refuse_other_settings(self):
        there = _read_json(self._path / SETTINGS)
        was, now = there["settings"], self._described["settings"]
        differ = [
            f"{name}={was.get(name)!r} (now {value!r})"
            for name, value in now.items()
            if was.get(name) != value
        ]
        # Their text may have changed: what is made of it is made again.
        files, own = (
            {name for name, _ in x["files"]} for x in (there, self._described)
        )
        if files != own:
            name = min(files ^ own)
            what = "gone" if name in files else "new"
            differ.append(f"other files, such as {name}, which is {what}")
        if differ:
            raise ValueError(
                f"{self._path} holds records made with {', '.join(differ)}. Give "
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
        """Note what `ShardMaker` has made.

        Args:
            block: int, the number of the block.
            digest: string, its `text_digest`.
            made: dict, what the `ShardMaker` returned.
        """
        (self._path / MANIFEST).unlink(missing_ok=True)
        self._done[block] = {"block": block, "text_sha256": digest, **made}
        with open(self._path / DONE, "a", encoding="utf-8") as log:
            log.write(_lines([self._done[block]]).decode())

    def finish(self):
        """Write the manifest, when all blocks were met.

        Returns:
            The manifest, a dict.

        Raises:
            ValueError: if there is no record.
        """
        entries = [self._done[block] for block in sorted(self._done)]
        shards = [shard for entry in entries for shard in entry["shards"]]
        # All of the text was read in this run, but for what made the records.
        counts = {x: y for x, y in self._corpus.counts.items() if isinstance(y, int)}
        for entry in entries:
            for name, count in entry["counts"].items():
                counts[name] = counts.get(name, 0) + count
        complaints = self._complaints(counts)
        if not counts.get("records"):
            raise ValueError(" ".join([_nothing(counts), *complaints]))
        names = {shard["file"] for shard in shards}
        for name in self._own - names:
            # Of text that was longer once.
            (self._path / name).unlink(missing_ok=True)
        manifest = {
            "counts": counts,
            "complaints": complaints,
            "shards": shards,
            **self._described,
        }
        self._keep(MANIFEST, _json(manifest))
        return manifest

    def _complaints(self, counts):
        complaints = [self._corpus.complaint] if self._corpus.complaint else []
        complaints += self._corpus.counts["unreadable"]
        if counts.get(LONELY):
            complaints.append(
                f"{counts[LONELY]:,} sequences are of blocks with one document, so "
                "that nothing of another could follow. Take larger blocks, and check "
                "that empty lines end the documents."
            )
        return complaints

    def _keep(self, name, content):
        """Write a file, unless it is there with this content."""
        path = self._path / name
        if path.exists() and path.read_bytes() == content:
            return
        with complete_file(path) as temporary:
            temporary.write_bytes(content)


def text_digest(block):
    """The SHA-256 of the text of a `Block`, a string."""
    text = "\n\n".join("\n".join(document) for document in block.documents)
    return hashlib.sha256(text.encode()).hexdigest()


def _nothing(counts):
    if not counts["documents"]:
        return "There is no text in the files."
    return (
        f"No sequence could be made of {counts['documents']:,} documents: two segments "
        "need two sentences. If each line is a part of one text, leave out "
        "document_per_line; if there is no order to learn, take order='none'."
    )


def _read_json(path):
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is missing or damaged ({error}), so that what was done cannot be "
            "continued. Remove the directory, or give another one."
        ) from error


def _json(data):
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode()


def _lines(entries):
    return "".join(f"{json.dumps(entry)}\n" for entry in entries).encode()
