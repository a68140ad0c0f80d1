"""The tables of promises in docs/contributing name tests that exist."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]


def test_every_promise_names_tests_that_exist():
    pages = sorted((ROOT / "docs" / "contributing").glob("promises_*.md"))
    lines = [line for x in pages for line in x.read_text("utf-8").splitlines()]
    rows = [line for line in lines if line.startswith("| ")]
    missing = []
    for row in rows:
        file = None
        for name in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[-2]):
            path, _, test = name.partition("::")
            if path.startswith("tests/"):
                file, name = ROOT / path, test
                if not file.exists():
                    missing.append(path)
                    file = None
            name = name.removeprefix("::")
            if not file or not file.is_file() or not name.startswith("test_"):
                continue
            if not re.search(rf"def {name}\b", file.read_text("utf-8")):
                missing.append(f"{file.name}::{name}")
    assert len(rows) > 100
    assert missing == []
