"""The config fields that say how a classification head is to be used.

transformers writes the first three. We write all of them into every config file; code
that does not know a field passes over it.
"""

import re

import keras

from albert_tf.checkpoints.layout import CheckpointError

_LABELS, _DROPOUT = "id2label", "classifier_dropout_prob"
_ACTIVATION = "classifier_activation"


def is_text_classifier(config):
    """Whether a head with the name of one for texts is one, by `architectures`.

    The heads of transformers for multiple choice and for taggers have its names, too.

    Args:
        config: dict, the fields of the config.
    """
    architectures = str(config.get("architectures"))
    return not re.search("MultipleChoice|TokenClassification", architectures)


def read_classifier(config, name):
    """The arguments of `AlbertTextClassifier` that the fields mean.

    Args:
        config: dict, the fields of the config.
        name: string, what to call it in messages.

    Returns:
        A dict of `labels`, `dropout` and `activation`.

    Raises:
        CheckpointError: if a field has an impossible value.
    """
    rate = config.get(_DROPOUT)
    is_rate = isinstance(rate, (int, float)) and 0 <= rate < 1
    return {
        "labels": _read_labels(config.get(_LABELS), name),
        "dropout": rate if is_rate else 0.1,
        "activation": _read_activation(config.get(_ACTIVATION), name),
    }


def _read_labels(names, source):
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


def _read_activation(activation, source):
    try:
        return keras.activations.get(activation)
    except (ValueError, TypeError) as error:
        raise CheckpointError(
            f"{source} has {_ACTIVATION}={activation!r}, which is no activation that "
            'Keras knows. Expected one such as "softmax", or leave it out for logits.'
        ) from error


def classifier_fields(count, labels=None, dropout=0.1, activation=None):
    """The config fields of a classification head.

    Args:
        count: int, how many classes there are.
        labels: list of `count` strings, or `None`.
        dropout: float, the rate before the head.
        activation: what the head ends in, a function of Keras.

    Returns:
        A dict.

    Raises:
        CheckpointError: if the activation has no name.
    """
    names = placeholders(count)
    if labels is not None:
        names = dict(zip(names, labels, strict=True))
    spelled = keras.activations.serialize(keras.activations.get(activation))
    if not isinstance(spelled, str):
        raise CheckpointError(
            f"The activation of the classification head, {activation}, is not one of "
            "Keras' own, and no config file can name it. Save a classifier without "
            'activation, or with layout="keras".'
        )
    return {
        _LABELS: names,
        "label2id": {name: int(number) for number, name in names.items()},
        _DROPOUT: dropout,
        **({} if spelled == "linear" else {_ACTIVATION: spelled}),
    }


def placeholders(count):
    """The names transformers gives to classes that have none."""
    return {str(i): f"LABEL_{i}" for i in range(count)}
