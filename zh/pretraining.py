"""From text files to masked TFRecords: what ALBERT is pretrained on.

The text is read as blocks of documents (`albert_tf.preprocessing.corpus`), and each
block becomes one file of records, a function of the block, its number and the settings
alone. So the records are the same however many processes or machines make them, and a
run that was cut off goes on with the blocks that are not done.
"""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import pickle
import shutil

import numpy as np
import tensorflow as tf

from albert_tf.files import make_folder, write_text
from albert_tf.preprocessing import load_tokenizer
from albert_tf.preprocessing.corpus import Corpus
from albert_tf.preprocessing.pretraining_records import write_records
from albert_tf.preprocessing.segment_pairs import (
    ORDERS,
    assemble,
    draw_segment_pairs,
)
from albert_tf.preprocessing.whole_word_mask_generator import WholeWordMaskGenerator
from zh.engines import ENGINES
from zh.segmentation import Jieba
from zh.sentence_tokens import SentenceTokenizer

MANIFEST = "manifest.json"
SETTINGS = "settings.json"
# A line for each file of records that is done, while others are not.
DONE = "shards.jsonl"
# Sequences masked at a time.
ROWS = 256


@dataclasses.dataclass(frozen=True)
class PretrainingData:
    """How text becomes masked sequences.

    Args:
        vocabulary: string, path of a `vocab.txt` or a SentencePiece model.
        lowercase: bool. Lower-case the text.
        sequence_length: int. Tokens of a sequence, with `[CLS]` and `[SEP]`.
        mask_rate: float. The share of the tokens to predict: 0.15, or 0.10 as
            albert_zh.
        ngram: int. Most words masked together.
        max_predictions: optional int. Most predictions of a sequence; by default a
            quarter more than `mask_rate` of its tokens.
        whole_word: bool. Mask whole words, or else single tokens.
        segmenter: optional, what cuts words: `zh.Jieba()` by default, `zh.Whitespace()`
            or a function of a string.
        duplicates: int. How often the text is used, each time in other pairs and
            with other masks.
        order: string, what the second segment is: `"sop"`, `"nsp"`, `"three_way"` or
            `"none"`.
        short_sequence_rate: float. The share of sequences of a random shorter length.
        marked_labels: bool. As labels of what does not begin a word `##` and the
            character, as in albert_zh, instead of the character.
        document_per_line: bool. A line is a document, not a sentence or paragraph.
        text_field: string, the field of JSON lines that holds the text.
        block_bytes: int. Text of a file of records, in bytes.
        seed: int.

    Raises:
        ValueError: if a value is impossible.
    """

    vocabulary: str
    lowercase: bool = True
    sequence_length: int = 512
    mask_rate: float = 0.15
    ngram: int = 3
    max_predictions: int | None = None
    whole_word: bool = True
    segmenter: object = None
    duplicates: int = 1
    order: str = "sop"
    short_sequence_rate: float = 0.1
    marked_labels: bool = False
    document_per_line: bool = False
    text_field: str = "text"
    block_bytes: int = 4_000_000
    seed: int = 0

    def __post_init__(self):
        if self.order not in ORDERS:
            raise ValueError(f"Unknown order {self.order!r}. Known: {list(ORDERS)}")
        for name, least in (
            ("sequence_length", 8),
            ("duplicates", 1),
            ("block_bytes", 1),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"`{name}` should be {least} at least. Got: {value}")
        if not 0 <= self.short_sequence_rate <= 1:
            raise ValueError(
                "`short_sequence_rate` should be from 0 to 1. Received: "
                f"{self.short_sequence_rate}"
            )

    @property
    def predictions(self):
        """Most predictions of a sequence, an int."""
        if self.max_predictions is not None:
            return self.max_predictions
        return int(np.ceil(1.25 * self.mask_rate * self.sequence_length))

    def described(self):
        """The settings as JSON has them, a dict."""
        fields = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("vocabulary", "segmenter")
        }
        segmenter = _name_of(self.segmenter or Jieba()) if self.whole_word else None
        content = pathlib.Path(self.vocabulary).read_bytes()
        return {
            **fields,
            "max_predictions": self.predictions,
            "segmenter": segmenter,
            "vocabulary_sha256": hashlib.sha256(content).hexdigest(),
        }


def _name_of(segmenter):
    # A function's `repr` has its address, which is another in each run.
    return getattr(segmenter, "__qualname__", None) or repr(segmenter)


def make_pretraining_data(
    files, output, settings, engine="process", workers=1, address=None, progress=None
):
    """Write the records of a corpus.

    A run that was cut off goes on where it was, if it is started again with the same
    files and settings; one that was done is left as it is.

    Args:
        files: list of strings: text files and patterns such as `"corpus/*.txt"`; also
            `.gz`, `.zst` and JSON lines, see `albert_tf.preprocessing.corpus`.
        output: string, the directory to write: `pretrain-*.tfrecord`, the vocabulary
            and `manifest.json`.
        settings: a `PretrainingData`.
        engine: `"process"`, or `"ray"` for several machines.
        workers: int. Processes, or Ray tasks, that run at once.
        address: optional string, of the Ray cluster.
        progress: optional callable, given the bytes done and those there are.

    Returns:
        The manifest, a dict: `counts`, `shards`, `files` and `settings`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the vocabulary lacks a token that masking needs, the directory
            holds records of other settings, or there is no text in the files.
        OSError: if a file cannot be written. What is done stays.
    """
    corpus = Corpus(
        files,
        settings.document_per_line,
        block_bytes=settings.block_bytes,
        text_field=settings.text_field,
    )
    # A vocabulary is refused before anything is written. What an earlier call has made
    # goes: its vocabulary may have changed.
    pickled = pickle.dumps(settings)
    _shard_maker.cache_clear()
    _shard_maker(pickled)
    output = pathlib.Path(output)
    make_folder(output)
    described = {
        "files": [[str(path), path.stat().st_size] for path in corpus.files],
        "settings": settings.described(),
    }
    _refuse_other_settings(output, described)
    if (output / MANIFEST).exists():
        return json.loads((output / MANIFEST).read_text(encoding="utf-8"))
    write_text(output / SETTINGS, json.dumps(described, indent=2))
    shutil.copy(settings.vocabulary, output)
    done = _done(output)
    jobs = (
        (block.position, (str(output), block.index, block.documents, pickled))
        for block in corpus.blocks()
        if block.index not in done
    )
    with open(output / DONE, "a", encoding="utf-8") as log:
        for position, shard in ENGINES[engine](make_shard, jobs, workers, address):
            done[shard["index"]] = shard
            log.write(json.dumps(shard) + "\n")
            log.flush()
            if progress is not None:
                progress(position, corpus.total_bytes)
    return _finish(output, described, done, corpus)


def _refuse_other_settings(output, described):
    path = output / SETTINGS
    if not path.exists():
        return
    there = json.loads(path.read_text(encoding="utf-8"))
    differ = [
        f"{name}={there['settings'].get(name)!r} (now {value!r})"
        for name, value in described["settings"].items()
        if there["settings"].get(name) != value
    ]
    if there["files"] != described["files"]:
        differ.append("other files, or files of other sizes")
    if differ:
        raise ValueError(
            f"{output} holds records made with {', '.join(differ)}. Give another "
            "directory, or remove it."
        )


def _done(output):
    """The shards that an earlier run has finished, by their index."""
    path = output / DONE
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    done = {}
    # What follows the last line's end was cut off.
    for line in lines[:-1]:
        shard = json.loads(line)
        file = output / shard["file"]
        if file.exists() and file.stat().st_size == shard["bytes"]:
            done[shard["index"]] = shard
    write_text(path, "".join(json.dumps(shard) + "\n" for shard in done.values()))
    return done


def _finish(output, described, done, corpus):
    complaints = [corpus.complaint] if corpus.complaint else []
    complaints += corpus.counts["unreadable"]
    if not done:
        raise ValueError(" ".join(["There is no text in the files.", *complaints]))
    shards = [done[index] for index in sorted(done)]
    # All of the text was read in this run, too, but for what made the records.
    counts = {x: y for x, y in corpus.counts.items() if isinstance(y, int)}
    for shard in shards:
        for name, count in shard.pop("counts").items():
            counts[name] = counts.get(name, 0) + count
    manifest = {
        "counts": counts,
        "complaints": complaints,
        "shards": shards,
        **described,
    }
    write_text(output / MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=2))
    (output / DONE).unlink()
    return manifest


def make_shard(directory, index, documents, pickled):
    """Make the records of a block of text; what the workers run.

    Args:
        directory: string, where to write.
        index: int, the block's number.
        documents: list of lists of lines, strings.
        pickled: bytes, the settings.

    Returns:
        A dict: `index`, `file`, `bytes`, `sha256`, `records` and `counts`.
    """
    return _shard_maker(pickled)(pathlib.Path(directory), index, documents)


@functools.lru_cache(maxsize=1)
def _shard_maker(pickled):
    return ShardMaker(pickle.loads(pickled))


class ShardMaker:
    """Makes files of records, with the vocabulary and dictionary held ready.

    Args:
        settings: a `PretrainingData`.
    """

    def __init__(self, settings):
        self._settings = settings
        self._tokenizer = load_tokenizer(settings.vocabulary, settings.lowercase)
        segmenter = (settings.segmenter or Jieba()) if settings.whole_word else None
        # Two sentences are to find room in a sequence.
        longest = max(settings.sequence_length // 2, 1)
        self._sentences = SentenceTokenizer(self._tokenizer, segmenter, longest)
        self._masks = WholeWordMaskGenerator.for_tokenizer(
            self._tokenizer,
            settings.mask_rate,
            settings.predictions,
            settings.marked_labels,
            ngram=settings.ngram,
        )
        length = settings.sequence_length
        self._mask = tf.function(
            self._masks.call,
            input_signature=[
                tf.TensorSpec([None, length], tf.int32),
                tf.TensorSpec([None, length], tf.bool),
                tf.TensorSpec([2], tf.int32),
            ],
        )

    def __call__(self, directory, index, documents):
        sentences = self._sentences(documents)
        drawn = [
            self._sequences(sentences, index, duplicate)
            for duplicate in range(self._settings.duplicates)
        ]
        dropped = sum(count for _, count in drawn)
        arrays = {
            key: np.concatenate([part[key] for part, _ in drawn]) for key in drawn[0][0]
        }
        random = np.random.default_rng([self._settings.seed, index])
        order = random.permutation(len(arrays["labels"]))
        arrays = {key: values[order] for key, values in arrays.items()}
        file = f"pretrain-{index:05d}.tfrecord"
        return {
            "index": index,
            "records": len(order),
            **_write_shard(directory / file, arrays),
            "counts": {
                "tokens": len(sentences.tokens),
                "records": len(order),
                "predictions": int(arrays["mask_weights"].sum()),
                "sentences without a second": dropped,
            },
        }

    def _sequences(self, sentences, index, duplicate):
        """Masked sequences of all the text, and how many sentences were dropped."""
        settings, tokenizer = self._settings, self._tokenizer
        random = np.random.default_rng([settings.seed, index, duplicate])
        pairs = draw_segment_pairs(
            sentences,
            settings.sequence_length,
            random,
            settings.order,
            settings.short_sequence_rate,
        )
        arrays = assemble(
            sentences,
            pairs,
            settings.sequence_length,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
            tokenizer.pad_token_id,
        )
        masked = [
            self._mask(
                arrays["token_ids"][row : row + ROWS],
                arrays["word_starts"][row : row + ROWS],
                random.integers(2**31, size=2).astype("int32"),
            )
            for row in range(0, max(len(pairs.labels), 1), ROWS)
        ]
        for key in masked[0]:
            arrays[key] = np.concatenate([part[key].numpy() for part in masked])
        return {**arrays, "labels": pairs.labels}, pairs.dropped


def _write_shard(path, arrays):
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write_records(temporary, arrays)
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
        size = temporary.stat().st_size
        os.replace(temporary, path)
    except tf.errors.OpError as error:
        raise OSError(
            f"{path} cannot be written: {error.message}. Is the disk full? What was "
            "written before stays; run the same command to go on."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    return {"file": path.name, "bytes": size, "sha256": digest}
