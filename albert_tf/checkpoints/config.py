"""Config files of every layout, and the arguments of `AlbertBackbone`."""

import json
import os
from typing import Any

from albert_tf.backbone.encoder_blocks import MOST_BLOCKS
from albert_tf.checkpoints.layout import CheckpointError, Layout
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE, HUGGINGFACE
from albert_tf_lite.pointers import read_bytes


def read_json(path: str | os.PathLike, kind: type) -> Any:
    """Return the content of a JSON file, a `dict` or a `list`."""
    data = read_bytes(path)
    try:
        # Some editors on Windows write a byte order mark, which JSON does not allow.
        text = data.decode("utf-8-sig")
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(content, kind):
        what = "a JSON list"
        if kind is dict:
            what = 'a JSON object of config fields, such as {"hidden_size": 312, ...}'
        raise CheckpointError(
            f"{path} must hold {what}. Found: {type(content).__name__}"
        )
    return content


def read_config(path: str | os.PathLike) -> dict[str, Any]:
    """Return the fields of a JSON config file."""
    return read_json(path, dict)


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


# The config fields of a WordPiece tokenizer, those of transformers: the argument, the
# types of its values, and the value in the original code.
_TOKENIZER_FIELDS: dict[str, tuple[str, tuple[type, ...], Any]] = {
    "do_lower_case": ("lowercase", (bool,), True),
    "strip_accents": ("strip_accents", (bool, type(None)), None),
    "tokenize_chinese_chars": ("tokenize_chinese_chars", (bool,), True),
    "max_input_chars_per_word": ("max_input_chars_per_word", (int,), 200),
    "added_tokens": ("added_tokens", (dict,), {}),
}


def tokenizer_arguments(config: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the fields of a config, called `source`, as arguments of a tokenizer."""
    arguments = {}
    for field, (name, types, _) in _TOKENIZER_FIELDS.items():
        if field in config:
            value = arguments[name] = config[field]
            if type(value) not in types:
                raise CheckpointError(
                    f"{source} has {field}={value!r}. Expected a value of type "
                    f"{' or '.join(x.__name__ for x in types)}."
                )
    return arguments


def tokenizer_config(tokenizer: Any, **defaults: Any) -> dict[str, Any]:
    """Return config fields of a tokenizer that differ from those of the original code.

    `defaults` are fields with another value in the code that reads the layout.
    """
    settings = tokenizer.get_settings()
    return {
        field: settings[name]
        for field, (name, _, original) in _TOKENIZER_FIELDS.items()
        if name in settings and settings[name] != defaults.get(field, original)
    }


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
