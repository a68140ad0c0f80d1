"""The baselines of a fine-tuned model, beside its scores."""

import json

import numpy as np
import pytest
from command_line import run, write_start
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from albert_tf_cli.tasks import TASKS, Examples
from albert_tf_cli.tasks.baselines import MOST_EXAMPLES, sample, score_baselines

pytestmark = pytest.mark.filterwarnings("ignore:Only .* dev examples")

TEXTS = ["很好吃", "很好", "太差了", "不好", "差", "好"] * 3
LABELS = ["好", "好", "差", "差", "差", "好"] * 3
DEV_TEXTS, DEV_LABELS = ["好吃", "太差", "不好吃"], ["好", "差", "好"]


def scores_on_dev(task, train, dev):
    scores = score_baselines(TASKS[task], {"train": train, "dev": dev})
    return {name: parts["dev"] for name, parts in scores.items()}


def test_classes_are_predicted_as_by_scikit_learn():
    train, dev = Examples(TEXTS, LABELS), Examples(DEV_TEXTS, DEV_LABELS)
    scores = scores_on_dev("text-classification", train, dev)
    # "好" and "差" are equally frequent; the first one is the constant.
    assert scores["constant answer"]["accuracy"] == pytest.approx(2 / 3)
    assert scores["constant answer"]["macro_f1"] == pytest.approx(0.8 / 2)
    vectors = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), sublinear_tf=True)
    model = make_pipeline(vectors, LogisticRegression(C=10)).fit(TEXTS, LABELS)
    predicted = model.predict(DEV_TEXTS)
    linear = scores["TF-IDF with logistic regression"]
    assert linear["accuracy"] == np.mean(predicted == DEV_LABELS)
    assert linear["macro_f1"] == f1_score(DEV_LABELS, predicted, average="macro")


def test_pairs_are_predicted_by_what_both_texts_share():
    first = ["天地", "好吃", "鸡蛋", "上下"] * 4
    second = ["天地", "很差", "鸡蛋", "左右"] * 4
    pairs = Examples((first, second), ["1", "0", "1", "0"] * 4)
    dev = Examples((["你来", "好吃"], ["你来", "上下"]), ["1", "0"])
    scores = scores_on_dev("text-classification", pairs, dev)
    assert scores["TF-IDF with logistic regression"]["accuracy"] == 1
    similar = Examples((first, second), [5.0, 0.0, 4.0, 1.0] * 4)
    scores = scores_on_dev("regression", similar, similar)
    assert scores["constant answer"]["pearson"] == 0
    assert scores["constant answer"]["mse"] == np.var([5, 0, 4, 1])
    # The cosines are 1, 0, 1 and 0.
    expected = np.corrcoef([1, 0, 1, 0], [5, 0, 4, 1])[0, 1]
    assert scores["cosine of TF-IDF"]["pearson"] == pytest.approx(expected)


def test_several_labels_have_thresholds_of_dev():
    y = [[1, 1, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]] * 3
    train = Examples(["好吃", "吃", "想吃", "好"] * 3, y)
    scores = scores_on_dev("multi-label", train, train)
    # Both labels for each text: 5 of 8 are right, and none of 5 is missed.
    assert scores["constant answer"]["micro_f1"] == pytest.approx(2 * 5 / (8 + 5))
    assert scores["TF-IDF with logistic regression"]["exact_match"] == 1


def test_entities_are_found_by_a_dictionary():
    train = Examples(
        ["大地在", "大地", "大地上", "大", "Ann"],
        [[(0, 2, "LOC")], [(0, 2, "LOC")], [(0, 2, "PER")], [(0, 1, "PER")]]
        + [[(0, 3, "PER")]],
    )
    texts = ["大地大", "Anna Ann"]
    spans = [[(0, 2, "LOC"), (2, 3, "PER")], [(5, 8, "PER")]]
    dev = Examples(texts, spans)
    scores = scores_on_dev("token-classification", train, dev)
    assert scores["dictionary of training entities"]["f1"] == 1


@pytest.mark.parametrize("task", ["text-classification", "multi-label", "regression"])
def test_examples_that_teach_nothing_have_a_constant(task):
    y = {"text-classification": ["a", "a"], "multi-label": [[1, 0]] * 2}
    blank = Examples(["", ""], y.get(task, [1.0, 1.0]))
    assert list(scores_on_dev(task, blank, blank)) == ["constant answer"]


def test_many_examples_are_sampled():
    count = MOST_EXAMPLES + 1
    chosen = sample(Examples(list(range(count)), list(range(count))))
    assert len(set(chosen.x)) == MOST_EXAMPLES and chosen.x == chosen.y


def test_a_model_that_learned_nothing_is_reported(tmp_path):
    # All texts are equal, so that no model beats a constant.
    rows = "label\ttext\n" + "1\t好\n1\t好\n0\t好\n" * 4
    (tmp_path / "a.tsv").write_text(rows, "utf-8")
    data = [x for name in ("train", "dev", "test") for x in (f"--{name}", "a.tsv")]
    data = [tmp_path / x if x == "a.tsv" else x for x in data]
    command = ("finetune", *data, "--output", tmp_path / "model", "--epochs", 1)
    with pytest.warns(UserWarning, match="not better on dev than") as caught:
        printed = run(*command, *write_start(tmp_path)).stdout
    (message,) = (str(x.message) for x in caught if "not better" in str(x.message))
    assert "constant answer 0.6667 (" in message and "--monitor macro_f1" in message
    assert (
        "Baselines by accuracy: constant answer (dev 0.6667, test 0.6667), TF-IDF "
        "with logistic regression (dev 0.6667, test 0.6667)"
    ) in printed
    metrics = json.loads((tmp_path / "model" / "metrics.json").read_text("utf-8"))
    constant = metrics["baselines"]["constant answer"]
    assert constant["test"]["macro_f1"] == pytest.approx(0.4)
    english, chinese = (
        (tmp_path / "model" / "README.md").read_text("utf-8").split("\n# 中文\n")
    )
    assert "\n\n| `accuracy` | dev | test |\n| --- | --- | --- |\n| this" in english
    assert "| constant answer | 0.6667 | 0.6667 |" in english
    assert "| 固定预测 | 0.6667 | 0.6667 |" in chinese and "本模型" in chinese
