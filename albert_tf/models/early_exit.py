"""Texts that leave the encoder when an early layer has their answer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from albert_tf.layers.common import at_least_float32
from albert_tf.models.exit_rules import ConfidenceWindow, Patience, exit_rule
from albert_tf.models.pooling import POOLING_MODES
from albert_tf.models.predicting import predict_grouped
from albert_tf.models.token_outputs import outputs_of_nothing
from albert_tf.preprocessing.examples import count_examples, is_pair
from albert_tf_lite.errors import AlbertError

Rule = Patience | ConfidenceWindow


class ExitsEarly:
    """A classifier of single classes whose every layer can classify.

    All layers of the encoder are one function, and pooler and head read what any of
    them gives: leaving early needs no weights besides. Built with `early_exit=True`
    they are trained on all layers at once, layer i with a weight of i, as in PABEE;
    `evaluate`, and `predict` without `early_exit`, are those of the last layer.

    Reference:
        [PABEE](https://arxiv.org/abs/2006.04152), equation 5;
        [ELBERT](https://arxiv.org/abs/2107.00175).
    """

    early_exit = False

    # === Training ===

    def call(self, inputs, training=None, **kwargs):
        """As Keras'; in training [batch, layers, num_classes] with `early_exit`."""
        if not (training and self.early_exit):
            return super().call(inputs, training=training, **kwargs)
        backbone, mask = self.backbone, inputs["padding_mask"]
        x = backbone.embedding(
            inputs["token_ids"], inputs["segment_ids"], training=True
        )
        outputs = []
        for block in backbone.encoder_blocks:
            x = block(x, padding_mask=mask, training=True)
            outputs.append(self._classify(x, mask, training=True))
        return ops.stack(outputs, axis=1)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        if not (training and self.early_exit):
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        layers = ops.unstack(y_pred, axis=1)
        losses = (
            number * super(ExitsEarly, self).compute_loss(x, y, layer, sample_weight)
            for number, layer in enumerate(layers, start=1)
        )
        return sum(losses) / sum(range(1, len(layers) + 1))

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """As Keras', of the last layer."""
        if len(y_pred.shape) == 3:
            y_pred = y_pred[:, -1]
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _classify(self, x, mask, training=False):
        """What pooler and head make of the hidden states of a layer."""
        if self.pooling_mode == "cls":
            pooled = self.backbone.pooled_dense(x[:, 0, :])
        else:
            dtype = at_least_float32(self.backbone.compute_dtype)
            states, mask = [ops.cast(x, dtype)], ops.cast(mask, dtype)
            pooled = POOLING_MODES[self.pooling_mode](states, ops.expand_dims(mask, -1))
        return self.output_dense(self.output_dropout(pooled, training=training))

    # === Prediction ===

    def predict(
        self,
        x: Any = None,
        batch_size: int | None = None,
        max_tokens: int | None = None,
        early_exit: Rule | int | float | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `FitsTexts.predict`, with the speed to choose.

        Args:
            x, batch_size, max_tokens, **kwargs: as for `FitsTexts.predict`.
            early_exit: optional rule that says when a text is done, `Patience` or
                `ConfidenceWindow`; for short their first argument, an int or a float.
                A text that is done leaves its batch, and its answer is that of the
                layer it has come to. By default all texts go through all layers.
        """
        if early_exit is None:
            return super().predict(x, batch_size, max_tokens, **kwargs)
        model = self.exiting(early_exit)
        batch_size = self._batching(x, batch_size, max_tokens)
        if isinstance(x, tf.data.Dataset) and is_pair(x) is not None:
            x = x.map(self.preprocessor)
        if not self._takes_texts(x):
            return model.predict(x, batch_size=batch_size, **kwargs)
        if count_examples(x) == 0:
            return outputs_of_nothing(self.output)
        texts = self._grouped(x, batch_size=batch_size)
        return predict_grouped(model, texts, model.predict, **kwargs)

    def exiting(self, early_exit: Rule | int | float) -> keras.Model:
        """A model of the same weights from which texts leave by a rule.

        Args:
            early_exit: as for `predict`.

        Raises:
            AlbertError: if the layers of the encoder are not one function, or the model
                has no one class a text, or Keras runs on another backend than
                TensorFlow.
        """
        check_can_exit(self)
        if keras.backend.backend() != "tensorflow":
            raise AlbertError("`early_exit` needs Keras on TensorFlow.")
        rule = exit_rule(early_exit)
        if "_exiting" not in vars(self):
            # In a function, where Keras does not take it for a part of this model.
            self._exiting = functools.cache(
                lambda rule: ExitingModel(lambda x: run_until_done(self, x, rule))
            )
        return self._exiting(rule)

    def quantize(self, mode=None, config=None, **kwargs) -> None:
        super().quantize(mode, config=config, **kwargs)
        # Traced with the old weights.
        vars(self).pop("_exiting", None)


class ExitingModel(keras.Model):
    """A function of a batch, with Keras' `predict`."""

    def __init__(self, function: Callable[[dict], tf.Tensor]):
        super().__init__()
        self._function = function
        self.jit_compile = False
        self.built = True

    def call(self, inputs):
        return self._function(inputs)


def run_until_done(task: ExitsEarly, inputs: dict, rule: Rule) -> tf.Tensor:
    """The outputs of a batch, each of the layer after which its text was done.

    Args:
        task: the classifier.
        inputs: what `AlbertBackbone` takes, int tensors [batch, time].
        rule: a rule of `exit_rules`.

    Returns:
        A float tensor [batch, num_classes].
    """
    backbone = task.backbone
    mask = inputs["padding_mask"]
    x = backbone.embedding(inputs["token_ids"], inputs["segment_ids"])
    # All layers are this one.
    block, num_layers = backbone.encoder_blocks[0], len(backbone.encoder_blocks)
    batch = tf.shape(mask)[0]
    rows = tf.range(batch)
    memory = tf.tile([tf.constant(rule.beginning)], [batch, 1])
    outputs = tf.zeros([batch, task.num_classes], task.output_dense.compute_dtype)

    def step(layer, x, mask, rows, memory, outputs):
        x = block(x, padding_mask=mask)
        given = task._classify(x, mask)
        probabilities = tf.nn.softmax(tf.cast(task.class_logits(given), tf.float32))
        done, memory = rule.step(probabilities, memory)
        # Those that stay are written over later.
        outputs = tf.tensor_scatter_nd_update(outputs, rows[:, tf.newaxis], given)
        stay = tf.where(~done)[:, 0]
        kept = (tf.gather(part, stay) for part in (x, mask, rows, memory))
        return layer + 1, *kept, outputs

    def are_left(layer, x, mask, rows, memory, outputs):
        return (layer < num_layers - 1) & (tf.size(rows) > 0)

    state = (tf.constant(0), x, mask, rows, memory, outputs)
    # The number of rows is free, and that of the layer has no axis.
    shapes = [tf.TensorShape([None, *part.shape[1:]][: part.ndim]) for part in state]
    state = tf.while_loop(are_left, step, state, tuple(shapes))
    _, x, mask, rows, _, outputs = state
    # Of the last layer the pooler reads one position.
    length = 1 if task.pooling_mode == "cls" else None
    given = task._classify(block(x, padding_mask=mask, output_length=length), mask)
    return tf.tensor_scatter_nd_update(outputs, rows[:, tf.newaxis], given)


def check_can_exit(task: ExitsEarly) -> None:
    """Refuse a model that no text can leave early."""
    backbone = task.backbone
    if len({id(block) for block in backbone.encoder_blocks}) > 1:
        raise AlbertError(
            "`early_exit` is for encoders whose layers are all one function. This one "
            f"has num_attention_groups={backbone.num_attention_groups}, num_ffn_groups="
            f"{backbone.num_ffn_groups}, num_inner_repetitions="
            f"{backbone.num_inner_repetitions}: all should be 1."
        )
    if task.multi_label or task.num_classes < 2:
        raise AlbertError("`early_exit` is for texts of one class, of two at least.")
    if task.pooling_mode == "first_last_mean":
        raise AlbertError(
            '`early_exit` goes with pooling_mode="cls", "mean" or "max", which read '
            'one layer. Received: "first_last_mean"'
        )
