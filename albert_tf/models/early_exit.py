"""Text classification that leaves the encoder at the first layer that is sure."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.models.pooling import default_pooling
from albert_tf.trainers.prediction import empty_outputs
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import check_integer


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertEarlyExitClassifier(AlbertTextClassifier):
    """ALBERT with a classification head after every layer, for early exit.

    All layers of the encoder are one function, and pooler and head read the output of
    any of them: early exit adds no parameters. All layers are trained at once, layer i
    with a weight of i, as in PABEE. `predict` and `evaluate` use the last layer;
    `predict_early` is faster.

    Args:
        backbone: an `AlbertBackbone` whose layers are all one function.
        **kwargs: as for `AlbertTextClassifier`; `pooling_mode` must be `"cls"`,
            `"mean"` or `"max"`.

    Raises:
        AlbertError: if the encoder has several different layers, there are fewer than
            two classes, or `pooling_mode` reads several layers.

    Example:
    ```python
    classifier = albert_tf.models.AlbertEarlyExitClassifier.from_checkpoint(
        "albert_micro_zh", num_classes=2
    )
    classifier.fit(["很好", "太差了"], [1, 0])
    classifier.predict_early(["还不错"], patience=1)
    ```

    Reference:
        [PABEE](https://arxiv.org/abs/2006.04152), section 3.2 and equation 5.
    """

    # Hidden from `keras_hub.models.TextClassifier.from_preset`, see `Presets`.
    backbone_cls = None

    def __init__(self, backbone, num_classes, preprocessor=None, **kwargs):
        mode = kwargs.get("pooling_mode") or default_pooling(backbone)
        num_blocks = len({id(block) for block in backbone.encoder_blocks})
        if num_blocks > 1 or num_classes < 2 or mode == "first_last_mean":
            raise AlbertError(
                "Early exit needs an encoder whose layers are all one function, two "
                "classes or more, and a pooling_mode that reads one layer. Received: "
                f"num_attention_groups={backbone.num_attention_groups}, num_ffn_groups="
                f"{backbone.num_ffn_groups}, num_inner_repetitions="
                f"{backbone.num_inner_repetitions}, {num_classes=}, {mode=}"
            )
        super().__init__(backbone, num_classes, preprocessor, **kwargs)

    def call(self, inputs, training=None, **kwargs):
        # In training, the outputs are [batch, layers, num_classes].
        if not training:
            return super().call(inputs, training=training, **kwargs)
        backbone, mask = self.backbone, inputs["padding_mask"]
        x = backbone.embedding(
            inputs["token_ids"], inputs["segment_ids"], training=True
        )
        outputs = []
        for block in backbone.encoder_blocks:
            x = block(x, padding_mask=mask, training=True)
            outputs.append(self.classify_states([x], mask, training=True))
        return ops.stack(outputs, axis=1)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        if not training:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        loss = super().compute_loss
        layers = enumerate(ops.unstack(y_pred, axis=1), start=1)
        losses = {number: loss(x, y, row, sample_weight) for number, row in layers}
        return sum(i * value for i, value in losses.items()) / sum(losses)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        if len(y_pred.shape) == 3:
            # In training; the last layer is the one that `predict` uses.
            y_pred = y_pred[:, -1]
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def predict_early(
        self,
        x: Any,
        patience: int,
        batch_size: int | None = None,
        *,
        max_tokens: int | None = None,
    ) -> np.ndarray:
        """Predict each text by the first layer that is sure enough.

        A text leaves its batch when `patience` layers in a row have confirmed the
        class of the layer before them.

        Args:
            x: list of strings, or for pairs the tuple of two such lists.
            patience: int, at least 1. Larger values are slower and more accurate.
            batch_size, max_tokens: as for `predict`.

        Returns:
            The outputs [examples, num_classes], each of the layer where the text left.

        Raises:
            AlbertError: if `patience` is below 1.
        """
        patience = check_integer("patience", patience)
        exiting = self._traced_exit(patience)
        examples = self.read_examples(x)
        if not examples.count:
            return empty_outputs(self.output)
        packed = self.preprocessor.pack_texts(examples.x)
        batches = self.prediction_batches(packed, batch_size, max_tokens)
        outputs = [exiting(batch).numpy() for batch in batches]
        return batches.restore(np.concatenate(outputs))

    def _traced_exit(self, patience):
        """Return the traced function of one patience for the weights of now."""
        # Keras does not track what is put into the dict of an object.
        traced = self.__dict__.setdefault("_traced_exits", {})
        if self._are_others("exits"):
            traced.clear()
        if patience not in traced:
            inputs = {n: tf.TensorSpec(x.shape, x.dtype) for n, x in self.input.items()}
            traced[patience] = tf.function(
                self.exiting(patience), input_signature=[inputs]
            )
        return traced[patience]

    def exiting(self, patience: int) -> Callable[..., tf.Tensor]:
        """Return a function like a call of this model, from which texts leave early."""
        patience = check_integer("patience", patience)
        return lambda inputs, training=False: _run_until_done(self, inputs, patience)


def _run_until_done(task, inputs, patience):
    """Return the outputs [batch, num_classes], each from its exit layer."""
    backbone = task.backbone
    mask = inputs["padding_mask"]
    x = backbone.embedding(inputs["token_ids"], inputs["segment_ids"])
    # All layers are this block.
    block, num_layers = backbone.encoder_blocks[0], len(backbone.encoder_blocks)
    batch = tf.shape(mask)[0]
    rows = tf.range(batch)
    # The class of the last layer, and how many layers have confirmed it.
    labels, counts = tf.fill([batch], -1), tf.zeros([batch], tf.int32)
    outputs = tf.zeros([batch, task.num_classes], task.output_dense.compute_dtype)

    def step(layer, x, mask, rows, labels, counts, outputs):
        x = block(x, padding_mask=mask)
        given = task.classify_states([x], mask)
        now = tf.argmax(given, axis=1, output_type=tf.int32)
        counts = tf.where(now == labels, counts + 1, 0)
        # Texts that stay are overwritten later.
        outputs = tf.tensor_scatter_nd_update(outputs, rows[:, tf.newaxis], given)
        stay = tf.where(counts < patience)[:, 0]
        kept = (tf.gather(part, stay) for part in (x, mask, rows, now, counts))
        return layer + 1, *kept, outputs

    def are_left(layer, x, mask, rows, labels, counts, outputs):
        return (layer < num_layers - 1) & (tf.size(rows) > 0)

    state = (tf.constant(0), x, mask, rows, labels, counts, outputs)
    # The number of rows may change; the layer number has no axis.
    shapes = [tf.TensorShape([None, *part.shape[1:]][: part.ndim]) for part in state]
    state = tf.while_loop(are_left, step, state, tuple(shapes))
    _, x, mask, rows, _, _, outputs = state
    # The pooler reads one position of the last layer.
    length = 1 if task.pooling_mode == "cls" else None
    x = block(x, padding_mask=mask, output_length=length)
    given = task.classify_states([x], mask)
    return tf.tensor_scatter_nd_update(outputs, rows[:, tf.newaxis], given)
