"""`albert-tf predict --explain`: characters coloured by attribution."""

from rich.text import Text

from albert_tf_cli.task_table import TASKS
from albert_tf_lite.errors import AlbertError


def explainer(row, model):
    """Return a function from a line to its `Attributions`."""
    if row.explain is None:
        raise AlbertError(refusal("--explain", "explain", row))
    explain = row.explain(model)

    def of_line(line):
        x = row.inputs(model, [line])
        return explain(tuple(part[0] for part in x) if isinstance(x, tuple) else x[0])

    return of_line


def refusal(option, field, row):
    """Return the message that an option is only for tasks whose rows have a field."""
    names = ", ".join(name for name, other in TASKS.items() if getattr(other, field))
    return f"{option} is for models of these tasks: {names}. This one is of {row.name}."


def coloured(found):
    """Return the text of `Attributions` for a terminal, a pair with a tab between.

    Both texts of a pair share one scale.
    """
    from albert_tf.evaluation import coloured_runs

    strongest = max((abs(x) for values in found.values for x in values), default=0.0)
    shown = []
    for text, values in zip(found.texts, found.values, strict=True):
        part = Text()
        for piece, colour in coloured_runs(text, values, strongest):
            part.append(piece, colour and f"black on {colour}")
        shown.append(part)
    return Text("\t").join(shown)


def attributions_json(found):
    """Return `Attributions` as JSON: a list of numbers for each text."""
    return {
        "label": found.label,
        "probability": found.output,
        "baseline": found.baseline,
        "characters": [values.tolist() for values in found.values],
    }
