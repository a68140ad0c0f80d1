"""Error reports: the worst mistakes, suspicious labels, and a page that shows them."""

from __future__ import annotations

import dataclasses
import html
import itertools
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.files import complete_directory, write_json, write_text
from albert_tf_lite.errors import AlbertError, import_extra

# Blue supports the prediction and orange opposes it. People who cannot tell red from
# green can tell these apart.
SUPPORTS, OPPOSES = (66, 133, 244), (245, 150, 40)
# Characters below this share of the strongest one have no colour.
LEAST_SHARE = 0.05


# === Mistakes ===


def worst_mistakes(
    probabilities: Any, truth: Any, count: int = 50
) -> list[dict[str, Any]]:
    """Return the wrongly classified examples, the worst first.

    Args:
        probabilities: float array [examples, classes].
        truth: int array [examples], the true classes.
        count: int, the maximum number of examples.

    Returns:
        A list of dicts, sorted by the probability of the true class: `index` of the
        example, `label_id` and `predicted_id`, and the probability of each,
        `label_probability` and `predicted_probability`.

    Raises:
        AlbertError: if the probabilities of an example do not sum to 1.

    Example:

    >>> worst_mistakes([[0.9, 0.1], [0.7, 0.3]], [0, 1])[0]["index"]
    1
    """
    probabilities, truth = np.asarray(probabilities, "float64"), np.asarray(truth)
    # Sums of bfloat16 are off by about 1 %.
    if not np.allclose(probabilities.sum(axis=-1), 1, atol=0.05):
        raise AlbertError(
            "The `probabilities` of each example should sum to 1. For the logits of a "
            'classifier, pass `answers(outputs)["probabilities"]`.'
        )
    given = probabilities[np.arange(len(truth)), truth]
    predicted = probabilities.argmax(axis=1)
    order = np.argsort(given, kind="stable")
    return [
        {
            "index": int(i),
            "label_id": int(truth[i]),
            "predicted_id": int(predicted[i]),
            "label_probability": float(given[i]),
            "predicted_probability": float(probabilities[i, predicted[i]]),
        }
        for i in order[predicted[order] != truth[order]][:count]
    ]


def worst_multi_label_mistakes(
    probabilities: np.ndarray, truth: np.ndarray, chosen: np.ndarray
) -> list[dict[str, Any]]:
    """Return the examples with missed or wrong classes, the worst first.

    All arguments are arrays [examples, classes]. The rows have `index`, `missed` and
    `wrong` (probabilities by class id), and `loss`, the sum of the binary
    cross-entropies in nats.
    """
    given = np.maximum(np.where(truth, probabilities, 1 - probabilities), 1e-12)
    rows = []
    for i, loss in enumerate(-np.log(given).sum(axis=1)):
        row: dict[str, Any] = {"index": i, "loss": float(loss)}
        for name, wrong in (("missed", truth > chosen), ("wrong", chosen > truth)):
            ids = np.flatnonzero(wrong[i])
            row[name] = {int(j): float(probabilities[i, j]) for j in ids}
        rows.append(row)
    return _worst(rows)


def worst_entity_mistakes(
    truth: Sequence[Sequence[tuple]], predicted: Sequence[Sequence[tuple]]
) -> list[dict[str, Any]]:
    """Return the texts with missed or wrong entities, the worst first.

    `truth` has a list of (start, end, label) for each text, `predicted` of (start, end,
    label, score). The rows have `index`, `missed` and `wrong` spans, and `loss`, the
    sum of the scores of wrong entities, plus 1 for each missed one.
    """
    rows = []
    for index, (spans, given) in enumerate(zip(truth, predicted, strict=True)):
        found, right = {tuple(x[:3]) for x in given}, set(map(tuple, spans))
        missed = [tuple(x) for x in spans if tuple(x) not in found]
        wrong = [tuple(x) for x in given if tuple(x[:3]) not in right]
        loss = len(missed) + sum(float(score) for *_, score in wrong)
        rows.append({"index": index, "missed": missed, "wrong": wrong, "loss": loss})
    return _worst(rows)


def _worst(rows):
    wrong = (row for row in rows if row["missed"] or row["wrong"])
    return sorted(wrong, key=lambda row: -row["loss"])[:50]


def suspicious_labels(
    features: Any, truth: Any, count: int = 50
) -> list[dict[str, Any]]:
    """Return the training examples that the others classify differently.

    They are the `worst_mistakes` of a cross-validated logistic regression.

    Features of a model that was trained on these labels have memorised some of them, so
    that wrong labels look right. `character_features` do not depend on labels.

    Args:
        features: float array or sparse matrix [examples, features], for example
            `character_features(texts)`, or those of `albert_tf.models.text_features`.
        truth: int array [examples], the labels.
        count: int, the maximum number of examples.

    Returns:
        As `worst_mistakes`. The only example of a class is left out.

    Raises:
        ImportError: if scikit-learn is not installed.
        AlbertError: if fewer than two classes have two examples.
    """
    model_selection = import_extra("sklearn.model_selection")
    model = import_extra("sklearn.linear_model").LogisticRegression(max_iter=1000)
    classes, labels, sizes = np.unique(truth, return_inverse=True, return_counts=True)
    if (sizes > 1).sum() < 2:
        raise AlbertError(
            "At least two classes should have two examples each. Received classes of "
            f"{sizes.tolist()} examples."
        )
    if not hasattr(features, "tocsr"):
        # Pooled outputs of all texts are nearly equal. Scaling enlarges the
        # differences.
        scaler = import_extra("sklearn.preprocessing").StandardScaler()
        features, model.C = scaler.fit_transform(features), 0.01
    folds = min(5, sizes.max())
    split = model_selection.StratifiedKFold(folds, shuffle=True, random_state=1)
    with warnings.catch_warnings():
        # Some classes have fewer examples than there are folds.
        warnings.simplefilter("ignore")
        probabilities = model_selection.cross_val_predict(
            model, features, labels, cv=split, method="predict_proba"
        )
    rows = worst_mistakes(probabilities, labels, len(labels))
    rows = [row for row in rows if sizes[row["label_id"]] > 1][:count]
    for row in rows:
        for name in ("label_id", "predicted_id"):
            row[name] = int(classes[row[name]])
    return rows


def character_features(texts: Sequence[str]) -> Any:
    """Return the TF-IDF of one and two characters, a sparse [texts, features]."""
    text = import_extra("sklearn.feature_extraction.text")
    vectorizer = text.TfidfVectorizer(
        analyzer="char", ngram_range=(1, 2), sublinear_tf=True
    )
    return vectorizer.fit_transform(texts)


# === The page ===


@dataclasses.dataclass(frozen=True)
class ErrorList:
    """Examples to look at, one per row.

    Attributes:
        name: string, the key in `report.json`, for example "mistakes".
        title, note: strings, shown above the table.
        rows: list of dicts with the same keys, strings and numbers.
        attributions: optional list for the first rows, dicts by column: one float for
            each character of the text, which colours it.
    """

    name: str
    title: str
    note: str
    rows: Sequence[Mapping[str, Any]]
    attributions: Sequence[Mapping[str, Any]] = ()


def write_error_report(
    directory: str | os.PathLike,
    title: str,
    scores: Mapping[str, Any],
    lists: Iterable[ErrorList] = (),
    labels: Sequence[str] | None = None,
) -> None:
    """Write `report.html`, which needs no other file, and `report.json`.

    Args:
        directory: string. An older report in it is replaced; other files stay.
        title: string, for example the names of the model and the file.
        scores: dict, for example of `classification_report`.
        lists: `ErrorList`s.
        labels: list of strings, the classes of the `confusion_matrix` in `scores`.

    Example:
    ```python
    rows = albert_tf.evaluation.worst_mistakes(probabilities, truth)
    rows = [{"text": texts[row["index"]], **row} for row in rows]
    write_error_report(
        "report",
        "Reviews",
        albert_tf.evaluation.classification_report(truth, predicted, labels),
        [ErrorList("mistakes", "Worst mistakes", "The most certain ones.", rows)],
        labels,
    )
    ```
    """
    lists = list(lists)
    page = _page(title, scores, lists, labels)
    rows = {part.name: list(part.rows) for part in lists}
    with complete_directory(directory) as folder:
        write_text(folder / "report.html", page)
        write_json(
            folder / "report.json", {"title": title, "scores": scores, "lists": rows}
        )


_STYLE = """
body { font-family: "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
  margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #ccc; padding: 0.25em 0.6em; text-align: left;
  vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere; }
th { background: #f3f3f3; }
td.number { text-align: right; white-space: nowrap; }
"""


def _page(title, scores, lists, labels):
    groups = itertools.groupby(_score_rows(scores), list)
    sections = [("Scores", "", "".join(_table(list(rows)) for _, rows in groups))]
    if "confusion_matrix" in scores:
        note = "A row is a true class, a column a predicted class."
        table = _confusion_table(np.array(scores["confusion_matrix"]), labels)
        sections.append(("Confusion matrix", note, table))
    for part in lists:
        table = _table(part.rows, part.attributions) if part.rows else "none"
        sections.append((part.title, part.note, table))
    title = html.escape(title)
    body = "\n".join(
        f"<h2>{html.escape(name)}</h2>\n<p>{html.escape(note)}</p>\n{table}"
        for name, note, table in sections
    )
    return (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{body}\n"
        "</body></html>"
    )


def _score_rows(scores, name=""):
    """Yield the numbers of a dict, then those of the dicts in it, as rows."""
    numbers = {k: v for k, v in scores.items() if isinstance(v, int | float)}
    if numbers:
        yield {"": name, **numbers}
    for key, value in scores.items():
        if isinstance(value, Mapping):
            yield from _score_rows(value, key)


def _confusion_table(matrix, labels):
    totals = np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    rows = (
        [f"<th>{html.escape(label)}</th>", *map(_number, counts, map(_colour, shares))]
        for label, counts, shares in zip(labels, matrix, matrix / totals, strict=True)
    )
    return _html_table(["", *labels], rows)


def _table(rows, attributions=()):
    pairs = itertools.zip_longest(rows, attributions, fillvalue={})
    cells = (
        [_cell(row.get(name, ""), colours.get(name)) for name in rows[0]]
        for row, colours in pairs
    )
    return _html_table(rows[0], cells)


def _html_table(names, rows):
    header = [f"<th>{html.escape(name)}</th>" for name in names]
    lines = (f"<tr>{''.join(cells)}</tr>" for cells in (header, *rows))
    return f"<table>{''.join(lines)}</table>"


def _cell(value, attributions):
    if attributions is not None:
        spans = (
            f'<span style="background:{colour or "#ffffff"};color:#000">'
            f"{html.escape(piece)}</span>"
            for piece, colour in coloured_runs(value, attributions)
        )
        return f"<td>{''.join(spans)}</td>"
    if isinstance(value, int | float):
        return _number(value)
    return f"<td>{html.escape(str(value))}</td>"


def _number(value, colour="none"):
    # Counts of scikit-learn are floats, too.
    shown = f"{value:,.0f}" if float(value).is_integer() else f"{value:.4f}"
    return f'<td class="number" style="background:{colour}">{shown}</td>'


def coloured_runs(
    text: str, values: Any, strongest: float | None = None
) -> list[tuple[str, str | None]]:
    """Split a text into pieces of one colour, such as `"#4285f4"`, or `None`.

    `values` [characters] are positive where a character supports the prediction. The
    absolute value `strongest`, by default the largest, has the full colour.
    """
    values = np.asarray(values, "float64")
    strongest = strongest or np.abs(values).max(initial=0.0) or 1.0
    shares = np.clip(values / strongest, -1, 1)
    colours = [_colour(x) if abs(x) >= LEAST_SHARE else None for x in shares]
    runs = itertools.groupby(zip(text, colours, strict=True), lambda pair: pair[1])
    return [("".join(x for x, _ in pairs), colour) for colour, pairs in runs]


def _colour(share):
    """Return the colour of a share from -1 to 1, white at 0."""
    full = SUPPORTS if share > 0 else OPPOSES
    return "#" + bytes(round(255 + (c - 255) * abs(share)) for c in full).hex()
