import pytest

from albert_tf.files import complete_directory, write_text


def tree(directory):
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_appears_when_all_is_written(tmp_path):
    final = tmp_path / "deep" / "down"
    with complete_directory(final) as directory:
        (directory / "part").mkdir()
        (directory / "part" / "a.txt").write_text("a")
        assert not final.exists()
    assert tree(tmp_path) == {"deep/down/part/a.txt": "a"}
    assert final.stat().st_mode & 0o777 == 0o755


def test_is_absent_if_the_block_raises(tmp_path):
    with (
        pytest.raises(RuntimeError, match="half"),
        complete_directory(tmp_path / "new") as directory,
    ):
        (directory / "a.txt").write_text("a")
        raise RuntimeError("half")
    assert list(tmp_path.iterdir()) == []


def test_other_files_stay_and_those_of_the_same_name_are_replaced(tmp_path):
    final = tmp_path / "final"
    (final / "part").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "part/c.txt", "part/d.txt"):
        (final / name).write_text("old")
    with complete_directory(final) as directory:
        (directory / "part").mkdir()
        for name in ("a.txt", "part/c.txt", "part/e.txt"):
            (directory / name).write_text("new")
    assert tree(tmp_path) == {
        "final/a.txt": "new",
        "final/b.txt": "old",
        "final/part/c.txt": "new",
        "final/part/d.txt": "old",
        "final/part/e.txt": "new",
    }


def test_what_was_there_is_unchanged_if_the_block_raises(tmp_path):
    final = tmp_path / "final"
    final.mkdir()
    (final / "a.txt").write_text("old")
    with (
        pytest.raises(KeyboardInterrupt),
        complete_directory(final) as directory,
    ):
        (directory / "a.txt").write_text("new")
        raise KeyboardInterrupt
    assert tree(tmp_path) == {"final/a.txt": "old"}


def test_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.txt").write_text("old")
    with complete_directory(".") as directory:
        (directory / "a.txt").write_text("a")
    assert tree(tmp_path) == {"a.txt": "a", "b.txt": "old"}
    assert sorted(x.name for x in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with (
        pytest.raises(FileExistsError, match="taken is a file.*choose another"),
        complete_directory(tmp_path / "taken"),
    ):
        pass
    assert tree(tmp_path) == {"taken": "mine"}


def test_write_text_replaces_a_file_and_leaves_nothing_else(tmp_path):
    for text in ("old", "很好\n"):
        write_text(tmp_path / "a.txt", text)
    assert (tmp_path / "a.txt").read_bytes() == "很好\n".encode()
    assert [x.name for x in tmp_path.iterdir()] == ["a.txt"]
