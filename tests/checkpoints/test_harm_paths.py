"""Odd paths, links, rights and archives: an error or the right numbers."""

import contextlib
import os
import pathlib
import tempfile

import harm_files
import pytest
from harm_files import (
    DATA,
    FORMS,
    INDEX,
    WEIGHTS,
    assert_harmless,
    assert_loads,
    assert_one_clear_error,
    copy,
)

import albert_tf
from albert_tf.conversion import convert_checkpoint

pytestmark = pytest.mark.slow
forms, weights, harm = harm_files.forms, harm_files.weights, harm_files.harm

LAYOUT = {"albert_zh": "albert_zh"}


# === Names ===

NAMES = {
    "chinese": "中文模型",
    "spaces": " a  b ",
    "brackets": "a[b]c",
    "star": "a*c",
    "question_mark": "a?c",
    "braces": "{a,b}",
    "percent": "100%25",
    "quotes": "a'b\"c",
    "backslash": "a\\b",
    "dollar": "$HOME",
    "tilde": "~root",
    "colon": "gs:a",
    "newline": "a\nb",
    "emoji": "😀",
    "accents": "cafe\u0301",
    "leading_dash": "-rf",
    "leading_dot": ".hidden",
    "ends_in_index": "a.index",
    "ends_in_json": "a.json",
    "ends_in_keras": "a.keras",
    "ends_in_zip": "a.zip",
    "255_bytes": "长" * 85,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["google", "hub", "huggingface"])
def test_folders_of_odd_names(forms, weights, tmp_path, form, name):
    folder = copy(forms[form], tmp_path, NAMES[name])
    assert_loads(folder if form == "google" else str(folder), weights[form])


# `a.index` is the prefix `a` to everybody.
@pytest.mark.parametrize("name", [x for x in NAMES if x != "ends_in_index"])
def test_files_of_odd_names(forms, weights, tmp_path, name):
    """The prefix of a bundle, and what is converted to a folder of that name."""
    folder = copy(forms["google"], tmp_path)
    prefix = NAMES[name][:60]
    for file in (INDEX, DATA):
        ending = file.removeprefix(harm_files.PREFIX)
        (folder / file).rename(folder / (prefix + ending))
    assert_loads(folder, weights["google"])
    assert_loads(folder / (prefix + ".index"), weights["google"])
    target = tmp_path / "out" / prefix
    convert_checkpoint(folder, target, "google")
    assert_loads(target, weights["google"])
    assert [x.name for x in (tmp_path / "out").iterdir()] == [prefix]


@pytest.mark.parametrize("form", ["google", "huggingface", "keras"])
def test_a_folder_whose_name_is_no_text(forms, weights, tmp_path, form):
    folder = copy(forms[form], tmp_path, os.fsdecode(b"a\xffb"))
    try:
        assert_loads(folder, weights[form])
    except Exception as error:
        # The name itself is more than what collects the results can send.
        raise AssertionError(ascii(error)) from None


@pytest.mark.parametrize("form", ["google", "huggingface", "keras_file"])
def test_a_path_of_3000_characters(forms, weights, tmp_path, form):
    folder = tmp_path
    for _ in range(14):
        folder /= "d" * 200
    folder.mkdir(parents=True)
    assert_loads(copy(forms[form], folder), weights[form])


@pytest.mark.parametrize(
    "path",
    [
        "x/" * 2500,
        "y" * 300,
        "y" * 300 + ".keras",
        "y" * 300 + ".safetensors",
        "y" * 300 + ".tar.gz",
        "a\0b",
        "a\0b.keras",
        "",
        " ",
        ".",
        "..",
        "/",
        "/dev/null",
        "/dev/zero",
        "/proc/self/mem",
        "https://example.com/model.zip",
        "gs://bucket/model",
        "albert_tiny_zh/../nowhere",
        "model.ckpt.data-00000-of-00001",
    ],
    ids=lambda x: x[:24].replace("\0", "NUL") or "nothing",
)
def test_paths_of_nothing(tmp_path, monkeypatch, path):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    for call in (albert_tf.load_checkpoint, albert_tf.inspect_checkpoint):
        assert_one_clear_error(lambda call=call: call(path))
    target = tmp_path / "out"
    assert_one_clear_error(lambda: convert_checkpoint(path, target, "google"))
    assert not target.exists()


# === Places to write to ===


@pytest.mark.parametrize("form", [x for x in FORMS if x != "keras_file"])
def test_converting_into_the_source(forms, weights, tmp_path, form):
    """Refused, and the source is as it was."""
    path = copy(forms[form], tmp_path)
    layout = LAYOUT.get(form, "google")
    call = lambda: convert_checkpoint(path, path, layout)  # noqa: E731
    assert_one_clear_error(call, "where the source is|a checkpoint already", path)
    assert_loads(path, weights[form])


@pytest.mark.parametrize("kind", ["file", "under_a_file", "dangling_link"])
def test_destinations_in_the_way(forms, tmp_path, kind):
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    target = {
        "file": tmp_path / "taken",
        "under_a_file": tmp_path / "taken" / "x",
        "dangling_link": tmp_path / "link",
    }[kind]
    before = sorted(tmp_path.rglob("*"))
    assert_one_clear_error(
        lambda: convert_checkpoint(forms["google"], target, "google")
    )
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "taken").read_text() == "mine"


# === Links ===


@pytest.mark.parametrize("form", FORMS)
def test_links_to_files_and_folders(forms, weights, tmp_path, form):
    """Each file is a link with a name that says nothing, and the folder is one."""
    original = copy(forms[form], tmp_path)
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    files = original.rglob("*") if original.is_dir() else [original]
    for number, file in enumerate([x for x in files if x.is_file()]):
        file.rename(blobs / str(number))
        file.symlink_to(os.path.relpath(blobs / str(number), file.parent))
    assert_loads(original, weights[form])
    link = tmp_path / f"link{original.suffix}"
    link.symlink_to(original)
    assert_loads(link, weights[form])


@pytest.mark.parametrize(
    ("form", "file"),
    [
        ("google", INDEX),
        ("google", DATA),
        ("google", "albert_config.json"),
        ("hub", "variables/variables.index"),
        ("huggingface", WEIGHTS),
        ("huggingface", "config.json"),
        ("kerashub", "model.weights.h5"),
        ("kerashub", "config.json"),
        ("keras", "task.weights.h5"),
    ],
)
@pytest.mark.parametrize("to", ["nothing", "itself", "its_folder", "a_device"])
def test_links_that_lead_nowhere(harm, form, file, to):
    targets = {
        "nothing": "nowhere",
        "itself": pathlib.PurePath(file).name,
        "its_folder": ".",
        "a_device": "/dev/null",
    }

    def damage(folder):
        (folder / file).unlink()
        (folder / file).symlink_to(targets[to])

    harm(form, damage, "")


def test_a_folder_that_holds_itself(tmp_path):
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "loop").symlink_to(".")
    assert_harmless(tmp_path / "loop", [], tmp_path, "no checkpoint in")


def test_a_pipe(forms, tmp_path):
    """Nobody writes into it: reading would wait for ever."""
    for form, file in (("google", INDEX), ("huggingface", "config.json")):
        folder = copy(forms[form], tmp_path, form)
        (folder / file).unlink()
        os.mkfifo(folder / file)
        call = lambda folder=folder: albert_tf.load_checkpoint(folder)  # noqa: E731
        assert_one_clear_error(call, file, folder)


# === Rights ===


@contextlib.contextmanager
def as_nobody():
    """Root may read everything, so that these tests need to be somebody else."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public():
    """A folder that nobody else's folders are around."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@pytest.mark.parametrize("form", ["google", "hub", "huggingface", "kerashub", "keras"])
def test_files_that_may_not_be_read(forms, public, form):
    folder = copy(forms[form], public)
    for file in [x for x in folder.rglob("*") if x.is_file()]:
        # No copy of the model itself: a graph that is never read, tokenizers.
        if file.suffix not in (".index", ".h5", ".safetensors") and (
            "config.json" not in file.name or "tokenizer" in file.name
        ):
            continue
        file.chmod(0)
        with as_nobody():
            assert_one_clear_error(
                lambda: albert_tf.load_checkpoint(folder), "", folder
            )
        file.chmod(0o644)


def test_a_folder_that_may_not_be_read(forms, public):
    folder = copy(forms["google"], public)
    for mode in (0o000, 0o100, 0o400):
        folder.chmod(mode)
        with as_nobody():
            assert_one_clear_error(lambda: albert_tf.load_checkpoint(folder))
    folder.chmod(0o755)


@pytest.mark.parametrize("form", FORMS)
def test_files_that_may_not_be_written_load(forms, weights, public, form):
    path = copy(forms[form], public)
    for file in (path, *path.rglob("*")):
        file.chmod(0o555 if file.is_dir() else 0o444)
    with as_nobody():
        assert_loads(path, weights[form])
    for file in (path, *path.rglob("*")):
        file.chmod(0o755)


def test_a_destination_that_may_not_be_written(forms, public):
    copy(forms["google"], public)
    for file in public.rglob("*"):
        file.chmod(0o755)
    with as_nobody():
        assert_one_clear_error(
            lambda: convert_checkpoint(
                public / "checkpoint", public / "out" / "x", "google"
            )
        )
    assert [x.name for x in public.iterdir()] == ["checkpoint"]
