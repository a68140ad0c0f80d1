"""The model that learns from records: masks, network and losses in one step."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.layers import WholeWordMaskGenerator
from albert_tf.layers.common import Tensor
from albert_tf.pretraining.network import features_of
from albert_tf.pretraining.step import StepModel, weighted_losses

MASKS = ("mask_positions", "mask_ids", "mask_weights")
# Predictions per sequence beyond a quarter more than the rate: short sequences would
# else never mask a long word.
MORE_MASKS = 8


class PretrainingModel(StepModel):
    """A network with both pretraining heads that masks the sequences of each batch.

    Args:
        network: an `AlbertPretrainer`, or the result of `build_network`.
        masks: a `WholeWordMaskGenerator`, or `None` for records that hold masks.

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
        for layer in (self, masks):
            if layer is not None:
                layer.built = True

    def call(self, batch: dict[str, Tensor], training: bool = False) -> Any:
        features, labels = self.masked(batch)
        outputs = self.network(features, training=training)
        return self.text_losses(outputs, labels, batch)

    def text_losses(
        self,
        outputs: dict[str, Tensor],
        labels: dict[str, Tensor],
        batch: dict[str, Tensor],
        guesses: dict[str, int] | None = None,
    ) -> dict[str, Tensor]:
        """Return the losses of masked words and sentence order; see `weighted_losses`.

        `guesses` are numbers by head.
        """
        truth = {
            "mlm_logits": (labels["mask_ids"], labels["mask_weights"]),
            "sop_logits": (batch["labels"], batch["has_order"]),
        }
        found: dict[str, Tensor] = {}
        for head, logits in outputs.items():
            y, weights = truth[head]
            rows = ops.reshape(batch["weights"], (-1, *[1] * (len(y.shape) - 1)))
            found |= weighted_losses(
                logits, y, weights * rows, head, (guesses or {}).get(head)
            )
        return found

    def masked(self, batch: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict]:
        """Return the inputs of the network, and `mask_ids` and `mask_weights`."""
        features = features_of(batch)
        found = {x: batch[x] for x in MASKS} if self.masks is None else self.draw(batch)
        features["token_ids"] = found.pop("token_ids", features["token_ids"])
        features["mask_positions"] = found.pop("mask_positions")
        return features, found

    def draw(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Draw masks, with few columns for short sequences."""
        masks: Any = self.masks
        width, most = batch["token_ids"].shape[1], None
        if width is not None:
            rate = np.max(masks.mask_selection_rate)
            most = math.ceil(min(1.25 * rate, 1.0) * width) + MORE_MASKS
        found = masks(
            batch["token_ids"],
            batch["word_starts"],
            # Repeated for each sequence of the step.
            seed=batch["seed"][0],
            progress=batch["progress"][0],
            most=most,
        )
        if width is None:
            # TensorFlow takes tensors of any width.
            used = ops.sum(ops.cast(found["mask_weights"], "int32"), axis=1)
            used = ops.maximum(ops.max(used), 1)
            found |= {name: found[name][:, :used] for name in MASKS}
        return found
