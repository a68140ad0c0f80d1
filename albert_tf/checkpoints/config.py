"""Between the config files of the originals and `AlbertBackbone`'s arguments."""

import json
import pathlib

from albert_tf.checkpoints.layout import CheckpointError

# Fields whose values are spelled otherwise in a config file than in Keras.
SPELLINGS = {
    "hidden_act": {
        "gelu": "gelu_approximate",
        "gelu_new": "gelu_approximate",
        "relu": "relu",
        "tanh": "tanh",
        "linear": "linear",
    },
    "ln_type": {"postln": False, "preln": True},
}


def read_config(path):
    """Read a JSON config file.

    Raises:
        FileNotFoundError: if there is no such file.
        CheckpointError: if it is not a JSON object, or describes the grouped
            dense layer of the `_fast` models.
    """
    path = pathlib.Path(path)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no config file {path}.") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(config, dict):
        raise CheckpointError(
            f"{path} should hold a JSON object of config fields, such as "
            f'{{"hidden_size": 312, ...}}. Found: {type(config).__name__}'
        )
    if "_fast" in path.name:
        _refuse_fast(path)
    return config


def _refuse_fast(source):
    raise CheckpointError(
        f"{source} describes an `albert_*_google_fast` model, whose feed-forward "
        "layer is a grouped dense layer. No such checkpoint was ever released and "
        "this package does not build it. Use the config without `_fast`."
    )


def backbone_config(layout, config, source="the config"):
    """Turn the fields of a config file into arguments of `AlbertBackbone`.

    Args:
        layout: the `Layout` whose fields they are.
        config: dict, as in the config file.
        source: string, what to call the config in messages.

    Returns:
        A dict of arguments.

    Raises:
        CheckpointError: if a field is missing or has an impossible value.
    """
    config = {**layout.defaults, **config}
    missing = [field for field in layout.config_fields if field not in config]
    if missing:
        raise CheckpointError(
            f"{source} lacks the fields {missing}. An ALBERT config of the "
            f'"{layout.name}" layout has {list(layout.config_fields)}.'
        )
    arguments = dict(layout.fixed)
    for field, names in layout.config_fields.items():
        value = _read_value(field, config[field], source)
        arguments.update(dict.fromkeys(names, value))
    if arguments["num_ffn_groups"] > arguments["num_layers"]:
        _refuse_fast(source)
    return arguments


def _read_value(field, value, source):
    if field in SPELLINGS:
        if not isinstance(value, str) or value not in SPELLINGS[field]:
            raise CheckpointError(
                f"{source} has {field}={value!r}. Known values: "
                f"{list(SPELLINGS[field])}"
            )
        return SPELLINGS[field][value]
    whole = not field.endswith("_prob")
    number = isinstance(value, int if whole else (int, float))
    if (
        isinstance(value, bool)
        or not number
        or not (value > 0 if whole else 0 <= value <= 1)
    ):
        raise CheckpointError(
            f"{source} has {field}={value!r}. Expected "
            + ("a whole number above 0." if whole else "a rate from 0 to 1.")
        )
    return value


def file_config(layout, backbone):
    """The fields a config file of this layout has for a backbone.

    Raises:
        CheckpointError: if the layout cannot express the backbone, saying which
            arguments differ.
    """
    arguments = backbone.get_config()
    differ = [
        f"{name}={arguments[name]!r} (the layout has {value!r})"
        for name, value in layout.fixed.items()
        if arguments[name] != value
    ] + [
        f"{a}={arguments[a]!r} and {b}={arguments[b]!r} (the layout has one for both)"
        for a, b in layout.same
        if arguments[a] != arguments[b]
    ]
    if differ:
        raise CheckpointError(
            f'The "{layout.name}" layout cannot hold this model: ' + "; ".join(differ)
        )
    return {
        field: _write_value(field, arguments[names[0]])
        for field, names in layout.config_fields.items()
    }


def _write_value(field, value):
    if field not in SPELLINGS:
        return value
    for spelling, meaning in SPELLINGS[field].items():
        if meaning == value:
            return spelling
    raise CheckpointError(
        f"No value of the config field {field} means {value!r}. Known: "
        f"{SPELLINGS[field]}"
    )
