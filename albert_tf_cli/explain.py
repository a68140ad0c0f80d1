"""`albert-tf predict --explain`: which characters speak for an answer."""

from rich.text import Text

from albert_tf_cli.task_table import TASKS
from albert_tf_lite.errors import AlbertError


def explainer(row, model):
    """A function of a line, which gives its `Attributions`."""
    if row.explain is None:
        raise AlbertError(refusal("--explain", "explain", row))
    explain = row.explain(model)

    def of_line(line):
        x = row.inputs(model, [line])
        return explain(tuple(part[0] for part in x) if isinstance(x, tuple) else x[0])

    return of_line


def refusal(option, field, row):
    """That an option is for models of the tasks whose rows have a field."""
    names = ", ".join(name for name, other in TASKS.items() if getattr(other, field))
    return f"{option} is for models of these tasks: {names}. This one is of {row.name}."


def coloured(found):
    """The text of `Attributions` for a terminal; the two of a pair with a tab between.

    The same colours mean the same in both.
    """
    from albert_tf.evaluation import coloured_runs

    strongest = max((abs(x) for values in found.values for x in values), default=0.0)
    shown = []
    for text, values in zip(found.texts, found.values, strict=True):
        part = Text()
        for piece, colour in coloured_runs(text, values, strongest):
            part.append(piece, colour and f"black on #{bytes(colour).hex()}")
        shown.append(part)
    return Text("\t").join(shown)


def attributions_json(found):
    """`Attributions` as JSON has them: a list of numbers for each text."""
    return {
        "label": found.label,
        "probability": found.output,
        "baseline": found.baseline,
        "characters": [values.tolist() for values in found.values],
    }
