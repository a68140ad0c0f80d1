"""Hugging Face transformers: `AlbertModel` and the models with heads on it."""

from albert_tf.checkpoints.layout import Layout, query_key_value, transposed
from albert_tf.checkpoints.layouts.original import GOOGLE

_EMBEDDINGS = "albert.embeddings"
_PROJECTION = "albert.encoder.embedding_hidden_mapping_in"
_BLOCK = "albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
_SELF = f"{_BLOCK}.attention"

HUGGINGFACE = Layout(
    name="huggingface",
    signature="encoder.albert_layer_groups.",
    weights={
        "embedding": {
            "token_table": f"{_EMBEDDINGS}.word_embeddings.weight",
            "segment_table": f"{_EMBEDDINGS}.token_type_embeddings.weight",
            "position_table": f"{_EMBEDDINGS}.position_embeddings.weight",
            "layer_norm.gamma": f"{_EMBEDDINGS}.LayerNorm.weight",
            "layer_norm.beta": f"{_EMBEDDINGS}.LayerNorm.bias",
            "projection.kernel": transposed(f"{_PROJECTION}.weight"),
            "projection.bias": f"{_PROJECTION}.bias",
        },
        "attention": {
            "query_key_value.kernel": query_key_value(
                f"{_SELF}.*.weight", transpose=True
            ),
            "query_key_value.bias": query_key_value(f"{_SELF}.*.bias"),
            "output_dense.kernel": transposed(f"{_SELF}.dense.weight"),
            "output_dense.bias": f"{_SELF}.dense.bias",
            "layer_norm.gamma": f"{_SELF}.LayerNorm.weight",
            "layer_norm.beta": f"{_SELF}.LayerNorm.bias",
        },
        "feed_forward": {
            "intermediate_dense.kernel": transposed(f"{_BLOCK}.ffn.weight"),
            "intermediate_dense.bias": f"{_BLOCK}.ffn.bias",
            "output_dense.kernel": transposed(f"{_BLOCK}.ffn_output.weight"),
            "output_dense.bias": f"{_BLOCK}.ffn_output.bias",
            "layer_norm.gamma": f"{_BLOCK}.full_layer_layer_norm.weight",
            "layer_norm.beta": f"{_BLOCK}.full_layer_layer_norm.bias",
        },
        "pooler": {
            "kernel": transposed("albert.pooler.weight"),
            "bias": "albert.pooler.bias",
        },
        "masked_lm_head": {
            "dense.kernel": transposed("predictions.dense.weight"),
            "dense.bias": "predictions.dense.bias",
            "layer_norm.gamma": "predictions.LayerNorm.weight",
            "layer_norm.beta": "predictions.LayerNorm.bias",
            "bias": "predictions.bias",
        },
        "sop_head": {
            "kernel": transposed("sop_classifier.classifier.weight"),
            "bias": "sop_classifier.classifier.bias",
        },
        "span_head": {
            "kernel": transposed("qa_outputs.weight"),
            "bias": "qa_outputs.bias",
        },
        **dict.fromkeys(
            ("classifier", "choice_head", "regressor", "token_classifier"),
            {"kernel": transposed("classifier.weight"), "bias": "classifier.bias"},
        ),
    },
    config_fields=GOOGLE.config_fields,
    # `AlbertConfig` of transformers.
    defaults={**GOOGLE.defaults, "hidden_act": "gelu_new"},
    spellings={
        # "gelu" is the exact function here, unlike in the original configs. Of several
        # names of a function the first is written.
        "hidden_act": {
            "gelu_new": "gelu_approximate",
            "gelu_pytorch_tanh": "gelu_approximate",
            "gelu_python_tanh": "gelu_approximate",
            "gelu_fast": "gelu_approximate",
            "gelu_accurate": "gelu_approximate",
            "gelu": "gelu",
            "gelu_python": "gelu",
            "hardswish": "hard_silu",
            "silu": "silu",
            "swish": "silu",
            **{x: x for x in ("linear", "mish", "relu", "relu6", "sigmoid", "tanh")},
        },
    },
    fixed=GOOGLE.fixed,
    constants={
        "model_type": "albert",
        "layer_norm_eps": 1e-12,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
    },
    renames=(
        # `AlbertModel` is saved without the prefix that models with heads add.
        (r"^(embeddings|encoder|pooler)\.", r"albert.\1."),
        # Files converted by early versions.
        (r"LayerNorm\.gamma$", "LayerNorm.weight"),
        (r"LayerNorm\.beta$", "LayerNorm.bias"),
    ),
    others={
        # Copies of the word embeddings and of the bias.
        "tied": r"^predictions\.decoder\.",
        "buffer": r"\.(position_ids|token_type_ids)$",
        "head": r"^(predictions|sop_classifier|classifier|qa_outputs)\.",
    },
)
