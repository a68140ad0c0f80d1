"""Batches, model and losses of the supervised stage of `jax_pretrain.py`.

One encoder has a head for each kind of label. Each batch has labelled texts and pairs,
text with masked tokens and segments in either order, and pairs of similar texts, whose
vectors attract each other.

References: [Muppet](https://arxiv.org/abs/2101.11038), whose losses are divided by the
logarithm of the number of classes; section 4 of
[SimCSE](https://arxiv.org/abs/2104.08821).
"""

import jax
import jax.numpy as jnp
import jax_recipe_text
import keras
import numpy as np
from jax_batches import read_rows
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.layers import MaskedLMHead
from albert_tf.layers.common import dense

# Class, score or position of a text or token without one, as `jax_labelled.py` has it.
IGNORED = -1
TEMPERATURE = 0.05
# Of the losses.
WEIGHTS = {
    **{"text": 1.0, "tags": 1.0, "spans": 0.5, "score": 0.3},
    **{"mlm_logits": 1.0, "sop_logits": 0.3, "pairs": 0.3},
}
# Variance of the scores, from 0 to 5, so that a constant guess has loss 1.
SCORE_VARIANCE = 2.0


def draw_batch(arrays, settings, rows, width, key, mask_rate):
    """Return features, labels and weights: of labelled rows, text, then pairs."""
    labelled, labels = _labelled(arrays["labelled"], settings, rows["labelled"], width)
    text, text_labels, weights = jax_recipe_text.draw_batch(
        arrays["text"], settings, rows["text"], width, key, mask_rate
    )
    both = jnp.stack([2 * rows["pairs"], 2 * rows["pairs"] + 1]).reshape(-1)
    pairs, _, _ = _plain(arrays["pairs"], settings, both, width)
    features = {
        name: jnp.concatenate([labelled[name], text[name], pairs[name]])
        for name in ("token_ids", "segment_ids", "padding_mask")
    }
    first = len(rows["labelled"])
    place = first + jnp.arange(len(rows["text"]))[:, None]
    # In the batch as one long row.
    positions = (text["mask_positions"] + width * place).reshape(1, -1)
    features["mask_positions"] = positions
    return features, {**labels, **text_labels}, weights


def _plain(arrays, settings, rows, width):
    """Return the features of rows, the places of their tokens and which are tokens."""
    place, length, second, start = read_rows(arrays, rows, width)
    is_token = place < length
    source = start + jnp.where(is_token, place, 0)
    tokens = arrays["tokens"][source].astype("int32")
    features = {
        "token_ids": jnp.where(is_token, tokens, settings["special_ids"]["pad"]),
        "segment_ids": (is_token & (place >= length - second)).astype("int32"),
        "padding_mask": is_token.astype("int32"),
    }
    return features, source, is_token


def _labelled(arrays, settings, rows, width):
    features, source, is_token = _plain(arrays, settings, rows, width)
    groups = arrays["groups"][rows].astype("int32")
    tags = arrays["tags"][source].astype("int32")
    labels = {
        "text": arrays["labels"][rows].astype("int32"),
        "score": arrays["scores"][rows].astype("float32"),
        "tags": jnp.where(is_token, tags, IGNORED),
        "spans": arrays["spans"][rows].astype("int32"),
        "allowed_text": jnp.array(masks(settings, "text"))[groups],
        "allowed_tags": jnp.array(masks(settings, "tags"))[groups],
        "is_token": is_token,
    }
    return features, labels


def masks(settings, kind):
    """Return which classes of a kind each group may have, bool [groups, classes]."""
    allowed = np.zeros((len(settings["groups"]), settings["classes"][kind]), bool)
    for row, group in zip(allowed, settings["groups"], strict=True):
        row[group["allowed"] if group["kind"] == kind else slice(None)] = True
    return allowed


def build_model(size, settings):
    """Return the encoder with all heads."""
    backbone = AlbertBackbone(**size)
    found = backbone(backbone.input)
    hidden = found["sequence_output"]
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
        "score": dense(1, dtype="float32", name="score")(pooled),
        "tags": dense(classes["tags"], dtype="float32", name="tags")(hidden),
        "spans": dense(2, dtype="float32", name="spans")(hidden),
        "mlm_logits": masked_lm_head(long_row, positions),
        "sop_logits": dense(2, dtype="float32", name="sop_logits")(
            found["pooled_output"]
        ),
        "pairs": pooled,
    }
    return keras.Model({**backbone.input, "mask_positions": positions}, outputs)


def losses(weights, model, features, labels, sample_weights):
    """Return the weighted sum of the losses, and each with its accuracy."""
    outputs, _ = model.stateless_call(weights, [], features, training=True)
    outputs = {name: x.astype("float32") for name, x in outputs.items()}
    count, texts = len(labels["text"]), len(labels["sop_logits"])
    found = {}

    def add(name, logits, y, w, guesses):
        own = jnp.take_along_axis(logits, jnp.maximum(y, 0)[..., None], axis=-1)[..., 0]
        loss = (jax.nn.logsumexp(logits, -1) - own) / jnp.log(guesses)
        total = jnp.maximum(jnp.sum(w), 1e-6)
        found[f"{name}_loss"] = jnp.sum(w * loss) / total
        found[f"{name}_accuracy"] = jnp.sum(w * (logits.argmax(-1) == y)) / total

    for name in ("text", "tags"):
        allowed = labels[f"allowed_{name}"]
        guesses = allowed.sum(-1)
        if name == "tags":
            allowed, guesses = allowed[:, None], guesses[:, None]
        logits = jnp.where(allowed, outputs[name][:count], -1e9)
        y = labels[name]
        add(name, logits, y, (y != IGNORED).astype("float32"), guesses)

    # The first and the last token of an answer are two choices among the tokens.
    spans = jnp.where(labels["is_token"][..., None], outputs["spans"][:count], -1e9)
    y = labels["spans"]
    w = (y != IGNORED).astype("float32")
    add("spans", jnp.swapaxes(spans, 1, 2), y, w, spans.shape[1])

    y = labels["score"]
    w = (y != IGNORED).astype("float32")
    errors = (outputs["score"][:count, 0] - y) ** 2 / SCORE_VARIANCE
    found["score_loss"] = jnp.sum(w * errors) / jnp.maximum(jnp.sum(w), 1)

    y, w = labels["mlm_logits"], sample_weights["mlm_logits"]
    logits = outputs["mlm_logits"].reshape(*y.shape, -1)
    add("mlm_logits", logits, y, w, logits.shape[-1])
    logits = outputs["sop_logits"][count : count + texts]
    add("sop_logits", logits, labels["sop_logits"], sample_weights["sop_logits"], 2)

    vectors = outputs["pairs"][count + texts :]
    vectors /= jnp.linalg.norm(vectors, axis=-1, keepdims=True) + 1e-6
    first, second = jnp.split(vectors, 2)
    similarities = first @ second.T / TEMPERATURE
    y = jnp.arange(len(first))
    both = jnp.concatenate([similarities, similarities.T])
    add("pairs", both, jnp.tile(y, 2), jnp.ones(2 * len(y)), len(y))
    return sum(WEIGHTS[name] * found[f"{name}_loss"] for name in WEIGHTS), found
