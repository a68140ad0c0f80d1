"""Scores of the bundled checkpoint beside the best baseline, and their tables."""

import statistics

from benchmarks.pages.described import NAMES, in_language
from benchmarks.pages.markdown import table

# Titles by the names of data sets and numbers of labels in the results.
DATA, SHORT, LABELS = NAMES["data"], NAMES["short"], NAMES["labels"]
# Names of `bundled_heads.py`, where they differ.
UNLABELLED = {"THUCNews headlines": "THUCNews"}
# The bundled head learned the labels of its training part, and so did the baseline.
LEARNED = ("People's Daily",)
OURS, RANDOM = "albert_micro_zh", "random weights"
# Initials of the baselines.
BASELINES = {
    "TF-IDF, logistic regression": "C",
    "mean of token vectors": "M",
    "naive Bayes": "B",
    "cosine of TF-IDF": "T",
    "CRFsuite on characters": "F",
}


def scores(results, name, size):
    """Return the scores of the seeds of our model: few labels by `finetune`."""
    if size == ("all" if name in LEARNED else "0"):
        row = _without_labels(results, name)
        return [row["score"]] if row else []
    if row := results["few_labels"].get(f"{name}, {size} labels"):
        return [y for x, y in row.items() if x.startswith("after ")]
    return _gain(results, name, size).get(OURS, [])


def best_baseline(results, name, size):
    """Return the mean and the initial of the best baseline, or `None`."""
    if size == "0":
        score = _without_labels(results, name).get("baseline")
        return None if score is None else (score, "")
    row = _gain(results, name, size)
    means = [(statistics.mean(row[x]), y) for x, y in BASELINES.items() if x in row]
    return max(means, default=None)


def accuracy(results, chinese):
    """Return the scores of our model, in bold if better than the best baseline."""
    comma = "，" if chinese else ", "
    lines = []
    for name, title in DATA.items():
        for size, labels in LABELS.items():
            if not scores(results, name, size):
                continue
            title_of_row = comma.join(in_language(x, chinese) for x in (title, labels))
            lines.append([title_of_row, *_cells(results, name, size, chinese)])
    if chinese:
        return table((OURS, "随机权重", "最佳基线"), lines, "测试集")
    return table((OURS, RANDOM, "best baseline"), lines, "test set")


def accuracy_in_short(results, chinese):
    """Return the table of the README, without columns that nothing was measured for."""
    sizes = [size for size in LABELS if size != "200"]
    sizes = [x for x in sizes if any(scores(results, name, x) for name in SHORT)]
    lines = []
    for name, title in SHORT.items():
        cells = [_in_short(results, name, size, chinese) for size in sizes]
        lines.append([in_language(title, chinese), *cells])
    return table([in_language(LABELS[x], chinese) for x in sizes], lines)


def _gain(results, name, size):
    """Return the scores of `pretraining_gain.py`, empty without any."""
    return results["pretraining_gain"].get(f"{name}, {size}", {})


def _without_labels(results, name):
    """Return the row of the head that answers a data set, empty without one."""
    return results["bundled_heads"].get(UNLABELLED.get(name, name), {})


def _cells(results, name, size, chinese):
    """Return our score, that of random weights, and the best baseline."""
    values = scores(results, name, size)
    best = best_baseline(results, name, size)
    is_better = best is not None and statistics.mean(values) > best[0]
    # A bundled head without further training: nothing is drawn by a seed.
    by_seed = size != "0" and name not in LEARNED
    ours = _mean(values, chinese, is_bold=is_better, by_seed=by_seed)
    random = _mean(_gain(results, name, size).get(RANDOM, []), chinese)
    baseline = f"{best[0]:.3f} {best[1]}".rstrip() if best else ""
    return ours, random, baseline


def _mean(values, chinese, is_bold=False, by_seed=True):
    if not values:
        return ""
    text = f"{statistics.mean(values):.3f}"
    if is_bold:
        text = f"**{text}**"
    if len(values) > 1 or not by_seed:
        return text
    return text + ("（单个随机种子）" if chinese else " (one seed)")


def _in_short(results, name, size, chinese):
    """Return our score, and in parentheses that of the best baseline."""
    values = scores(results, name, size)
    best = best_baseline(results, name, size)
    if not values:
        return ""
    text = f"{statistics.mean(values):.3f}"
    if not best:
        return text
    return text + (f"（{best[0]:.3f}）" if chinese else f" ({best[0]:.3f})")
