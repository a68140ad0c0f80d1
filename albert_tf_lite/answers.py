"""What the outputs of a model mean, by its task; named as those of a SavedModel."""

from __future__ import annotations

from typing import Any

import numpy as np


def _softmax(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _sigmoid(x):
    # In this form no exponential is too large.
    return (np.tanh(x / 2) + 1) / 2


def _probabilities(outputs, settings):
    activations = {"softmax": _softmax, "sigmoid": _sigmoid, None: lambda x: x}
    return activations[settings["activation"]](outputs)


def classify(outputs: np.ndarray, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """`label`, `label_id` (int32) [batch], `probabilities` [batch, classes]."""
    probabilities = _probabilities(outputs, settings)
    label_id = probabilities.argmax(axis=-1).astype("int32")
    label = np.array(settings["labels"])[label_id]
    return {"label": label, "label_id": label_id, "probabilities": probabilities}


def classify_multi_label(
    outputs: np.ndarray, settings: dict[str, Any]
) -> dict[str, np.ndarray]:
    """`labels` (empty where there is none), `chosen` (bool), `probabilities`.

    All are [batch, classes].
    """
    probabilities = _probabilities(outputs, settings)
    chosen = probabilities >= np.array(settings["thresholds"], "float32")
    labels = np.where(chosen, np.array(settings["labels"]), "")
    return {"labels": labels, "chosen": chosen, "probabilities": probabilities}


def regress(outputs: np.ndarray, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """`score` [batch]."""
    return {"score": outputs[:, 0]}


def embed(outputs: np.ndarray, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """`embedding` [batch, width]."""
    return {"embedding": outputs}


def tell_order(outputs: np.ndarray, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """`in_order` [batch], how likely it is that the second text follows the first."""
    return {"in_order": _softmax(outputs)[:, 0]}


TOKEN_CLASSIFICATION = "token-classification"

# By task, a function of the outputs [batch, ...] and the settings; none where there is
# an output a token.
ANSWERS = {
    "text-classification": classify,
    "multi-label": classify_multi_label,
    "regression": regress,
    "text-embedding": embed,
    "sentence-order": tell_order,
    TOKEN_CLASSIFICATION: None,
}
# What must be said of an example: one text, two, or either.
TEXTS_OF_AN_EXAMPLE = {
    "text-embedding": (1,),
    TOKEN_CLASSIFICATION: (1,),
    "sentence-order": (2,),
}
