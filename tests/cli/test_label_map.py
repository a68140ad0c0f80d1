"""Labels of a file by other names than those of a model: --label-map."""

import json

import pytest
from command_line import refused, run
from named_heads import write_named_heads

from albert_tf_cli.shared.label_map import (
    check_label_map,
    head_option,
    likely_label_map,
    parse_label_map,
    rename_answer,
)
from albert_tf_lite.errors import AlbertError

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* dev examples"),
    pytest.mark.filterwarnings("ignore:.* examples are too few"),
    pytest.mark.filterwarnings("ignore:.* are training examples, too"),
    pytest.mark.filterwarnings("ignore:The model is not better"),
]

MAP = "1=好评,0=差评"
TEXTS = ["很好", "太差了", "我想吃鸡蛋", "不好"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A checkpoint whose head "sentiment" has the classes 差评 and 好评."""
    folder = tmp_path_factory.mktemp("label_map") / "start"
    write_named_heads(folder)
    return folder


def write_table(path, labels):
    rows = (f"{pair[0]}\t{pair[1]}\n" for pair in zip(labels, TEXTS * 2, strict=True))
    path.write_text("label\ttext\n" + "".join(rows), "utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("好评", "has '好评'. Expected pairs"),
        ("1=", "Expected pairs such as 1=好评,0=差评"),
        ("1=好评,", "has ''"),
        ("1=a,1=b", "has the label '1' twice"),
        ("1=a,0=a", "gives several labels the name 'a', which would merge"),
    ],
)
def test_a_map_that_is_none_is_refused(text, message):
    with pytest.raises(AlbertError, match=message):
        parse_label_map(text)


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (["1", "2"], None, r"has the labels \['0'\], but a.tsv has \['1', '2'\]"),
        (["0", "1"], ["正", "负"], "names .*'好评', '差评'.*, but the classes of the"),
        (["0", "好评"], ["差评", "好评"], None),
        (["0", "1", "好评"], None, "would merge labels of a.tsv into .*'好评'"),
    ],
)
def test_a_map_of_other_labels_is_refused(labels, classes, message):
    label_map = parse_label_map(f" {MAP.replace(',', '，')} ")
    assert label_map == {"1": "好评", "0": "差评"}
    if message is None:
        check_label_map(label_map, labels, "a.tsv", classes)
        return
    with pytest.raises(AlbertError, match=message):
        check_label_map(label_map, labels, "a.tsv", classes)


def test_a_swap_is_no_merge():
    check_label_map({"0": "1", "1": "0"}, ["0", "1"], "a.tsv", None)


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["0", "1"], ["好评", "差评"], {"1": "好评", "0": "差评"}),
        (["不满意", "满意"], ["好评", "差评"], {"满意": "好评", "不满意": "差评"}),
        (["NEG", "POS"], ["好评", "差评"], {"POS": "好评", "NEG": "差评"}),
        (
            ["entailment", "neutral", "contradiction"],
            ["蕴含", "中立", "矛盾"],
            {"entailment": "蕴含", "neutral": "中立", "contradiction": "矛盾"},
        ),
        (["好评", "差评"], ["差评", "好评"], {}),
        (["0", "1", "2"], ["好评", "差评"], {}),
        (["垃圾", "正常"], ["好评", "差评"], {}),
        (["好", "正"], ["好评", "差评"], {}),
    ],
)
def test_likely_maps(labels, classes, expected):
    assert likely_label_map(labels, classes) == expected


def test_answers_of_all_forms_are_renamed():
    names = {"好评": "1", "PER": "人名"}
    entity = {"entity_group": "PER", "word": "好评", "score": 0.5}
    answers = [
        [{"label": "好评", "score": 0.9}, {"label": "中评", "score": 0.1}],
        [entity],
        {"answer": {"label": ""}, "explanation": {"label": "好评"}},
    ]
    assert rename_answer(answers, names) == [
        [{"label": "1", "score": 0.9}, {"label": "中评", "score": 0.1}],
        [{**entity, "entity_group": "人名"}],
        {"answer": {"label": ""}, "explanation": {"label": "1"}},
    ]


def test_a_head_of_these_classes_is_mentioned(checkpoint):
    def line(labels, **arguments):
        arguments = {"labels": labels, "pairs": False, **arguments}
        return head_option(str(checkpoint), None, "text-classification", arguments)

    shown = "If 0 is 差评 and 1 is 好评, pass --label-map 0=差评,1=好评 to start from"
    assert f":sentiment classifies 差评 and 好评. {shown}" in line(["0", "1"])
    # Labels that a head has, another number, texts of another kind, other classes.
    assert line(["好评", "差评"]) == line(["0", "1", "2"]) == ""
    assert line(["0", "1"], pairs=True) == line(["垃圾", "正常"]) == ""


def test_a_map_goes_through_all_commands(checkpoint, tmp_path):
    numbers = write_table(tmp_path / "numbers.tsv", "10101010")
    words = write_table(tmp_path / "words.tsv", ["好评", "差评"] * 4)
    output = tmp_path / "model"
    data = ("--train", numbers, "--dev", numbers, "--output", output)
    options = ("--checkpoint", checkpoint, "--epochs", 1, "--label-map", MAP)
    printed = run("finetune", *data, *options).stdout
    assert "2 labels: 好评, 差评" in printed and "classifies" not in printed
    # The head of these labels competes.
    assert "Epoch 0, before training" in printed

    # The map of the training is remembered, and the names of the model fit, too.
    def scores(*arguments):
        return json.loads(run("evaluate", *arguments, "--json").stdout)

    expected = scores(output, words)
    assert scores(output, numbers) == scores(output, numbers, "--label-map", MAP)
    assert scores(output, numbers) == expected
    head = f"{checkpoint}:sentiment"
    assert scores(head, numbers, "--label-map", MAP) == scores(head, words)
    error = refused("evaluate", head, numbers)
    assert "If 0 is 差评 and 1 is 好评, pass --label-map 0=差评,1=好评." in error

    answers = run("predict", output, *TEXTS).stdout
    renamed = answers.replace("好评\t", "1\t").replace("差评\t", "0\t")
    assert renamed != answers
    assert run("predict", output, *TEXTS, "--label-map", MAP).stdout == renamed
    error = refused("predict", output, *TEXTS, "--label-map", "1=好,0=坏")
    assert "names ['好', '坏'], but the classes of the model are" in error
