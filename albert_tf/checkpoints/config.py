"""Config files of every layout, and the arguments of `AlbertBackbone`."""

import os
from typing import Any, NamedTuple

from albert_tf import files
from albert_tf.backbone.encoder_blocks import MOST_BLOCKS
from albert_tf.checkpoints.layout import CheckpointError, Layout
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE, HUGGINGFACE
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.word_piece import MAX_INPUT_CHARS_PER_WORD


def read_json(path: str | os.PathLike, kind: type) -> Any:
    """Return the content of a JSON file, a `dict` or a `list`."""
    expected = ""
    if kind is dict:
        expected = 'a JSON object of config fields, such as {"hidden_size": 312, ...}'
    return files.read_json(path, kind, expected, CheckpointError)


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
        value = config[field]
        spellings = layout.spellings.get(field)
        if problem := _problem(names[0], value, spellings):
            raise CheckpointError(f"{source} has {field}={value!r:.80}. {problem}")
        if spellings is not None:
            value = spellings[value]
        # One field may hold two arguments.
        for name in names:
            arguments[name] = value
    return {**arguments, **_own_fields(config)}


def _problem(name: str, value: Any, spellings: dict[str, Any] | None) -> str:
    """Return what an argument should be, "" if its value in a config is valid."""
    if spellings is not None:
        expected = f"one of {list(spellings)}"
        is_valid = isinstance(value, str) and value in spellings
    elif "dropout" in name:
        expected = "a number from 0 to 1"
        is_valid = type(value) in (int, float) and 0 <= value <= 1
    else:
        most = MOST_BLOCKS if name == "num_layers" else 2**31 - 1
        expected = f"a positive integer of at most {most:,}"
        is_valid = type(value) is int and 0 < value <= most
    return "" if is_valid else f"Expected {expected}."


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


class _TokenizerField(NamedTuple):
    """A config field of a tokenizer."""

    argument: str  # The argument of the tokenizer.
    types: tuple[type, ...]  # The types of its values.
    original: Any  # The value in the original code.


# With the names of transformers.
_TOKENIZER_FIELDS = {
    "do_lower_case": _TokenizerField("lowercase", (bool,), True),
    "strip_accents": _TokenizerField("strip_accents", (bool, type(None)), None),
    "tokenize_chinese_chars": _TokenizerField("tokenize_chinese_chars", (bool,), True),
    "max_input_chars_per_word": _TokenizerField(
        "max_input_chars_per_word", (int,), MAX_INPUT_CHARS_PER_WORD
    ),
    "added_tokens": _TokenizerField("added_tokens", (dict,), {}),
}


def tokenizer_arguments(config: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the fields of a config, called `source`, as arguments of a tokenizer."""
    arguments = {}
    for name, field in _TOKENIZER_FIELDS.items():
        if name not in config:
            continue
        value = config[name]
        if type(value) not in field.types:
            raise CheckpointError(
                f"{source} has {name}={value!r}. Expected a value of type "
                f"{' or '.join(x.__name__ for x in field.types)}."
            )
        arguments[field.argument] = value
    return arguments


def tokenizer_config(tokenizer: TextTokenizer, **defaults: Any) -> dict[str, Any]:
    """Return config fields of a tokenizer that differ from those of the original code.

    `defaults` are fields with another value in the code that reads the layout.
    """
    settings, fields = tokenizer.get_settings(), {}
    for name, field in _TOKENIZER_FIELDS.items():
        default = defaults.get(name, field.original)
        if field.argument in settings and settings[field.argument] != default:
            fields[name] = settings[field.argument]
    return fields


def _own_fields(config: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a backbone that every layout keeps by their names."""
    settings = config.get("fine_tuning")
    return {"fine_tuning": settings} if settings else {}


def layout_differences(layout: Layout, arguments: dict[str, Any]) -> list[str]:
    """Return the arguments of a backbone that a layout cannot express."""
    written = dict(layout.fixed)
    for field, names in layout.config_fields.items():
        # One field may hold two arguments.
        value: Any = arguments[names[0]]
        if field in layout.spellings:
            known = list(layout.spellings[field].values())
            value = value if value in known else known
        written.update(dict.fromkeys(names, value))
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
