import itertools

import keras
import keras_hub
import numpy as np
import pytest
from numpy_reference import assert_close
from small_backbone import INPUTS, SMALL, are_close, difference, small_backbone

from albert_tf.backbone import SIZES, AlbertBackbone
from albert_tf.backbone.encoder_blocks import group_of_layer
from albert_tf.layers import EncoderBlock

# Four H x H matrices with biases, and a LayerNorm.
ATTENTION = 4 * (48 * 48 + 48) + 2 * 48
FEED_FORWARD = (48 * 96 + 96) + (96 * 48 + 48) + 2 * 48


# === Parameter counts ===


def test_english_sizes_have_the_released_number_of_parameters(no_weights):
    assert {
        name: AlbertBackbone(**size).count_params() for name, size in SIZES.items()
    } == {
        "albert_base_en": 11_683_584,
        "albert_large_en": 17_683_968,
        "albert_xlarge_en": 58_724_864,
        "albert_xxlarge_en": 222_595_584,
    }


@pytest.mark.parametrize(("layers", "groups", "inner"), [(3, 1, 1), (4, 2, 2)])
def test_as_many_parameters_as_keras_hub(layers, groups, inner):
    size = {**SMALL, "num_layers": layers}
    theirs = keras_hub.models.AlbertBackbone(
        **size, num_groups=groups, num_inner_repetitions=inner
    )
    ours = AlbertBackbone(
        **size,
        num_attention_groups=groups,
        num_ffn_groups=groups,
        num_inner_repetitions=inner,
        embedding_projection="after_layer_norm",
    )
    assert ours.count_params() == theirs.count_params()


def bert_parameters(size):
    """Parameters of BERT with the layers and widths of an ALBERT, and its pooler's."""
    layers, heads, hidden = (size[x] for x in ("num_layers", "num_heads", "hidden_dim"))
    bert = keras_hub.models.BertBackbone(30000, layers, heads, hidden, 4 * hidden)
    return bert.count_params(), hidden * hidden + hidden


def test_nothing_shared_is_bert_and_a_projection(no_weights):
    size = {**SIZES["albert_base_en"], "embedding_dim": 768}
    size["embedding_projection"] = "before_layer_norm"
    ours = AlbertBackbone(**size, num_attention_groups=12, num_ffn_groups=12)
    assert ours.count_params() == bert_parameters(size)[0] + 768 * 768


@pytest.mark.slow
def test_bert_of_the_same_size_has_the_papers_number(no_weights, capsys):
    """Table 1 of the paper, which counts BERT without its pooler."""
    rows = []
    for name, in_paper in (("base", 108), ("large", 334)):
        size = SIZES[f"albert_{name}_en"]
        bert, pooler = bert_parameters(size)
        assert round((bert - pooler) / 1e6) == in_paper
        albert = AlbertBackbone(**size).count_params()
        rows.append(f"{name:8}{albert:>14,}{bert:>14,}{bert / albert:>8.1f}x")
    with capsys.disabled():
        print(f"\n{'size':8}{'ALBERT':>14}{'BERT':>14}{'fewer':>9}", *rows, sep="\n")


# === Sharing ===


@pytest.mark.parametrize(
    ("attention_groups", "ffn_groups", "inner"),
    [(1, 1, 1), (1, 3, 1), (3, 3, 1), (2, 3, 2)],
)
def test_parameters_grow_with_the_groups(attention_groups, ffn_groups, inner):
    backbone = AlbertBackbone(
        **SMALL,
        num_attention_groups=attention_groups,
        num_ffn_groups=ffn_groups,
        num_inner_repetitions=inner,
    )
    rest = backbone.embedding.count_params() + backbone.pooled_dense.count_params()
    halves = attention_groups * ATTENTION + ffn_groups * FEED_FORWARD
    assert backbone.count_params() == rest + inner * halves
    assert len(backbone.weights) == 8 + inner * 6 * (attention_groups + ffn_groups)
    assert len(backbone.attention_blocks) == attention_groups * inner
    assert len(backbone.feed_forward_blocks) == ffn_groups * inner


def test_all_shared_is_one_encoder_block():
    backbone = AlbertBackbone(**SMALL)
    blocks = [x for x in backbone.layers if isinstance(x, EncoderBlock)]
    assert len(blocks) == 1
    assert backbone.encoder_blocks == blocks * 3


def test_equal_weights_compute_what_shared_ones_do():
    shared = small_backbone()
    unshared = small_backbone(num_attention_groups=2, num_ffn_groups=3)
    assert difference(shared(INPUTS), unshared(INPUTS)) > 0.1
    unshared.embedding.set_weights(shared.embedding.get_weights())
    unshared.pooled_dense.set_weights(shared.pooled_dense.get_weights())
    block = shared.encoder_blocks[0]
    for half in unshared.attention_blocks.values():
        half.set_weights(block.attention.get_weights())
    for half in unshared.feed_forward_blocks.values():
        half.set_weights(block.feed_forward.get_weights())
    assert are_close(unshared(INPUTS), shared(INPUTS))


def test_group_of_layer():
    for layers, groups, expected in (
        (4, 1, [0, 0, 0, 0]),
        (4, 2, [0, 0, 1, 1]),
        (4, 3, [0, 0, 1, 2]),  # Google's rule where the groups are uneven
        (4, 4, [0, 1, 2, 3]),
        (5, 2, [0, 0, 0, 1, 1]),
        (12, 5, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4]),
    ):
        assert [group_of_layer(i, layers, groups) for i in range(layers)] == expected


def test_every_group_has_a_layer_for_any_size():
    for layers, groups in itertools.product(range(1, 65), range(1, 65)):
        if groups <= layers:
            used = {group_of_layer(i, layers, groups) for i in range(layers)}
            assert used == set(range(groups)), (layers, groups)


def test_layers_and_inner_layers_run_in_googles_order():
    backbone = AlbertBackbone(
        **{**SMALL, "num_layers": 4},
        num_attention_groups=3,
        num_ffn_groups=2,
        num_inner_repetitions=2,
    )
    ran = [(x.attention, x.feed_forward) for x in backbone.encoder_blocks]
    attention, feed_forward = backbone.attention_blocks, backbone.feed_forward_blocks
    assert ran == [
        (attention[0, 0], feed_forward[0, 0]),
        (attention[0, 1], feed_forward[0, 1]),
        (attention[0, 0], feed_forward[0, 0]),
        (attention[0, 1], feed_forward[0, 1]),
        (attention[1, 0], feed_forward[1, 0]),
        (attention[1, 1], feed_forward[1, 1]),
        (attention[2, 0], feed_forward[1, 0]),
        (attention[2, 1], feed_forward[1, 1]),
    ]


# === Outputs ===


def test_intermediates():
    backbone = small_backbone(num_inner_repetitions=2, normalize_first=True)
    model = backbone.with_intermediates(attention_scores=True)
    outputs = model(INPUTS)
    assert len(outputs["hidden_states"]) == 3 * 2 + 1
    assert {x.shape for x in outputs["hidden_states"]} == {(3, 17, 48)}
    assert len(outputs["attention_scores"]) == 3 * 2
    assert {x.shape for x in outputs["attention_scores"]} == {(3, 4, 17, 17)}
    first = backbone.embedding(INPUTS["token_ids"], INPUTS["segment_ids"])
    assert np.abs(outputs["hidden_states"][0] - first).max() == 0.0
    last = outputs["hidden_states"][-1]
    assert np.abs(last - outputs["sequence_output"]).max() == 0.0
    assert are_close(outputs, backbone(INPUTS))
    assert len(model.weights) == len(backbone.weights)


def test_intermediates_leave_the_scores_out_unless_asked():
    backbone = small_backbone()
    outputs = backbone.with_intermediates()(INPUTS)
    assert set(outputs) == {"hidden_states", "sequence_output", "pooled_output"}
    assert difference(outputs, backbone(INPUTS)) == 0.0


@pytest.mark.parametrize(
    "changes", [{}, {"normalize_first": True, "num_inner_repetitions": 2}]
)
def test_pool_is_the_pooled_output(changes):
    backbone = small_backbone(**changes)
    pooled = keras.Model(backbone.input, backbone.pool(backbone.input))(INPUTS)
    expected = backbone(INPUTS)["pooled_output"]
    assert_close(pooled, expected)


def test_pooled_output_is_tanh_of_the_first_token():
    backbone = small_backbone()
    outputs = backbone(INPUTS)
    kernel, bias = backbone.pooled_dense.get_weights()
    expected = np.tanh(outputs["sequence_output"][:, 0] @ kernel + bias)
    assert_close(outputs["pooled_output"], expected)


def test_what_stands_in_the_padding_does_not_matter():
    backbone = small_backbone()
    mask = INPUTS["padding_mask"].astype(bool)
    other = {**INPUTS, "token_ids": np.where(mask, INPUTS["token_ids"], 99)}
    a, b = (np.asarray(backbone(x)["sequence_output"]) for x in (INPUTS, other))
    assert_close(a[mask], b[mask])
    assert np.abs(a[~mask] - b[~mask]).max() > 0.1


def test_a_longer_padding_does_not_change_the_text():
    backbone = small_backbone()
    longer = {name: np.pad(x, ((0, 0), (0, 6))) for name, x in INPUTS.items()}
    mask = INPUTS["padding_mask"].astype(bool)
    a = np.asarray(backbone(INPUTS)["sequence_output"])
    b = np.asarray(backbone(longer)["sequence_output"])[:, :17]
    assert_close(a[mask], b[mask])


# === Bad arguments ===


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_heads": 5}, "width 48, num_heads=5"),
        ({"num_attention_groups": 0}, "between 1 .*: num_attention_groups=0"),
        ({"num_attention_groups": 4}, "num_attention_groups=4, num_layers=3"),
        ({"num_ffn_groups": 4}, "num_ffn_groups=4, num_layers=3"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        AlbertBackbone(**{**SMALL, **changes})
