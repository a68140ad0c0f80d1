"""`import albert_tf` is enough: every class is known to Keras, every module imports."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]

SCRIPT = """
import importlib, sys
import keras
import albert_tf

known = set(keras.saving.get_custom_objects())
for name in sys.stdin.read().split():
    importlib.import_module(name)
print(*set(keras.saving.get_custom_objects()) - known)
"""


def modules():
    packages = ("albert_tf", "zh", "albert_tf_cli")
    files = [x for top in packages for x in (ROOT / top).rglob("*.py")]
    parts = [file.relative_to(ROOT).with_suffix("").parts for file in files]
    # `__main__` is no module to import but a command to run.
    return [".".join(x).removesuffix(".__init__") for x in parts if x[-1] != "__main__"]


def test_importing_the_package_registers_every_class():
    names = modules()
    assert {"zh", "albert_tf_cli", "albert_tf.preprocessing"} <= set(names)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input="\n".join(names),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
