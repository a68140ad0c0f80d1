import warnings

import keras
import keras_hub

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.backbone.presets import ReadablePresets
from albert_tf.checkpoints import open_checkpoint
from albert_tf.layers import MaskedLMHead
from albert_tf.layers.common import albert_initializer
from albert_tf.training import adamw


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertPretrainer(ReadablePresets, keras_hub.models.Task):
    """ALBERT with its two pretraining heads: masked words and sentence order.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: `None`; the model takes ids.
        num_sop_classes: int. Classes of the sentence-order head: 2 (in order or
            swapped), or another number; 0 for a model without the head, a masked
            language model.
        compile: bool. Compile with AdamW and the sum of both losses.

    Inputs:
        The dict `AlbertBackbone` takes, and `mask_positions`, an int32 tensor
        [batch, predictions]: the positions to predict.

    Returns:
        A dict of logits: `mlm_logits` [batch, predictions, vocabulary_size] and
        `sop_logits` [batch, 2], class 0 = in order, 1 = swapped.

    Example:
    ```python
    pretrainer = albert_tf.models.AlbertPretrainer.from_checkpoint("albert_tiny_zh")
    ```

    Reference:
        [ALBERT, section 3.1](https://arxiv.org/abs/1909.11942);
        google-research/albert `run_pretraining.py`.
    """

    backbone_cls = AlbertBackbone
    preprocessor_cls = None
    heads = ("masked_lm_head", "sop_head")

    def __init__(self, backbone, preprocessor=None, num_sop_classes=2, **kwargs):
        if num_sop_classes and backbone.pooled_dense is None:
            raise ValueError(
                "The backbone has no pooler, which the sentence-order head reads. Give "
                "num_sop_classes=0 for a model without that head."
            )

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.masked_lm_head = MaskedLMHead(
            backbone.embedding,
            activation=backbone.activation,
            dtype=backbone.dtype_policy,
            name="mlm_logits",
        )
        self.num_sop_classes = num_sop_classes
        self.sop_head = None
        if num_sop_classes:
            self.sop_head = keras.layers.Dense(
                num_sop_classes,
                kernel_initializer=albert_initializer(),
                # In float32 at least, as the MLM head: the loss is taken of it.
                dtype=keras.backend.result_type(
                    backbone.dtype_policy.compute_dtype, "float32"
                ),
                name="sop_logits",
            )

        # === Functional Model ===
        inputs = {
            **backbone.input,
            "mask_positions": keras.Input(
                (None,), dtype="int32", name="mask_positions"
            ),
        }
        hidden = backbone(backbone.input)
        outputs = {
            "mlm_logits": self.masked_lm_head(
                hidden["sequence_output"], inputs["mask_positions"]
            ),
        }
        if self.sop_head is not None:
            outputs["sop_logits"] = self.sop_head(hidden["pooled_output"])
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    def compile(self, optimizer="auto", loss="auto", *, metrics="auto", **kwargs):
        """Configure training; as `keras.Model.compile`, with defaults.

        Args:
            optimizer: `"auto"` for AdamW at 1e-4, or anything Keras takes.
            loss: `"auto"` for the sum of both cross-entropies.
            metrics: `"auto"` for the accuracy of both heads, weighted as the losses,
                as `mlm_logits_accuracy` and `sop_logits_accuracy`.
            **kwargs: passed on to `keras.Model.compile`. On TensorFlow `jit_compile` is
                `False` unless given: on a CPU, XLA makes training slower (measured; on
                JAX, training without it is slower).
        """
        heads = list(self.output)
        if optimizer == "auto":
            optimizer = adamw(1e-4)
        if loss == "auto":
            loss = {
                head: keras.losses.SparseCategoricalCrossentropy(from_logits=True)
                for head in heads
            }
        if metrics == "auto":
            metrics = None
            # Keras puts the head before the name only if there are several.
            name = "accuracy" if len(heads) > 1 else f"{heads[0]}_accuracy"
            accuracies = {
                head: keras.metrics.SparseCategoricalAccuracy(name=name)
                for head in heads
            }
            kwargs.setdefault("weighted_metrics", accuracies)
        if keras.backend.backend() == "tensorflow":
            kwargs.setdefault("jit_compile", False)
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    @classmethod
    def from_checkpoint(
        cls, path, config=None, dtype=None, num_sop_classes=None, **kwargs
    ):
        """Build the model from a checkpoint, heads included.

        Args:
            path: what `albert_tf.load_checkpoint` takes.
            config: optional path or dict. By default the config beside it.
            dtype: optional string or `keras.DTypePolicy` to compute in.
            num_sop_classes: optional int. By default as many as the checkpoint's
                sentence-order head has, 0 if it has none, as those of Google's
                TF-Hub modules and of masked language models. Where it has another
                number, the head is new, with random weights, which a warning says.
            **kwargs: passed on to `AlbertPretrainer`.

        Returns:
            An `AlbertPretrainer` whose every weight came from the checkpoint.

        Raises:
            albert_tf.checkpoints.CheckpointError: if a file is missing or
                damaged, or a weight of the model is not in the checkpoint.
        """
        checkpoint = open_checkpoint(path, config=config)
        return cls.from_opened(checkpoint, dtype, num_sop_classes, **kwargs)

    @classmethod
    def from_opened(cls, checkpoint, dtype=None, num_sop_classes=None, **kwargs):
        """`from_checkpoint` of an `albert_tf.checkpoints.Checkpoint`."""
        found = checkpoint.num_classes("sop_head")
        if num_sop_classes is None:
            num_sop_classes = found
        new_heads = ["sop_head"] if num_sop_classes not in (0, found) else []
        if new_heads:
            warnings.warn(
                f"The sentence-order head of {checkpoint.path} has {found} classes, "
                f"not {num_sop_classes}: the model begins with a new one.",
                stacklevel=3,
            )
        # Nothing but the sentence-order head reads the pooler.
        pooler = num_sop_classes > 0 or checkpoint.has_pooler
        backbone = checkpoint.build_backbone(dtype=dtype, pooler=pooler)
        model = cls(backbone, num_sop_classes=num_sop_classes, **kwargs)
        checkpoint.load_into(model, new_heads)
        return model

    def get_config(self):
        return {**super().get_config(), "num_sop_classes": self.num_sop_classes}
