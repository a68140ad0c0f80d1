"""The weights of an ALBERT, by the names that every layout's table gives them."""

import operator

from albert_tf.checkpoints.heads import HEADS

ENCODER_PARTS = ("embedding", "attention", "feed_forward")
# The axes of each weight: V the vocabulary, P positions, S segments, E and H the
# paper's, W the width at which the embeddings are added, Q query, key and value side
# by side, I the feed-forward half, C the classes of a head.
_AXES = {
    "embedding": {
        "token_table": "VE",
        "segment_table": "SW",
        "position_table": "PW",
        "layer_norm.gamma": "W",
        "layer_norm.beta": "W",
        "projection.kernel": "EH",
        "projection.bias": "H",
    },
    "attention": {
        "query_key_value.kernel": "HQ",
        "query_key_value.bias": "Q",
        "output_dense.kernel": "HH",
        "output_dense.bias": "H",
        "layer_norm.gamma": "H",
        "layer_norm.beta": "H",
    },
    "feed_forward": {
        "intermediate_dense.kernel": "HI",
        "intermediate_dense.bias": "I",
        "output_dense.kernel": "IH",
        "output_dense.bias": "H",
        "layer_norm.gamma": "H",
        "layer_norm.beta": "H",
    },
    "pooler": {"kernel": "HH", "bias": "H"},
}


def weight_shape(part, attribute, arguments, num_classes):
    """The shape of a weight of the tables in a model of some arguments, a tuple."""
    hidden_dim, embedding_dim = arguments["hidden_dim"], arguments["embedding_dim"]
    project_first = arguments["embedding_projection"] == "before_layer_norm"
    lengths = {
        "V": arguments["vocabulary_size"],
        "P": arguments["max_sequence_length"],
        "S": arguments["num_segments"],
        "E": embedding_dim,
        "H": hidden_dim,
        "W": hidden_dim if project_first else embedding_dim,
        "Q": 3 * hidden_dim,
        "I": arguments["intermediate_dim"],
        "C": num_classes,
    }
    axes = HEADS[part].axes if part in HEADS else _AXES[part]
    return tuple(lengths[axis] for axis in axes[attribute])


def parts_of(model):
    """The parts that a backbone or a task of ours has, heads last."""
    backbone = getattr(model, "backbone", model)
    pooler = ["pooler"] if backbone.pooled_dense is not None else []
    heads = [
        part
        for part in getattr(model, "heads", ())
        if getattr(model, HEADS[part].attribute) is not None
    ]
    return [*ENCODER_PARTS, *pooler, *heads]


def model_weights(layout, model, parts=None):
    """Pairs of the variables of a model, of all its parts by default, and `Tensors`."""
    backbone = getattr(model, "backbone", model)
    objects = {
        "embedding": {(0, 0): backbone.embedding},
        "attention": backbone.attention_blocks,
        "feed_forward": backbone.feed_forward_blocks,
        "pooler": {(0, 0): backbone.pooled_dense},
    }
    for part in getattr(model, "heads", ()):
        objects[part] = {(0, 0): getattr(model, HEADS[part].attribute)}
    rows = layout.rows(parts or parts_of(model), backbone.get_config())
    return [
        (operator.attrgetter(attribute)(objects[part][tuple(block)]), tensors)
        for (part, *block), attribute, tensors in rows
    ]
