"""Build the parts of the package that pyproject.toml cannot describe."""

import pathlib
import re
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
REPOSITORY = "https://github.com/albert-tf/albert-tf"
# Checkpoints are bundled without the scripts and pictures of their making.
NOT_BUNDLED = shutil.ignore_patterns(".*", "__pycache__", "*.png", "*.py")


class BuildWithCheckpoints(build_py):
    """Copy the bundled checkpoints, which are in examples/, into the package."""

    def run(self):
        super().run()
        # An editable installation finds them in examples/.
        if self.editable_mode:
            return
        bundled = pathlib.Path(self.build_lib, "albert_tf", "bundled")
        # An earlier build may have left other files.
        shutil.rmtree(bundled, ignore_errors=True)
        # Not the weights from which a next stage of training starts.
        for index in ROOT.glob("examples/albert_micro_zh*/*.index"):
            name = index.parent.name
            shutil.copytree(index.parent, bundled / name, ignore=NOT_BUNDLED)


def read_description():
    """Return the README with links to the repository, for pages outside it."""
    text = (ROOT / "README.md").read_text("utf-8")
    relative = r"\]\((?!\w+:|#)"
    text = re.sub(rf"(!\[[^]]*){relative}", rf"\1]({REPOSITORY}/raw/main/", text)
    return re.sub(relative, f"]({REPOSITORY}/blob/main/", text)


setup(
    cmdclass={"build_py": BuildWithCheckpoints},
    long_description=read_description(),
    long_description_content_type="text/markdown",
)
