"""Checks of what a user named, before TensorFlow is imported."""

import difflib
import pathlib
from typing import Any

from albert_tf.files import (
    BACKUP,
    BUNDLED,
    bundled_heads,
    find_bundled,
    read_json,
    read_releases,
    split_head,
)
from albert_tf_lite.pointers import check_downloaded


def state_folder(output: str | pathlib.Path) -> pathlib.Path:
    """Return the folder that keeps the state of an unfinished training."""
    return pathlib.Path(output) / BACKUP


def complete_checkpoint(incomplete: str) -> list[str]:
    """Return the names of checkpoints that begin so; a shell completes files."""
    heads = [f"{name}:{head}" for name in BUNDLED for head in bundled_heads(name)]
    names = (*BUNDLED, *read_releases(), *heads)
    return [x for x in names if x.startswith(incomplete)]


def check_checkpoint(name: str) -> None:
    """Raise if a name is not a finished checkpoint, an address or a release."""
    if not name:
        raise FileNotFoundError("The path of the model is empty.")
    name = str(split_head(name)[0])
    path = pathlib.Path(name)
    if path.is_file():
        check_downloaded(path)
    if state_folder(path).exists() and not (path / "config.json").exists():
        raise FileNotFoundError(
            f"The training in {name} is unfinished. Run the same command again to "
            "resume it."
        )
    is_file = path.exists() or pathlib.Path(f"{name}.index").is_file()
    if (
        is_file
        or name.startswith("hf://")
        or name in read_releases()
        or find_bundled(name)
    ):
        return
    similar = difflib.get_close_matches(name, [*read_releases(), *BUNDLED], 1)
    hint = f" Did you mean {similar[0]}?" if similar else ""
    raise FileNotFoundError(
        f"There is no checkpoint at {name}: it is not a directory, a file or the name "
        f"of a release.{hint} `albert-tf download` lists the releases."
    )


def check_files(*names: str | None) -> None:
    """Raise if one of the names, `None` left out, is not a file."""
    for name in names:
        if name is not None and not pathlib.Path(name).is_file():
            raise FileNotFoundError(f"{name} is not a file.")
        if name is not None:
            check_downloaded(name)


def check_output(path: str, overwrite: bool) -> None:
    """Raise if a directory to write contains files, unless they may be replaced."""
    folder = pathlib.Path(path)
    if not overwrite and folder.is_dir() and any(folder.iterdir()):
        raise FileExistsError(
            f"{path} contains files. Choose another directory, or pass --overwrite to "
            "replace a checkpoint of the same layout."
        )


def read_metrics(model: str) -> dict[str, Any]:
    """Return what `finetune` recorded beside a model, an empty dict without it."""
    file = pathlib.Path(model, "metrics.json")
    if not file.is_file():
        return {}
    return read_json(file, dict, "the record of a training, a JSON object")
