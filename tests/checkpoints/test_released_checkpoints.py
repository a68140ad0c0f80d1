"""Names and shapes of the real releases, from their index files."""

import json

import keras
import pytest

from albert_tf.checkpoints import config_arguments
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE
from albert_tf.checkpoints.weights import model_weights
from albert_tf.models import AlbertBackbone, AlbertPretrainer

LAYOUTS = {"albert_zh": ALBERT_ZH, "google": GOOGLE}


def shapes_in(folder):
    (path,) = folder.glob("*.index.json")
    tensors = json.loads(path.read_text())["tensors"]
    return {name: tuple(tensor["shape"]) for name, tensor in tensors.items()}


def expected_shapes(layout, model):
    return {
        name: tensors.shapes(variable.shape)
        for variable, tensors in model_weights(LAYOUTS[layout], model)
        for name in tensors.names
    }


@pytest.fixture
def cheap_initial_weights(monkeypatch):
    zeros = staticmethod(lambda shape, dtype=None: keras.ops.zeros(shape, dtype))
    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", zeros)


@pytest.mark.parametrize(
    ("release", "layout"),
    [
        ("albert_tiny_zh_a", "albert_zh"),
        ("albert_base_zh_google", "google"),
    ],
)
def test_a_release_has_the_tensors_its_config_says(
    assets, cheap_initial_weights, release, layout
):
    folder = assets / "released" / release
    found = shapes_in(folder)
    assert [x.name for x in LAYOUTS.values() if x.matches(found)] == [layout]
    (config,) = folder.glob("*config*.json")
    arguments = config_arguments(config)
    assert arguments["embedding_projection"] == (
        "after_layer_norm" if layout == "google" else "before_layer_norm"
    )
    model = AlbertPretrainer(AlbertBackbone(**arguments))
    expected = expected_shapes(layout, model)
    assert {name: found.get(name) for name in expected} == expected
    left = {GOOGLE.kind_of(name) for name in found.keys() - expected.keys()}
    assert left <= {"optimizer", "step"}


def test_a_fine_tuned_release_has_an_encoder_and_no_pretraining_heads(
    assets, cheap_initial_weights
):
    released = assets / "released"
    found = shapes_in(released / "albert_tiny_google_finetuned_lcqmc")
    arguments = config_arguments(
        released / "configs" / "albert_config_tiny_google.json"
    )
    expected = expected_shapes("google", AlbertBackbone(**arguments))
    assert {name: found.get(name) for name in expected} == expected
    left = {GOOGLE.kind_of(name) for name in found.keys() - expected.keys()}
    assert left == {"optimizer", "step"}


def test_released_configs(assets):
    for config, projection, normalize_first in (
        ("albert_config_xlarge.json", "before_layer_norm", False),
        ("albert_config_xxlarge.json", "before_layer_norm", True),
        ("albert_config_tiny_google.json", "after_layer_norm", False),
    ):
        arguments = config_arguments(assets / "released" / "configs" / config)
        assert arguments["embedding_projection"] == projection
        assert arguments["activation"] == "gelu_approximate"
        assert arguments["normalize_first"] is normalize_first
    # Google's Chinese base.
    folder = assets / "released" / "albert_base_zh_google"
    assert config_arguments(folder / "albert_config.json")["activation"] == "relu"
