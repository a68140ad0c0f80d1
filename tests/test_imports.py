"""What `import albert_tf` prints and registers, and what commands import."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

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
assert not {"albert_tf.pretraining", "albert_tf.export"} & sys.modules.keys()
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


@pytest.mark.slow
def test_commands_import_tensorflow_with_onednn_and_without_unused_packages(
    monkeypatch,
):
    script = """
import os, sys
import albert_tf_cli.common
albert_tf_cli.common.import_tensorflow()
print(os.environ["TF_ENABLE_ONEDNN_OPTS"])
print(*{"matplotlib", "nltk", "pandas", "scipy", "sklearn"} & sys.modules.keys())
import pandas, scipy.stats, sklearn.metrics
"""
    monkeypatch.setenv("ALBERT_TF_LAZY", "1")
    for given, used in ((None, "1"), ("0", "0")):
        monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
        if given:
            monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", given)
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        assert done.stdout.splitlines() == [used, ""], done.stderr
