"""Write the figures of README, docs and cards from their sources: `make figures`.

    python scripts/figures.py [--check]

Figures in sentences are listed in `benchmarks/pages/figures.toml`, with their page,
their source and their rounding. `<!-- table NAME -->` and `<!-- end -->` enclose a
table or another generated text. `benchmarks/pages/plots.py` has the plots. `--check`
writes nothing and fails if a page or a plot is stale; `make lint` runs it.
"""

import argparse
import json
import pathlib
import re
import string
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
# `benchmarks` is a package of the root, which a script of another folder lacks.
sys.path.append(str(ROOT))

import generated_texts  # noqa: E402

from benchmarks.lib.paths import RESULTS  # noqa: E402
from benchmarks.pages import paper_page, plots  # noqa: E402
from benchmarks.pages.computed import computed  # noqa: E402
from benchmarks.pages.page_tables import page_tables  # noqa: E402

TEMPLATES = ROOT / "benchmarks" / "pages" / "figures.toml"
PAGES = ("*.md", "albert_tf_lite/*.md", "benchmarks/**/*.md", "docs/**/*.md")
PAGES += ("examples/**/*.md",)
TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def sources():
    """Return what figures and tables are written from, by the name of the file."""
    found = {x.stem: json.loads(x.read_text("utf-8")) for x in RESULTS.glob("*.json")}
    gain = found["pretraining_gain"]
    found["pretraining_gain"] = {"rows": _by_data(gain)}
    for name, file in found.items():
        jobs = {x: y["rows"] for x, y in file.get("jobs", {}).items()}
        found[name] = {**file.get("rows", {}), **jobs, **file}
    return found


def _by_data(scores):
    """Return the scores of the seeds by data set and labels, and by classifier."""
    rows = {}
    for key, score in sorted(scores.items()):
        name, size, start, _ = key.split("/")
        rows.setdefault(f"{name}, {size}", {}).setdefault(start, []).append(score)
    return rows


def figures(results):
    """Return the phrases with figures by page, and the values of figures by name."""
    bundled = generated_texts.bundled_checkpoints()
    values = {**results, **computed(results), "bundled": bundled}
    described = tomllib.loads(TEMPLATES.read_text("utf-8"))
    find = string.Formatter().get_field
    known = {x: find(y, (), values)[0] for x, y in described["sources"].items()}
    return described["pages"], known


def texts(results):
    """Return the functions of the generated texts: of whether a page is in Chinese."""
    paper = paper_page.tables(RESULTS / "paper")
    made = page_tables(results, computed(results))
    made |= {name: lambda chinese, x=text: x for name, text in paper.items()}
    return made | generated_texts.TEXTS


def filled(text, is_chinese, made):
    """Return a page with its generated texts replaced."""

    def table(match):
        return f"{match[1]}\n{made[match[2]](is_chinese)}\n\n{match[3]}"

    return TABLE.sub(table, text)


def corrected(text, phrases, known):
    """Return a page with the numbers of its phrases replaced."""
    for phrase in phrases:
        found = pattern(phrase, known)
        if (count := len(found.findall(text))) != 1:
            expected = f"{phrase.format(**known)!r} once, found {count} times"
            raise ValueError(f"{TEMPLATES.name} expects {expected}")
        numbers = [format(known[name], form) for name, form in fields(phrase)]
        text = found.sub(lambda match, x=numbers: with_groups(match, x), text)
    return text


def fields(phrase):
    """Return the names and the formats of the figures in a phrase."""
    parsed = string.Formatter().parse(phrase)
    return [(name, form) for _, name, form, _ in parsed if name is not None]


def pattern(phrase, known):
    """Return a pattern of a phrase with any numbers, across line breaks."""
    parts = []
    for literal, name, _, _ in string.Formatter().parse(phrase):
        parts += [re.escape(x) for x in literal if not x.isspace()]
        if name is not None and isinstance(known[name], str):
            # A machine.
            parts.append("(" + r"\s*".join(map(re.escape, known[name].split())) + ")")
        elif name is not None:
            parts.append(r"(\d+(?:[.,]\d+)*%?)")
    return re.compile(r"\s*".join(parts))


def with_groups(match, parts):
    """Return the text of a match with its groups replaced, its spaces kept."""
    text, end = "", match.start()
    for number, part in enumerate(parts, 1):
        # A machine may be on two lines.
        old = match[number]
        new = old if old.split() == part.split() else part
        text += match.string[end : match.start(number)] + new
        end = match.end(number)
    return text + match.string[end : match.end()]


def draw_plots(results, is_check):
    """Draw the plots that are stale; return the errors of a check."""
    failed = []
    for name, (show, draw) in plots.PLOTS.items():
        path, shown = ROOT / name, show(results)
        if plots.is_drawn(path, shown):
            continue
        if is_check:
            failed.append(f"{name}: run `make figures`")
        else:
            plots.save(draw(shown), path, shown)
            print(f"{name}: drawn")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a page is stale")
    arguments = parser.parse_args()
    results = sources()
    (phrases, known), made = figures(results), texts(results)
    failed = draw_plots(results, arguments.check)
    for page in sorted({x for pattern in PAGES for x in ROOT.glob(pattern)}):
        name, text = page.relative_to(ROOT), page.read_text("utf-8")
        try:
            new = filled(text, page.name.endswith(".zh.md"), made)
            new = corrected(new, phrases.pop(name.as_posix(), ()), known)
        except (KeyError, ValueError) as error:
            failed.append(f"{name}: {error}")
            continue
        if new == text:
            continue
        if arguments.check:
            pairs = zip(text.splitlines(), new.splitlines(), strict=False)
            old, line = next((x for x in pairs if x[0] != x[1]), ("", "more lines"))
            failed.append(f"{name}: run `make figures`\n- {old}\n+ {line}")
        else:
            page.write_text(new, "utf-8")
            print(f"{name}: written")
    failed += [f"{name}: a page of {TEMPLATES.name} is missing" for name in phrases]
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
