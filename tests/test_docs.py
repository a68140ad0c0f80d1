"""The code blocks and commands of README and docs run as printed.

The blocks of a page run in order in a folder that holds the folders of the repository
that pages name. The output of a block, if the page shows it, is compared without its
numbers.
"""

import ast
import os
import pathlib
import re
import shlex
import sys
import zipfile

import pytest
from pages import FENCE, PAGES, RELEASES, blocks_of, check_output, name_of, run
from processes import PATH

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ("benchmarks", "deploy", "docs", "examples")
JAX_PAGES = ("tutorials/pretraining.md", "guides/several_machines.md")
# Stands for a data set that cannot be bundled.
OCNLI = '{"sentence1": "他在踢球。", "sentence2": "他在运动。", "label": "entailment"}'
# Pages without commands that train for less than a few seconds.
FAST = ("guides/tokenizers.md", "guides/backbone.md")
# The first pages of a new user; `make demo` trains and exports like the quickstart, and
# the README trains like the index. The others train for minutes on one core.
SLOW = ("README.md", "install.md")


def without_comments(blocks):
    """Return the code of blocks without its comments, and what it prints."""
    return [
        (re.sub(r"\s*#.*$", "", code, flags=re.MULTILINE), expected)
        for _, code, expected in blocks
    ]


def original_of(page):
    """Return the English page of a translation, else `None`."""
    english = page.with_name(page.name.replace(".zh.md", ".md"))
    return english if english != page else None


def marks(page):
    if name_of(page) in FAST:
        return []
    return [pytest.mark.slow if name_of(page) in SLOW else pytest.mark.nightly]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the folders, releases and commands of the pages."""
    for name in FOLDERS:
        (tmp_path / name).symlink_to(ROOT / name)
    for name in RELEASES:
        (tmp_path / name).symlink_to(ROOT / "examples/albert_micro_zh")
    with zipfile.ZipFile(tmp_path / "ocnli_public.zip", "w") as archive:
        for name in ("train", "dev"):
            archive.writestr(f"ocnli/{name}.json", OCNLI)
    commands = tmp_path / ".bin"
    commands.mkdir()
    for name, module in (("albert-tf", " -m albert_tf_cli"), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec {sys.executable}{module} "$@"\n')
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", PATH)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.traced
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=marks(page))
        for page in PAGES
        if blocks_of(page) and not original_of(page)
    ],
)
def test_the_blocks_of_a_page_run(page, folder):
    namespace = {"__name__": "__main__"}
    for language, code, expected in blocks_of(page):
        output = run(language, code, namespace)
        if expected is not None:
            check_output(output, expected, code)


@pytest.mark.nightly
def test_commands_on_jax_run_where_tensorflow_is_installed_too(folder, monkeypatch):
    pytest.importorskip("jax", reason="JAX is not installed (extra [jax])")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    tutorial, cluster = (ROOT / "docs" / x for x in JAX_PAGES)
    run("sh", blocks_of(tutorial)[0][1], {})
    pages = (tutorial.read_text("utf-8"), cluster.read_text("utf-8"))
    commands = [y for x in pages for _, y in FENCE.findall(x) if "KERAS_BACKEND" in y]
    assert len(commands) == 2
    for number, command in enumerate(commands):
        for printed, tested in (
            ("--minutes 60", "--steps 2"),
            ("--hosts N --host I", "--hosts 1 --host 0 --steps 2"),
        ):
            command = command.replace(printed, tested)
        output = f"--output on_jax_{number}"
        command = re.sub(r"--output \w+", output, command)
        printed = run("sh", f"{command.rstrip()} --batch-tokens 256", {})
        assert "Checkpoint (albert_zh)" in " ".join(printed.split())


@pytest.mark.parametrize(
    "page", [pytest.param(x, id=name_of(x)) for x in PAGES if original_of(x)]
)
def test_a_translation_has_the_code_and_the_output_of_the_original(page):
    here, there = (without_comments(blocks_of(x)) for x in (page, original_of(page)))
    assert here == there


def test_pages_are_short_and_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        # Without generated tables and texts.
        text = re.sub(r"(?s)<!-- table .*?<!-- end -->", "", page.read_text("utf-8"))
        assert len(text.splitlines()) <= 200, page
        assert name_of(original_of(page) or page) in navigation


def test_chinese_pages_link_to_chinese_pages():
    """Also on GitHub, where the site's choice of the language is missing."""
    pages = [x for x in PAGES if original_of(x)]
    pages += [ROOT / "examples/README.zh.md"]
    for page in pages:
        links = re.findall(r"\]\((?!\w+:)([^)#\s]+)\.md", page.read_text("utf-8"))
        english = [x for x in links if not x.endswith(".zh")]
        # A README has a link to the other language.
        english = [x for x in english if x != "README"]
        found = [x for x in english if (page.parent / f"{x}.zh.md").exists()]
        assert found == [], page


def headings(page):
    """Return the levels of the headings of a page."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
    return re.findall(r"^#+(?= )", text, re.MULTILINE)


def test_a_translation_has_the_headings_of_the_original():
    for page in [*PAGES, *(ROOT / "examples").glob("*.md")]:
        if original := original_of(page):
            assert headings(page) == headings(original), page


def test_links_of_readme_and_examples_exist_and_chinese_pictures_are_shown():
    """The site checks the links of docs/, but not those of other folders."""
    for page in [*PAGES, *ROOT.glob("examples/**/*.md"), *ROOT.glob("notebooks/*.md")]:
        links = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text("utf-8"))
        for link in [page.parent / x for x in links]:
            assert link.exists(), f"{page}: {link}"
            assert link.resolve() != page, f"{page} links to itself"
            if original_of(page) and link.suffix in (".png", ".svg"):
                chinese = link.with_name(f"{link.stem}.zh{link.suffix}")
                assert link.stem.endswith(".zh") or not chinese.exists(), page


def test_the_package_is_described_in_the_same_words():
    import albert_tf

    pages = ("README.md", "CITATION.cff", "docs/index.md", "mkdocs.yml")
    words = " ".join((albert_tf.__doc__ or "").split()).rstrip(".")
    for name in (*pages, "pyproject.toml", "albert_tf_cli/shared/chinese_help.json"):
        assert words in (ROOT / name).read_text("utf-8"), name
    # And how far it is, at the top.
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert albert_tf.__version__ in " ".join(lines[:10])
    assert len(lines) <= 130


def test_chinese_pages_use_the_words_of_the_glossary():
    glossary = (ROOT / "docs/contributing/chinese.md").read_text("utf-8")
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \|$", glossary, re.MULTILINE)
    refused = [word for row in rows[1:] for word in row.split("、")]
    assert len(refused) > 30
    texts = [x for x in PAGES if original_of(x)] + [ROOT / "examples/README.zh.md"]
    for name in ("albert_tf_cli/shared/chinese_help.json", "albert_tf/model_card.py"):
        texts.append(ROOT / name)
    for path in texts:
        text = path.read_text("utf-8")
        assert [word for word in refused if word in text] == [], path


def test_the_recorded_terminal_shows_the_commands_of_its_script(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import moving_picture

    picture = moving_picture.PATH.read_text("utf-8")
    assert len(picture) < 200_000
    for command in moving_picture.COMMANDS:
        assert f"$ albert-tf {' '.join(command)}</text>" in picture


def test_pages_count_tasks_and_releases():
    """Numbers that a new task or release would make wrong."""
    from albert_tf.checkpoints import RELEASES
    from albert_tf.models.task import TASKS

    chinese = sum("_zh" in x or "lcqmc" in x for x in RELEASES)
    counts = (len(RELEASES), chinese, len(RELEASES) - chinese, len(TASKS))
    total, chinese, english, tasks = map(str, counts)
    for name, words in (
        ("docs/tasks/index.md", f"Each of the {tasks} tasks"),
        ("docs/tasks/index.zh.md", f"{tasks} 种任务"),
        ("docs/index.md", f"{tasks} kinds of Keras models"),
        ("docs/index.zh.md", f"{tasks} 种任务"),
        ("docs/about/comparison.md", f"{chinese} Chinese and {english} English"),
        ("docs/about/comparison.zh.md", f"{chinese} 个中文、{english} 个英文"),
        ("docs/about/limits.md", f"({total} releases)"),
        ("docs/about/limits.zh.md", f"{total} 个公开发布模型"),
    ):
        text = (ROOT / name).read_text("utf-8")
        assert words in text.replace("\n", " "), name
        for count in re.findall(r"\b(\d+) (?:tasks|种任务|kinds of Keras)", text):
            assert count == tasks, name


def test_pages_state_default_batch_sizes_and_the_tasks_of_exported_files():
    from albert_tf.training import fine_tuning_batch_size
    from albert_tf_lite.answers import ANSWERS

    small, large = map(fine_tuning_batch_size, (9_999, 10_000))
    for name, words in (
        ("docs/tutorials/tf1_to_keras.md", f"({small}; {large} from 10,000 examples"),
        (
            "docs/tutorials/tf1_to_keras.zh.md",
            f"（{small}；达到 10,000 个样本时为 {large}）",
        ),
        ("docs/tasks/index.md", f"to {small}, or {large} from 10,000 examples on"),
        (
            "docs/guides/training_options.md",
            f"{small} below 10,000 examples, else {large}",
        ),
    ):
        assert words in (ROOT / name).read_text("utf-8"), name
    export = (ROOT / "docs/guides/export.md").read_text("utf-8")
    assert [task for task in ANSWERS if f"\n| {task} |" not in export] == []
    assert len(ANSWERS) == 8 and "Six tasks are written in both formats" in export


def test_options_of_commands_exist():
    """Also of the commands that do not run here."""
    import typer.main

    from albert_tf_cli import app

    commands = typer.main.get_command(app).commands
    blocks = [x for page in PAGES for x in FENCE.findall(page.read_text("utf-8"))]
    lines = [y for x in blocks if x[0] == "sh" for y in lines_of(x[1])]
    for line in lines:
        _, _, rest = line.partition("albert-tf ")
        name, *given = shlex.split(rest, comments=True) or [""]
        if name in commands:
            known = ["--help"]
            for option in commands[name].params:
                known += [*option.opts, *option.secondary_opts]
            given = {x.split("=")[0] for x in given if x.startswith("--")}
            assert given <= set(known), line


def lines_of(code):
    return code.replace("\\\n", " ").splitlines()


def messages_of(page):
    """Return the messages of this package that a page quotes, without their values."""
    text, *_ = page.read_text("utf-8").partition("## TensorFlow")
    found = re.findall(r"^- (`+)(.+?) ?\1", text, re.MULTILINE)
    return [re.sub(r"\{\w+\}", "{}", message) for _, message in found]


def strings_of(node):
    """Return the strings of a syntax tree, with {} in place of values."""
    for x in ast.walk(node):
        if isinstance(x, ast.JoinedStr):
            yield "".join(
                getattr(part, "value", "") if isinstance(part, ast.Constant) else "{}"
                for part in x.values
            )
        elif isinstance(x, ast.Constant) and isinstance(x.value, str):
            yield x.value


def test_messages_that_the_page_of_errors_quotes_exist():
    packages = ("albert_tf", "albert_tf_cli", "albert_tf_lite")
    files = [x for name in packages for x in (ROOT / name).rglob("*.py")]
    strings = [y for x in files for y in strings_of(ast.parse(x.read_text("utf-8")))]
    page = ROOT / "docs/about/errors.md"
    messages = messages_of(page)
    assert len(messages) > 25
    assert messages_of(page.with_name("errors.zh.md")) == messages
    assert [x for x in messages if not any(x in y for y in strings)] == []
