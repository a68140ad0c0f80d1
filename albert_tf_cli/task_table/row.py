"""What a row of the table of tasks says."""

import collections
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from albert_tf_lite.errors import AlbertError


class Columns(NamedTuple):
    """The columns a user named, by name or number; `None` for those to be found."""

    label: str | None = None
    text: str | None = None
    text_b: str | None = None


@dataclasses.dataclass(frozen=True)
class Examples:
    """What a reader found in a file.

    Attributes:
        x, y: what `fit` of the model takes.
        count: int, how many there are.
        arguments: dict, what they say of the model to be built: arguments such as
            `num_classes` and `labels`.
        unit: what to call them, such as "texts".
    """

    x: Any
    y: Any
    count: int
    arguments: dict = dataclasses.field(default_factory=dict)
    unit: str = "texts"


def split(examples, share, seed):
    """Examples to train on, and a share of them to choose the epoch on.

    Of examples with one class each it has the classes in the same shares.
    """
    from sklearn.model_selection import train_test_split

    if examples.count < 2:
        raise AlbertError("One example cannot be split: give --dev.")
    counts = collections.Counter(x for x in examples.y if isinstance(x, int))
    is_fair = (
        counts.total() == examples.count
        and min(counts.values()) > 1
        and len(counts) <= min(share, 1 - share) * examples.count
    )
    parts = train_test_split(
        list(range(examples.count)),
        test_size=share,
        random_state=seed,
        stratify=examples.y if is_fair else None,
    )
    return [
        dataclasses.replace(
            examples,
            x=_taken(examples.x, chosen),
            y=_taken(examples.y, chosen),
            count=len(chosen),
        )
        for chosen in map(sorted, parts)
    ]


def _taken(values, chosen):
    if isinstance(values, tuple):
        return tuple(_taken(part, chosen) for part in values)
    return [values[i] for i in chosen]


@dataclasses.dataclass(frozen=True)
class Report:
    """The scores of a model on a file.

    Attributes:
        values: dict, what `evaluate --json` prints.
        shown: what `evaluate` prints instead, strings and tables of rich.
    """

    values: dict
    shown: list


def texts_or_pairs(model, lines):
    """Lines as texts, or as the tuple of two lists for a model of pairs."""
    if not model.pairs:
        return lines
    return pairs_of(lines, "This model takes pairs of texts with a tab between them.")


def pairs_of(lines, expected):
    """Lines as two lists, of what stands before and after the first tab.

    Raises:
        AlbertError: if a line has no tab; it says what was `expected`, a sentence.
    """
    parts = [line.partition("\t") for line in lines]
    for line, (_, tab, _) in zip(lines, parts, strict=True):
        if not tab:
            raise AlbertError(f"{expected} Found: {line!r}")
    return [first for first, _, _ in parts], [second for _, _, second in parts]


def columns_of(x, index):
    """The text, or the two of a pair, of an example, as columns of a list."""
    if isinstance(x, tuple):
        return {"text": x[0][index], "text_b": x[1][index]}
    return {"text": x[index]}


@dataclasses.dataclass(frozen=True)
class Row:
    """A task of the command line.

    Its functions import what they need when they are called: `--help` has no
    TensorFlow. Its model, and what that answers, are those of the row of the same name
    in `albert_tf.pipelines`.

    Attributes:
        name: as `--task` takes it.
        cells: function of an answer, which gives the strings that `predict` prints in
            columns before the text.
        maximise: the score of the dev examples by which the best epoch is chosen: one
            that Keras computes, or one of `scores`. It, `read` and `report` are `None`
            for a task that is for `predict` only.
        read: function of a path, `Columns` and `known`, which gives `Examples`. `known`
            is `None` for the examples to train on, else the arguments of the model.
        report: function of model, `Examples` and batch size, which gives a `Report`.
        summary: function of `Examples.arguments`, which says in a few words what
            distinguishes these data; it ends in a full stop.
        scores: optional function of model, `Examples` and batch size, which gives a
            dict of floats: scores that Keras does not compute while it evaluates.
        tune: optional function of the same, which sets what is chosen on the dev
            examples and kept with the model, such as thresholds. It is called before
            `scores` of the dev examples, and before the model is written.
        inputs: function of model and lines, which gives the x for `predict`.
        mistakes: optional function of model, `Examples` and batch size, for `evaluate
            --report`: the examples it gets most wrong, the worst first, each a dict of
            the columns to show. Texts that `explain` takes are in `text` and `text_b`,
            the class it is asked about in `predicted`.
        suspicious: optional function of the same, for `--train`: the examples whose
            label looks wrong.
        to_label: optional function of model, x and batch size, for `--unlabelled`: the
            examples to label next.
        explain: optional function of the model, which gives a function of a text (or a
            tuple of texts) and a class (or `None`): its `Attributions`.
    """

    name: str
    cells: Callable
    maximise: str | None = None
    read: Callable | None = None
    report: Callable | None = None
    summary: Callable = lambda arguments: ""
    scores: Callable | None = None
    tune: Callable | None = None
    inputs: Callable = texts_or_pairs
    mistakes: Callable | None = None
    suspicious: Callable | None = None
    to_label: Callable | None = None
    explain: Callable | None = None

    @property
    def pipeline(self):
        """The row of `albert_tf.pipelines`."""
        from albert_tf.pipelines import PIPELINES

        return PIPELINES[self.name]

    @property
    def fixed(self):
        """The arguments of the class that make it a model of this task."""
        return self.pipeline.fixed

    def model_class(self):
        return self.pipeline.model

    def reads_pairs(self, model):
        """Whether a model takes pairs of texts, two columns of a file."""
        takes_two = "text_pair" in self.pipeline.fields
        return takes_two and getattr(model, "pairs", False)

    def answers(self, model, x, batch_size, **options):
        """What `predict --json` prints, for each example."""
        return self.pipeline.answers(model, x, batch_size, **options)

    def takes(self, option):
        """Whether `answers` takes an option."""
        return option in inspect.signature(self.pipeline.answers).parameters

    @property
    def default_top_k(self):
        """How many answers an example has, `None` for a task that has always one."""
        top_k = inspect.signature(self.pipeline.answers).parameters.get("top_k")
        return top_k and top_k.default

    def ranked_cells(self, answer):
        """The `cells` of an answer, or of the best of several one after the other."""
        if self.default_top_k != 1 or isinstance(answer, dict):
            return self.cells(answer)
        return [cell for one in answer for cell in self.cells(one)]
