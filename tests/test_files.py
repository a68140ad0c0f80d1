"""Files that are complete or absent."""

import os
import stat

import pytest

from albert_tf.files import complete_directory, complete_file, write_text


def everything_in(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


# === Directories ===


def test_nothing_has_the_final_name_before_all_is_written(tmp_path):
    final = tmp_path / "model"
    with complete_directory(final) as directory:
        (directory / "weights").write_text("1")
        assert not final.exists()
        assert directory.parent == final.parent
    assert everything_in(tmp_path) == ["model", "model/weights"]
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o755


def test_a_failure_leaves_what_was_there(tmp_path):
    with pytest.raises(KeyboardInterrupt), complete_directory(tmp_path / "x") as folder:
        (folder / "weights").write_text("1")
        raise KeyboardInterrupt
    assert everything_in(tmp_path) == []
    old = tmp_path / "model"
    old.mkdir()
    (old / "weights").write_text("old")
    with pytest.raises(ValueError), complete_directory(old) as directory:
        (directory / "weights").write_text("new")
        raise ValueError
    assert everything_in(tmp_path) == ["model", "model/weights"]
    assert (old / "weights").read_text() == "old"


def test_files_of_the_same_name_are_replaced_and_others_stay(tmp_path):
    old = tmp_path / "model"
    (old / "assets").mkdir(parents=True)
    (old / "notes").write_text("mine")
    (old / "assets" / "vocab").write_text("old")
    (old / "assets" / "other").write_text("mine")
    with complete_directory(old) as directory:
        (directory / "assets").mkdir()
        (directory / "assets" / "vocab").write_text("new")
        (directory / "weights" / "deep").mkdir(parents=True)
        (directory / "weights" / "deep" / "file").write_text("new")
    contents = {
        name: (old / name).read_text()
        for name in everything_in(old)
        if (old / name).is_file()
    }
    assert contents == {
        "assets/other": "mine",
        "assets/vocab": "new",
        "notes": "mine",
        "weights/deep/file": "new",
    }
    assert everything_in(tmp_path)[0] == "model"


def test_a_file_of_the_final_name_is_refused(tmp_path):
    file = tmp_path / "model"
    file.write_text("mine")
    with (
        pytest.raises(FileExistsError, match=f"{file} is a file.*another name"),
        complete_directory(file),
    ):
        pytest.fail("nothing should be written")
    assert everything_in(tmp_path) == ["model"]
    assert file.read_text() == "mine"


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with complete_directory("above/model") as directory:
        (directory / "file").touch()
    assert everything_in(tmp_path) == ["above", "above/model", "above/model/file"]


# === Files ===


def test_a_file_is_complete_or_the_old_one(tmp_path):
    path = tmp_path / "plot.png"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), complete_file(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old"
        raise ZeroDivisionError
    assert path.read_text() == "old"
    with complete_file(str(path)) as first, complete_file(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"
    assert everything_in(tmp_path) == ["plot.png"]


def test_text_replaces_a_file_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_text(path, "old")

    def cut_off(source, target):
        assert path.read_text() == "old"
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", cut_off)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    monkeypatch.undo()
    write_text(str(path), "好评 😀\n")
    assert path.read_bytes() == "好评 😀\n".encode()
    assert everything_in(tmp_path) == ["a.json"]
