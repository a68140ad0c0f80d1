"""Folders of sentence-transformers: how they make vectors of texts."""

import pathlib
import warnings
from collections.abc import Iterable
from typing import Any

from albert_tf.checkpoints.config import read_config, read_json
from albert_tf.checkpoints.layout import CheckpointError, name_damage

_MODULES = "modules.json"
# `sentence_bert_config.json` for most models.
_LENGTH_FILES = "sentence_*_config.json"
# The pooling modes that a text embedder has, and the fields of older versions.
_MODES = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
}
# An embedder scales its vectors by default, and has no dropout when it predicts.
_IGNORED = ("Transformer", "Normalize", "Dropout")


def read_length(folders: Iterable[pathlib.Path]) -> int | None:
    """Return the maximum number of tokens per text, if a folder has it."""
    paths = [path for folder in folders for path in folder.glob(_LENGTH_FILES)]
    if not paths:
        return None
    # The first folder counts.
    length = read_config(paths[0]).get("max_seq_length")
    if length is not None and (type(length) is not int or length < 1):
        raise CheckpointError(
            f"{paths[0]} has max_seq_length={length!r}. Expected a positive integer."
        )
    return length


def read_pooling(folders: Iterable[pathlib.Path]) -> str | None:
    """Return the pooling mode of a folder of sentence-transformers, `None` for others.

    Raises:
        CheckpointError: if a module is not supported, or a file is damaged.
    """
    # The weights may lie in the folder of the first module.
    places: list[pathlib.Path] = []
    for folder in folders:
        places += [folder, folder.parent]
    roots = [place for place in places if (place / _MODULES).exists()]
    if not roots:
        return None
    root = roots[0]
    prompts = root / "config_sentence_transformers.json"
    if prompts.exists() and read_config(prompts).get("default_prompt_name"):
        warnings.warn(
            f"{prompts} has a prompt to put before each text, which is left out here.",
            stacklevel=5,
        )
    modes, other_modules = [], []
    with name_damage(root / _MODULES, TypeError, LookupError, AttributeError, OSError):
        for module in read_json(root / _MODULES, list):
            kind = module["type"].rpartition(".")[-1]
            if kind == "Pooling":
                # A folder beside the file, also where a stranger names another.
                path = root / pathlib.Path(module["path"]).name / "config.json"
                modes += _pooling_modes(read_config(path))
            elif kind not in _IGNORED:
                other_modules.append(f"the module {kind}")
    if other_modules or len(modes) != 1 or modes[0] not in _MODES:
        steps = " and ".join([*modes, *other_modules]) or "no pooling"
        raise CheckpointError(
            f"{root / _MODULES} makes vectors by {steps}. Expected one pooling mode of "
            f"{list(_MODES)} and no further module. Pass `pooling_mode=` for vectors "
            "of the encoder alone."
        )
    return modes[0]


def _pooling_modes(config: dict[str, Any]) -> list[str]:
    mode = config.get("pooling_mode")
    if mode is not None:
        return [mode] if isinstance(mode, str) else list(map(str, mode))
    names = {field: mode for mode, field in _MODES.items()}
    return [
        names.get(field, field)
        for field, is_used in config.items()
        if field.startswith("pooling_mode_") and is_used
    ]
