"""Write ONNX files from the layers of a task."""

import hashlib
import json
import os
import pathlib
from collections.abc import Sequence

import h5py
import numpy as np

from albert_tf.checkpoints import open_checkpoint
from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.plan import plan_weights
from albert_tf.export.agreement import agreement, check_comparable
from albert_tf.export.description import describe, head_of
from albert_tf.export.onnx_network import Network, StoredWeights
from albert_tf.export.quantization import quantize
from albert_tf.extras import import_extra
from albert_tf.files import check_replaced, complete_file
from albert_tf.layers.arguments import suggest_arguments
from albert_tf.models.task import AlbertTask
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import SETTINGS, Texts, checksum_field
from albert_tf_lite.network_files import preset_digest
from albert_tf_lite.pointers import check_downloaded


@suggest_arguments()
def onnx(
    task: AlbertTask,
    path: str | os.PathLike,
    *,
    precision: str = "float32",
    preset: str | os.PathLike | None = None,
    weights: str | os.PathLike | None = None,
    compare: Texts | None = None,
) -> None:
    """Write an ONNX file, for ONNX Runtime, OpenVINO and Triton.

    The file takes `token_ids`, `segment_ids` and `padding_mask`, int32 [batch, time],
    of any batch and of any length up to the model's positions. It holds shared weights
    once. The metadata hold the settings and the vocabulary, so that
    `albert_tf_lite.OnnxModel` takes strings, without TensorFlow.

    Args:
        task: a text or multi-label classifier, regressor, token classifier, embedder,
            sentence-order model, or model for question answering or multiple choice,
            with a preprocessor.
        path: path of the file, such as `"model.onnx"`. Replaces another file of this
            suffix.
        precision: `"float32"`, or `"int8"` for a third of the size and more speed:
            weights in 8 bits, token embeddings in 16, and activations quantized when
            they are computed, with a scale per token, so that a score does not depend
            on the other texts of a call.
        preset: optional path of the preset, or the TensorFlow 1 checkpoint, with this
            model. In the file `model.onnx` in it, or in int8 `model.int8.onnx`,
            `albert_tf_lite.pipeline` then answers for the preset, as long as its
            weights are those of the file.
        weights: optional path of the `.data-00000-of-00001` file, beside `path`, of a
            checkpoint with this model. The ONNX file then holds the graph, and reads
            the weights there.
        compare: optional texts which the training has not seen: a list of strings, or
            the tuple of the lists of an example's parts. An int8 file then contains the
            share of them to which it gives the answer of float32.
            `albert_tf_lite.pipeline` uses the file by default if that is 0.995 or more
            of at least 200 texts.

    Raises:
        FileExistsError: if `path` is a file of another kind.
        ImportError: if onnx, or for `compare` onnxruntime, is not installed.
        AlbertError: if the class of the task, `precision` or the activation is not
            supported, or the model has no preprocessor or is quantized, or `weights`
            are not those of the model, or not beside `path`, or `compare` is given for
            float32 or for a task whose answers are numbers.

    Example:
    ```python
    albert_tf.export.onnx(classifier, "model.onnx", precision="int8")
    albert_tf.export.OnnxModel("model.onnx").predict(["很好"])
    ```
    """
    library = import_extra("onnx")
    check_replaced(path, ".onnx")
    settings = describe(task, precision, ("float32", "int8"))
    examples = None
    if compare is not None:
        check_comparable(settings["task"], precision)
        examples = task.read_examples(compare)
    if preset is not None:
        _check_preset(task, pathlib.Path(preset), pathlib.Path(path).stem)
        settings["preset"] = preset_digest(preset)
    if weights is not None and precision != "float32":
        raise AlbertError(
            f"The weights of a checkpoint are of 32 bits. Received: {precision!r}"
        )
    stored = None
    if weights is not None:
        stored = StoredWeights(library, weights, path)
        settings["weights"] = stored.description
    network = Network(library, task.backbone, stored=stored)
    output = settings["output"]
    network.node("Identity", _head(task, network), output=output)
    plain = network.model({output: output_shape(task, settings["units"])})
    model = quantize(plain, library) if precision == "int8" else plain
    if examples is not None:
        expected = _content(plain, settings, library)
        quantized = _content(model, settings, library)
        settings["agreement"] = agreement(expected, quantized, examples)
    with complete_file(path) as temporary:
        temporary.write_bytes(_content(model, settings, library))


def _check_preset(task, folder, head):
    """Raise unless a preset or a checkpoint has the weights of the model.

    Of several named heads it is the one called `head`.
    """
    files = sorted(folder.glob("*.weights.h5"))
    if files:
        has_weights = _are_in_files(task, files)
    else:
        opened = open_checkpoint(folder)
        if head in opened.named_heads:
            opened = opened.with_head(head)
        has_weights = _are_in_checkpoint(task, opened)
    if not has_weights:
        raise AlbertError(
            f"{folder} holds other weights than the model. Save the model there first, "
            "with save_to_preset or save_checkpoint."
        )


def _are_in_files(task, files):
    """Return whether the files of a preset have each weight of a model."""
    stored = set()

    def collect(_, item):
        if isinstance(item, h5py.Dataset):
            stored.add(item[()].tobytes())

    for path in files:
        check_downloaded(path)
        with h5py.File(path) as file:
            file.visititems(collect)
    for weight in task.trainable_weights:
        if np.asarray(weight.value).tobytes() not in stored:
            return False
    return True


def _are_in_checkpoint(task, opened):
    """Return whether an open checkpoint has each weight of a model."""
    for weight, tensors in plan_weights(opened.layout, task):
        if not set(tensors.names) <= opened.shapes.keys():
            return False
        stored = tensors.to_weight([opened.read(name) for name in tensors.names])
        if not np.array_equal(stored, weight):
            return False
    return True


def _content(model, settings, library):
    """Return the content of the file of a model with settings."""
    text = json.dumps(settings, ensure_ascii=False)
    library.helper.set_model_props(model, {SETTINGS: text})
    content = model.SerializeToString()
    return content + checksum_field(hashlib.sha256(content).hexdigest())


def output_shape(task: AlbertTask, units: int) -> list[str | int]:
    """Return the shape of the output."""
    is_per_token = task.heads and HEADS[task.heads[0]].reads == "sequence"
    return ["batch", "time", units] if is_per_token else ["batch", units]


def _head(task, network):
    """Add the pooling and the head of a task, and return the name of the output."""
    if task.heads:
        return network.dense(head_of(task), head_input(task, network))
    mode = task.pooling_mode
    states = network.states(first_only=mode == "cls")
    return embedding(task, network, states)


def head_input(task: AlbertTask, network: Network) -> str:
    """Add what the head of a task reads."""
    if HEADS[task.heads[0]].reads == "sequence":
        return network.states()[-1]
    mode = getattr(task, "pooling_mode", "cls")
    pooled = _pool(network, mode, network.states(first_only=mode == "cls"))
    if mode == "cls":
        return network.dense(network.backbone.pooled_dense, pooled)
    return pooled


def embedding(task: AlbertTask, network: Network, states: Sequence[str]) -> str:
    """Add the vectors of an embedder, from the outputs of the layers."""
    vectors = _pool(network, task.pooling_mode, states)
    if not task.normalize:
        return vectors
    length = network.node("ReduceL2", vectors, axes=[-1], keepdims=1)
    return network.node("Div", vectors, network.node("Max", length, 1e-7))


def _pool(network, mode, states):
    """Add a mode of `albert_tf.models.pooling.POOLING_MODES`."""
    node, x = network.node, states[-1]
    if mode == "cls":
        return node("Gather", x, 0, axis=1)
    if mode == "max":
        # 9 is ONNX's number of bool.
        x = node("Where", node("Cast", network.mask, to=9), x, float("-inf"))
        return node("ReduceMax", x, axes=[1], keepdims=0)
    if mode == "first_last_mean":
        x = node("Mul", node("Add", states[1], x), 0.5)
    total = node("ReduceSum", node("Mul", x, network.mask), [1], keepdims=0)
    count = node("ReduceSum", network.mask, [1], keepdims=0)
    return node("Div", total, node("Max", count, 1.0))
