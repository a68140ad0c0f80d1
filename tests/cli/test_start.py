"""How the command line starts, and what it says where it cannot."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def start(*arguments, cwd, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    return done.returncode, done.stdout, done.stderr


def test_version_and_completion(tmp_path):
    command = ("-m", "albert_tf_cli")
    version = importlib.metadata.version("albert-tf")
    assert start(*command, "--version", cwd=tmp_path) == (
        0,
        f"albert-tf {version}\n",
        "",
    )
    assert "--install-completion" in start(*command, "--help", cwd=tmp_path)[1]


def test_without_its_libraries_it_says_what_to_install(tmp_path):
    code, out, told = start("-S", "-m", "albert_tf_cli", "--help", cwd=tmp_path)
    assert (code, out) == (1, "")
    assert told == ("The command line needs typer. Run: pip install 'albert-tf[cli]'\n")


def test_a_module_of_the_users_is_not_in_its_way(tmp_path):
    (tmp_path / "zh.py").write_text("raise ValueError('not this')")
    program = """
import albert_tf_cli, importlib.util, sys
sys.argv = ["albert-tf", "--version"]
try:
    albert_tf_cli.main()
except SystemExit:
    pass
print(importlib.util.find_spec('zh').origin)
"""
    code, out, told = start("-c", program, cwd=tmp_path)
    assert (code, told) == (0, "") and out.endswith("zh/__init__.py\n")


@pytest.mark.slow
def test_python_m_albert_tf(tmp_path):
    code, out, told = start("-m", "albert_tf", "--version", cwd=tmp_path)
    assert (code, told) == (0, "") and out.startswith("albert-tf ")


@pytest.mark.slow
def test_a_backend_that_is_not_installed(tmp_path):
    code, out, told = start(
        *("-m", "albert_tf_cli", "inspect", "albert_tiny_zh"),
        cwd=tmp_path,
        KERAS_BACKEND="openvino",
    )
    if code == 0:
        pytest.skip("openvino is installed")
    assert (code, out) == (1, "")
    assert told.startswith("Error: Keras is set to the backend openvino, which is not ")
