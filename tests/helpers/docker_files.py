"""Follow a Dockerfile with a shell, in a folder and a Python environment."""

import json
import os
import re
import shlex
import shutil
import subprocess


def instructions(file):
    """Return `[name, rest of the line]` of each instruction of a Dockerfile."""
    text = re.sub(r"^#.*\n", "", file.read_text("utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [line.split(maxsplit=1) for line in lines if line.strip()]


def follow(file, context, root, environment):
    """Copy and run what a Dockerfile asks for; return its commands and variables.

    Args:
        file: path of the Dockerfile.
        context: folder that it copies from.
        root: folder that stands for the root of the image.
        environment: variables, of which PATH names the Python of the image.

    Returns:
        The lists of words of CMD and HEALTHCHECK by their names, the working folder,
        and the variables.
    """
    found, folder, variables = {}, root, dict(environment)
    # What only root does, or an image has and this system need not have.
    commands = root / ".bin"
    commands.mkdir(parents=True)
    (commands / "useradd").write_text("#!/bin/sh\n")
    (commands / "useradd").chmod(0o755)
    variables["PATH"] = f"{commands}{os.pathsep}{variables['PATH']}"
    for name, rest in instructions(file):
        if name == "WORKDIR":
            folder = root / rest.strip("/ ")
            folder.mkdir(parents=True, exist_ok=True)
        elif name == "COPY":
            *sources, target = shlex.split(rest)
            _copy([context / x for x in sources], folder / target)
        elif name == "RUN":
            subprocess.run(rest, shell=True, cwd=folder, env=variables, check=True)
        elif name == "ENV":
            pairs = (x.partition("=") for x in shlex.split(rest))
            # Paths of the image lie below the folder that stands for its root.
            variables |= {x: y.replace("/service/", f"{folder}/") for x, _, y in pairs}
        elif name == "CMD":
            found["CMD"] = json.loads(rest)
        elif name == "HEALTHCHECK":
            found["HEALTHCHECK"] = shlex.split(rest.partition("CMD ")[2])
        else:
            assert name in ("FROM", "USER", "EXPOSE"), name
    return found, folder, variables


def _copy(sources, target):
    """Copy files, or the content of folders, as COPY does."""
    for source in sources:
        assert source.exists(), f"{source} does not exist"
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            is_folder = len(sources) > 1 or target.is_dir()
            shutil.copy(source, target / source.name if is_folder else target)
