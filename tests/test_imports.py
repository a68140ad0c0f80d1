"""What `import albert_tf` prints and registers, and what commands import."""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
from unittest import mock

import pytest
from processes import run_python

from albert_tf import AlbertError, quiet_import

NATIVE = re.compile(r"[IWE]0000 |WARNING: All log messages before absl")
ROOT = pathlib.Path(__file__).parents[1]

SCRIPT = """
import importlib, sys
import albert_tf
import keras

sizes = dict(vocabulary_size=7, num_layers=1, num_heads=2, embedding_dim=4)
sizes |= dict(hidden_dim=8, intermediate_dim=16, max_sequence_length=5)
albert_tf.backbone.AlbertBackbone(**sizes)
sys.stderr.write(" ".join(dir(albert_tf)))

# Imported when they are used.
lazy = {"albert_tf.pretraining", "albert_tf.export", "albert_tf.sklearn"}
assert not lazy & sys.modules.keys()
assert callable(albert_tf.pipeline) and albert_tf.pretraining.pretrain
known = set(keras.saving.get_custom_objects())
for name in sys.stdin.read().split():
    importlib.import_module(name)
print(*set(keras.saving.get_custom_objects()) - known)
"""


def modules():
    packages = ("albert_tf", "albert_tf_lite", "zh", "albert_tf_cli")
    files = [x for top in packages for x in (ROOT / top).rglob("*.py")]
    parts = [file.relative_to(ROOT).with_suffix("").parts for file in files]
    # `__main__` runs a command.
    return [".".join(x).removesuffix(".__init__") for x in parts if x[-1] != "__main__"]


@pytest.mark.slow
def test_keras_2_is_refused(monkeypatch):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    with pytest.raises(AlbertError, match="TF_USE_LEGACY_KERAS=1 asks"):
        quiet_import.import_tensorflow()


def test_importing_the_package_registers_every_class():
    names = modules()
    assert {"zh", "albert_tf_cli", "albert_tf.preprocessing"} <= set(names)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input="\n".join(names),
        capture_output=True,
        text=True,
        cwd=ROOT,
        # As a user has it.
        env={k: v for k, v in os.environ.items() if not k.startswith("TF_CPP")},
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
    # What the script prints, after the log lines of TensorFlow itself.
    shown = done.stderr.splitlines()[-1].split(" ")
    others = [x for x in done.stderr.splitlines()[:-1] if not NATIVE.match(x)]
    assert not others
    assert all(name.isidentifier() for name in shown), done.stderr
    assert {"models", "load_checkpoint", "__version__"} < set(shown)
    assert not {"importlib", "sys"} & set(shown)


# Compare settings of the process before and after the imports.
PROCESS = """
import faulthandler, gc, locale, logging, multiprocessing, os, random, signal, sys
import tempfile, threading, warnings
import numpy as np

def state():
    loggers = [logging.getLogger(x) for x in (None, "jieba", "albert_tf", "zh")]
    return {
        "environment": dict(os.environ),
        "signals": {x: signal.getsignal(x) for x in signal.valid_signals()},
        "logging": [(x.level, len(x.handlers), x.disabled) for x in loggers],
        "random": (random.getstate(), str(np.random.get_state())),
        "files": (os.getcwd(), os.readlink("/proc/self/fd/2"), tempfile.tempdir),
        "locale": (locale.setlocale(locale.LC_ALL), sys.stdout.errors),
        "threads": threading.active_count(),
        "start": multiprocessing.get_start_method(allow_none=True),
        "hooks": (sys.excepthook, warnings.showwarning, warnings.formatwarning),
        "filters": list(warnings.filters),
        "meta": len(sys.meta_path),
        "limits": (sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold()),
        "faults": faulthandler.is_enabled(),
    }

# What their libraries change is not ours.
import jieba, keras, tensorflow, keras_hub, tensorflow_text
before = state()
import albert_tf, albert_tf_lite, albert_tf_cli, zh
albert_tf.export, albert_tf.pretraining
after = state()
for name, value in before.items():
    assert value == after[name], (name, value, after[name])
assert keras.config.dtype_policy().name == "float32"
"""
# oneDNN lists the operations that it computes.
ONEDNN = """
import os, sys
before = dict(os.environ)
import albert_tf_cli.shared.importing
albert_tf_cli.shared.importing.import_tensorflow()
assert dict(os.environ) == before
import tensorflow as tf
tf.function(lambda x: tf.nn.softmax(tf.matmul(x, x)))(tf.ones([64, 64]))
# No module is hidden from an import.
import keras.src.wrappers.fixes, pandas, scipy.stats, sklearn.metrics
print(keras.src.wrappers.fixes.sklearn is sklearn)
"""


@pytest.mark.slow
def test_imports_leave_the_process_as_it_was():
    run_python(PROCESS)


@pytest.mark.slow
@pytest.mark.parametrize("given", [None, "0"])
def test_commands_import_tensorflow_with_onednn_and_hide_no_module(given, monkeypatch):
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    given = {"TF_ENABLE_ONEDNN_OPTS": given} if given else {}
    output = run_python(ONEDNN, ONEDNN_VERBOSE="1", **given)
    assert output.endswith("True\n")
    assert ("softmax" in output) == (not given)


def test_one_variable_switches_off_all_settings_of_the_process(monkeypatch):
    quiet_import.import_tensorflow()
    libc = mock.Mock()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in os.environ:
        if name.startswith("MALLOC_"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    assert quiet_import.import_variables() == {
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    quiet_import.import_tensorflow()
    options = list(quiet_import.MALLOC_OPTIONS.items())
    assert [x.args for x in libc.mallopt.mock_calls] == options
    monkeypatch.setenv("ALBERT_TF_PROCESS_SETTINGS", "0")
    assert quiet_import.import_variables() == {}
    quiet_import.import_tensorflow()
    assert libc.mallopt.call_count == len(options)


def test_text_is_never_split_at_characters_within_a_line():
    # `str.splitlines` does, for example at U+2028, a token of released vocabularies.
    packages = ("albert_tf", "albert_tf_cli", "albert_tf_lite", "zh")
    files = [x for name in packages for x in (ROOT / name).rglob("*.py")]
    assert len(files) > 100
    calls = [x.name for x in files if ".splitlines(" in x.read_text("utf-8")]
    assert not calls
