"""Files of strangers are refused at once, in one line, before memory is filled."""

import os
import re
import resource
import subprocess
import sys
import time

import pytest
from hostile_files import FILES
from processes import PATH
from tiers import few

import albert_tf_lite
from albert_tf import AlbertError
from albert_tf.checkpoints import load_checkpoint

EXPORTED = (".onnx", ".tflite")


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused(name, tmp_path):
    write, message = FILES[name]
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path = write(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.monotonic()
    read = albert_tf_lite.pipeline if path.suffix in EXPORTED else load_checkpoint
    with pytest.raises((AlbertError, OSError), match=message) as error:
        read(path)
    assert time.monotonic() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500e3
    text = str(error.value)
    assert str(path) in text and "\n" not in text and len(text) < 1000
    assert not [*tmp_path.rglob("escaped*")]


# Prints seconds and MB beyond those of the import, whose peak is forgotten.
MEASURED = """
import pathlib, re, time
import albert_tf_cli, albert_tf_cli.shared.importing
def peak():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search("VmHWM: *(.*) kB", status)[1]) / 1e3
albert_tf_cli.shared.importing.import_tensorflow()
pathlib.Path("/proc/self/clear_refs").write_text("5")
before, start = peak(), time.monotonic()
try:
    albert_tf_cli.main()
finally:
    print(f"{time.monotonic() - start:.2f} {peak() - before:.0f}")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")
@pytest.mark.parametrize(
    "name",
    [
        *few(("preset_wide", "tar_bomb"), (), pytest.mark.slow),
        *few(("wide", "long_vocabulary"), ()),
    ],
)
def test_commands_refuse_it_in_one_line(name, tmp_path):
    write, message = FILES[name]
    (tmp_path / "input").mkdir()
    path = write(tmp_path / "input")
    command = ["convert", path, tmp_path / "out", "--to", "keras"]
    if path.suffix in EXPORTED:
        command = ["predict", path, "好"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, command)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 1, done.stderr
    # Before the first line, TensorFlow logs its import.
    assert len(re.findall(r"^Error: .*", done.stderr, re.MULTILINE)) == 1
    assert re.search(message, done.stderr.splitlines()[-1])
    seconds, megabytes = map(float, done.stdout.split())
    assert seconds < 2 and megabytes < 500
    print(f"{name} {seconds} s {megabytes:.0f} MB")
