"""KerasHub's `AlbertBackbone`, by the paths of its variables."""

from albert_tf.checkpoints.layout import (
    Layout,
    Tensors,
    dense,
    layer_norm,
    query_key_value,
)
from albert_tf.checkpoints.layouts.original import GOOGLE

_BLOCK = "group_{group}_inner_layer_{inner}"
_SELF = f"{_BLOCK}/self_attention_layer"
_OUTPUT = f"{_SELF}/attention_output"

KERASHUB = Layout(
    name="kerashub",
    signature="inner_layer_0/self_attention_layer/",
    weights={
        "embedding": {
            "token_table": "token_embedding/embeddings",
            "segment_table": "segment_embedding/embeddings",
            "position_table": "position_embedding/embeddings",
            **layer_norm("embeddings_layer_norm"),
            **dense("embedding_projection", "projection."),
        },
        "attention": {
            **query_key_value(f"{_SELF}/*/kernel", f"{_SELF}/*/bias", heads_axis=-1),
            "output_dense.kernel": Tensors((f"{_OUTPUT}/kernel",), heads_axis=0),
            "output_dense.bias": f"{_OUTPUT}/bias",
            **layer_norm(f"{_BLOCK}/self_attention_layer_norm"),
        },
        "feed_forward": {
            **dense(f"{_BLOCK}/feedforward_intermediate_dense", "intermediate_dense."),
            **dense(f"{_BLOCK}/feedforward_output_dense", "output_dense."),
            **layer_norm(f"{_BLOCK}/feedforward_layer_norm"),
        },
        "pooler": dense("pooled_dense"),
        "classifier": dense("logits"),
    },
    config_fields={
        "vocabulary_size": ("vocabulary_size",),
        "num_layers": ("num_layers",),
        "num_heads": ("num_heads",),
        "embedding_dim": ("embedding_dim",),
        "hidden_dim": ("hidden_dim",),
        "intermediate_dim": ("intermediate_dim",),
        "num_inner_repetitions": ("num_inner_repetitions",),
        "max_sequence_length": ("max_sequence_length",),
        "num_segments": ("num_segments",),
        "num_groups": ("num_attention_groups", "num_ffn_groups"),
        "dropout": ("hidden_dropout", "attention_dropout"),
    },
    fixed={**GOOGLE.fixed, "activation": "gelu_approximate"},
    # Its masked language model is not read: its LayerNorm has another epsilon.
    others={"head": r"^(mlm_head|masked_lm_head|logits)/"},
)
