"""Models in LiteRT and ONNX files, which answer strings."""

import base64
import functools
import hashlib
import inspect
import itertools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from albert_tf_lite.answers import ANSWERS
from albert_tf_lite.changes import changed_error
from albert_tf_lite.errors import AlbertError, first_line
from albert_tf_lite.inputs import as_texts, check_integer
from albert_tf_lite.packing import (
    QUESTION_SPECIAL,
    SHARED,
    Window,
    batches_of,
    pack,
    pad,
    question_limit,
    windows_of,
)
from albert_tf_lite.sentence_piece import SentencePieceTokenizer
from albert_tf_lite.settings import check_settings
from albert_tf_lite.spans import ContextLogits, WindowLogits
from albert_tf_lite.tagging import Tagging
from albert_tf_lite.tokens import Tokens
from albert_tf_lite.unknown import TruncatedTextsWarning, warn, warn_of_unknown
from albert_tf_lite.word_piece import WordPieceTokenizer

# The parts of examples: a list of strings, or a tuple of such lists (the choices of
# examples are a list of lists), in any container.
Texts: TypeAlias = Iterable[str] | tuple[Iterable, ...]
# Name of the settings in a file. `albert_tf.export.description` lists their fields.
SETTINGS = "albert_tf.json"


# A field of an ONNX file with the checksum of all before it, in the encoding of
# protocol buffers: 14 is `metadata_props`, an entry of which has a key and a value.
_KEY = b"albert_tf.sha256"
_ENTRY = b"\x0a" + bytes([len(_KEY)]) + _KEY + b"\x12\x40"
_FIELD = b"\x72" + bytes([len(_ENTRY) + 64]) + _ENTRY


def checksum_field(digest: str) -> bytes:
    """Return what ends an ONNX file whose content before has a SHA-256."""
    return _FIELD + digest.encode()


def check_network(path: str | os.PathLike, size: int, expected: str | None) -> None:
    """Raise unless the first bytes of a file have a SHA-256.

    ONNX Runtime and LiteRT answer with damaged weights. Files of earlier versions have
    no checksum.
    """
    if expected is None:
        return
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(min(2**20, size)):
            digest.update(part)
            size -= len(part)
    if digest.hexdigest() != expected:
        raise AlbertError(
            f"{path} is damaged, or another tool has changed it: its checksum is not "
            "that of its content. Export the model again or, if the change is wanted, "
            "delete the checksum from its metadata."
        )


def onnx_checksum(path: str | os.PathLike) -> tuple[int, str | None]:
    """Return the size of an ONNX file without its checksum, and this."""
    size = os.path.getsize(path)
    length = len(checksum_field("")) + 64
    with open(path, "rb") as file:
        file.seek(max(size - length, 0))
        end = file.read()
    digest = end[-64:].decode("ascii", "replace")
    if end != checksum_field(digest):
        return size - length, None
    return size - length, digest


class ExportedModel:
    """Base class of models in files: a subclass reads a file and runs its network.

    Attributes:
        task: string, such as `"text-classification"`.
        settings: dict, the labels and all else that the answers need.
        pairs: bool, whether it was trained on pairs of texts.
        fields, optional_fields: tuples of strings, the parts of an example, and the
            last of these, which may be left out.
        tokenizer: `WordPieceTokenizer` or `SentencePieceTokenizer`.
    """

    threads: int | None
    _check_unchanged: Callable[[], None]  # Since before the file was opened.

    def __init__(self, path: str | os.PathLike, settings: str | bytes | None):
        if settings is None:
            raise AlbertError(
                f"{path} cannot be opened by {type(self).__name__}: it is truncated, "
                "of another kind, or without the settings of albert_tf. Expected a "
                "file of albert_tf.export.onnx for OnnxModel, of "
                "albert_tf.export.litert for LiteRTModel."
            )
        self.path = os.path.abspath(path)
        self._process = os.getpid()
        try:
            self._read_settings(check_settings(json.loads(settings)))
        # SentencePiece raises a RuntimeError for a damaged vocabulary.
        except (ValueError, LookupError, TypeError, RuntimeError) as error:
            if isinstance(error, ImportError):
                raise
            raise self._damaged(first_line(error)) from error

    def _damaged(self, reason: str) -> AlbertError:
        """Return the error about settings that do not fit each other or the network."""
        return AlbertError(
            f"The settings in {self.path} are damaged. Export the model again. "
            f"({reason})"
        )

    def _read_settings(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        # Models of `albert_tf` have the second name.
        self.task: str = self.settings["task"]
        self.name_of_task = self.task
        self.fields = ANSWERS[self.task].fields
        self.optional_fields = self.fields[ANSWERS[self.task].num_required :]
        self.pairs: bool = self.settings["pairs"]
        self.sequence_length: int = self.settings["sequence_length"]
        vocabulary = self.settings.pop("vocabulary")
        self.tokenizer: Any
        if isinstance(vocabulary, str):
            vocabulary = base64.b64decode(vocabulary)
            lowercase = self.settings["lowercase"]
            self.tokenizer = SentencePieceTokenizer(vocabulary, lowercase)
        else:
            # Files of earlier versions have fewer settings.
            arguments = inspect.signature(WordPieceTokenizer).parameters
            tokenizer = {x: y for x, y in self.settings.items() if x in arguments}
            self.tokenizer = WordPieceTokenizer(vocabulary, **tokenizer)
        tags = self.settings.get("tags")
        self._tagging = Tagging(tags) if tags else None

    def __reduce__(self) -> tuple:
        # Other processes open the file.
        return _open_same, (self._opener(), self.path, self.threads, self.digest)

    def _opener(self) -> Callable[..., "ExportedModel"]:
        """Return what opens the file, with the path and the threads."""
        return type(self)

    @functools.cached_property
    def digest(self) -> str:
        """The SHA-256 of the file; raise if it has changed since it was opened."""
        with open(self.path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._check_unchanged()
        return digest

    @property
    def class_names(self) -> list[str]:
        """The names of the classes."""
        return self.settings["labels"]

    @property
    def option_names(self) -> list[str]:
        """The options of `answers`."""
        dicts = ANSWERS[self.task].dicts
        # After texts, outputs and settings.
        return ["batch_size", *list(inspect.signature(dicts).parameters)[3:]]

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Run the network.

        Args:
            features: `token_ids`, `segment_ids` and `padding_mask`, int32 arrays
                [batch, time].

        Returns:
            A float32 array [batch, units]; for a token classifier
            [batch, time, units].
        """
        raise NotImplementedError

    def predict(self, texts: Texts, batch_size: int | None = None) -> dict[str, Any]:
        """Return the answers to texts as arrays.

        Args:
            texts: list of strings, or for pairs the tuple of two such lists.
            batch_size: optional int, most examples per call of the network, by default
                32.

        Returns:
            A dict of arrays, the first axis that of the texts: `label`, `label_id` and
            `probabilities`; for several labels `labels`, `chosen`, `probabilities`;
            `score`; `embedding`; `in_order`; for choices `label_id`, `probabilities`;
            for questions `answer`, `start`, `end`, `score`. For a token classifier
            `spans`, a list per text of (start, end, label, score).

        Raises:
            TypeError: if an element is not a string.
            AlbertError: if the number of lists or their lengths are wrong.
        """
        outputs = self._outputs(self._read(texts), batch_size)
        return ANSWERS[self.task].arrays(outputs, self.settings)

    def answers(
        self, texts: Texts, batch_size: int | None = None, **options: Any
    ) -> list:
        """Return the answers as `albert_tf.pipeline` does, for JSON.

        Args:
            texts: list of strings; or the tuple of lists of the task's parts, such as
                questions and contexts. For an embedder, pairs are compared.
            batch_size: optional int, most examples per call of the network, by default
                32.
            **options: options of the pipeline of the task, such as `top_k`.

        Returns:
            A list with an answer per text, a dict or a list of dicts.
        """
        parts = self._read(texts)
        outputs = self._outputs(parts, batch_size)
        return ANSWERS[self.task].dicts(parts, outputs, self.settings, **options)

    def outputs(self, texts: Texts, batch_size: int | None = None) -> Any:
        """Return what the network gives for texts, before it becomes an answer.

        An array [texts, units]. For an embedder of pairs the tuple of two; for a token
        classifier the entities of each text; for choices an array [texts, choices],
        -inf after the last choice of a text; for questions a `ContextLogits` for each.
        """
        return self._outputs(self._read(texts), batch_size)

    def _outputs(self, parts: tuple[list, ...], batch_size: int | None) -> Any:
        """Return the `outputs` of examples, a list for each of their parts."""
        self._check_process()
        if self.task == "token-classification":
            return self._spans(parts[0], batch_size)
        if self.task == "question-answering":
            return self._question_windows(parts, batch_size)
        if self.task == "multiple-choice":
            return self._choice_logits(parts, batch_size)
        if self.task == "text-embedding" and len(parts) > 1:
            first, second = parts
            vectors = self._outputs(([*first, *second],), batch_size)
            return tuple(np.split(vectors, 2))
        tokenized = [[self.tokenizer.tokenize(text) for text in part] for part in parts]
        examples = list(zip(*tokenized, strict=True))
        outputs = self._run(examples, batch_size, parts)
        return np.array(outputs, "float32").reshape(-1, self.settings["units"])

    def _check_process(self):
        if self._process != os.getpid() and self.threads != 1:
            raise AlbertError(
                f"{self.path} was opened before this process was forked, and the "
                "threads of its network are in the other process. Open it after the "
                "fork, or with threads=1."
            )

    def _read(self, texts: Texts) -> tuple[list, ...]:
        """Return the examples as a list for each of their parts; raise if one is wrong.

        The arguments of `predict`, `answers` and `outputs` are read here only.
        """
        given = texts if isinstance(texts, tuple) else (texts,)
        fields = self.fields
        if any(isinstance(part, (str, bytes)) for part in given):
            raise TypeError(
                f"`texts` must be a list of strings. Received: {texts!r:.80}"
            )
        parts = tuple(as_texts(part) for part in given)
        for name, part in zip(fields, parts, strict=False):
            are_lists = name == "choices"
            if any(isinstance(x, list) != are_lists for x in part):
                kind = "lists of strings" if are_lists else "strings"
                raise TypeError(
                    f"`{name}` must be a list of {kind}. Received: {part!r:.80}"
                )
        lengths = [len(part) for part in parts]
        allowed = range(ANSWERS[self.task].num_required, len(fields) + 1)
        if len(lengths) not in allowed or len(set(lengths)) > 1:
            raise AlbertError(
                f"A model for {self.task} takes {' or '.join(map(str, allowed))} "
                f"list(s) of equal length. Received lists of the lengths {lengths}."
            )
        return parts

    def _run(
        self,
        examples: Sequence[Sequence[list[int]]],
        batch_size: int | None,
        parts: Sequence[list],
        texts: Sequence[int] | None = None,
    ) -> list:
        """Return the output for each tokenized example, in input order.

        Warn if texts, those of `parts`, are truncated or many tokens unknown.
        `texts` are the indices of the examples' texts, if a text has several.
        """
        tokenizer, length = self.tokenizer, self.sequence_length
        tokenized = list(itertools.chain.from_iterable(examples))
        warn_of_unknown(
            sum(ids.count(tokenizer.unk_token_id) for ids in tokenized),
            sum(map(len, tokenized)),
            lambda: _strings(parts),
            tokenizer,
        )
        cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
        packed = [pack(example, cls_id, sep_id, length) for example in examples]
        if texts is None:
            texts = range(len(packed))
        truncated = {
            text for text, row in zip(texts, packed, strict=True) if row.is_truncated
        }
        if truncated:
            limit = f"the {length} tokens that the file takes"
            total = len(parts[0])
            warn(TruncatedTextsWarning(len(truncated), total, limit), stacklevel=4)
        outputs = [None] * len(packed)
        size = 32 if batch_size is None else check_integer("batch_size", batch_size)
        for batch in batches_of([len(row.ids) for row in packed], size):
            features = pad([packed[i] for i in batch], tokenizer.pad_token_id, length)
            for i, output in zip(batch, self.call(features), strict=True):
                outputs[i] = output
        return outputs

    def _spans(self, texts, batch_size):
        """Return the entities of each text; long texts are read in windows."""
        size = self.sequence_length - 2
        stride = min(self.settings["stride"] or max(size * 3 // 4, 1), size)
        cut, examples = [], []
        for text in texts:
            tokens = self.tokenizer.tokenize_with_offsets(text)
            windows = windows_of(len(tokens.ids), size, stride)
            cut.append((tokens, windows))
            examples += [[tokens.ids[x.start : x.end]] for x in windows]
        outputs = iter(self._run(examples, batch_size, [texts]))
        spans = []
        for tokens, windows in cut:
            logits = []
            for window in windows:
                # The tokens that the window decides, after [CLS].
                of_tokens = next(outputs)[1:]
                first, last = window.first - window.start, window.last - window.start
                logits.append(of_tokens[first:last])
            spans.append(
                self._tagging.entities(
                    np.concatenate(logits),
                    tokens.starts,
                    tokens.ends,
                    self.settings.get("temperature", 1.0),
                )
            )
        return spans

    def _question_windows(self, parts, batch_size):
        """Return the windows of each context, and the characters of its tokens."""
        room = self.sequence_length - QUESTION_SPECIAL
        most, limit = question_limit(
            self.sequence_length, self.settings["max_question_length"]
        )
        examples, cut, num_truncated = [], [], 0
        for question, context in zip(*parts, strict=True):
            ids = self.tokenizer.tokenize(question)
            if len(ids) > most:
                num_truncated += 1
            ids = ids[:most]
            tokens = self.tokenizer.tokenize_with_offsets(context)
            size = room - len(ids)
            stride = size - min(size // 2, SHARED)
            if self.settings["stride"]:
                stride = min(size, self.settings["stride"])
            windows = windows_of(len(tokens.ids), size, stride)
            examples += [(ids, tokens.ids[x.start : x.end]) for x in windows]
            # [CLS] question [SEP] context [SEP]
            cut.append(_CutContext(context, tokens, windows, len(ids) + 2))
        if num_truncated:
            total = len(parts[0])
            warning = TruncatedTextsWarning(num_truncated, total, limit, "question")
            warn(warning, stacklevel=4)
        outputs = iter(self._run(examples, batch_size, parts))
        contexts = []
        for one in cut:
            logits = []
            for window in one.windows:
                length = window.end - window.start
                # [CLS] and the context.
                kept = [0, *range(one.first, one.first + length)]
                starts, ends = next(outputs)[kept].T
                logits.append(WindowLogits(window.start, starts, ends))
            contexts.append(
                ContextLogits(one.context, logits, one.tokens.starts, one.tokens.ends)
            )
        return contexts

    def _choice_logits(self, parts, batch_size):
        """Return the logits [texts, choices], -inf after the last choice of a text."""
        tokenize = self.tokenizer.tokenize
        contexts, questions, choices = parts
        # An example per choice, and the text and the place of each.
        examples, texts, places = [], [], []
        for number, choices_of_text in enumerate(choices):
            first = tokenize(contexts[number])
            question = tokenize(questions[number])
            for place, choice in enumerate(choices_of_text):
                examples.append((first, question + tokenize(choice)))
                texts.append(number)
                places.append(place)
        outputs = self._run(examples, batch_size, parts, texts)
        most = max(places, default=-1) + 1
        logits = np.full((len(choices), most), -np.inf, "float32")
        for text, place, output in zip(texts, places, outputs, strict=True):
            logits[text, place] = output[0]
        return logits


class _CutContext(NamedTuple):
    """A context in windows."""

    context: str
    tokens: Tokens
    windows: list[Window]
    first: int  # Its first token in a row.


def _open_same(opener, path, threads, digest):
    """Open the file of a model in another process; raise if it is another one."""
    model = opener(path, threads)
    if model.digest != digest:
        raise changed_error(path)
    return model


def _strings(parts: Iterable[list]) -> list[str]:
    """Return the strings of lists of strings or of lists of strings."""
    strings: list[str] = []
    for text in itertools.chain.from_iterable(parts):
        strings += [text] if isinstance(text, str) else text
    return strings
