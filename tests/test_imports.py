"""Every module can be the first that is imported, as in a process of pretrain-data."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]

# As in the command line, `import albert_tf` alone imports nothing further.
SCRIPT = """
import importlib, sys
import keras_hub
sys.argv = ["albert-tf"]
for name in sys.stdin.read().split():
    for known in [x for x in sys.modules if x.split(".")[0] in ("albert_tf", "zh")]:
        del sys.modules[known]
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
"""


def modules():
    files = [x for top in ("albert_tf", "zh") for x in (ROOT / top).rglob("*.py")]
    parts = [file.relative_to(ROOT).with_suffix("").parts for file in files]
    # `__main__` is no module to import but a command to run.
    return [".".join(x).removesuffix(".__init__") for x in parts if x[-1] != "__main__"]


def test_any_module_first():
    names = modules()
    assert len(names) > 60 and {"zh", "albert_tf.preprocessing"} <= set(names)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input="\n".join(names),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
