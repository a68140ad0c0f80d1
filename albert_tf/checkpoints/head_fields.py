"""The config fields that say how a head is to be used.

transformers has names of its own for the labels and the dropout. Code that does not
know a field passes over it.
"""

import keras

from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import CheckpointError

_LABELS, _DROPOUT = "id2label", "classifier_dropout_prob"
_ACTIVATION, _THRESHOLDS = "classifier_activation", "classifier_thresholds"
_PROBLEM, _POOLING = "problem_type", "classifier_pooling"


def read_head(part, config, name):
    """The arguments of a task that the fields of its head mean, a dict.

    Args:
        part: string, a name of `HEADS`.
        config: dict, the fields of the config.
        name: string, what to call it in messages.
    """
    return {field: _READERS[field](config, name) for field in HEADS[part].fields}


def _read_labels(config, source):
    names = config.get(_LABELS)
    if names is None:
        return None
    plain = placeholders(len(names)) if isinstance(names, dict) else {}
    if not (plain and plain.keys() == names.keys()) or not all(
        isinstance(name, str) for name in names.values()
    ):
        raise CheckpointError(
            f"{source} should give each class a name under {_LABELS}, by its number "
            f"from 0 on. Found: {names}"
        )
    if len(set(names.values())) < len(names):
        raise CheckpointError(
            f"{source} gives two classes one name under {_LABELS}: {names}"
        )
    return None if names == plain else [names[number] for number in plain]


def _read_dropout(config, source):
    rate = config.get(_DROPOUT)
    is_rate = isinstance(rate, (int, float)) and 0 <= rate < 1
    return rate if is_rate else 0.1


def _read_activation(config, source):
    activation = config.get(_ACTIVATION)
    try:
        return keras.activations.get(activation)
    except (ValueError, TypeError) as error:
        raise CheckpointError(
            f"{source} has {_ACTIVATION}={activation!r}, which is no activation that "
            'Keras knows. Expected one such as "softmax", or leave it out for logits.'
        ) from error


def _read_multi_label(config, source):
    return config.get(_PROBLEM) == "multi_label_classification"


def _read_thresholds(config, source):
    thresholds = config.get(_THRESHOLDS)
    if thresholds is None:
        return None
    if not isinstance(thresholds, list) or not all(
        isinstance(x, (int, float)) for x in thresholds
    ):
        raise CheckpointError(
            f"{source} should give a number a class under {_THRESHOLDS}. Found: "
            f"{thresholds}"
        )
    return thresholds


def _read_pooling_mode(config, source):
    return config.get(_POOLING, "cls")


_READERS = {
    "labels": _read_labels,
    "tags": _read_labels,
    "dropout": _read_dropout,
    "activation": _read_activation,
    "multi_label": _read_multi_label,
    "thresholds": _read_thresholds,
    "pooling_mode": _read_pooling_mode,
}


def write_head(part, count, arguments):
    """The config fields of a head of `count` classes, of what `read_head` gave."""
    names = arguments.get("labels") or arguments.get("tags")
    fields = label_fields(count, names)
    problems = HEADS[part].problem_types
    if problems:
        problem = problems[arguments.get("multi_label", False)]
        # transformers refuses that of one output, which softmax makes 1.
        if not (count == 1 and problem == "single_label_classification"):
            fields[_PROBLEM] = problem
    if arguments.get("thresholds"):
        fields[_THRESHOLDS] = list(arguments["thresholds"])
    if arguments.get("pooling_mode", "cls") != "cls":
        fields[_POOLING] = arguments["pooling_mode"]
    if "dropout" in arguments:
        fields[_DROPOUT] = arguments["dropout"]
    activation = keras.activations.get(arguments.get("activation"))
    spelled = keras.activations.serialize(activation)
    if not isinstance(spelled, str):
        raise CheckpointError(
            f"The activation of the classification head, {activation}, is not one of "
            "Keras' own, and no config file can name it. Save a classifier without "
            'activation, or with layout="keras".'
        )
    if spelled != "linear":
        fields[_ACTIVATION] = spelled
    return fields


def label_fields(count, labels=None):
    """What a config says of classes, placeholders where they have no names."""
    names = placeholders(count)
    if labels is not None:
        names = dict(zip(names, labels, strict=True))
    return {
        _LABELS: names,
        "label2id": {name: int(number) for number, name in names.items()},
    }


def placeholders(count):
    """The names transformers gives to classes that have none."""
    return {str(i): f"LABEL_{i}" for i in range(count)}
