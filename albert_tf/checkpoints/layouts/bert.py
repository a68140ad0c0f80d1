"""Names that both families of TF1 checkpoints have in common with BERT."""

from __future__ import annotations

from albert_tf.checkpoints.layout import Tensors, transposed

WEIGHTS: dict[str, dict[str, str | Tensors]] = {
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
RENAMES = (
    (r"^module/", ""),
    (r"^(?:classifier|loss)/(output_(?:weights|bias))$", r"\1"),
)

CONFIG_FIELDS = {
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

SPELLINGS: dict[str, dict] = {
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
DEFAULTS = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}

SIZES = {
    "bert/embeddings/word_embeddings": ("vocab_size", "embedding_size"),
    "bert/embeddings/position_embeddings": ("max_position_embeddings", None),
    "bert/embeddings/token_type_embeddings": ("type_vocab_size", None),
    "bert/pooler/dense/kernel": ("hidden_size", "hidden_size"),
}

OTHERS = {
    "optimizer": (
        r"/(adam|lamb|lars|adafactor)_(m|v)(_\d+)?$|/Adam(_\d+)?$|/Momentum$"
        r"|^beta\d_power(_\d+)?$"
    ),
    "step": r"^global_step$",
    "head": r"^(cls|classifier|loss)/|^output_(weights|bias)$",
}
