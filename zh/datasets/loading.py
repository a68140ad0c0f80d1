"""Reading a split of a data set, and counting what cannot be read."""

from __future__ import annotations

import collections
import dataclasses
import os
import warnings
from typing import Any

from albert_tf_lite.errors import AlbertError
from zh.datasets.files import open_files
from zh.datasets.records import Rejected
from zh.datasets.table import DATASETS

# How many of the rejected records are named.
NAMED = 5


@dataclasses.dataclass(frozen=True)
class Examples:
    """A split of a data set.

    Attributes:
        x, y: what `fit` of a model for the task takes; `y` is `None` for a test set
            without answers. Labels of texts are strings.
        task: string, as `albert-tf finetune --task` has it.
        labels: of a text classification the labels there are, else `None`. Where the
            data set has a list of its own, all of that; else those of this split.
        rejects: dict, how many records were left out, by reason.
        rejected: list of strings, the first of them: file, place and reason.
        moved: int, places of answers or spans that were not where the record says, and
            were found elsewhere in the text.
        files: list of strings, what was read.
    """

    x: Any
    y: list | None
    task: str
    labels: list[str] | None = None
    rejects: dict[str, int] = dataclasses.field(default_factory=dict)
    rejected: list[str] = dataclasses.field(default_factory=list)
    moved: int = 0
    files: list[str] = dataclasses.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.x[0] if isinstance(self.x, tuple) else self.x)


def load(name: str, path: str | os.PathLike, split: str = "train") -> Examples:
    """Read a split of a data set from where it was downloaded to.

    | name | x | y |
    |---|---|---|
    | `afqmc`, `lcqmc`, `bq` | two questions | "1" if they mean the same, else "0" |
    | `cmnli`, `ocnli` | premise and hypothesis | "entailment", "neutral", "contradiction" |
    | `tnews`, `iflytek` | a headline, the description of an app | the class by its name |
    | `chnsenticorp` | a review | "1" if it is good, else "0" |
    | `csl` | an abstract, keywords with spaces between them | "1" if all are real, else "0" |
    | `cluewsc` | a text with _the noun_ and [the pronoun] marked | "true" if they are the same |
    | `c3` | document, question, choices | the position of the right one |
    | `chid` | text with `____` for an idiom (`……` for others), `""`, candidates | the position of the right one |
    | `cmrc`, `drcd` | question, context | a list of (start, text) |

    What cannot be an example is left out, counted, and told in a warning: damaged lines,
    missing fields, labels that the data set does not have (such as "-" of `ocnli`, where
    the annotators did not agree), answers that are not in their context.

    Args:
        name: string, as above.
        path: the directory or zip archive with the files of the data set, under the
            names they are distributed by; or one of the files.
        split: `"train"`, `"dev"`, `"test"`; of `cmrc` also `"trial"`, of `ocnli` also
            such as `"train.10k"`.

    Returns:
        An `Examples`.

    Raises:
        FileNotFoundError: if there is no such file in it.
        AlbertError: if the data set is unknown, a file of one JSON value is damaged, or
            nothing is left.

    Example:
    ```python
    train = zh.datasets.load("ocnli", "ocnli_public.zip")
    dev = zh.datasets.load("ocnli", "ocnli_public.zip", split="dev")
    classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
        "albert_tiny_zh", labels=train.labels
    )
    classifier.fit(train.x, train.y, validation_data=(dev.x, dev.y))
    ```
    """  # noqa: E501 (a table)
    if name not in DATASETS:
        raise AlbertError(
            f"There is no data set {name!r}. Known: {', '.join(DATASETS)}"
        )
    row = DATASETS[name]
    found, rejects = [], []
    with open_files(path, row.patterns(split), name) as files:
        for file in files:
            for place, example in row.form(file, row):
                place = f"{place} of {file}"
                try:
                    found.append((place, example()))
                except Rejected as reason:
                    rejects.append((place, str(reason)))
    # A test set may be without answers, and nothing else.
    if not split.startswith("test") or any(x.y is not None for _, x in found):
        rejects += [(at, "no label or answer") for at, x in found if x.y is None]
        found = [(at, x) for at, x in found if x.y is not None]
    kept = [example for _, example in found]
    files = list(map(str, files))
    counts = dict(collections.Counter(reason for _, reason in rejects).most_common())
    named = [f"{place}: {reason}" for place, reason in rejects[:NAMED]]
    _tell(len(kept), counts, named, " and ".join(files))
    columns = tuple(map(list, zip(*(example.x for example in kept), strict=True)))
    y = [example.y for example in kept]
    labels = None
    if row.task == "text-classification":
        labels = list(row.labels or sorted(set(y) - {None}))
    return Examples(
        columns[0] if len(columns) == 1 else columns,
        None if y[0] is None else y,
        row.task,
        labels,
        counts,
        named,
        sum(example.moved for example in kept),
        files,
    )


def _tell(kept, counts, named, files):
    """Warn of what was left out; nothing left is an error."""
    left_out = sum(counts.values())
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in counts.items())
    shown = (
        f"{left_out:,} of {left_out + kept:,} records of {files} were left out: "
        f"{reasons}. The first: {'; '.join(named)}"
    )
    if not kept:
        raise AlbertError(shown if left_out else f"{files} holds no records.")
    if left_out:
        warnings.warn(shown, stacklevel=3)
