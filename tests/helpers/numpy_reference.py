"""ALBERT's layers in float64 NumPy, written from the papers, head by head."""

import numpy as np

# The rounding error of a matrix product. In float32 it depends on the order in which
# the kernel adds.
FLOAT32, BFLOAT16 = 1e-5, 2**-8


def assert_close(actual, expected, tolerance=FLOAT32):
    """Differences are small beside the largest value."""
    actual, expected = (np.asarray(x).astype("float64") for x in (actual, expected))
    assert actual.shape == expected.shape
    scale = np.abs(expected).max()
    assert np.abs(actual - expected).max() <= tolerance * scale


def randomize(layer, seed=0, spread=0.2):
    """Random weights everywhere, for fresh biases and LayerNorms hide mistakes."""
    rng = np.random.default_rng(seed)
    for variable in layer.trainable_variables:
        mean = 1.0 if variable.name == "gamma" else 0.0
        variable.assign(rng.normal(mean, spread, variable.shape))
    return layer


def weight(variable):
    return variable.numpy().astype("float64")


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"gelu_approximate": gelu, "relu": lambda x: np.maximum(x, 0)}


def dense(x, layer):
    x = x @ weight(layer.kernel)
    return x if layer.bias is None else x + weight(layer.bias)


def layer_norm(x, layer):
    centered = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-12)
    return centered / deviation * weight(layer.gamma) + weight(layer.beta)


def attention(x, half, allowed):
    """The attention half; `allowed` [batch, query, key]. Also the probabilities."""
    batch, time, hidden = x.shape
    normalized = layer_norm(x, half.layer_norm) if half.normalize_first else x
    joint = dense(normalized, half.query_key_value)
    query, key, value = np.split(joint, 3, axis=-1)
    width = hidden // half.num_heads
    context = np.zeros_like(x)
    scores = np.zeros((batch, half.num_heads, time, time))
    for head in range(half.num_heads):
        part = slice(head * width, (head + 1) * width)
        for text in range(batch):
            logits = query[text, :, part] @ key[text, :, part].T / np.sqrt(width)
            logits = np.exp(np.where(allowed[text], logits, -np.inf))
            scores[text, head] = logits / logits.sum(-1, keepdims=True)
            context[text, :, part] = scores[text, head] @ value[text, :, part]
    x = x + dense(context, half.output_dense)
    return (x if half.normalize_first else layer_norm(x, half.layer_norm)), scores


def feed_forward(x, half, activation):
    inner = layer_norm(x, half.layer_norm) if half.normalize_first else x
    inner = dense(inner, half.intermediate_dense)
    x = x + dense(ACTIVATIONS[activation](inner), half.output_dense)
    return x if half.normalize_first else layer_norm(x, half.layer_norm)


def encoder_block(x, block, allowed, activation="gelu_approximate"):
    x, scores = attention(x.astype("float64"), block.attention, allowed)
    return feed_forward(x, block.feed_forward, activation), scores


def embedding(token_ids, segment_ids, layer, project_first):
    x = weight(layer.token_table)[token_ids]
    if project_first:
        x = dense(x, layer.projection)
    x = x + weight(layer.segment_table)[segment_ids]
    x = x + weight(layer.position_table)[: token_ids.shape[1]]
    x = layer_norm(x, layer.layer_norm)
    return x if project_first else dense(x, layer.projection)
