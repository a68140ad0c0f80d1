"""brightmart/albert_zh: `layer_shared`, post-LN and pre-LN."""

from albert_tf.checkpoints.layout import Layout, query_key_value
from albert_tf.checkpoints.layouts import bert

_BLOCK = "bert/encoder/layer_shared"
_SELF = f"{_BLOCK}/attention/self"

ALBERT_ZH = Layout(
    name="albert_zh",
    signature="bert/encoder/layer_shared/",
    weights={
        **bert.WEIGHTS,
        "embedding": {
            **bert.WEIGHTS["embedding"],
            "projection.kernel": "bert/embeddings/word_embeddings_2",
        },
        "attention": {
            "query_key_value.kernel": query_key_value(f"{_SELF}/*/kernel"),
            "query_key_value.bias": query_key_value(f"{_SELF}/*/bias"),
            "output_dense.kernel": f"{_BLOCK}/attention/output/dense/kernel",
            "output_dense.bias": f"{_BLOCK}/attention/output/dense/bias",
            "layer_norm.gamma": f"{_BLOCK}/attention/output/LayerNorm/gamma",
            "layer_norm.beta": f"{_BLOCK}/attention/output/LayerNorm/beta",
        },
        "feed_forward": {
            "intermediate_dense.kernel": f"{_BLOCK}/intermediate/dense/kernel",
            "intermediate_dense.bias": f"{_BLOCK}/intermediate/dense/bias",
            "output_dense.kernel": f"{_BLOCK}/output/dense/kernel",
            "output_dense.bias": f"{_BLOCK}/output/dense/bias",
            "layer_norm.gamma": f"{_BLOCK}/output/LayerNorm/gamma",
            "layer_norm.beta": f"{_BLOCK}/output/LayerNorm/beta",
        },
    },
    config_fields={**bert.CONFIG_FIELDS, "ln_type": ("normalize_first",)},
    # The variable names are the same for both; a config without the field is post-LN.
    defaults={**bert.DEFAULTS, "ln_type": "postln"},
    spellings=bert.SPELLINGS,
    sizes={
        **bert.SIZES,
        "bert/embeddings/word_embeddings_2": ("embedding_size", "hidden_size"),
        f"{_BLOCK}/intermediate/dense/bias": ("intermediate_size",),
    },
    fixed={
        "embedding_projection": "before_layer_norm",
        "num_attention_groups": 1,
        "num_ffn_groups": 1,
        "num_inner_repetitions": 1,
    },
    renames=bert.RENAMES,
    others=bert.OTHERS,
)
