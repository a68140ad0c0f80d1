"""google-research/albert, and albert_zh's `*_google` releases."""

from albert_tf.checkpoints.layout import Layout, query_key_value
from albert_tf.checkpoints.layouts import bert

_BLOCK = "bert/encoder/transformer/group_{group}/inner_group_{inner}"
_SELF = f"{_BLOCK}/attention_1/self"
_FFN = f"{_BLOCK}/ffn_1/intermediate"

GOOGLE = Layout(
    name="google",
    signature="bert/encoder/transformer/group_",
    weights={
        **bert.WEIGHTS,
        "embedding": {
            **bert.WEIGHTS["embedding"],
            "projection.kernel": "bert/encoder/embedding_hidden_mapping_in/kernel",
            "projection.bias": "bert/encoder/embedding_hidden_mapping_in/bias",
        },
        "attention": {
            "query_key_value.kernel": query_key_value(f"{_SELF}/*/kernel"),
            "query_key_value.bias": query_key_value(f"{_SELF}/*/bias"),
            "output_dense.kernel": f"{_BLOCK}/attention_1/output/dense/kernel",
            "output_dense.bias": f"{_BLOCK}/attention_1/output/dense/bias",
            "layer_norm.gamma": f"{_BLOCK}/LayerNorm/gamma",
            "layer_norm.beta": f"{_BLOCK}/LayerNorm/beta",
        },
        "feed_forward": {
            "intermediate_dense.kernel": f"{_FFN}/dense/kernel",
            "intermediate_dense.bias": f"{_FFN}/dense/bias",
            "output_dense.kernel": f"{_FFN}/output/dense/kernel",
            "output_dense.bias": f"{_FFN}/output/dense/bias",
            "layer_norm.gamma": f"{_BLOCK}/LayerNorm_1/gamma",
            "layer_norm.beta": f"{_BLOCK}/LayerNorm_1/beta",
        },
    },
    config_fields={
        **bert.CONFIG_FIELDS,
        "num_hidden_groups": ("num_attention_groups", "num_ffn_groups"),
        "inner_group_num": ("num_inner_repetitions",),
    },
    defaults={**bert.DEFAULTS, "num_hidden_groups": 1, "inner_group_num": 1},
    spellings=bert.SPELLINGS,
    sizes={
        **bert.SIZES,
        f"{_FFN}/dense/bias".format(group=0, inner=0): ("intermediate_size",),
    },
    fixed={"embedding_projection": "after_layer_norm", "normalize_first": False},
    same=(("num_attention_groups", "num_ffn_groups"),),
    renames=bert.RENAMES,
    others=bert.OTHERS,
)
