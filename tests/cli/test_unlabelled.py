"""`finetune --unlabelled`: texts without labels are learned before the labels."""

import json

import numpy as np
import pytest
from command_line import as_options, refused, run, write_start

import albert_tf

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* dev examples"),
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]
LABELLED = "label\ttext\n好\t很好\n差\t很差\n好\t好吃\n差\t不好吃\n"
DEV = "label\ttext\n好\t想吃鸡蛋\n差\t太差了\n"
# The second is one of dev, with another space, and one occurs twice.
TEXTS = "我想吃鸡蛋\n 太差了\n你来天地\n你来天地\n"
PAIRS = "text\ttext_b\tlabel\n很好\t好\t1\n很差\t好\t0\n好吃\t很好吃\t1\n"


def finetune(folder, *options, **others):
    files = {"train": folder / "train.tsv", "dev": folder / "dev.tsv"}
    files |= {"output": folder / "model", "epochs": 1, "learning_rate": 0.01}
    return run("finetune", *as_options(**{**files, **others}), *options)


def write(folder, train=LABELLED, dev=DEV):
    (folder / "train.tsv").write_text(train, "utf-8")
    (folder / "dev.tsv").write_text(dev, "utf-8")
    return write_start(folder)


def test_texts_without_labels_are_learned_before_those_with_labels(tmp_path):
    start = write(tmp_path)
    texts = tmp_path / "texts.txt"
    texts.write_text(TEXTS, "utf-8")
    # The encoder stays as it is after these texts.
    result = finetune(tmp_path, *start, unlabelled=texts, freeze="encoder")
    printed = " ".join(result.stdout.split())
    assert "3 examples without labels" in printed and "1 left out" in printed
    model = tmp_path / "model"
    metrics = json.loads((model / "metrics.json").read_text("utf-8"))
    # Two without labels and four of train.
    assert metrics["adaptation"]["texts"] == 6
    assert metrics["adaptation"]["left_out"] == 1
    assert not (model / "adapted" / ".training").exists()
    # Another task starts from the adapted checkpoint.
    adapted = albert_tf.models.AlbertTextRegressor.from_checkpoint(model / "adapted")
    trained = albert_tf.models.AlbertTextClassifier.from_preset(model)
    weights = zip(
        adapted.backbone.get_weights(), trained.backbone.get_weights(), strict=True
    )
    for one, other in weights:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("content", "count"),
    [
        ("text\ttext_b\n天地\t上下\n你来\t我来\n", 2),
        pytest.param("天地\t上下\n你来\t我来\n", 2, marks=pytest.mark.slow),
    ],
)
def test_pairs_without_labels_are_read_as_predict_reads_them(tmp_path, content, count):
    start = write(tmp_path, PAIRS, PAIRS)
    texts = tmp_path / "pairs.txt"
    texts.write_text(content, "utf-8")
    printed = finetune(tmp_path, *start, unlabelled=texts).stdout
    assert f"{count} examples without labels" in " ".join(printed.split())


def test_wrong_use_of_unlabelled_is_refused(tmp_path):
    start = write(tmp_path)
    texts = tmp_path / "texts.txt"
    texts.write_text("太差了\n", "utf-8")
    files = as_options(
        train=tmp_path / "train.tsv",
        dev=tmp_path / "dev.tsv",
        output=tmp_path / "model",
    )
    command = ("finetune", *files, *start)
    assert "1 are texts of dev or test" in refused(*command, "--unlabelled", texts)
    assert "Pass both" in refused(*command, "--minutes", 1)
    missing = refused(*command, "--unlabelled", tmp_path / "none.txt")
    assert "none.txt" in missing
