"""KerasHub's `AlbertBackbone`, by the paths of its variables."""

from albert_tf.checkpoints.layout import Layout, Tensors, query_key_value
from albert_tf.checkpoints.layouts.original import GOOGLE

_BLOCK = "group_{group}_inner_layer_{inner}"
_SELF = f"{_BLOCK}/self_attention_layer"
_DENSE = f"{_BLOCK}/feedforward_intermediate_dense"

KERASHUB = Layout(
    name="kerashub",
    signature="inner_layer_0/self_attention_layer/",
    weights={
        "embedding": {
            "token_table": "token_embedding/embeddings",
            "segment_table": "segment_embedding/embeddings",
            "position_table": "position_embedding/embeddings",
            "layer_norm.gamma": "embeddings_layer_norm/gamma",
            "layer_norm.beta": "embeddings_layer_norm/beta",
            "projection.kernel": "embedding_projection/kernel",
            "projection.bias": "embedding_projection/bias",
        },
        "attention": {
            "query_key_value.kernel": query_key_value(
                f"{_SELF}/*/kernel", heads_axis=-1
            ),
            "query_key_value.bias": query_key_value(f"{_SELF}/*/bias", heads_axis=-1),
            "output_dense.kernel": Tensors(
                (f"{_SELF}/attention_output/kernel",), heads_axis=0
            ),
            "output_dense.bias": f"{_SELF}/attention_output/bias",
            "layer_norm.gamma": f"{_BLOCK}/self_attention_layer_norm/gamma",
            "layer_norm.beta": f"{_BLOCK}/self_attention_layer_norm/beta",
        },
        "feed_forward": {
            "intermediate_dense.kernel": f"{_DENSE}/kernel",
            "intermediate_dense.bias": f"{_DENSE}/bias",
            "output_dense.kernel": f"{_BLOCK}/feedforward_output_dense/kernel",
            "output_dense.bias": f"{_BLOCK}/feedforward_output_dense/bias",
            "layer_norm.gamma": f"{_BLOCK}/feedforward_layer_norm/gamma",
            "layer_norm.beta": f"{_BLOCK}/feedforward_layer_norm/beta",
        },
        "pooler": {"kernel": "pooled_dense/kernel", "bias": "pooled_dense/bias"},
        "classifier": {"kernel": "logits/kernel", "bias": "logits/bias"},
    },
    config_fields={
        "vocabulary_size": ("vocabulary_size",),
        "num_layers": ("num_layers",),
        "num_heads": ("num_heads",),
        "num_groups": ("num_attention_groups", "num_ffn_groups"),
        "num_inner_repetitions": ("num_inner_repetitions",),
        "embedding_dim": ("embedding_dim",),
        "hidden_dim": ("hidden_dim",),
        "intermediate_dim": ("intermediate_dim",),
        "dropout": ("hidden_dropout", "attention_dropout"),
        "max_sequence_length": ("max_sequence_length",),
        "num_segments": ("num_segments",),
    },
    fixed={**GOOGLE.fixed, "activation": "gelu_approximate"},
    # Its masked language model is not read: its LayerNorm has another epsilon.
    others={"head": r"^(mlm_head|masked_lm_head|logits)/"},
)
