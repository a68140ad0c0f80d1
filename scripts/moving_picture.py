"""Record a terminal as an animated SVG: `python scripts/moving_picture.py`.

Runs the commands below and writes `docs/terminal.svg`, with their real output and time.
Lines appear one after the other; where nothing moves, all of them are shown.
"""

import html
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[1]
PATH = ROOT / "docs" / "terminal.svg"
COMMANDS = (
    ("predict", "albert_micro_zh:sentiment", "房间很脏，再也不来", "物超所值"),
    ("predict", "albert_micro_zh:topics", "国足2比1战胜韩国队"),
    ("predict", "albert_micro_zh:entities", "王小明昨天从上海飞到了成都。"),
    ("export", "albert_micro_zh:sentiment", "reviews.onnx"),
    ("predict", "reviews.onnx", "早餐很丰盛，下次还住"),
)
# Pixels of a column and of a line, and seconds: per typed character, after the output.
COLUMN, LINE, EDGE = 8.4, 20, 14
TYPING, READING = 0.04, 1.6
COLUMNS = 76
BACKGROUND, FOREGROUND, PROMPT = "#1e1e2e", "#e4e4ef", "#8fd694"


def record(command, folder):
    """Run a command; return the lines it prints, and the seconds it took."""
    environment = os.environ | {"COLUMNS": str(COLUMNS), "NO_COLOR": "1"}
    environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'albert_tf_lite'}"
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "albert_tf_cli", *command],
        capture_output=True,
        check=True,
        cwd=folder,
        encoding="utf-8",
        env=environment,
    )
    return done.stdout.rstrip("\n").split("\n"), time.perf_counter() - start


def width(text):
    """Return the columns of a text: two per wide character."""
    return sum(2 if unicodedata.east_asian_width(x) in "WF" else 1 for x in text)


def wrapped(line):
    """Cut a line into those that fit."""
    rows, row = [], ""
    for character in line.expandtabs(8):
        if width(row + character) > COLUMNS:
            rows.append(row)
            row = ""
        row += character
    return [*rows, row]


def frames(recorded):
    """Return the rows of the terminal: text, begin and end of its appearance."""
    rows, now = [], 0.5
    for command, lines, seconds in recorded:
        typed = f"$ albert-tf {shlex.join(command).replace(chr(39), '')}"
        for row in wrapped(typed):
            end = now + TYPING * width(row)
            rows.append((row, now, end, PROMPT))
            now = end
        now += min(seconds, 2)
        for line in lines:
            rows += [(row, now, now, FOREGROUND) for row in wrapped(line)]
        now += READING
    return rows, now + 2


def drawn(rows, seconds):
    """Return the SVG."""
    wide = round(COLUMNS * COLUMN + 2 * EDGE)
    high = len(rows) * LINE + 2 * EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        f'width="{wide}" height="{high}" font-size="14" '
        'font-family="ui-monospace, Menlo, Consolas, monospace">',
        f'<rect width="{wide}" height="{high}" rx="8" fill="{BACKGROUND}"/>',
    ]
    for number, (text, begin, end, colour) in enumerate(rows):
        top = EDGE + number * LINE
        clip, start, stop = f"c{number}", begin / seconds, max(end, begin + 0.01)
        full = wide - EDGE
        times = f"0;{start:.4f};{stop / seconds:.4f};1"
        parts += [
            f'<clipPath id="{clip}"><rect x="0" y="{top}" width="{full}" '
            f'height="{LINE}"><animate attributeName="width" '
            f'values="0;0;{round(EDGE + COLUMN * width(text) * 1.1)};{full}" '
            f'keyTimes="{times}" dur="{seconds:.1f}s" repeatCount="indefinite"/>'
            "</rect></clipPath>",
            f'<text x="{EDGE}" y="{top + 15}" fill="{colour}" xml:space="preserve" '
            f'clip-path="url(#{clip})">{html.escape(text)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def main():
    with tempfile.TemporaryDirectory() as folder:
        recorded = [(x, *record(x, folder)) for x in COMMANDS]
    PATH.write_text(drawn(*frames(recorded)), "utf-8")
    print(f"{PATH.relative_to(ROOT)}: {PATH.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
