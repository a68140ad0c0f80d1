"""TensorFlow 1: google-research/albert and brightmart/albert_zh.

The `*_google` releases of albert_zh have the names of google-research/albert.
"""

from __future__ import annotations

from albert_tf.checkpoints.layout import (
    Layout,
    Tensors,
    query_key_value,
    transposed,
)

_WEIGHTS: dict[str, dict[str, str | Tensors]] = {
    "embedding": {
        "token_table": "bert/embeddings/word_embeddings",
        "segment_table": "bert/embeddings/token_type_embeddings",
        "position_table": "bert/embeddings/position_embeddings",
        "layer_norm.gamma": "bert/embeddings/LayerNorm/gamma",
        "layer_norm.beta": "bert/embeddings/LayerNorm/beta",
    },
    "pooler": {
        "kernel": "bert/pooler/dense/kernel",
        "bias": "bert/pooler/dense/bias",
    },
    "masked_lm_head": {
        "dense.kernel": "cls/predictions/transform/dense/kernel",
        "dense.bias": "cls/predictions/transform/dense/bias",
        "layer_norm.gamma": "cls/predictions/transform/LayerNorm/gamma",
        "layer_norm.beta": "cls/predictions/transform/LayerNorm/beta",
        "bias": "cls/predictions/output_bias",
    },
    # `create_v1_model` of google-research/albert `squad_utils.py`.
    "span_head": {
        "kernel": transposed("cls/squad/output_weights"),
        "bias": "cls/squad/output_bias",
    },
    "sop_head": {
        "kernel": transposed("cls/seq_relationship/output_weights"),
        "bias": "cls/seq_relationship/output_bias",
    },
    # `create_model` of `run_classifier.py` and `race_utils.py`, and the taggers that
    # people derived from them.
    **dict.fromkeys(
        ("classifier", "choice_head", "regressor", "token_classifier"),
        {"kernel": transposed("output_weights"), "bias": "output_bias"},
    ),
}

# A TF-Hub module has the whole graph in a scope; some scripts have the head in one.
_RENAMES = (
    (r"^module/", ""),
    (r"^(?:classifier|loss)/(output_(?:weights|bias))$", r"\1"),
)

_CONFIG_FIELDS = {
    "vocab_size": ("vocabulary_size",),
    "num_hidden_layers": ("num_layers",),
    "num_attention_heads": ("num_heads",),
    "embedding_size": ("embedding_dim",),
    "hidden_size": ("hidden_dim",),
    "intermediate_size": ("intermediate_dim",),
    "hidden_act": ("activation",),
    "hidden_dropout_prob": ("hidden_dropout",),
    "attention_probs_dropout_prob": ("attention_dropout",),
    "max_position_embeddings": ("max_sequence_length",),
    "type_vocab_size": ("num_segments",),
}

_SPELLINGS: dict[str, dict] = {
    # Both code bases compute "gelu" by its tanh approximation.
    "hidden_act": {
        "gelu": "gelu_approximate",
        "gelu_new": "gelu_approximate",
        "relu": "relu",
        "tanh": "tanh",
        "linear": "linear",
    },
    "ln_type": {"postln": False, "preln": True},
}

# The defaults of `AlbertConfig` / `BertConfig` in the original `modeling.py`,
# for the fields that no tensor depends on.
_DEFAULTS = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}

_OTHERS = {
    "optimizer": (
        r"/(adam|lamb|lars|adafactor)_(m|v)(_\d+)?$|/Adam(_\d+)?$|/Momentum$"
        r"|^beta\d_power(_\d+)?$"
    ),
    "step": r"^global_step$",
    "head": r"^(cls|classifier|loss)/|^output_(weights|bias)$",
}

# === google-research/albert ===

_GOOGLE_BLOCK = "bert/encoder/transformer/group_{group}/inner_group_{inner}"
_GOOGLE_SELF = f"{_GOOGLE_BLOCK}/attention_1/self"
_GOOGLE_FFN = f"{_GOOGLE_BLOCK}/ffn_1/intermediate"

GOOGLE = Layout(
    name="google",
    signature="bert/encoder/transformer/group_",
    weights={
        **_WEIGHTS,
        "embedding": {
            **_WEIGHTS["embedding"],
            "projection.kernel": "bert/encoder/embedding_hidden_mapping_in/kernel",
            "projection.bias": "bert/encoder/embedding_hidden_mapping_in/bias",
        },
        "attention": {
            "query_key_value.kernel": query_key_value(f"{_GOOGLE_SELF}/*/kernel"),
            "query_key_value.bias": query_key_value(f"{_GOOGLE_SELF}/*/bias"),
            "output_dense.kernel": f"{_GOOGLE_BLOCK}/attention_1/output/dense/kernel",
            "output_dense.bias": f"{_GOOGLE_BLOCK}/attention_1/output/dense/bias",
            "layer_norm.gamma": f"{_GOOGLE_BLOCK}/LayerNorm/gamma",
            "layer_norm.beta": f"{_GOOGLE_BLOCK}/LayerNorm/beta",
        },
        "feed_forward": {
            "intermediate_dense.kernel": f"{_GOOGLE_FFN}/dense/kernel",
            "intermediate_dense.bias": f"{_GOOGLE_FFN}/dense/bias",
            "output_dense.kernel": f"{_GOOGLE_FFN}/output/dense/kernel",
            "output_dense.bias": f"{_GOOGLE_FFN}/output/dense/bias",
            "layer_norm.gamma": f"{_GOOGLE_BLOCK}/LayerNorm_1/gamma",
            "layer_norm.beta": f"{_GOOGLE_BLOCK}/LayerNorm_1/beta",
        },
    },
    config_fields={
        **_CONFIG_FIELDS,
        "num_hidden_groups": ("num_attention_groups", "num_ffn_groups"),
        "inner_group_num": ("num_inner_repetitions",),
    },
    defaults={**_DEFAULTS, "num_hidden_groups": 1, "inner_group_num": 1},
    spellings=_SPELLINGS,
    fixed={"embedding_projection": "after_layer_norm", "normalize_first": False},
    renames=_RENAMES,
    others=_OTHERS,
)

# === brightmart/albert_zh, post-LN and pre-LN ===

_ZH_BLOCK = "bert/encoder/layer_shared"
_ZH_SELF = f"{_ZH_BLOCK}/attention/self"

ALBERT_ZH = Layout(
    name="albert_zh",
    signature="bert/encoder/layer_shared/",
    weights={
        **_WEIGHTS,
        "embedding": {
            **_WEIGHTS["embedding"],
            "projection.kernel": "bert/embeddings/word_embeddings_2",
        },
        "attention": {
            "query_key_value.kernel": query_key_value(f"{_ZH_SELF}/*/kernel"),
            "query_key_value.bias": query_key_value(f"{_ZH_SELF}/*/bias"),
            "output_dense.kernel": f"{_ZH_BLOCK}/attention/output/dense/kernel",
            "output_dense.bias": f"{_ZH_BLOCK}/attention/output/dense/bias",
            "layer_norm.gamma": f"{_ZH_BLOCK}/attention/output/LayerNorm/gamma",
            "layer_norm.beta": f"{_ZH_BLOCK}/attention/output/LayerNorm/beta",
        },
        "feed_forward": {
            "intermediate_dense.kernel": f"{_ZH_BLOCK}/intermediate/dense/kernel",
            "intermediate_dense.bias": f"{_ZH_BLOCK}/intermediate/dense/bias",
            "output_dense.kernel": f"{_ZH_BLOCK}/output/dense/kernel",
            "output_dense.bias": f"{_ZH_BLOCK}/output/dense/bias",
            "layer_norm.gamma": f"{_ZH_BLOCK}/output/LayerNorm/gamma",
            "layer_norm.beta": f"{_ZH_BLOCK}/output/LayerNorm/beta",
        },
    },
    config_fields={**_CONFIG_FIELDS, "ln_type": ("normalize_first",)},
    # The variable names are the same for both; a config without the field is post-LN.
    defaults={**_DEFAULTS, "ln_type": "postln"},
    spellings=_SPELLINGS,
    fixed={
        "embedding_projection": "before_layer_norm",
        "num_attention_groups": 1,
        "num_ffn_groups": 1,
        "num_inner_repetitions": 1,
    },
    renames=_RENAMES,
    others=_OTHERS,
)
