"""TensorFlow 1: google-research/albert and brightmart/albert_zh.

The `*_google` releases of albert_zh have the names of google-research/albert.
"""

from albert_tf.checkpoints.layout import (
    Layout,
    Tensors,
    dense,
    layer_norm,
    query_key_value,
    transposed,
)


def _output(scope: str) -> dict[str, str | Tensors]:
    """Return the rows of a head."""
    kernel = transposed(f"{scope}output_weights")
    return {"kernel": kernel, "bias": f"{scope}output_bias"}


_WEIGHTS: dict[str, dict[str, str | Tensors]] = {
    "embedding": {
        "token_table": "bert/embeddings/word_embeddings",
        "segment_table": "bert/embeddings/token_type_embeddings",
        "position_table": "bert/embeddings/position_embeddings",
        **layer_norm("bert/embeddings/LayerNorm"),
    },
    "pooler": dense("bert/pooler/dense"),
    "masked_lm_head": {
        **dense("cls/predictions/transform/dense", "dense."),
        **layer_norm("cls/predictions/transform/LayerNorm"),
        "bias": "cls/predictions/output_bias",
    },
    # `create_v1_model` of google-research/albert `squad_utils.py`.
    "span_head": _output("cls/squad/"),
    "sop_head": _output("cls/seq_relationship/"),
    # `create_model` of `run_classifier.py` and `race_utils.py`, and the taggers that
    # people derived from them.
    **dict.fromkeys(
        ("classifier", "choice_head", "regressor", "token_classifier"), _output("")
    ),
}

# Some scripts have the head in a scope.
_RENAMES = ((r"^(?:classifier|loss)/(output_(?:weights|bias))$", r"\1"),)
# A TF-Hub module, and the model of a larger graph, have all of it in one.
_ROOT = "bert/encoder/"

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
        r"|(^|/)beta\d_power(_\d+)?$"
    ),
    "step": r"^global_step$",
    # Variables without a name are mostly accumulated gradients.
    "training state": r"(^|/)Variable(_\d+)?$|loss_scale|accum",
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
            **dense("bert/encoder/embedding_hidden_mapping_in", "projection."),
        },
        "attention": {
            **query_key_value(f"{_GOOGLE_SELF}/*/kernel", f"{_GOOGLE_SELF}/*/bias"),
            **dense(f"{_GOOGLE_BLOCK}/attention_1/output/dense", "output_dense."),
            **layer_norm(f"{_GOOGLE_BLOCK}/LayerNorm"),
        },
        "feed_forward": {
            **dense(f"{_GOOGLE_FFN}/dense", "intermediate_dense."),
            **dense(f"{_GOOGLE_FFN}/output/dense", "output_dense."),
            **layer_norm(f"{_GOOGLE_BLOCK}/LayerNorm_1"),
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
    root=_ROOT,
    renames=_RENAMES,
    others=_OTHERS,
    encoder="^bert/",
    separator="/",
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
            **query_key_value(f"{_ZH_SELF}/*/kernel", f"{_ZH_SELF}/*/bias"),
            **dense(f"{_ZH_BLOCK}/attention/output/dense", "output_dense."),
            **layer_norm(f"{_ZH_BLOCK}/attention/output/LayerNorm"),
        },
        "feed_forward": {
            **dense(f"{_ZH_BLOCK}/intermediate/dense", "intermediate_dense."),
            **dense(f"{_ZH_BLOCK}/output/dense", "output_dense."),
            **layer_norm(f"{_ZH_BLOCK}/output/LayerNorm"),
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
    root=_ROOT,
    renames=_RENAMES,
    others=_OTHERS,
    encoder="^bert/",
    separator="/",
)
