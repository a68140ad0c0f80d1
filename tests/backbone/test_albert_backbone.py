"""The backbone: parameters, shared groups, outputs."""

from small_backbone import INPUTS, SMALL, are_close, small_backbone

from albert_tf.backbone import SIZES, AlbertBackbone


def test_english_sizes_have_the_released_number_of_parameters(no_weights):
    assert {
        name: AlbertBackbone(**size).count_params() for name, size in SIZES.items()
    } == {
        "albert_base_en": 11_683_584,
        "albert_large_en": 17_683_968,
        "albert_xlarge_en": 58_724_864,
        "albert_xxlarge_en": 222_595_584,
    }


def test_layers_and_inner_layers_run_in_googles_order():
    backbone = AlbertBackbone(
        **{**SMALL, "num_layers": 4},
        num_attention_groups=3,
        num_ffn_groups=2,
        num_inner_repetitions=2,
    )
    ran = [(x.attention, x.feed_forward) for x in backbone.encoder_blocks]
    attention, feed_forward = backbone.attention_blocks, backbone.feed_forward_blocks
    groups = [(0, 0), (0, 0), (1, 1), (2, 1)]
    assert ran == [
        (attention[first, inner], feed_forward[second, inner])
        for first, second in groups
        for inner in (0, 1)
    ]


def test_intermediates():
    backbone = small_backbone(num_inner_repetitions=2, normalize_first=True)
    expected = backbone(INPUTS)
    model = backbone.with_intermediates(attention_scores=True)
    outputs = model(INPUTS)
    # tests/checkpoints/test_golden.py compares them with the original's.
    assert len(outputs.pop("hidden_states")) == 3 * 2 + 1
    shapes = [x.shape for x in outputs.pop("attention_scores")]
    assert shapes == [(3, 4, 17, 17)] * (3 * 2)
    assert outputs.keys() == expected.keys() and are_close(outputs, expected)
    assert len(model.weights) == len(backbone.weights)
    assert backbone.with_intermediates()(INPUTS).keys() == {"hidden_states", *expected}
