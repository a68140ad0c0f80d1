"""Make the records of labelled texts, for a second stage of pretraining."""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from albert_tf.files import file_digest, only_writer
from albert_tf.pretraining.labelled_records import PACKED
from albert_tf.pretraining.make_records import claim, publish
from albert_tf.pretraining.records import TARGETS, token_dtype
from albert_tf.pretraining.shards import complete_shard, load_tokens
from albert_tf_lite.errors import AlbertError

# Part of every shard's name: increase it when the same texts give other records.
FORMAT = 1


@dataclasses.dataclass(frozen=True)
class LabelledSet:
    """Labelled texts of one source, and the head that learns them.

    Args:
        name: string, that of the set.
        head: string, that of the head. Several sets may share a head.
        task: string: `"text-classification"`, `"regression"`, `"token-classification"`
            or `"question-answering"`.
        x, y: as for `fit` of the task.
        labels: optional list of strings, the classes (or the labels of spans) that the
            set distinguishes. By default it distinguishes all of its head. The classes
            of a head are those of its sets.
        balanced: bool. Draw each class of a `"text-classification"` equally often, and
            the set as if each class were as rare as the rarest.

    Raises:
        AlbertError: if the task is another one, the name of the head is not allowed, or
            fewer than two classes are given.

    Example:
    ```python
    albert_tf.pretraining.LabelledSet(
        "shops", "similarity", "regression", (["很好"], ["不错"]), [4.5]
    )
    ```
    """

    name: str
    head: str
    task: str
    x: Any
    y: Any
    labels: Sequence[str] | None = None
    balanced: bool = False

    def __post_init__(self) -> None:
        if self.task not in TARGETS:
            raise AlbertError(
                f"{self.name}: unknown task {self.task!r}. Known: {list(TARGETS)}"
            )
        if "/" in self.head or not self.head:
            raise AlbertError(
                f"{self.name}: the name of a head must have no slash and not be empty. "
                f"Received: {self.head!r}"
            )
        is_classified = self.task == "text-classification"
        if is_classified and self.labels is not None and len(self.labels) < 2:
            raise AlbertError(
                f"{self.name} must distinguish at least two classes. Received: "
                f"{list(self.labels)}"
            )

    @property
    def pairs(self) -> bool:
        """True if an example is a pair of texts."""
        return isinstance(self.x, tuple) and len(self.x) == 2

    @functools.cached_property
    def names(self) -> list:
        """The classes of the texts, or the labels of their spans."""
        from albert_tf.data.labels.class_matching import class_names

        if self.labels is not None:
            return list(self.labels)
        if self.task == "text-classification":
            return class_names(self.y)
        if self.task == "token-classification":
            return class_names({label for spans in self.y for *_, label in spans})
        return []


def make_labelled_data(
    sets: Iterable[LabelledSet],
    output: str | os.PathLike,
    vocabulary: str | os.PathLike,
    sequence_length: int = 512,
    pairs: tuple[Sequence[str], Sequence[str]] | None = None,
    lowercase: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
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
    sets, output = list(sets), pathlib.Path(output)
    vocabulary = pathlib.Path(vocabulary).resolve()
    heads = find_heads(sets)
    tokenizer, tokens = load_tokens(str(vocabulary), lowercase)
    settings = {
        "format": FORMAT,
        "lowercase": lowercase,
        "sequence_length": sequence_length,
        "vocabulary_sha256": file_digest(vocabulary),
    }
    packer = _Packer(tokenizer, sequence_length)
    jobs: list[tuple[Any, Any, dict]] = [
        (
            [getattr(data, x.name) for x in dataclasses.fields(data)],
            functools.partial(packer.labelled, data, heads[data.head]),
            {
                "set": data.name,
                "head": data.head,
                "labels": None if data.labels is None else list(map(str, data.labels)),
                "balanced": data.balanced,
            },
        )
        for data in sets
    ]
    if pairs is not None:
        jobs.append((pairs, functools.partial(packer.similar, *pairs), {"pairs": True}))
    digests = [_digest(settings, heads, content) for content, _, _ in jobs]
    header = {
        "files": [],
        "settings": {**settings, "texts": digests},
        "vocabulary": vocabulary.name,
        "tokens": tokens,
        "heads": heads,
    }
    output.mkdir(parents=True, exist_ok=True)
    with only_writer(output):
        claim(output, header, vocabulary)
        shards = []
        for i, (digest, (_, make, entry)) in enumerate(zip(digests, jobs, strict=True)):
            folder = output / f"pretrain-{i:05d}-00-{digest}"
            shards += [x | entry for x in complete_shard(folder, make, PACKED)]
            if progress is not None:
                progress(i + 1, len(jobs))
        counts = {"heads": len(heads), "sets": len(sets)}
        return publish(output, header, shards, counts)


def find_heads(sets: Sequence[LabelledSet]) -> dict[str, dict[str, Any]]:
    """Return the heads of labelled sets, in their order.

    Returns:
        By name a dict of `task`, `pairs` (true if it reads pairs), `labels` (none for
        scores and spans), for `"token-classification"` also `tags`, the names of its
        outputs, and for `"regression"` the `variance` of its scores.
    """
    from albert_tf.data.labels.tags import tag_names

    if not sets:
        raise AlbertError("There are no labelled sets.")
    heads: dict[str, dict[str, Any]] = {}
    for data in sets:
        head = heads.setdefault(
            data.head, {"task": data.task, "pairs": data.pairs, "labels": {}}
        )
        if (head["task"], head["pairs"]) != (data.task, data.pairs):
            raise AlbertError(
                f"{data.name} is for {data.task} of {_kind(data.pairs)}, but another "
                f"set of the head {data.head!r} for {head['task']} of "
                f"{_kind(head['pairs'])}. Give it another head."
            )
        head["labels"] |= dict.fromkeys(map(str, data.names))
    for name, head in heads.items():
        head["labels"] = list(head["labels"])
        if head["task"] == "text-classification" and len(head["labels"]) < 2:
            raise AlbertError(
                f"The head {name!r} needs at least two classes. Received: "
                f"{head['labels']}"
            )
        if head["task"] == "token-classification":
            head["tags"] = tag_names(head["labels"])
        if head["task"] == "regression":
            scores = [np.asarray(x.y, float) for x in sets if x.head == name]
            # Scores that are all equal teach nothing.
            head["variance"] = max(float(np.concatenate(scores).var()), 1e-6)
    return heads


def _kind(pairs):
    return "pairs" if pairs else "texts"


def _digest(*content):
    text = json.dumps(content, ensure_ascii=False, default=_plain)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _plain(values):
    """Return a NumPy array or number, or a Series, as JSON can hold it."""
    return values.tolist()


class _Packer:
    """Texts and labels to the arrays of a shard, by the tasks that learn them."""

    def __init__(self, tokenizer, sequence_length):
        from albert_tf.backbone import AlbertBackbone

        # Traced once per class.
        self.preprocessor = functools.cache(
            lambda cls: cls.preprocessor_cls(tokenizer, sequence_length=sequence_length)
        )
        self.dtype = token_dtype(tokenizer.vocabulary_size())
        # Its weights are not used.
        sizes = {"num_layers": 1, "num_heads": 1, "embedding_dim": 1}
        sizes |= {"hidden_dim": 1, "intermediate_dim": 1}
        self.backbone = AlbertBackbone(
            tokenizer.vocabulary_size(), **sizes, max_sequence_length=sequence_length
        )

    def labelled(self, data, head):
        from albert_tf.models.task import TASKS

        cls = TASKS[data.task]
        arguments: dict[str, Any] = {"preprocessor": self.preprocessor(cls)}
        if data.names:
            arguments["labels"] = data.names
        if data.task == "text-classification":
            arguments |= {"num_classes": len(data.names), "pairs": data.pairs}
        model = cls(self.backbone, **arguments)
        packed = model.preprocessor.pack_texts(data.x)
        try:
            y = model.targets(data.x, data.y, packed)
        except AlbertError as error:
            raise AlbertError(f"{data.name}: {error}") from error
        name = TARGETS[data.task]
        if name == "classes":
            numbers = [head["labels"].index(str(x)) for x in data.names]
            y = np.array(numbers, "uint16")[np.asarray(y)]
            if data.balanced and len(np.unique(y)) < len(data.labels or head["labels"]):
                raise AlbertError(
                    f"{data.name} lacks a class, so that it cannot be balanced."
                )
        elif name == "tags":
            numbers = [head["tags"].index(x) for x in model.tags]
            y = y.values.numpy()
            y = np.where(y < 0, -1, np.array(numbers)[y]).astype("int16")
        elif name == "scores":
            y = np.asarray(y, "float32").reshape(-1)
        else:
            y = np.stack([y["start_logits"], y["end_logits"]], axis=1).astype("uint16")
        return {**self.arrays(packed), name: y}

    def similar(self, first, second):
        from albert_tf.models.task import TASKS

        if len(first) != len(second):
            raise AlbertError(
                f"The lists of similar texts differ: {len(first)}, {len(second)}."
            )
        texts = [text for both in zip(first, second, strict=True) for text in both]
        preprocessor = self.preprocessor(TASKS["text-classification"])
        return self.arrays(preprocessor.pack_texts(texts))

    def arrays(self, packed):
        values = (
            packed.tokens.values.numpy().astype(self.dtype),
            packed.tokens.row_lengths().numpy().astype("uint16"),
            packed.first_lengths.numpy().astype("uint16"),
        )
        return dict(zip(PACKED, values, strict=True))
