import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub

from albert_tf.backbone.encoder_blocks import encoder_blocks, group_of_layer
from albert_tf.backbone.lora import (
    adaptation_of,
    check_layer_names,
    read_adaptation,
    train_low_rank_weights,
    write_adaptation,
)
from albert_tf.backbone.presets import Presets
from albert_tf.files import check_space, complete_file
from albert_tf.layers import (
    AttentionBlock,
    FactorizedEmbedding,
    FeedForwardBlock,
    TokenEmbedding,
)
from albert_tf.layers.activations import Activation, get_activation
from albert_tf.layers.arguments import arguments_of, check_sizes
from albert_tf.layers.dense import dense
from albert_tf.layers.private_keras import freeze, inner_layers
from albert_tf.layers.tensor_types import Policy, Tensor
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_downloaded, read_bytes


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertBackbone(Presets, keras_hub.models.Backbone):
    """ALBERT encoder as a functional model.

    Parameters are shared across layers in groups of consecutive layers, the
    attention half and the feed-forward half independently:

    | shared | `num_attention_groups` | `num_ffn_groups` |
    |---|---|---|
    | all (ALBERT) | 1 | 1 |
    | attention only | 1 | `num_layers` |
    | feed-forward only | `num_layers` | 1 |
    | nothing (BERT) | `num_layers` | `num_layers` |

    If all is shared, the model calls one `EncoderBlock` `num_layers` times.

    Args:
        vocabulary_size: int. Rows of the token table.
        num_layers: int. Number of layers, of `num_inner_repetitions` blocks each.
        num_heads: int. Attention heads; must divide `hidden_dim`.
        embedding_dim: int. Width of the token table (the paper's E).
        hidden_dim: int. Width of the hidden states (the paper's H).
        intermediate_dim: int. Width inside the feed-forward half.
        num_attention_groups: int. Distinct attention halves over the layers.
        num_ffn_groups: int. Distinct feed-forward halves over the layers.
        num_inner_repetitions: int. Distinct blocks inside each layer (Google's
            `inner_group_num`).
        embedding_projection: `"before_layer_norm"` (albert_zh) or
            `"after_layer_norm"` (Google). See `FactorizedEmbedding`.
        normalize_first: bool. Pre-LN blocks. As in albert_zh, no LayerNorm follows
            the last one.
        activation: string or callable. `"gelu_approximate"` (called "gelu" in the
            original configs), or any Keras activation.
        hidden_dropout: float. Dropout rate; 0 by default, as in the paper.
        attention_dropout: float. Dropout rate of the attention probabilities.
        max_sequence_length: int. Rows of the position table, in tokens.
        num_segments: int. Rows of the segment (token type) table.
        pooler: bool. `False` for a model without `pooled_output`, as masked
            language models and taggers are often saved.
        fine_tuning: optional dict, the settings that suit the weights, which tasks
            take as defaults: `learning_rate`, and `pooling_mode` of classifiers and
            regressors.
        dtype: string or `keras.DTypePolicy`, such as `"mixed_bfloat16"`.

    Inputs:
        A dict of int32 tensors [batch, time]: `token_ids`, `segment_ids` (0 for
        the first text, 1 for the second), `padding_mask` (1 for a token, 0 for
        padding).

    Returns:
        A dict: `sequence_output` [batch, time, hidden_dim] and, with `pooler`,
        `pooled_output` [batch, hidden_dim] (a dense tanh layer at the first position).

    Raises:
        AlbertError: if `num_heads` does not divide `hidden_dim`, the number of
            groups is not between 1 and `num_layers`, or `fine_tuning` has other keys.

    Example:
    ```python
    backbone = albert_tf.models.AlbertBackbone(
        vocabulary_size=21128, num_layers=4, num_heads=12,
        embedding_dim=128, hidden_dim=312, intermediate_dim=1248,
    )
    ids = np.array([[101, 2769, 2682, 102]])
    backbone({
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
    })
    ```

    Reference:
        [ALBERT](https://arxiv.org/abs/1909.11942), sections 3.1 and 4.5;
        google-research/albert `modeling.py`.
    """

    pipeline_tag = "feature-extraction"
    summaries = ("encodes tokens, to be fine-tuned", "编码 token 和微调")
    # The LiteRT export replaces the embedding.
    embedding_cls = FactorizedEmbedding

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        embedding_dim: int,
        hidden_dim: int,
        intermediate_dim: int,
        num_attention_groups: int = 1,
        num_ffn_groups: int = 1,
        num_inner_repetitions: int = 1,
        embedding_projection: str = "before_layer_norm",
        normalize_first: bool = False,
        activation: Activation = "gelu_approximate",
        hidden_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        pooler: bool = True,
        fine_tuning: dict[str, Any] | None = None,
        dtype: Policy = None,
        **kwargs: Any,
    ):
        check_sizes(
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            num_heads=num_heads,
            embedding_dim=embedding_dim,
            hidden_dim=hidden_dim,
            intermediate_dim=intermediate_dim,
            num_inner_repetitions=num_inner_repetitions,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
        )
        # === Layers ===
        self.embedding = self.embedding_cls(
            vocabulary_size,
            embedding_dim,
            hidden_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            projection=embedding_projection,
            dropout=hidden_dropout,
            dtype=dtype,
            name="embedding",
        )
        self.encoder_blocks = encoder_blocks(
            num_layers,
            num_attention_groups,
            num_ffn_groups,
            num_inner_repetitions,
            attention=dict(num_heads=num_heads, attention_dropout=attention_dropout),
            feed_forward=dict(intermediate_dim=intermediate_dim, activation=activation),
            hidden_dropout=hidden_dropout,
            normalize_first=normalize_first,
            dtype=dtype,
        )
        self.pooled_dense = None
        if pooler:
            self.pooled_dense = dense(
                hidden_dim, activation="tanh", dtype=dtype, name="pooled_dense"
            )

        # === Functional Model ===
        inputs = {
            name: keras.Input(shape=(None,), dtype="int32", name=name)
            for name in ("token_ids", "segment_ids", "padding_mask")
        }
        outputs, _ = self._encode(inputs)
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.num_attention_groups = num_attention_groups
        self.num_ffn_groups = num_ffn_groups
        self.num_inner_repetitions = num_inner_repetitions
        self.embedding_projection = embedding_projection
        self.normalize_first = normalize_first
        self.activation = get_activation(activation)
        self.hidden_dropout = hidden_dropout
        self.attention_dropout = attention_dropout
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.pooler = pooler
        self.fine_tuning = fine_tuning

    def _encode(self, inputs, attention_scores=False):
        """Return the outputs, and a dict of those of every layer."""
        mask = inputs["padding_mask"]
        states = [self.embedding(inputs["token_ids"], inputs["segment_ids"])]
        scores = []
        for block in self.encoder_blocks:
            if attention_scores:
                # By halves, because Keras expects all calls of one layer in a graph
                # to have the same number of outputs.
                attended, layer_scores = block.attention(
                    states[-1], padding_mask=mask, return_attention_scores=True
                )
                states.append(block.feed_forward(attended))
                scores.append(layer_scores)
            else:
                states.append(block(states[-1], padding_mask=mask))
        outputs = {"sequence_output": states[-1]}
        if self.pooled_dense is not None:
            outputs["pooled_output"] = self.pooled_dense(states[-1][:, 0, :])
        intermediates = {"hidden_states": states}
        if attention_scores:
            intermediates["attention_scores"] = scores
        return outputs, intermediates

    def with_intermediates(self, attention_scores: bool = False) -> keras.Model:
        """Return a functional model that shares the weights and returns all layers.

        Args:
            attention_scores: bool. Whether to return the attention probabilities, too.

        Returns:
            A `keras.Model` with the same inputs. Its outputs add `hidden_states`, a
            list of [batch, time, hidden_dim] of the embedding and each block, and
            optionally `attention_scores`, a list of [batch, num_heads, time, time] of
            each block.
        """
        outputs, intermediates = self._encode(self.input, attention_scores)
        return keras.Model(
            self.input, outputs | intermediates, name=f"{self.name}_intermediates"
        )

    def pool(self, inputs: dict[str, Tensor]) -> Tensor:
        """Compute `pooled_output` alone from the inputs of the model.

        The last block computes the first position only, which saves a quarter of the
        time of a model with four layers.

        Args:
            inputs: dict of int32 tensors [batch, time]: `token_ids`, `segment_ids` and
                `padding_mask`.

        Returns:
            A float tensor [batch, hidden_dim].

        Raises:
            AlbertError: if the model was built without pooler.
        """
        if self.pooled_dense is None:
            raise AlbertError(
                "This backbone has no pooler (`pooler=False`), but models of whole "
                "texts need it. `from_checkpoint` of a task starts a new one; "
                'pooling_mode="mean" of a classifier or regressor needs none.'
            )
        x = self.embedding(inputs["token_ids"], inputs["segment_ids"])
        *blocks, last = self.encoder_blocks
        for block in blocks:
            x = block(x, padding_mask=inputs["padding_mask"])
        x = last(x, padding_mask=inputs["padding_mask"], output_length=1)
        return self.pooled_dense(x[:, 0, :])

    @classmethod
    def from_preset(
        cls, preset: str | os.PathLike, load_weights: bool = True, **kwargs: Any
    ) -> "AlbertBackbone":
        """Build the backbone from a preset of this package.

        Args:
            preset: the directory of a preset; `albert_tf.load_checkpoint` loads
                checkpoints of other forms, releases and those on the Hugging Face Hub.
            load_weights: bool. `False` for random weights.
            **kwargs: further arguments of KerasHub, such as `dtype`.

        Raises:
            AlbertError: if it is not a preset of this package.
        """
        folder = pathlib.Path(preset)
        stored = _stored_class(folder / "config.json")
        if stored is None or not issubclass(stored, cls):
            raise AlbertError(
                f"{preset} is not a preset of albert-tf. Load checkpoints of other "
                "forms, releases and those on the Hugging Face Hub with "
                "albert_tf.load_checkpoint."
            )
        check_downloaded(*folder.glob("model*.weights.h5"))
        return super().from_preset(preset, load_weights=load_weights, **kwargs)

    def freeze_embeddings(self) -> None:
        """Freeze the embedding, because small data sets train few rows of its tables.

        This freezes the output weights of a masked language model, too, which are the
        token table. Compile a model with an optimizer of your own again afterwards.
        """
        freeze(self.embedding)

    # === Low-rank adaptation ===

    def default_lora_layer_names(self) -> list[str]:
        return ["query_key_value"]

    def enable_lora(
        self, rank: int, target_layer_names: Sequence[str] | None = None
    ) -> None:
        """Freeze all weights and add low-rank ones to some dense layers.

        A shared block is adapted once for all layers that run it. Compile a model with
        an optimizer of your own again afterwards. `backbone.trainable = False` freezes
        the low-rank weights, too; `True` after that trains all weights, as in Keras.

        Args:
            rank: int. Rank of the factorization.
            target_layer_names: optional strings, the names of the dense layers to
                adapt. By default `["query_key_value"]`, the inputs of attention.

        Raises:
            AlbertError: if there is no dense layer of a name.

        Reference:
            [LoRA](https://arxiv.org/abs/2106.09685)
        """
        names = target_layer_names or self.default_lora_layer_names()
        check_layer_names(self, names)
        super().enable_lora(rank, names)
        train_low_rank_weights(self)

    def save_lora_weights(self, filepath: str | os.PathLike) -> None:
        """Save the low-rank weights, their rank and the names of their layers."""
        check_space(filepath, self.trainable_variables)
        with complete_file(filepath) as temporary:
            super().save_lora_weights(temporary)
            write_adaptation(temporary, adaptation_of(self))

    def load_lora_weights(self, filepath: str | os.PathLike) -> None:
        """Load a file of `save_lora_weights`, and enable LoRA as in it if needed.

        Raises:
            AlbertError: if the backbone has LoRA of another rank or in other layers.
        """
        saved = read_adaptation(filepath)
        enabled = adaptation_of(self)
        if not enabled.layer_names:
            self.enable_lora(saved.rank, saved.layer_names)
        elif saved != enabled:
            raise AlbertError(
                f"{filepath} has rank {saved.rank} and the layers {saved.layer_names}, "
                f"this backbone {enabled.rank} and {enabled.layer_names}. Load it into "
                "a backbone without LoRA."
            )
        super().load_lora_weights(filepath)

    # === Distinct blocks ===

    @property
    def attention_blocks(self) -> dict[tuple[int, int], AttentionBlock]:
        """Return the distinct attention halves by (group, inner layer)."""
        return self._halves("attention", self.num_attention_groups)

    @property
    def feed_forward_blocks(self) -> dict[tuple[int, int], FeedForwardBlock]:
        """Return the distinct feed-forward halves by (group, inner layer)."""
        return self._halves("feed_forward", self.num_ffn_groups)

    def _halves(self, name, num_groups):
        halves = {}
        for i, block in enumerate(self.encoder_blocks):
            layer, inner = divmod(i, self.num_inner_repetitions)
            group = group_of_layer(layer, self.num_layers, num_groups)
            halves[group, inner] = getattr(block, name)
        return halves

    @property
    def token_embedding(self) -> TokenEmbedding:
        """Return the `keras.layers.Embedding` with the token table."""
        return self.embedding.token_embedding

    @property
    def fine_tuning(self) -> dict[str, Any]:
        """The settings that suit the weights, empty if none are known."""
        return dict(self._fine_tuning)

    @fine_tuning.setter
    def fine_tuning(self, settings: dict[str, Any] | None) -> None:
        settings = settings or {}
        if unknown := settings.keys() - {"learning_rate", "pooling_mode"}:
            raise AlbertError(
                "`fine_tuning` has `learning_rate` and `pooling_mode`. Received: "
                f"{sorted(unknown)}"
            )
        # Keras would track the content of a dict.
        self._fine_tuning = tuple(settings.items())

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(arguments_of(self, AlbertBackbone, "dtype"))
        quantized = [x for x in inner_layers(self) if x.quantization_mode]
        if quantized:
            # Instead of KerasHub's map of policies, which its presets do not keep.
            config["dtype"] = keras.dtype_policies.serialize(self.dtype_policy)
            modes = {layer.path: layer.quantization_mode for layer in quantized}
            config["quantized_layers"] = modes
        adapted = adaptation_of(self)
        if adapted.layer_names:
            config["lora"] = {
                "rank": adapted.rank,
                "target_layer_names": adapted.layer_names,
            }
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AlbertBackbone":
        config = dict(config)
        modes = config.pop("quantized_layers", {})
        low_rank = config.pop("lora", None)
        backbone = super().from_config(config)
        for layer in inner_layers(backbone):
            if layer.path in modes:
                layer.quantize(modes[layer.path])
        if low_rank:
            backbone.enable_lora(**low_rank)
            if not config.get("trainable", True):
                freeze(backbone)
        return backbone


def _stored_class(config: pathlib.Path) -> Any:
    """Return the class in the config of a preset, `None` without a known one."""
    content = read_bytes(config) if config.is_file() else b"{}"
    try:
        name = json.loads(content)["registered_name"]
    except (ValueError, LookupError, TypeError):
        return None
    return keras.saving.get_registered_object(name)
