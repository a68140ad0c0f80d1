"""transformers.js of npm, for the nightly tests."""

import os
import pathlib
import shutil
import subprocess

from albert_tf.export.transformers_js_card import LIBRARY

NODE = shutil.which("node") if shutil.which("npm") else None


def install(folder):
    """Return the folder `node_modules` with the library, installed if it is missing.

    ALBERT_TF_NPM names a folder to keep it in: it has 500 MB.
    """
    folder = pathlib.Path(os.environ.get("ALBERT_TF_NPM") or folder)
    folder.mkdir(parents=True, exist_ok=True)
    modules = folder / "node_modules"
    version = LIBRARY.rpartition("@")[2]
    package = modules / "@huggingface/transformers/package.json"
    if not package.exists() or f'"version": "{version}"' not in package.read_text():
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run([*command, LIBRARY], cwd=folder, check=True, timeout=600)
    return modules


def run_node(folder, code):
    """Run a JavaScript module in a folder and return what it prints."""
    script = pathlib.Path(folder) / "script.mjs"
    script.write_text(code, "utf-8")
    command = [NODE, script.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
