"""The tables of layouts and configs, apart from any file."""

import numpy as np
import pyarrow
import pytest
from checkpoint_files import GOLDEN, NAMES
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from small_backbone import SMALL

from albert_tf.checkpoints import config_arguments, open_checkpoint
from albert_tf.checkpoints.formats.bundle_index import uncompressed
from albert_tf.checkpoints.layout import Tensors
from albert_tf.checkpoints.layouts import own_layout
from albert_tf.checkpoints.plan import plan_weights
from albert_tf.checkpoints.saving import LAYOUTS
from albert_tf.models import AlbertBackbone, AlbertPretrainer


@st.composite
def tensors_and_weight(draw):
    """Tensors of any number, width and orientation, and the weight they make up."""
    count, heads = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rank = draw(st.integers(1, 2))
    shape = tuple(heads * draw(st.integers(1, 4)) for _ in range(rank))
    tensors = Tensors(
        names=tuple(f"tensor_{i}" for i in range(count)),
        transpose=draw(st.booleans()) if rank == 2 else False,
        heads_axis=draw(st.sampled_from([None, 0, -1])),
        num_heads=heads,
    )
    shape = (*shape[:-1], count * shape[-1])
    return tensors, draw(arrays.arrays("float32", shape, elements=st.floats(width=32)))


@given(tensors_and_weight())
def test_splitting_and_joining_gives_the_same_weight(drawn):
    tensors, weight = drawn
    parts = tensors.from_weight(weight)
    assert [part.shape for part in parts] == [tensors.shapes(weight.shape)] * len(parts)
    again = tensors.to_weight(parts)
    assert np.array_equal(weight, again, equal_nan=True)


@pytest.mark.parametrize(
    ("layout", "changes"),
    [
        ("albert_zh", {}),
        ("google", {"num_attention_groups": 3, "num_ffn_groups": 3}),
        ("huggingface", {"num_inner_repetitions": 2}),
        ("keras", {"num_attention_groups": 4, "num_ffn_groups": 2}),
    ],
)
def test_every_weight_of_a_model_has_its_tensors(layout, changes):
    """No weight stays random: each is in the table exactly once."""
    if layout in ("google", "huggingface"):
        changes = {**changes, "embedding_projection": "after_layer_norm"}
    model = AlbertPretrainer(AlbertBackbone(**{**SMALL, "num_layers": 4, **changes}))
    config = model.backbone.get_config()
    layout = own_layout(config) if layout == "keras" else LAYOUTS[layout]
    rows = plan_weights(layout, model)
    assert sorted(id(variable) for variable, _ in rows) == sorted(
        id(variable) for variable in model.weights
    )
    names = [name for _, tensors in rows for name in tensors.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", NAMES)
def test_config_arguments(name):
    """A config alone gives the arguments that it gives beside its checkpoint."""
    arguments = config_arguments(GOLDEN / name / "albert_config.json")
    assert arguments == open_checkpoint(GOLDEN / name).arguments


@given(st.binary(max_size=300).map(lambda x: x * 3))
def test_an_index_of_an_old_tensorflow_is_compressed(content):
    compressed = pyarrow.compress(content, codec="snappy", asbytes=True)
    assert uncompressed(compressed) == content
