"""Text classification that leaves the encoder at the first layer that is sure."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

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
        num_classes: int, 2 or more.
        preprocessor: optional preprocessor; without one, the classifier takes ids.
        **kwargs: `labels`, `activation`, `dropout` and `pairs` of
            `AlbertTextClassifier`, and its `pooling_mode`, which must be `"cls"`,
            `"mean"` or `"max"`.

    Raises:
        AlbertError: if the encoder has several different layers, there are fewer than
            two classes, or `pooling_mode` reads several layers.

    Example:
    ```python
    classifier = albert_tf.tools.AlbertEarlyExitClassifier.from_checkpoint(
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
        self._traced_exits = _TracedExits()

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
        total, weights = 0.0, 0
        for number, outputs in enumerate(ops.unstack(y_pred, axis=1), start=1):
            loss = super().compute_loss(x, y, outputs, sample_weight)
            # A layer counts by its number.
            total = total + number * loss
            weights += number
        return total / weights

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        if len(y_pred.shape) == 3:
            # In training; the last layer is the one that `predict` uses.
            y_pred = y_pred[:, -1]
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def predict_early(
        self,
        x: Iterable[str] | tuple[Iterable[str], Iterable[str]],
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
            batch_size: optional int. Examples per batch.
            max_tokens: optional int. Tokens per batch, padding included, instead of
                `batch_size`. Without both, batches have as many tokens as 32 texts of
                full length.

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
        traced = self._traced_exits.by_patience
        if self._are_others("exits"):
            traced.clear()
        if patience not in traced:
            inputs = {
                name: tf.TensorSpec(symbolic.shape, symbolic.dtype)
                for name, symbolic in self.input.items()
            }
            traced[patience] = tf.function(
                self.exiting(patience), input_signature=[inputs]
            )
        return traced[patience]

    def exiting(self, patience: int) -> Callable[..., tf.Tensor]:
        """Return a function like a call of this model, from which texts leave early."""
        patience = check_integer("patience", patience)
        return lambda inputs, training=False: _run_until_done(self, inputs, patience)


class _TracedExits:
    """Traced functions in an object, because Keras would track a dict of a model."""

    def __init__(self) -> None:
        self.by_patience: dict[int, Callable[..., tf.Tensor]] = {}


class _State(NamedTuple):
    """The texts that are still in the encoder, and the outputs of all texts."""

    layer: tf.Tensor  # int32 [], the number of the next layer.
    hidden: tf.Tensor  # [left, time, hidden_dim]
    mask: tf.Tensor  # [left, time]
    rows: tf.Tensor  # int32 [left], the place of each text in the batch.
    labels: tf.Tensor  # int32 [left], the class of the last layer.
    counts: tf.Tensor  # int32 [left], how many layers have confirmed it.
    outputs: tf.Tensor  # [batch, num_classes]


def _run_until_done(task, inputs, patience):
    """Return the outputs [batch, num_classes], each from its exit layer."""
    backbone = task.backbone
    # All layers are this block.
    block = backbone.encoder_blocks[0]
    num_layers = len(backbone.encoder_blocks)
    mask = inputs["padding_mask"]
    batch = tf.shape(mask)[0]

    def step(state: _State) -> list[_State]:
        hidden = block(state.hidden, padding_mask=state.mask)
        outputs = task.classify_states([hidden], state.mask)
        labels = tf.argmax(outputs, axis=1, output_type=tf.int32)
        counts = tf.where(labels == state.labels, state.counts + 1, 0)
        left = tf.where(counts < patience)[:, 0]
        return [
            _State(
                layer=state.layer + 1,
                hidden=tf.gather(hidden, left),
                mask=tf.gather(state.mask, left),
                rows=tf.gather(state.rows, left),
                labels=tf.gather(labels, left),
                counts=tf.gather(counts, left),
                # Texts that stay overwrite their outputs later.
                outputs=_scatter(state.outputs, state.rows, outputs),
            )
        ]

    def are_left(state: _State) -> tf.Tensor:
        return (state.layer < num_layers - 1) & (tf.size(state.rows) > 0)

    start = _State(
        layer=tf.constant(0),
        hidden=backbone.embedding(inputs["token_ids"], inputs["segment_ids"]),
        mask=mask,
        rows=tf.range(batch),
        labels=tf.fill([batch], -1),
        counts=tf.zeros([batch], tf.int32),
        outputs=tf.zeros([batch, task.num_classes], task.output_dense.compute_dtype),
    )
    shapes = _State(*map(_any_rows, start))
    (state,) = tf.while_loop(are_left, step, [start], [shapes])
    # The pooler reads one position of the last layer.
    length = 1 if task.pooling_mode == "cls" else None
    hidden = block(state.hidden, padding_mask=state.mask, output_length=length)
    outputs = task.classify_states([hidden], state.mask)
    return _scatter(state.outputs, state.rows, outputs)


def _scatter(outputs, rows, values):
    """Return outputs [batch, num_classes] with other values in these rows."""
    return tf.tensor_scatter_nd_update(outputs, rows[:, tf.newaxis], values)


def _any_rows(tensor):
    """Return the shape of a tensor, of which the number of rows may change."""
    if tensor.shape.rank == 0:
        return tensor.shape
    return tf.TensorShape([None, *tensor.shape[1:]])
