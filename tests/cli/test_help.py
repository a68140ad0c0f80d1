"""The help of every command, in the language of the environment."""

import re

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

import albert_tf_cli
from albert_tf_cli import chinese_help

COMMANDS = typer.main.get_command(albert_tf_cli.app).commands
LOCALE = dict.fromkeys(("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"))


def output_of(*command, **environment):
    environment = {**LOCALE, "COLUMNS": "80", **environment}
    return CliRunner(env=environment).invoke(albert_tf_cli.app, command).output


def without_spaces(text):
    return "".join(text.split())


def test_chinese_help_has_no_english_and_its_table_no_unused_text(monkeypatch):
    texts, wanted = chinese_help.texts(), set()

    class Watched(dict):
        def get(self, key, default=None):
            wanted.add(key)
            return super().get(key, default)

    monkeypatch.setattr(chinese_help, "texts", lambda: Watched(texts))
    pages = [output_of("--help", LANG="zh_CN.UTF-8")]
    pages += [output_of(name, "--help", LANG="zh_CN.UTF-8") for name in COMMANDS]
    # Every text of the parsers is in the table, and every text of the table in use.
    assert wanted == texts.keys()
    held = [x.help for command in COMMANDS.values() for x in command.params]
    assert {x for x in held if x} <= wanted
    shown = without_spaces("".join(pages))
    assert [x for x in texts.values() if without_spaces(x) not in shown] == []
    for page in pages:
        page = re.sub(r"(?m)^  示例：\n(    .*\n)+", "", page)
        assert not re.search(r"[A-Za-z]+ [a-z]+ [a-z]+", page)
        # No line is too long, or begins with the end of a sentence.
        assert max(map(cell_len, page.splitlines())) <= 80
        assert not re.search("(?m)^ *[，。；：、）]", page)


@pytest.mark.parametrize(
    ("environment", "is_chinese"),
    [
        ({}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "zh"}, True),
        ({"LANG": "zh_TW.UTF-8"}, True),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, False),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, True),
        ({"LANGUAGE": "fr:zh_CN:en", "LANG": "en_US.UTF-8"}, True),
        ({"LANGUAGE": "en:zh_CN", "LANG": "zh_CN.UTF-8"}, False),
        ({"LANGUAGE": "zh_CN", "LC_ALL": "C.UTF-8"}, False),
    ],
)
def test_the_language_of_help_is_that_of_the_environment(environment, is_chinese):
    page = output_of("inspect", "--help", **environment)
    assert page.startswith("用法：" if is_chinese else "Usage: ")
    assert bool(re.search("[\u4e00-\u9fff]", page)) == is_chinese
    # Errors are in English.
    assert output_of("inspect", **environment).startswith("Usage: ")
