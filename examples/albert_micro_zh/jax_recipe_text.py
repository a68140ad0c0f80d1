"""Batches, model and losses of a pretraining with `jax_pretrain.py`."""

import jax
import jax.numpy as jnp
import keras
from jax_batches import draw_masks, read_rows

from albert_tf.backbone import AlbertBackbone
from albert_tf.layers import MaskedLMHead
from albert_tf.layers.common import dense


def draw_batch(arrays, settings, rows, width, key, mask_rate):
    """Return features, labels and weights of sequences, as `AlbertPretrainer` takes."""
    order_key, mask_key = jax.random.split(key)
    place, length, second, start = read_rows(arrays, rows, width)
    is_token = place < length
    # Rotating "A [SEP] B [SEP]", which follows [CLS], swaps the segments.
    first = length - second - 1
    swaps = jax.random.bernoulli(order_key, shape=second.shape) & (second > 0)
    shifted = 1 + (place - 1 + jnp.where(swaps, first, 0)) % (length - 1)
    source = start + jnp.where(is_token & (place > 0), shifted, 0)
    tokens = arrays["tokens"][source].astype("int32")
    token_ids = jnp.where(is_token, tokens, settings["special_ids"]["pad"])
    second_now = jnp.where(swaps, first, second)
    masked = draw_masks(token_ids, settings, mask_key, mask_rate)
    features = {
        "token_ids": masked["token_ids"],
        "segment_ids": (is_token & (place >= length - second_now)).astype("int32"),
        "padding_mask": is_token.astype("int32"),
        "mask_positions": masked["mask_positions"],
    }
    labels = {
        "mlm_logits": masked["mask_ids"],
        "sop_logits": arrays["labels"][rows].astype("int32") ^ swaps[:, 0],
    }
    weights = {
        "mlm_logits": masked["mask_weights"],
        "sop_logits": (second[:, 0] > 0).astype("float32"),
    }
    return features, labels, weights


def build_model(size, settings):
    """Return the model of `AlbertPretrainer`, which needs TensorFlow."""
    backbone = AlbertBackbone(**size)
    head = MaskedLMHead(
        backbone.embedding, backbone.activation, dtype=None, name="mlm_logits"
    )
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    hidden = backbone(backbone.input)
    outputs = {
        "mlm_logits": head(hidden["sequence_output"], positions),
        "sop_logits": dense(2, dtype="float32", name="sop_logits")(
            hidden["pooled_output"]
        ),
    }
    return keras.Model({**backbone.input, "mask_positions": positions}, outputs)


def losses(weights, model, features, labels, sample_weights):
    """Return the sum of both losses, and both with their accuracies."""
    outputs, _ = model.stateless_call(weights, [], features, training=True)
    found = {}
    for head, logits in outputs.items():
        y, w = labels[head], sample_weights[head]
        own = jnp.take_along_axis(logits, y[..., None], axis=-1)[..., 0]
        found[f"{head}_loss"] = jnp.mean(w * (jax.nn.logsumexp(logits, -1) - own))
        is_right = jnp.sum(w * (jnp.argmax(logits, axis=-1) == y))
        found[f"{head}_accuracy"] = is_right / jnp.maximum(jnp.sum(w), 1e-6)
    return found["mlm_logits_loss"] + found["sop_logits_loss"], found
