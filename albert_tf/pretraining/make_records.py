"""From text files to TFRecords: what ALBERT is pretrained on.

The text is read as blocks of documents (`albert_tf.pretraining.corpus`), and each
block becomes a file of records for each duplicate, a function of the block, its number
and the settings alone. So the records are the same however many processes or machines
make them, and a run that was cut off resumes with the blocks that are not done.
"""

import dataclasses
import pathlib
import re

from albert_tf.files import file_digest, make_folder, only_writer
from albert_tf.pretraining.corpus import Corpus
from albert_tf.pretraining.engines import ENGINES
from albert_tf.pretraining.manifest import PROGRESS, RecordsDirectory, text_digest
from albert_tf.pretraining.masking import MASK_DEFAULTS, mask_settings
from albert_tf.pretraining.segment_pairs import ORDERS
from albert_tf.pretraining.shards import ShardMaker
from albert_tf_lite.errors import AlbertError

_LEAST = {"sequence_length": 8, "duplicates": 1, "block_bytes": 1, "seed": 0}


@dataclasses.dataclass(frozen=True)
class PretrainingData:
    """How text becomes sequences.

    Args:
        vocabulary: string, path of a `vocab.txt` or a SentencePiece model.
        lowercase: bool. Lower-case the text.
        sequence_length: int. Tokens of a sequence, with `[CLS]` and `[SEP]`.
        segmenter: optional function of a string that returns its words, such as
            `zh.Jieba()`; see `albert_tf.preprocessing.words`. Without it each token is
            a word.
        split_sentences: optional function of a line that returns its sentences, such
            as `zh.split_sentences`. Without it a line is a sentence.
        duplicates: int. How often the text is used, each time in other pairs.
        order: string, what the second segment is: `"sop"`, `"nsp"`, `"three_way"` or
            `"none"`.
        keep_unpaired: bool. A document's sentence that has no second makes a sequence
            of one segment, with no part in sentence order; else it is left out, as in
            the original. Not with `masked`: other readers would learn its label.
        short_sequence_rate: float. The share of sequences of a random shorter length.
        masked: bool. Mask the sequences now, as the original code reads them. By
            default masks are drawn when records are read.
        mask_selection_rate: optional float, for `masked`. The share of the tokens to
            predict, 0.15 by default; albert_zh has 0.10.
        mask_selection_length: optional int, for `masked`. Most predictions of a
            sequence; by default a quarter more than the rate of its tokens.
        ngram: optional int, for `masked`. Most words masked together, 3 by default.
        marked_labels: optional bool, for `masked`. As labels of what does not begin a
            word `##` and the character, as in albert_zh, instead of the character.
        document_per_line: bool. A line is a document, not a sentence or paragraph.
        text_field: string, the field of JSON lines that holds the text.
        block_bytes: int. Text of a file of records, in bytes.
        seed: int.

    Raises:
        AlbertError: if a value is impossible.
    """

    vocabulary: str
    lowercase: bool = True
    sequence_length: int = 512
    segmenter: object = None
    split_sentences: object = None
    duplicates: int = 1
    order: str = "sop"
    keep_unpaired: bool = False
    short_sequence_rate: float = 0.1
    masked: bool = False
    mask_selection_rate: float | None = None
    mask_selection_length: int | None = None
    ngram: int | None = None
    marked_labels: bool | None = None
    document_per_line: bool = False
    text_field: str = "text"
    block_bytes: int = 4_000_000
    seed: int = 0

    def __post_init__(self):
        if self.order not in ORDERS:
            raise AlbertError(f"Unknown order {self.order!r}. Known: {list(ORDERS)}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise AlbertError(f"`{name}` should be {least} at least. Got: {value}")
        if not 0 <= self.short_sequence_rate <= 1:
            raise AlbertError(
                "`short_sequence_rate` should be from 0 to 1. Received: "
                f"{self.short_sequence_rate}"
            )
        if self.keep_unpaired and self.masked:
            raise AlbertError(
                "`keep_unpaired=`: masked records, in the original's form, all have a "
                "label of sentence order. Leave out `masked=`, or this."
            )
        given = [name for name in MASK_DEFAULTS if getattr(self, name) is not None]
        if given and not self.masked:
            raise AlbertError(
                f"{', '.join(given)}: records hold no masks, which are drawn when they "
                "are read. Give this to `PretrainingRecords.masks` or `albert-tf "
                "pretrain`, or take `masked=` (True)."
            )

    @property
    def mask_settings(self):
        """Arguments of `WholeWordMaskGenerator.for_tokenizer`, a dict."""
        given = {name: getattr(self, name) for name in MASK_DEFAULTS}
        return mask_settings(self.sequence_length, **given)

    def described(self):
        """The settings as JSON has them, a dict."""
        fields = {x.name: getattr(self, x.name) for x in dataclasses.fields(self)}
        for name in ("vocabulary", *MASK_DEFAULTS):
            del fields[name]
        for name in ("segmenter", "split_sentences"):
            fields[name] = _name_of(fields[name])
        return {
            **fields,
            **(self.mask_settings if self.masked else {}),
            "vocabulary_sha256": file_digest(self.vocabulary),
        }


def _name_of(function):
    if function is None:
        return None
    name = getattr(function, "__qualname__", None) or repr(function)
    # The address is another in each run.
    return re.sub(r" at 0x[0-9a-fA-F]+", "", name)


def make_pretraining_data(
    files, output, settings, engine="process", workers=1, address=None, progress=None
):
    """Write the records of a corpus.

    A run that was cut off is resumed, if it is started again with the same files and
    settings; of a complete one only what is missing or damaged, or of text that has
    changed since, is rebuilt.

    Args:
        files: list of strings: text files and patterns such as `"corpus/*.txt"`; also
            `.gz`, `.zst` and JSON lines, see `albert_tf.pretraining.corpus`. The
            vocabulary, and what is in `output` and other directories of records, are
            left out.
        output: string, the directory to write: `pretrain-*.tfrecord`, the vocabulary
            and `manifest.json`.
        settings: a `PretrainingData`.
        engine: `"process"`, or `"ray"` for several machines, which share the files of
            `output` and the vocabulary.
        workers: optional int. Processes, or Ray tasks, that run at once; `None` for
            one on each CPU.
        address: optional string, of the Ray cluster.
        progress: optional callable, given the bytes done and those there are.

    Returns:
        The manifest, a dict: `counts`, `warnings`, `shards`, `files`, `settings` and
        `vocabulary`, the name of its file.

    Raises:
        FileNotFoundError: if a file is missing.
        AlbertError: if the vocabulary lacks a token that masking needs, the directory
            holds records of other settings, or no record can be made of the files.
        OSError: if a file cannot be written, what is done stays; or another process
            writes to the directory.
    """
    if engine not in ENGINES:
        raise AlbertError(f"Unknown engine {engine!r}. Known: {list(ENGINES)}")
    if address and engine != "ray":
        raise AlbertError(f"`address` is of a Ray cluster; the engine is {engine!r}.")
    # Absolute, for another machine has another working directory.
    output = pathlib.Path(output).resolve()
    vocabulary = pathlib.Path(settings.vocabulary).resolve()
    settings = dataclasses.replace(settings, vocabulary=str(vocabulary))
    corpus = Corpus(
        files,
        settings.document_per_line,
        block_bytes=settings.block_bytes,
        text_field=settings.text_field,
        without=lambda path: (
            path == vocabulary
            or path.parent == output
            or (path.parent / PROGRESS).exists()
        ),
    )
    # A vocabulary is refused before anything is written.
    make_shards = ShardMaker(settings, output)
    make_folder(output)
    with only_writer(output):
        directory = RecordsDirectory(output, corpus, settings)
        jobs = (
            ((block, text_digest(block)), (block.index, block.documents))
            for block in corpus.blocks()
            if not directory.is_done(block)
        )
        options = {"address": address} if address else {}
        for (block, digest), made in ENGINES[engine](
            make_shards, jobs, workers, **options
        ):
            directory.add(block.index, digest, made)
            if progress is not None:
                progress(block.position, corpus.total_bytes)
        return directory.finish()
