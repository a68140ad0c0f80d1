"""The model that learns from records: masks, network and losses in one step."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.layers import WholeWordMaskGenerator
from albert_tf.layers.tensor_types import Tensor
from albert_tf.pretraining.training.head_losses import weighted_losses
from albert_tf.pretraining.training.network import features_of
from albert_tf.pretraining.training.step_model import StepModel

MASKS = ("mask_positions", "mask_ids", "mask_weights")
# Predictions per sequence beyond a quarter more than the rate: short sequences would
# else never mask a long word.
MORE_MASKS = 8

Batch = dict[str, Any]


class PretrainingModel(StepModel):
    """A network with both pretraining heads that masks the sequences of each batch.

    Args:
        network: an `AlbertPretrainer`, or the result of `build_network`.
        masks: a `WholeWordMaskGenerator`, or `None` for records that hold masks.
        heads: optional dict of the weight of the loss of each head, by default 1.

    Call arguments:
        batch: a dict of `PretrainingBatches`, without the axis of steps.

    Returns:
        See `StepModel`; the heads are `mlm_logits` and `sop_logits`.

    Reference:
        google-research/albert `run_pretraining.py`.
    """

    def __init__(
        self,
        network: keras.Model,
        masks: WholeWordMaskGenerator | None,
        heads: dict[str, float] | None = None,
    ):
        super().__init__(heads or dict.fromkeys(network.output, 1.0))
        self.network, self.masks = network, masks
        # Keras would build them by calling the model with a whole item.
        self.built = True
        if self.masks is not None:
            self.masks.built = True

    def call(self, batch: Batch, training: bool = False) -> dict[str, Tensor]:
        features, labels = self.masked(batch)
        outputs = self.network(features, training=training)
        return self.text_losses(outputs, labels, batch)

    def text_losses(
        self,
        outputs: dict[str, Tensor],
        labels: dict[str, Tensor],
        batch: Batch,
        guesses: dict[str, int] | None = None,
    ) -> dict[str, Tensor]:
        """Return the losses of masked words and sentence order; see `weighted_losses`.

        `guesses` are numbers by head.
        """
        guesses = guesses or {}
        sequence_weights = batch["weights"]
        losses = weighted_losses(
            outputs["mlm_logits"],
            labels["mask_ids"],
            labels["mask_weights"] * sequence_weights[:, None],
            "mlm_logits",
            guesses.get("mlm_logits"),
        )
        if "sop_logits" in outputs:
            losses |= weighted_losses(
                outputs["sop_logits"],
                batch["labels"],
                batch["has_order"] * sequence_weights,
                "sop_logits",
                guesses.get("sop_logits"),
            )
        return losses

    def masked(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the inputs of the network, and `mask_ids` and `mask_weights`."""
        features = features_of(batch)
        if self.masks is None:
            masks = {name: batch[name] for name in MASKS}
        else:
            masks = self.draw(batch)
            features["token_ids"] = masks["token_ids"]
        features["mask_positions"] = masks["mask_positions"]
        labels = {name: masks[name] for name in ("mask_ids", "mask_weights")}
        return features, labels

    def draw(self, batch: Batch) -> dict[str, Tensor]:
        """Draw masks, with few columns for short sequences."""
        generator: Any = self.masks
        width = batch["token_ids"].shape[1]
        columns = None
        if width is not None:
            rate = np.max(generator.mask_selection_rate)
            columns = math.ceil(min(1.25 * rate, 1.0) * width) + MORE_MASKS
        masks = generator(
            batch["token_ids"],
            batch["word_starts"],
            # Repeated for each sequence of the step.
            seed=batch["seed"][0],
            progress=batch["progress"][0],
            most=columns,
        )
        if width is None:
            # TensorFlow takes tensors of any width.
            counts = ops.sum(ops.cast(masks["mask_weights"], "int32"), axis=1)
            used = ops.maximum(ops.max(counts), 1)
            for name in MASKS:
                masks[name] = masks[name][:, :used]
        return masks
