"""Sizes of models, for machines without TensorFlow."""

import json

from benchmarks.lib.paths import ROOT

# Those of examples/albert_micro_zh.
MICRO_SIZES = {
    "num_layers": 4,
    "num_heads": 5,
    "embedding_dim": 128,
    "hidden_dim": 320,
    "intermediate_dim": 1280,
    "normalize_first": True,
    "activation": "relu",
}


def release_sizes(name):
    """Return the arguments of `AlbertBackbone` of a released checkpoint."""
    file = ROOT / "albert_tf" / "checkpoints" / "releases.json"
    return json.loads(file.read_text("utf-8"))["releases"][name]["arguments"]
