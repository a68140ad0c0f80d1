"""Config files of every layout, and the arguments of `AlbertBackbone`."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from albert_tf.checkpoints.layout import CheckpointError, Layout
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE, HUGGINGFACE

MAX_BLOCKS = 1000


def read_config(path: str | os.PathLike) -> dict[str, Any]:
    """Return the fields of a JSON config file."""
    path = pathlib.Path(path)
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path} is not a file. Expected a JSON config file.")
    try:
        # Some editors on Windows write a byte order mark, which JSON does not allow.
        config = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no config file {path}.") from None
    # Also raised for numbers with thousands of digits and for deeply nested lists.
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(config, dict):
        raise CheckpointError(
            f"{path} should hold a JSON object of config fields, such as "
            f'{{"hidden_size": 312, ...}}. Found: {type(config).__name__}'
        )
    return config


def backbone_config(
    layout: Layout, config: dict[str, Any], source: str
) -> dict[str, Any]:
    """Return the fields of a config file as arguments of `AlbertBackbone`.

    In messages the config is called `source`.
    """
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
                f"{source} has {field}={config[field]!r}. This package builds models "
                f"with {field}={value!r} only."
            )
    arguments = dict(layout.fixed)
    for field, names in layout.config_fields.items():
        spellings = layout.spellings.get(field)
        value = _read_value(field, config[field], spellings, source)
        arguments.update(dict.fromkeys(names, value))
    is_fast = source.endswith("_fast.json")
    if is_fast or arguments["num_ffn_groups"] > arguments["num_layers"]:
        raise CheckpointError(
            f"{source} describes an `albert_*_google_fast` model, whose feed-forward "
            "layer is a grouped dense layer. No such checkpoint was ever released and "
            "this package does not build it. Use the config without `_fast`."
        )
    # No tensor contradicts a wrong number of layers, which could take hours to build.
    blocks = arguments["num_layers"] * arguments["num_inner_repetitions"]
    if blocks > MAX_BLOCKS:
        raise CheckpointError(
            f"{source} asks for {blocks} consecutive encoder blocks; "
            f"expected {MAX_BLOCKS} at most. The largest ALBERT has 24."
        )
    if arguments["hidden_dim"] % arguments["num_heads"]:
        raise CheckpointError(
            f"{source} has a hidden size of {arguments['hidden_dim']}, which is not "
            f"divisible by its {arguments['num_heads']} attention heads."
        )
    return arguments


def _read_value(field: str, value: Any, spellings: dict | None, source: str) -> Any:
    if spellings is not None:
        if not isinstance(value, str) or value not in spellings:
            raise CheckpointError(
                f"{source} has {field}={value!r}. Known values: {list(spellings)}"
            )
        return spellings[value]
    whole = "dropout" not in field
    expected = "a whole number above 0" if whole else "a rate from 0 to 1"
    is_number = isinstance(value, int if whole else (int, float))
    if (
        isinstance(value, bool)
        or not is_number
        or not (value > 0 if whole else 0 <= value <= 1)
    ):
        raise CheckpointError(f"{source} has {field}={value!r}. Expected {expected}.")
    return value


def check_sizes(
    layout: Layout,
    config: dict[str, Any],
    shapes: dict[str, list[int]],
    path: Any,
    source: str,
) -> None:
    """Compare a config, called `source` in messages, with the shapes of tensors."""
    config = {**layout.defaults, **config}
    differ = [
        f"{field} is {config[field]}, but {name} is {shapes[name]}"
        for name, fields in layout.sizes.items()
        for axis, field in enumerate(fields)
        if field
        and name in shapes
        # A tensor of another rank is reported when it is loaded.
        and len(shapes[name]) > axis
        and shapes[name][axis] != config[field]
    ]
    if differ:
        raise CheckpointError(
            f"{source} is not the config of {path}: {'; '.join(differ)}. Give the "
            "right one with `config=`."
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
    return {**layout.constants, **fields}


def layout_differences(layout: Layout, arguments: dict[str, Any]) -> list[str]:
    """Return the arguments of a backbone that a layout cannot express."""
    fixed = [
        f"{name}={arguments[name]!r} (the layout has {value!r})"
        for name, value in layout.fixed.items()
        if arguments[name] != value
    ]
    same = [
        f"{a}={arguments[a]!r} and {b}={arguments[b]!r} (the layout has one for both)"
        for a, b in layout.same
        if arguments[a] != arguments[b]
    ]
    spelled = [
        f"{name}={arguments[name]!r} (the layout has "
        + ", ".join(map(str, dict.fromkeys(spellings.values())))
        + ")"
        for field, spellings in layout.spellings.items()
        for name in layout.config_fields.get(field, ())
        if arguments[name] not in spellings.values()
    ]
    return fixed + same + spelled


def config_arguments(config: str | os.PathLike) -> dict[str, Any]:
    """Return a config file of any layout as arguments of `AlbertBackbone`.

    Args:
        config: path of the file.

    Returns:
        A dict.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`.

    Example:
    ```python
    arguments = albert_tf.checkpoints.config_arguments("albert_config.json")
    backbone = albert_tf.models.AlbertBackbone(**arguments)
    ```
    """
    fields = read_config(config)
    if "model_type" in fields:
        layout = HUGGINGFACE
    else:
        # Only Google's code has groups; the rest of the fields are the same.
        layout = GOOGLE if "num_hidden_groups" in fields else ALBERT_ZH
    return backbone_config(layout, fields, str(config))
