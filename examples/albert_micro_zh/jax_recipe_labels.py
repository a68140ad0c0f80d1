"""Batches, model and losses of the supervised stage of `jax_pretrain.py`.

The encoder has a head for each labelled data set. A quarter of the rows of a batch has
masked tokens to predict, instead of labels.

Reference: [Muppet](https://arxiv.org/abs/2101.11038), whose losses are divided by the
logarithm of the number of classes.
"""

import jax
import jax.numpy as jnp
import keras
from jax_batches import draw_masks, read_rows
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.layers import MaskedLMHead
from albert_tf.layers.common import dense

MASKED_ROWS = 4
# Class of a token or text without one, as `jax_labelled.py` writes it.
IGNORED = -1


def draw_batch(arrays, settings, rows, width, key, mask_rate):
    """Return features, labels and weights; the first quarter of the rows is masked."""
    place, length, second, start = read_rows(arrays, rows, width)
    is_token = place < length
    source = start + jnp.where(is_token, place, 0)
    tokens = arrays["tokens"][source].astype("int32")
    token_ids = jnp.where(is_token, tokens, settings["special_ids"]["pad"])
    count = len(rows) // MASKED_ROWS
    masked = draw_masks(token_ids[:count], settings, key, mask_rate)
    features = {
        "token_ids": token_ids.at[:count].set(masked["token_ids"]),
        "segment_ids": (is_token & (place >= length - second)).astype("int32"),
        "padding_mask": is_token.astype("int32"),
        # In the batch as one long row.
        "mask_positions": (
            masked["mask_positions"] + width * jnp.arange(count)[:, None]
        ).reshape(1, -1),
    }
    text_labels = arrays["labels"][rows].astype("int32")
    tag_labels = jnp.where(is_token, arrays["tags"][source].astype("int32"), IGNORED)
    labels = {"text": text_labels, "tags": tag_labels, "mlm_logits": masked["mask_ids"]}
    has_labels = jnp.arange(len(rows)) >= count
    weights = {
        "text": has_labels & (text_labels != IGNORED),
        "tags": has_labels[:, None] & (tag_labels != IGNORED),
        "mlm_logits": masked["mask_weights"] > 0,
    }
    # Each row has the classes of its head only.
    ranges = jnp.array(settings["ranges"])[arrays["heads"][rows]]
    return features, {**labels, "ranges": ranges}, weights


def build_model(size, settings):
    """Return the encoder with the heads of texts, of tokens and of masked tokens."""
    backbone = AlbertBackbone(**size)
    hidden = backbone(backbone.input)["sequence_output"]
    pool = keras.layers.GlobalAveragePooling1D(dtype="float32")
    pooled = pool(hidden, mask=backbone.input["padding_mask"])
    positions = keras.Input(batch_shape=(1, None), dtype="int32", name="mask_positions")
    masked_lm_head = MaskedLMHead(
        backbone.embedding, backbone.activation, dtype=None, name="mlm_logits"
    )
    long_row = ops.reshape(hidden, (1, -1, size["hidden_dim"]))
    classes = settings["classes"]
    outputs = {
        "text": dense(classes["text"], dtype="float32", name="text")(pooled),
        "tags": dense(classes["tags"], dtype="float32", name="tags")(hidden),
        "mlm_logits": masked_lm_head(long_row, positions),
    }
    return keras.Model({**backbone.input, "mask_positions": positions}, outputs)


def losses(weights, model, features, labels, sample_weights):
    """Return the sum of the losses, and each with its accuracy."""
    outputs, _ = model.stateless_call(weights, [], features, training=True)
    outputs["mlm_logits"] = outputs["mlm_logits"].reshape(
        *labels["mlm_logits"].shape, -1
    )
    found = {}
    for name, logits in outputs.items():
        logits = logits.astype("float32")
        guesses = logits.shape[-1]
        if name != "mlm_logits":
            shape = (-1, *[1] * (logits.ndim - 1))
            first, end = labels["ranges"].T.reshape(2, *shape)
            numbers = jnp.arange(guesses)
            logits = jnp.where((numbers >= first) & (numbers < end), logits, -1e9)
            guesses = jnp.maximum(end - first, 2)[..., 0]
        y, w = jnp.maximum(labels[name], 0), sample_weights[name].astype("float32")
        total = jnp.maximum(jnp.sum(w), 1)
        own = jnp.take_along_axis(logits, y[..., None], axis=-1)[..., 0]
        loss = (jax.nn.logsumexp(logits, -1) - own) / jnp.log(guesses)
        found[f"{name}_loss"] = jnp.sum(w * loss) / total
        is_right = jnp.argmax(logits, axis=-1) == y
        found[f"{name}_accuracy"] = jnp.sum(w * is_right) / total
    return sum(found[f"{name}_loss"] for name in outputs), found
