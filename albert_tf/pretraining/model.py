"""The model that learns from records: masks, network and losses in one step."""

import json
import math
import os
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.files import complete_file
from albert_tf.layers import MaskedLMHead, WholeWordMaskGenerator
from albert_tf.layers.common import Tensor, at_least_float32, dense
from albert_tf_lite.errors import AlbertError

MASKS = ("mask_positions", "mask_ids", "mask_weights")
# Predictions per sequence beyond a quarter more than the rate: short sequences would
# else never mask a long word.
MORE_MASKS = 8


def build_network(backbone: AlbertBackbone, num_sop_classes: int = 2) -> keras.Model:
    """Return the network of `AlbertPretrainer`, which needs TensorFlow, on any backend.

    Its variables have the paths of those of `AlbertPretrainer`.

    Args:
        backbone: an `AlbertBackbone`.
        num_sop_classes: int. Classes of sentence order; 0 for no such head.

    Returns:
        A `keras.Model` of `mlm_logits` [batch, masks, vocabulary] and `sop_logits`
        [batch, classes].

    Example:
    ```python
    network = albert_tf.pretraining.build_network(backbone)
    network.output["sop_logits"].shape
    ```
    """
    head = MaskedLMHead(
        backbone.embedding,
        activation=backbone.activation,
        dtype=backbone.dtype_policy,
        name="mlm_logits",
    )
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    hidden = backbone(backbone.input)
    outputs = {"mlm_logits": head(hidden["sequence_output"], positions)}
    if num_sop_classes:
        dtype = at_least_float32(backbone.compute_dtype)
        sop_head = dense(num_sop_classes, dtype=dtype, name="sop_logits")
        outputs["sop_logits"] = sop_head(hidden["pooled_output"])
    return keras.Model({**backbone.input, "mask_positions": positions}, outputs)


def write_weights(network: keras.Model, path: str | os.PathLike) -> None:
    """Write the weights of a network by their paths, and its sizes, to a `.npz` file.

    Args:
        network: an `AlbertPretrainer`, or the result of `build_network`.
        path: string, the file.

    Example:
    ```python
    albert_tf.pretraining.write_weights(pretrainer, "start.npz")
    network = albert_tf.pretraining.read_weights("start.npz")
    ```
    """
    config = json.dumps(backbone_of(network).get_config())
    arrays = {x.path: ops.convert_to_numpy(x) for x in network.weights}
    with complete_file(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, config=config, **arrays)


def read_weights(path: str | os.PathLike, num_sop_classes: int = 2) -> keras.Model:
    """Return the network in a file of `write_weights`.

    Args:
        path: string, the file.
        num_sop_classes: as for `build_network`.

    Raises:
        AlbertError: if a weight is missing or has another shape.
    """
    with np.load(path, allow_pickle=False) as arrays:
        config = json.loads(str(arrays["config"]))
        network = build_network(AlbertBackbone.from_config(config), num_sop_classes)
        shapes = {x: arrays[x].shape for x in arrays.files}
        wrong = [x.path for x in network.weights if shapes.get(x.path) != x.shape]
        if wrong:
            raise AlbertError(
                f"{path} does not have the weights of the network: {wrong[:3]}. Copy "
                "it again, or choose the file of another training."
            )
        for weight in network.weights:
            weight.assign(arrays[weight.path].astype("float32"))
    return network


def backbone_of(network: keras.Model) -> AlbertBackbone:
    """Return the encoder of a network."""
    return next(x for x in network.layers if isinstance(x, AlbertBackbone))


def weighted_losses(
    logits: Tensor, labels: Tensor, weights: Tensor, name: str
) -> dict[str, Tensor]:
    """Return the mean cross-entropy and accuracy of logits, and the sum of weights."""
    logits = ops.cast(logits, "float32")
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    is_right = ops.cast(ops.argmax(logits, axis=-1) == labels, "float32")
    total = ops.maximum(ops.sum(weights), 1e-6)
    return {
        f"{name}_loss": ops.sum(weights * losses) / total,
        f"{name}_accuracy": ops.sum(weights * is_right) / total,
        f"{name}_count": ops.sum(weights),
    }


class StepModel(keras.Model):
    """Base class of models whose call returns losses, and whose batches are stacked.

    A call takes the dict of a batch and returns `<name>_loss`, `<name>_accuracy` and
    `<name>_count` of each of `heads`, scalars. An item of the data has the batches of
    several steps, along a second axis, which a single call of the device trains on, so
    that a small model does not wait for Python.

    Args:
        heads: dict of the weight of the loss of each head, by name.
    """

    def __init__(self, heads: dict[str, float], **kwargs: Any):
        super().__init__(**kwargs)
        self.heads = heads
        self.means = {
            f"{head}_{kind}": keras.metrics.Mean(name=f"{head}_{kind}")
            for head in heads
            for kind in ("loss", "accuracy")
        }

    def compute_loss(self, x=None, y=None, y_pred=None, *args, **kwargs):
        return sum(rate * y_pred[f"{x}_loss"] for x, rate in self.heads.items())

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        for head in self.heads:
            for kind in ("loss", "accuracy"):
                mean = self.means[f"{head}_{kind}"]
                mean.update_state(y_pred[f"{head}_{kind}"], y_pred[f"{head}_count"])
        return self.get_metrics_result()

    def train_step(self, *args: Any) -> Any:
        """Train on the batches of an item, on TensorFlow or JAX."""
        *state, data = args
        count = keras.tree.flatten(data)[0].shape[1]
        if state:
            return self._train_on_jax(state[0], data, count)
        if count == 1:
            return self._train_once(_item(data, 0))

        def body(number):
            self._train_once(_item(data, number))
            return (number + 1,)

        ops.while_loop(lambda number: number < count, body, (0,))
        return self.get_metrics_result()

    def _train_once(self, data):
        batch, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        if (rate := batch.get("learning_rate")) is not None:
            self.optimizer.learning_rate = rate[0]
        return super().train_step(data)

    def _train_on_jax(self, state, data, count):
        import jax

        one_step = super().train_step
        names = [variable.name for variable in self.optimizer.variables]

        def step(state, data):
            batch, _, _ = keras.utils.unpack_x_y_sample_weight(data)
            if (rate := batch.get("learning_rate")) is not None:
                optimizer = [*state[2]]
                optimizer[names.index("learning_rate")] = rate[0]
                state = *state[:2], optimizer, state[3]
            logs, state = one_step(state, data)
            return state, logs

        if count == 1:
            state, logs = step(state, _item(data, 0))
            return logs, state
        data = keras.tree.map_structure(lambda x: ops.moveaxis(x, 1, 0), data)
        state, logs = jax.lax.scan(step, state, data)
        return keras.tree.map_structure(lambda x: x[-1], logs), state

    def test_step(self, *args: Any) -> Any:
        *state, data = args
        return super().test_step(*state, _item(data, 0))


def _item(data: Any, number: Any) -> Any:
    """Return the batch of one step."""
    return keras.tree.map_structure(lambda x: x[:, number], data)


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

    def __init__(self, network: keras.Model, masks: WholeWordMaskGenerator | None):
        super().__init__(dict.fromkeys(network.output, 1.0))
        self.network, self.masks = network, masks
        # Keras would build them by calling the model with a whole item.
        for layer in (self, masks):
            if layer is not None:
                layer.built = True

    def call(self, batch: dict[str, Tensor], training: bool = False) -> Any:
        features, labels = self.masked(batch)
        outputs = self.network(features, training=training)
        weights = labels["mask_weights"] * batch["weights"][:, None]
        found = weighted_losses(
            outputs["mlm_logits"], labels["mask_ids"], weights, "mlm_logits"
        )
        if "sop_logits" in outputs:
            weights = batch["has_order"] * batch["weights"]
            found |= weighted_losses(
                outputs["sop_logits"], batch["labels"], weights, "sop_logits"
            )
        return found

    def masked(self, batch: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict]:
        """Return the inputs of the network, and `mask_ids` and `mask_weights`."""
        token_ids = ops.cast(batch["token_ids"], "int32")
        width = ops.shape(token_ids)[1]
        place = ops.arange(width)
        is_token = place < batch["lengths"][:, None]
        features = {
            "token_ids": token_ids,
            "segment_ids": ops.cast(
                is_token & (place >= batch["second_starts"][:, None]), "int32"
            ),
            "padding_mask": ops.cast(is_token, "int32"),
        }
        found = {x: batch[x] for x in MASKS} if self.masks is None else self.draw(batch)
        features["token_ids"] = found.pop("token_ids", token_ids)
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
            # Those of the step, repeated for each sequence.
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
