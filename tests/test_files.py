"""Files and directories are complete or absent, and native output is hidden."""

import errno
import functools
import itertools
import os
import pathlib
import platform
import shutil
import stat
import subprocess
import sys
import unittest.mock

import pytest
from small_classifier import small_classifier

import albert_tf
from albert_tf.checkpoints.download import interruption_hint
from albert_tf.files import (
    check_space,
    complete_directory,
    complete_file,
    remove_directory,
)
from albert_tf.locks import only_writer
from albert_tf.quiet_import import lacks_avx
from albert_tf_lite.errors import AlbertError, Process, silent_stderr

# A process that imports no TensorFlow.
LAZY = {"ALBERT_TF_LAZY": "1"}


def everything_in(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def open_files():
    """The number of open files, or 0 where /proc does not exist."""
    files = pathlib.Path("/proc/self/fd")
    return len(os.listdir(files)) if files.exists() else 0


# === Directories ===


def test_a_directory_is_complete_or_unchanged(tmp_path):
    final = tmp_path / "above" / "model"
    with complete_directory(final) as directory:
        (directory / "weights").write_text("old")
        assert not final.exists() and directory.parents[1] == final.parent
    # Windows has no such permissions.
    assert os.name == "nt" or stat.S_IMODE(final.stat().st_mode) == 0o755
    with pytest.raises(KeyboardInterrupt), complete_directory(final) as directory:
        (directory / "weights").write_text("new")
        raise KeyboardInterrupt
    assert everything_in(tmp_path) == ["above", "above/model", "above/model/weights"]
    assert (final / "weights").read_text() == "old"


@pytest.mark.parametrize("moves", range(1, 6))
def test_an_exchange_that_ends_in_the_middle(tmp_path, monkeypatch, moves):
    """It leaves no mixture that loads, and the next process completes it."""
    names, final = ("a.h5", "config.json", "z.h5"), tmp_path / "model"
    with complete_directory(final) as new:
        for name in (*names, "notes.txt"):
            (new / name).write_text("old")
    error = pytest.raises(AlbertError, match="could not be put back: Perm.*model again")
    with monkeypatch.context() as patch, error, complete_directory(final) as new:
        for name in names:
            (new / name).write_text("new")
        # Nothing can be renamed any more, as after a kill.
        denied = itertools.repeat(PermissionError(errno.EACCES, "Permission denied"))
        done = [unittest.mock.DEFAULT] * moves
        replace = unittest.mock.Mock(wraps=os.replace)
        replace.side_effect = itertools.chain(done, denied)
        patch.setattr(os, "replace", replace)
    assert not (final / "config.json").exists()
    assert "killed while it wrote" in interruption_hint(final)
    with pytest.raises(ZeroDivisionError), complete_directory(final):
        raise ZeroDivisionError
    assert everything_in(tmp_path) == [
        "model",
        *(f"model/{x}" for x in sorted([*names, "notes.txt"])),
    ]
    assert {(final / name).read_text() for name in names} == {"new"}
    assert (final / "notes.txt").read_text() == "old"


def test_a_directory_is_removed_as_a_whole(tmp_path, monkeypatch):
    """A process killed while removing leaves no part of a training's state."""
    (tmp_path / "state").mkdir()
    killed = unittest.mock.Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        remove_directory(tmp_path / "state")
    assert not (tmp_path / "state").exists()


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


KILLED = """
import os, sys
from albert_tf.files import complete_directory, complete_file
with {}(sys.argv[1]) as new:
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("write", (complete_file, complete_directory))
def test_the_next_run_removes_what_a_killed_process_left(tmp_path, write):
    path = tmp_path / "a[1]"
    code = KILLED.format(write.__name__)
    subprocess.run([sys.executable, "-c", code, path], env=os.environ | LAZY)
    folder, lock, *_ = everything_in(tmp_path)
    assert lock == f"{folder}.lock"
    with complete_file(tmp_path / "b.json") as other, write(path) as new:
        # Not what another process is writing.
        with complete_file(tmp_path / "b.json") as last:
            last.write_text("1")
        other.write_text("2")
        new.write_text("{}") if write is complete_file else (new / "x").mkdir()
    assert [x.name for x in tmp_path.iterdir() if x != path] == ["b.json"]


def test_errors_name_the_final_file_and_a_missing_parent_is_created(tmp_path):
    for write in (complete_file, complete_directory):
        path = tmp_path / write.__name__ / "answers"
        for name in (None, f"{tmp_path}/.answers.{'0' * 16}.part/x"):
            with pytest.raises(OSError, match="No space left") as error, write(path):
                raise OSError(errno.ENOSPC, "No space left on device", name)
            assert error.value.filename == str(path)
        with pytest.raises(FileNotFoundError, match="corpus.txt"), write(path):
            (tmp_path / "corpus.txt").read_text()
        assert everything_in(path.parent) == []


def test_weights_without_room_on_the_disk_are_refused(tmp_path, monkeypatch):
    """HDF5 would end the process with signal 11."""
    model, path = small_classifier(2), tmp_path / "a" / "model"
    disk = unittest.mock.Mock(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda existing: disk)
    for save in (
        model.save_to_preset,
        functools.partial(albert_tf.save_checkpoint, model, layout="keras"),
    ):
        with pytest.raises(
            OSError, match=r"0\.\d MB are needed, 0\.0 .* again"
        ) as error:
            save(path)
        assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(path))
        assert not path.exists()
    disk.free = 10**6
    model.save_to_preset(path)
    size = sum(x.stat().st_size for x in path.glob("*.h5"))
    disk.free = size - 10_000
    with pytest.raises(OSError, match="MB are needed"):
        check_space(path, model.variables)


def test_a_directory_has_one_writer(tmp_path):
    error = pytest.raises(BlockingIOError, match="Another process is writing to")
    with only_writer(tmp_path), error, only_writer(tmp_path):
        pass


# === What native code prints while TensorFlow is imported ===


def test_native_output_is_hidden_unless_it_ends_with_an_error(capfd, monkeypatch):
    """Elsewhere, a thread of the user may be logging meanwhile."""
    with silent_stderr():
        os.write(2, b"a line of the user\n")
    assert capfd.readouterr().err == "a line of the user\n"
    monkeypatch.setattr(Process, "is_ours", True)
    before = open_files()
    with silent_stderr():
        os.write(2, b"greeting\n")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", sys.__stderr__)
        with silent_stderr():
            print("a line of Python", file=sys.stderr)
    with pytest.raises(KeyboardInterrupt), silent_stderr():
        os.write(2, b"libcuda is broken\n")
        raise KeyboardInterrupt
    os.write(2, b"after\n")
    shown = capfd.readouterr().err
    assert shown == "a line of Python\nlibcuda is broken\nafter\n"
    assert open_files() == before
    # Without AVX, TensorFlow aborts with a message.
    with monkeypatch.context() as patch:
        patch.setattr(platform, "machine", lambda: "x86_64")
        for flags, lacks in (("fma avx avx2", False), ("sse2", True)):
            patch.setattr(pathlib.Path, "read_text", lambda path, *_, x=flags: x)
            assert lacks_avx() == lacks
        # A process without standard error.
        patch.setattr(os, "dup", unittest.mock.Mock(side_effect=OSError))
        with silent_stderr():
            pass
