"""The network with both pretraining heads, and its weights in a file."""

import json
import os

import keras
import numpy as np
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import dense_head, masked_lm_head
from albert_tf.files import complete_file
from albert_tf.layers.tensor_types import Tensor
from albert_tf_lite.archives import check_zip
from albert_tf_lite.errors import AlbertError, first_line
from albert_tf_lite.pointers import check_downloaded


def build_network(backbone: AlbertBackbone, num_sop_classes: int = 2) -> keras.Model:
    """Return the network of `AlbertPretrainer`, which needs TensorFlow, on any backend.

    Its variables have the paths of those of `AlbertPretrainer`.

    Args:
        backbone: an `AlbertBackbone`.
        num_sop_classes: int. Number of classes of sentence order. With 0 the network
            has no such head.

    Returns:
        A `keras.Model` of `mlm_logits` [batch, masks, vocabulary] and `sop_logits`
        [batch, classes].

    Example:
    ```python
    network = albert_tf.pretraining.build_network(backbone)
    network.output["sop_logits"].shape
    ```
    """
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    hidden = backbone(backbone.input)
    head = masked_lm_head(backbone)
    outputs = {"mlm_logits": head(hidden["sequence_output"], positions)}
    if num_sop_classes:
        sop_head = dense_head(backbone, num_sop_classes, "sop_logits")
        outputs["sop_logits"] = sop_head(hidden["pooled_output"])
    return keras.Model({**backbone.input, "mask_positions": positions}, outputs)


def write_weights(
    network: keras.Model, path: str | os.PathLike, dtype: str | None = None
) -> None:
    """Write the weights of a network by their paths, and its sizes, to a `.npz` file.

    Args:
        network: an `AlbertPretrainer`, or the result of `build_network`.
        path: string, the file.
        dtype: optional string, such as `"float16"` for a file of half the size.

    Example:
    ```python
    albert_tf.pretraining.write_weights(pretrainer, "start.npz")
    network = albert_tf.pretraining.read_weights("start.npz")
    ```
    """
    config = json.dumps(backbone_of(network).get_config())
    arrays = {weight.path: ops.convert_to_numpy(weight) for weight in network.weights}
    if dtype is not None:
        arrays = {name: array.astype(dtype) for name, array in arrays.items()}
    with complete_file(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, config=config, **arrays)


def read_weights(path: str | os.PathLike, num_sop_classes: int = 2) -> keras.Model:
    """Return the network in a file of `write_weights`.

    Args:
        path: string, the file.
        num_sop_classes: int. Number of classes of sentence order. With 0 the network
            has no such head.

    Raises:
        AlbertError: if a weight is missing or has another shape.
    """
    arrays = read_arrays(path)
    try:
        config = json.loads(str(arrays["config"]))
        backbone = AlbertBackbone.from_config(config)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise AlbertError(
            f"{path} does not have the sizes of a network: {first_line(error)}. "
            "Expected a file of `write_weights`, or the weights.npz of `albert-tf "
            "pretrain`."
        ) from error
    network = build_network(backbone, num_sop_classes)
    shapes = {name: array.shape for name, array in arrays.items()}
    wrong = [
        weight.path
        for weight in network.weights
        if shapes.get(weight.path) != weight.shape
    ]
    if wrong:
        raise AlbertError(
            f"{path} does not have the weights of the network: {wrong[:3]}. Copy it "
            "again, or choose the file of another training."
        )
    for weight in network.weights:
        weight.assign(arrays[weight.path].astype("float32"))
    return network


def read_arrays(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the arrays of a `.npz` file by their names.

    Raises:
        AlbertError: if the file is damaged or of another kind.
    """
    check_downloaded(path)
    try:
        check_zip(path)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except AlbertError:
        raise
    # NumPy raises errors of many classes, because headers are expressions of Python.
    except Exception as error:
        raise AlbertError(
            f"{path} is damaged, truncated or no .npz file: {first_line(error)}. Copy "
            "it again."
        ) from error


def features_of(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the inputs of the backbone for sequences with their lengths."""
    token_ids = ops.cast(batch["token_ids"], "int32")
    place = ops.arange(ops.shape(token_ids)[1])
    is_token = place < batch["lengths"][:, None]
    is_second = is_token & (place >= batch["second_starts"][:, None])
    return {
        "token_ids": token_ids,
        "segment_ids": ops.cast(is_second, "int32"),
        "padding_mask": ops.cast(is_token, "int32"),
    }


def backbone_of(network: keras.Model) -> AlbertBackbone:
    """Return the encoder of a network."""
    layers = network.layers
    return next(layer for layer in layers if isinstance(layer, AlbertBackbone))
