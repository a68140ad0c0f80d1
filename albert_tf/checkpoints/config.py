"""Config files of every layout, and the arguments of `AlbertBackbone`."""

import json
import os
import pathlib
from typing import Any

from albert_tf.backbone.encoder_blocks import MOST_BLOCKS
from albert_tf.checkpoints.layout import CheckpointError, Layout
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE, HUGGINGFACE


def read_config(path: str | os.PathLike) -> dict[str, Any]:
    """Return the fields of a JSON config file."""
    try:
        # Some editors on Windows write a byte order mark, which JSON does not allow.
        config = json.loads(pathlib.Path(path).read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(config, dict):
        raise CheckpointError(
            f"{path} must hold a JSON object of config fields, such as "
            f'{{"hidden_size": 312, ...}}. Found: {type(config).__name__}'
        )
    return config


def backbone_config(
    layout: Layout, config: dict[str, Any], source: str
) -> dict[str, Any]:
    """Return the fields of a config, called `source`, as `AlbertBackbone` arguments."""
    config = {**layout.defaults, **config}
    missing = [field for field in layout.config_fields if field not in config]
    if missing:
        raise CheckpointError(
            f"{source} lacks the fields {missing}. An ALBERT config of the "
            f'"{layout.name}" layout has {list(layout.config_fields)}.'
        )
    for field, value in layout.constants.items():
        if config.get(field, value) != value:
            raise CheckpointError(
                f"{source} has {field}={config[field]!r:.80}. This package builds "
                f"models with {field}={value!r} only."
            )
    arguments = dict(layout.fixed)
    for field, names in layout.config_fields.items():
        value, spellings = config[field], layout.spellings.get(field)
        if spellings is not None:
            expected = f"one of {list(spellings)}"
            is_valid = isinstance(value, str) and value in spellings
        elif "dropout" in names[0]:
            expected = "a number from 0 to 1"
            is_valid = type(value) in (int, float) and 0 <= value <= 1
        else:
            most = MOST_BLOCKS if names[0] == "num_layers" else 2**31 - 1
            expected = f"a positive integer of at most {most:,}"
            is_valid = type(value) is int and 0 < value <= most
        if not is_valid:
            raise CheckpointError(
                f"{source} has {field}={value!r:.80}. Expected {expected}."
            )
        arguments.update(dict.fromkeys(names, spellings[value] if spellings else value))
    return {**arguments, **_own_fields(config)}


def check_groups(arguments: dict[str, Any], num_tensors: int, source: str) -> None:
    """Raise if a config, called `source`, has more groups than a file has tensors."""
    for name in ("num_attention_groups", "num_ffn_groups"):
        count = arguments[name] * arguments["num_inner_repetitions"]
        if count > num_tensors:
            raise CheckpointError(
                f"{source} has {count:,} separate blocks ({name}="
                f"{arguments[name]}), and the file {num_tensors} tensors."
            )


def file_config(layout: Layout, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a backbone as the fields of a config file.

    The layout can express them if `layout_differences` is empty.
    """
    fields = {
        field: arguments[names[0]] for field, names in layout.config_fields.items()
    }
    for field, spellings in layout.spellings.items():
        if field in fields:
            # If a value has several spellings, the first is written.
            spelled = {means: text for text, means in reversed(spellings.items())}
            fields[field] = spelled[fields[field]]
    return {**layout.constants, **fields, **_own_fields(arguments)}


def _own_fields(config):
    """Return the arguments of a backbone that every layout keeps by their names."""
    return {x: config[x] for x in ("fine_tuning",) if config.get(x)}


def layout_differences(layout: Layout, arguments: dict[str, Any]) -> list[str]:
    """Return the arguments of a backbone that a layout cannot express."""
    written = dict(layout.fixed)
    for field, names in layout.config_fields.items():
        # One field may hold two arguments.
        value: Any = arguments[names[0]]
        spelled = layout.spellings.get(field, {value: value}).values()
        written.update(dict.fromkeys(names, value if value in spelled else [*spelled]))
    return [
        f"{name}={arguments[name]!r} (the layout has {value!r})"
        for name, value in written.items()
        if arguments[name] != value
    ]


def config_arguments(config: str | os.PathLike) -> dict[str, Any]:
    """Return a config file of any layout as arguments of `AlbertBackbone`."""
    fields = read_config(config)
    # Only Google's code has groups; the rest of its fields are those of albert_zh.
    layout = GOOGLE if "num_hidden_groups" in fields else ALBERT_ZH
    layout = HUGGINGFACE if "model_type" in fields else layout
    return backbone_config(layout, fields, str(config))
