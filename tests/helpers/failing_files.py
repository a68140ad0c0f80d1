"""Make the n-th change of files fail, and check what is left, for every n.

SQLite tests its writers like this: <https://sqlite.org/testing.html>, section 3.2.
"""

import builtins
import contextlib
import dataclasses
import errno
import io
import itertools
import os
import pathlib
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from unittest import mock

from full_disk import full_disk

from albert_tf_lite.errors import AlbertError

# Operations that need space, and those that need permission.
OPERATIONS = {
    errno.ENOSPC: {"open", "write", "fsync", "mkdir", "link", "rename", "replace"},
    errno.EACCES: {"open", "mkdir", "link", "rename", "replace", "unlink", "rmdir"},
}
# Those that a full disk refuses until there is space again.
_NEED_SPACE = {"open", "write", "fsync", "mkdir", "link"}


class FailingFiles:
    """Let one change of files below a folder fail.

    Args:
        root: the folder. Changes elsewhere do not count.
        number: int. The number of the change, counted from 1; 0 for none.
        code: an error of `OPERATIONS`.
        lasting: bool. After the first failure, all operations that need space fail.

    Attributes:
        done: list of strings, the operations that were counted.
    """

    def __init__(self, root, number=0, code=errno.ENOSPC, lasting=False):
        self._root = os.path.realpath(root)
        self._number, self._code, self._lasting = number, code, lasting
        self.done = []

    @property
    def has_failed(self):
        return 0 < self._number <= len(self.done)

    def count(self, operation, path):
        """Count an operation, and return whether it fails."""
        if operation not in OPERATIONS[self._code] or not self._is_inside(path):
            return False
        self.done.append(f"{operation} {path}")
        if self._lasting and operation in _NEED_SPACE and self.has_failed:
            return True
        return len(self.done) == self._number

    def _is_inside(self, path):
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        # The last part may be a link itself.
        folder, name = os.path.split(os.path.abspath(os.fspath(path)))
        full = os.path.join(os.path.realpath(folder), name)
        return full.startswith(self._root + os.sep)

    def check(self, operation, path):
        """Raise if an operation fails."""
        if self.count(operation, path):
            self.fail(path)

    def fail(self, path):
        raise OSError(self._code, os.strerror(self._code), path)

    @contextlib.contextmanager
    def active(self):
        """Count and fail within the block."""
        with contextlib.ExitStack() as stack:
            for name in ("rename", "replace", "link", "symlink"):
                self._patch(stack, name, place=1)
            for name in ("mkdir", "unlink", "remove", "rmdir", "fsync", "write"):
                self._patch(stack, name)
            stack.enter_context(mock.patch.object(os, "open", self._os_open(os.open)))
            opened = self._open(io.open)
            for module in (io, builtins):
                stack.enter_context(mock.patch.object(module, "open", opened))
            yield

    def _patch(self, stack, name, place=0):
        """Patch a function of `os` whose argument at a place is the changed path."""
        original = getattr(os, name)
        operation = {"symlink": "link", "remove": "unlink"}.get(name, name)

        def patched(*args, dir_fd=None, **kwargs):
            path = args[place]
            if dir_fd is not None:
                kwargs["dir_fd"] = dir_fd
                path = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), path)
            self.check(operation, path)
            return original(*args, **kwargs)

        stack.enter_context(mock.patch.object(os, name, patched))

    def _os_open(self, original):
        def patched(path, flags, *args, **kwargs):
            if flags & (os.O_WRONLY | os.O_RDWR):
                self.check("open", path)
            return original(path, flags, *args, **kwargs)

        return patched

    def _open(self, original):
        def patched(file, mode="r", buffering=-1, encoding=None, *args, **kwargs):
            writes = set(mode) & set("wax+")
            if not writes or not self._is_inside(file):
                return original(file, mode, buffering, encoding, *args, **kwargs)
            if not isinstance(file, int):
                self.check("open", file)
            return self._opened(file, mode, buffering, encoding, *args, **kwargs)

        return patched

    def _opened(
        self,
        file,
        mode,
        buffering,
        encoding=None,
        errors=None,
        newline=None,
        closefd=True,
        opener=None,
    ):
        """Return what `open` does, on a raw file whose writes may fail."""
        raw_mode = mode.replace("b", "").replace("t", "")
        raw = _RawFile(self, file, raw_mode, closefd, opener)
        if buffering == 0:
            return raw
        buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
        if "b" in mode:
            return buffered
        text = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
        text.mode = mode
        return text


class _RawFile(io.FileIO):
    """A file whose n-th write takes a half only, and whose next write fails."""

    def __init__(self, files, file, mode, closefd, opener):
        super().__init__(file, mode, closefd, opener)
        self._files, self._is_full = files, False

    def write(self, data):
        if self._is_full:
            self._files.fail(None)
        if self._files.count("write", self.name):
            self._is_full = True
            half = memoryview(data).cast("B")[: memoryview(data).nbytes // 2]
            if not half:
                self._files.fail(None)
            return super().write(half)
        return super().write(data)


# === The sweep ===

# Fields that differ between two runs.
_CHANGING = re.compile(rb'"(date_saved|seconds|\w*_seconds)": ("[^"]*"|[\d.e-]+)')
# What an error tells a user to do, and a name that no user gave.
_ADVICE = re.compile(r"\b(again|[Cc]hoose|[Ff]ree|[Cc]heck|[Rr]emove|[Rr]un)\b")
_TEMPORARY = re.compile(r"[0-9a-f]{16}\.part")


@dataclasses.dataclass
class Sweep:
    """A writer, and what was found.

    Attributes:
        write: function of a path, which writes a result there.
        old: optional function of a path, which writes the former result.
        kept: pattern of the paths of unfinished work that a failure may leave.
        places: the number of failures that were tried.
        faults: list of strings.
    """

    write: Callable
    old: Callable | None = None
    kept: str = "(?!)"
    places: int = 0
    faults: list = dataclasses.field(default_factory=list)

    def fail_each(self, root, code, lasting=False, step=1):
        """Let each change of files fail, or each of a number of them, one per run."""
        self._prepare(root)
        for number in itertools.count(1, step):
            failing = FailingFiles(self._work, number, code, lasting)
            error = self._attempt(failing.active())
            if not failing.has_failed:
                assert error is None, error
                return
            place = failing.done[number - 1].replace(str(self._work), "")
            self._check(f"{number} {_TEMPORARY.sub('*.part', place)}", error)

    def fail_at_sizes(self, root):
        """Limit the size of files, from 0 upwards until the run succeeds."""
        self._prepare(root)
        files = [x for x in self._root.rglob("*") if x.is_file()]
        step = max(max(x.stat().st_size for x in files) // 12, 1)
        for size in itertools.count(0, step):
            error = self._attempt(full_disk(size))
            if error is None and size > 30 * step:
                return
            self._check(f"limit {size}", error)

    def _prepare(self, root):
        """Write the former and the new result below a folder."""
        self._root, self._work = pathlib.Path(root), pathlib.Path(root, "work")
        former, expected = self._root / "former", self._root / "expected"
        for folder in (former, expected):
            (folder / "in").mkdir(parents=True)
            (folder / "tmp").mkdir()
            if self.old:
                self.old(folder / "in" / "out")
        self._before = self._contents(former)
        # The first run fills caches, too.
        self.write(expected / "in" / "out")
        self._after = self._contents(expected)

    def _attempt(self, failing):
        """Write while something fails, and return the error."""
        shutil.rmtree(self._work, ignore_errors=True)
        shutil.copytree(self._root / "former", self._work)
        temporary = str(self._work / "tmp")
        with mock.patch.object(tempfile, "tempdir", temporary), failing:
            try:
                self.write(self._work / "in" / "out")
            except (Exception, SystemExit) as error:
                return error
        return None

    def _check(self, place, error):
        self.places += 1
        found = self._contents(self._work)
        problems = []
        if error is not None:
            problems.append(self._problem_of(error))
            if found not in (self._before, self._after):
                problems.append(f"neither the old nor the new one: {self._new(found)}")
        elif found != self._after:
            problems.append(f"no error, but another result: {self._new(found)}")
        if found != self._after:
            problems.append(self._problem_of_another_run())
        self.faults += [f"{place}: {problem}" for problem in filter(None, problems)]

    def _problem_of_another_run(self):
        """Return what is wrong with the result of the same call, if anything."""
        try:
            self.write(self._work / "in" / "out")
        except (Exception, SystemExit) as error:
            return f"then fails: {type(error).__name__} {_message(error)}"
        found = self._contents(self._work)
        if found != self._after:
            return f"then another result: {self._new(found)}"
        return None

    def _problem_of(self, error):
        """Return what is wrong with an error, if anything."""
        message = _message(error)
        words = re.sub(r"/\S+", "", message)
        if not isinstance(error, AlbertError | OSError):
            return f"raises {type(error).__name__}: {message}"
        if str(self._work) not in message or _TEMPORARY.search(message):
            return f"names no path of the user: {message}"
        if not _ADVICE.search(words) or "\n" in message:
            return f"no line with advice: {message}"
        return None

    def _contents(self, folder):
        """Return the content of each file, and `None` for each directory."""
        folder = folder / "in"
        names = {str(x.relative_to(folder)): x for x in folder.rglob("*")}
        return {
            name: _content(path)
            for name, path in names.items()
            if not re.search(self.kept, name)
        }

    def _new(self, found):
        """Return the names of files that are not those of the new result."""
        return sorted(
            name
            for name in {*found, *self._after}
            if found.get(name, 0) != self._after.get(name, 0)
        )


def _content(path):
    # TensorFlow numbers the functions of a process in these.
    if path.is_dir() or path.name in ("saved_model.pb", "fingerprint.pb"):
        return None
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            return [_CHANGING.sub(b"", archive.read(x)) for x in archive.namelist()]
    data = path.read_bytes()
    return _CHANGING.sub(b"", data) if path.suffix == ".json" else data


def _message(error):
    """Return an error as the command line prints it."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
