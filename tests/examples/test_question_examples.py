"""The examples of question answering and multiple choice learn."""

import importlib.util
import json
import pathlib

import pytest

from albert_tf.data import read_choices, read_squad

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_their_data_can_be_learned_from():
    train, dev = (
        read_squad(EXAMPLES / "data" / "questions" / f"{name}.json")
        for name in ("train", "dev")
    )
    assert not set(train.contexts) & set(dev.contexts)
    for data in (train, dev):
        assert (data.moved, data.absent) == (0, 0)
    train, dev = (
        read_choices(EXAMPLES / "data" / "choices" / f"{name}.json")
        for name in ("train", "dev")
    )
    # Neither place nor number gives the answer away.
    for label in range(3):
        assert dev.labels.count(label) < len(dev) / 2
    assert {len(choices) for choices in dev.choices} == {2, 3, 4}


@pytest.mark.slow
def test_question_answering(capsys):
    scores, first = example("question_answering").main(EXAMPLES / "data" / "questions")
    assert scores["f1"] > first["f1"] + 50
    assert "陈小雨做什么工作？ 导游 (" in capsys.readouterr().out


@pytest.mark.slow
def test_multiple_choice(capsys):
    accuracy, chance = example("multiple_choice").main(EXAMPLES / "data" / "choices")
    assert accuracy > chance + 0.3


def test_other_data_are_read_from_folders(tmp_path):
    module = example("multiple_choice")
    article = {"article": "It rains.", "questions": ["What falls?"]}
    article.update(options=[["snow", "rain"]], answers=["B"])
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1.txt").write_text(json.dumps(article))
    assert module.read(tmp_path, "train").labels == [1]
