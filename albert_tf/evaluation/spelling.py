"""Scores of spelling correction."""

from __future__ import annotations

from collections.abc import Sequence

from albert_tf_lite.errors import AlbertError


def spelling_scores(
    sources: Sequence[str], targets: Sequence[str], predicted: Sequence[str]
) -> dict[str, float]:
    """Detection and correction by sentence, as the SIGHAN bake-offs count them.

    A sentence with errors is right if all of its wrong characters, and no others, were
    found (detection), and also put right as in `targets` (correction); a sentence
    without is right if nothing was changed. Precision is of the sentences with errors
    that are right and those without that are not; recall is of the sentences with
    errors. (Many later papers count in the precision every sentence that was changed,
    which is lower where errors are found at wrong places.)

    Args:
        sources: strings, the texts as they were given.
        targets: strings, the right texts, of the same lengths.
        predicted: strings, what the model made of `sources`.

    Returns:
        A dict of floats: `detection_accuracy`, `detection_precision`,
        `detection_recall`, `detection_f1`, the same of `correction`, and
        `false_positive_rate`, of the sentences without errors.

    Raises:
        AlbertError: if there are not as many of each, or a text differs in length.

    Example:
    ```python
    predicted = [found["target"] for found in corrector.correct(sources)]
    spelling_scores(sources, targets, predicted)["correction_f1"]
    ```

    Reference:
        [Tseng et al., 2015](https://aclanthology.org/W15-3106), section 4.
    """
    if not len(sources) == len(targets) == len(predicted):
        raise AlbertError(
            "There should be as many sources, targets and predicted texts. Received "
            f"{len(sources)}, {len(targets)} and {len(predicted)}."
        )
    rows = list(zip(sources, targets, predicted, strict=True))
    for i, row in enumerate(rows):
        if len(set(map(len, row))) > 1:
            raise AlbertError(f"The texts {i} differ in length: {row}")
    found = {
        "detection": [
            _changes(s, p).keys() == _changes(s, t).keys() for s, t, p in rows
        ],
        "correction": [p == t for _, t, p in rows],
    }
    has_errors = [s != t for s, t, _ in rows]
    scores = {
        f"{level}_{name}": value
        for level, right in found.items()
        for name, value in _scores(right, has_errors).items()
    }
    changed = [s != p for s, t, p in rows if s == t]
    return {**scores, "false_positive_rate": _share(sum(changed), len(changed))}


def _changes(source, target):
    """The characters of a text that another has in place of these, by position."""
    pairs = enumerate(zip(source, target, strict=True))
    return {i: right for i, (wrong, right) in pairs if wrong != right}


def _scores(right, has_errors):
    both = list(zip(right, has_errors, strict=True))
    true_positives = sum(is_right and wrong for is_right, wrong in both)
    false_positives = sum(not is_right and not wrong for is_right, wrong in both)
    precision = _share(true_positives, true_positives + false_positives)
    recall = _share(true_positives, sum(has_errors))
    return {
        "accuracy": _share(sum(right), len(right)),
        "precision": precision,
        "recall": recall,
        "f1": _share(2 * precision * recall, precision + recall),
    }


def _share(part, whole):
    return part / whole if whole else 0.0
