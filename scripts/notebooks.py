"""Execute the notebooks: python scripts/notebooks.py [SOURCE...]

Each source of `notebooks/` becomes a notebook beside it, with its outputs. Sources are
in jupytext's percent format.
"""

import os
import pathlib
import sys
import time

import jupytext
import nbclient
import nbformat

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "notebooks"
# Hide log lines of TensorFlow, and a warning of tqdm that suggests ipywidgets.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore:IProgress not found"}
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def execute(source):
    """Return the executed notebook of a source."""
    os.environ.update(QUIET)
    notebook = jupytext.read(source)
    resources = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(
        notebook,
        timeout=600,
        record_timing=False,
        coalesce_streams=True,
        resources=resources,
        # Native code prints past Python, such as TensorFlow when it is imported.
        extra_arguments=["--IPKernelApp.capture_fd_output=False"],
    ).execute()
    # Ids and versions differ between runs and machines.
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return notebook


def main():
    for source in map(pathlib.Path, sys.argv[1:] or sorted(FOLDER.glob("*.py"))):
        start = time.monotonic()
        part = source.with_suffix(".ipynb.part")
        nbformat.write(execute(source), part)
        os.replace(part, source.with_suffix(".ipynb"))
        print(f"{source.with_suffix('.ipynb')}: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
