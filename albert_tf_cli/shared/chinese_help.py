"""`--help` in Chinese: chinese_help.json has the Chinese of each English text."""

import functools
import importlib.resources
import json
import os
import re
from typing import Any

import typer
from rich.cells import cell_len

# Lines end after a space or beside a Chinese character. These pieces stay whole: a
# character or a word with its punctuation, and each part of what is in brackets.
_PIECE = re.compile(
    r"（*(?:\[[^；\]]*\]?|[\u4e00-\u9fff]|[^\s\u4e00-\u9fff（，。；：、）\[]+)"
    r"[，。；：、） ]*"
)
# The formatter of typer, which has no other public name.
_Formatter: Any = typer.Context.formatter_class


def is_chinese() -> bool:
    """Return if the environment asks for Chinese, by the rules of gettext."""
    # The first variable that is set and not empty counts.
    locale = ""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        locale = locale or os.environ.get(name, "")
    # LANGUAGE does not count in these.
    if re.match(r"(C|POSIX)\b", locale):
        return False
    languages = os.environ.get("LANGUAGE") or locale
    # The first language that the help has.
    for language in languages.split(":"):
        if language.startswith(("en", "zh")):
            return language.startswith("zh")
    return False


@functools.cache
def texts() -> dict[str, str]:
    """Return the Chinese texts by the English ones."""
    file = importlib.resources.files("albert_tf_cli.shared") / "chinese_help.json"
    return json.loads(file.read_text("utf-8"))


def _translate(text: str, part: str = "(?s).+") -> str:
    """Translate a text, or the parts of it that match an expression."""
    return re.sub(part, lambda x: texts().get(x[0], x[0]), text)


def _wrap(text: str, width: int) -> str:
    r"""Break a text into lines of a width in columns, which typer keeps after \b."""
    lines = [""]
    for piece in _PIECE.findall(text):
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(["\b", *map(str.rstrip, lines)])


class ChineseFormatter(_Formatter):
    """Formatter that translates the help of a command."""

    def write_usage(self, prog, args="", prefix=None):
        args = _translate(args, r"\[OPTIONS\]|COMMAND|\[ARGS\]")
        super().write_usage(prog, args, _translate("Usage: "))

    def write_heading(self, heading):
        self.write(f"{_translate(heading)}：\n")

    def write_text(self, text):
        parts = text.split("\n\n")
        for i, part in enumerate(parts):
            if part.startswith("\b"):
                parts[i] = _translate(part, "(?m)^Examples?:$")
            else:
                width = self.width - self.current_indent
                parts[i] = _wrap(_translate(" ".join(part.split())), width)
        super().write_text("\n\n".join(parts))

    def write_dl(self, rows, col_max=30, col_spacing=2):
        column = min(max(len(name) for name, _ in rows), col_max) + col_spacing
        width = max(self.width - column - self.current_indent, 10)
        translated = []
        for name, text in rows:
            # typer adds the default and the limits after two spaces.
            text, bracket, added = text.partition("  [")
            added = _translate(bracket[1:] + added, "default: |required|; ")
            translated.append((name, _wrap(_translate(text) + added, width)))
        super().write_dl(translated, col_max, col_spacing)


class Translated:
    """Mix-in for commands whose `--help` is in the language of the environment."""

    def get_help(self, ctx):
        if is_chinese():
            ctx.formatter_class = ChineseFormatter
        return super().get_help(ctx)
