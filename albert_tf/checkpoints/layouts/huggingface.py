"""Hugging Face transformers: `AlbertModel` and the models with heads on it."""

from albert_tf.checkpoints.layout import Layout, Tensors, query_key_value, transposed
from albert_tf.checkpoints.layouts.original import GOOGLE

_EMBEDDINGS = "albert.embeddings"
_BLOCK = "albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
_SELF = f"{_BLOCK}.attention"


def _dense(name: str, attribute: str = "") -> dict[str, str | Tensors]:
    kernel = transposed(f"{name}.weight")
    return {f"{attribute}kernel": kernel, f"{attribute}bias": f"{name}.bias"}


def _layer_norm(name: str) -> dict[str, str | Tensors]:
    return {"layer_norm.gamma": f"{name}.weight", "layer_norm.beta": f"{name}.bias"}


HUGGINGFACE = Layout(
    name="huggingface",
    signature="albert_layer_groups.",
    weights={
        "embedding": {
            "token_table": f"{_EMBEDDINGS}.word_embeddings.weight",
            "segment_table": f"{_EMBEDDINGS}.token_type_embeddings.weight",
            "position_table": f"{_EMBEDDINGS}.position_embeddings.weight",
            **_layer_norm(f"{_EMBEDDINGS}.LayerNorm"),
            **_dense("albert.encoder.embedding_hidden_mapping_in", "projection."),
        },
        "attention": {
            # Transposing does not change the biases.
            **query_key_value(f"{_SELF}.*.weight", f"{_SELF}.*.bias", transpose=True),
            **_dense(f"{_SELF}.dense", "output_dense."),
            **_layer_norm(f"{_SELF}.LayerNorm"),
        },
        "feed_forward": {
            **_dense(f"{_BLOCK}.ffn", "intermediate_dense."),
            **_dense(f"{_BLOCK}.ffn_output", "output_dense."),
            **_layer_norm(f"{_BLOCK}.full_layer_layer_norm"),
        },
        "pooler": _dense("albert.pooler"),
        "masked_lm_head": {
            **_dense("predictions.dense", "dense."),
            **_layer_norm("predictions.LayerNorm"),
            "bias": "predictions.bias",
        },
        "sop_head": _dense("sop_classifier.classifier"),
        "span_head": _dense("qa_outputs"),
        **dict.fromkeys(
            ("classifier", "choice_head", "regressor", "token_classifier"),
            _dense("classifier"),
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
    # Lightning modules and those of people have the model in an attribute.
    root=r"((albert|bert)\.)?encoder\.albert_layer_groups\.",
    # torch.compile, several GPUs, FSDP, recomputed activations and DeepSpeed.
    wrappers=(
        r"(?<![^.])(_orig_mod|module|_fsdp_wrapped_module|_checkpoint_wrapped_module"
        r"|_forward_module)\."
    ),
    renames=(
        # People's own modules.
        (r"^bert\.(embeddings|encoder|pooler)\.", r"albert.\1."),
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
    encoder=r"^albert\.",
    separator=".",
)
