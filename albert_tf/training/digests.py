"""Fingerprints of data and models."""

import hashlib
import json
from typing import Any

import keras
import numpy as np


def data_digest(data: Any) -> str:
    """Return the fingerprint of nested lists and arrays of texts and numbers."""
    digest = hashlib.sha256()
    for leaf in map(np.ascontiguousarray, keras.tree.flatten(data)):
        # The content of an array of objects is their addresses.
        values = leaf.astype(str) if leaf.dtype == object else leaf
        # Types and shapes distinguish ["ab", "c"] from ["a", "bc"].
        digest.update(f"{values.dtype.str}{values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def model_digest(model: keras.Model) -> str:
    """Return the fingerprint of config, vocabulary and weights of a task."""
    config = json.dumps(without_names(model.get_config()), sort_keys=True, default=str)
    vocabulary = None
    if model.preprocessor is not None:
        vocabulary = repr(model.preprocessor.tokenizer.fingerprint)
    return data_digest((config, str(vocabulary), model.get_weights()))


def without_names(config: Any) -> Any:
    """Return a config without the names, which count the objects of the process."""
    if not isinstance(config, dict):
        return config
    return {key: without_names(value) for key, value in config.items() if key != "name"}
