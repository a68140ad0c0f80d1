"""Write models for transformers.js, in Node and in the browser, and for Optimum."""

import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.checkpoints.formats.huggingface import write_tokenizer
from albert_tf.checkpoints.heads import label_fields
from albert_tf.export.description import (
    check_not_quantized,
    check_preprocessor,
    head_of,
)
from albert_tf.export.onnx_files import embedding, head_input, output_shape
from albert_tf.export.onnx_network import Network
from albert_tf.export.quantization import quantize
from albert_tf.export.tokenizer_json import tokenizer_json
from albert_tf.export.transformers_js_card import write_card
from albert_tf.files import complete_directory, write_json, write_text
from albert_tf.layers.arguments import suggest_arguments
from albert_tf.models.task import AlbertTask
from albert_tf_lite.errors import AlbertError, import_extra
from albert_tf_lite.packing import INPUTS
from albert_tf_lite.tagging import split_tag

# The inputs of transformers, in the order of `INPUTS`.
_INPUTS = ("input_ids", "token_type_ids", "attention_mask")
_CONFIG = "config.json"
# The path of each network, by precision.
NETWORKS = {"float32": "onnx/model.onnx", "int8": "onnx/model_quantized.onnx"}
_WRITTEN = {
    _CONFIG,
    "onnx",
    "README.md",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "spiece.model",
}
# Lower than any logit of a token.
_NEVER = -1e9


class _Output(NamedTuple):
    """An output of a network."""

    tensor: str
    shape: Sequence[str | int]


class _Target(NamedTuple):
    """A task in the terms of transformers."""

    architecture: str
    # (task, network) -> its outputs by name.
    outputs: Callable[[Any, Any], dict[str, _Output]]
    fields: Callable[[Any], dict[str, Any]] = lambda task: {}
    # transformers.js decodes ids to text.
    decodes: bool = False


@suggest_arguments()
def transformers_js(task: AlbertTask, directory: str | os.PathLike) -> None:
    """Write a directory for transformers.js and for Optimum's ONNX Runtime classes.

    | file | content |
    |---|---|
    | `onnx/model.onnx` | the network in float32: Keras' numbers |
    | `onnx/model_quantized.onnx` | in 8 bits: a quarter of the size, for browsers |
    | `tokenizer.json`, `tokenizer_config.json` | the tokenizer |
    | `config.json` | the sizes and the labels |
    | `README.md` | how to call it, unless a person wrote one |

    The networks take `input_ids`, `token_type_ids` and `attention_mask`, int64
    [batch, time], and return `logits`, without the activation that transformers.js
    adds; those of a classifier are divided by its `temperature`. A model for question
    answering returns `start_logits` and `end_logits`, an embedder `last_hidden_state`
    and `sentence_embedding`, the vectors of Keras.

    Args:
        task: a text or multi-label classifier, regressor, token classifier, embedder,
            masked language model or model for question answering, with a preprocessor.
        directory: path to write. Files of an earlier export are replaced.

    Raises:
        ImportError: if onnx is not installed.
        AlbertError: if the class of the task or an activation is not supported, or the
            model has no preprocessor or is quantized.
        FileExistsError: if `directory` holds other files.

    Example:
    ```python
    albert_tf.export.transformers_js(classifier, "web_model")
    ```
    """
    library = import_extra("onnx")
    target = _check(task)
    _check_folder(pathlib.Path(directory))
    tokenizer, length = task.preprocessor.tokenizer, task.preprocessor.sequence_length
    decodes = target.decodes or tokenizer.special_tokens_in_strings
    with complete_directory(directory) as folder:
        ids = write_tokenizer(folder, tokenizer, length)
        content = tokenizer_json(tokenizer, length, decodes)
        # Without indents, which would double the size.
        text = json.dumps(content, ensure_ascii=False)
        write_text(folder / "tokenizer.json", text)
        write_json(folder / _CONFIG, {**_config(task, target), **ids})
        (folder / "onnx").mkdir()
        for precision, name in NETWORKS.items():
            model = _network(task, target, library, precision)
            if precision == "int8":
                model = quantize(model, library, table_bits=8)
            (folder / name).write_bytes(model.SerializeToString())
        write_card(folder, task, pathlib.Path(directory).name)


def _check(task):
    """Return the row of the table for a task; raise if it cannot be written."""
    target = _TARGETS.get(task.name_of_task)
    if target is None:
        raise AlbertError(
            f"Models for transformers.js are written for {', '.join(_TARGETS)}. "
            f"Received: {type(task).__name__}. Use albert_tf.export.onnx or "
            "saved_model."
        )
    check_preprocessor(task)
    check_not_quantized(task)
    return target


def _check_folder(folder):
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if others := sorted(names - _WRITTEN):
        raise FileExistsError(
            f"{folder} holds files that are not of an export to transformers.js: "
            f"{', '.join(others[:5])}. Move them, or choose another directory."
        )


def _config(task, target):
    backbone, vocabulary = task.backbone, task.preprocessor.tokenizer
    # The library has no class of ALBERT for tags. The network is in the file, so that
    # the class decides on the names of the outputs only.
    is_albert = target.architecture.startswith("Albert")
    return {
        "model_type": "albert" if is_albert else "bert",
        "architectures": [target.architecture],
        "vocab_size": vocabulary.vocabulary_size(),
        "embedding_size": backbone.embedding_dim,
        "hidden_size": backbone.hidden_dim,
        "intermediate_size": backbone.intermediate_dim,
        "num_attention_heads": backbone.num_heads,
        "num_hidden_layers": backbone.num_layers,
        "max_position_embeddings": backbone.max_sequence_length,
        "type_vocab_size": backbone.num_segments,
        **target.fields(task),
    }


# === The network ===


class _Graph(Network):
    """A network with the inputs of transformers, to be quantized to a precision.

    transformers.js truncates texts after the special tokens were added, and so cuts off
    the last one: the network makes `[SEP]` the last token of each row.
    """

    def __init__(
        self, library: Any, backbone: AlbertBackbone, precision: str, sep_id: int
    ):
        super().__init__(library, backbone, _INPUTS, "INT64")
        self.precision = precision
        lengths = self.node("ReduceSum", "attention_mask", [1], keepdims=1)
        time = self.node("Shape", "input_ids", start=1)
        positions = self.node("Range", 0, self.node("Squeeze", time), 1)
        is_last = self.node("Equal", positions, self.node("Sub", lengths, 1))
        self.token_ids = self.node("Where", is_last, sep_id, "input_ids")


def _network(task, target, library, precision):
    """Return the `onnx.ModelProto` of a task."""
    sep_id = task.preprocessor.tokenizer.sep_token_id
    network = _Graph(library, task.backbone, precision, sep_id)
    outputs = target.outputs(task, network)
    for name, output in outputs.items():
        network.node("Identity", output.tensor, output=name)
    return network.model({name: output.shape for name, output in outputs.items()})


def _logits(task, network):
    # transformers.js adds the activation itself, but has no temperature.
    logits = network.dense(head_of(task), head_input(task, network), activate=False)
    temperature = _temperature(task)
    if temperature != 1:
        logits = network.node("Mul", logits, 1 / temperature)
    return {"logits": _Output(logits, output_shape(task, head_of(task).units))}


def _temperature(task):
    """Return the temperature of a task; 1 for tasks that have none."""
    return getattr(task, "temperature", 1.0)


def _class_logits(task, network):
    applied = task.probability_activation
    if task.activation not in (keras.activations.linear, applied):
        raise AlbertError(
            f"The activation {task.activation} cannot be exported to transformers.js, "
            f"which applies {applied.__name__}. Expected `activation` "
            f'"{applied.__name__}" or None.'
        )
    return _logits(task, network)


def _span_logits(task, network):
    logits = _logits(task, network)["logits"]
    starts, ends = network.node("Split", logits.tensor, [1, 1], axis=-1, outputs=2)
    shape = logits.shape[:2]
    return {
        "start_logits": _Output(network.node("Squeeze", starts, [2]), shape),
        "end_logits": _Output(network.node("Squeeze", ends, [2]), shape),
    }


def _vectors(task, network):
    states = network.states()
    width = task.backbone.hidden_dim
    return {
        "last_hidden_state": _Output(states[-1], ["batch", "time", width]),
        "sentence_embedding": _Output(
            embedding(task, network, states), ["batch", width]
        ),
    }


def _token_logits(task, network):
    """Add the head that scores all tokens at all positions."""
    head, embedding_layer = task.masked_lm_head, task.backbone.embedding
    hidden = network.dense(head.dense, network.states()[-1])
    hidden = network.layer_norm(head.layer_norm, hidden)
    if embedding_layer.project_first:
        layer = embedding_layer.projection
        kernel = network.weight(layer.kernel, owner=layer)
        hidden = network.node("MatMul", hidden, network.node("Transpose", kernel))
    table = _transposed_table(embedding_layer, network)
    logits = network.node("MatMul", hidden, table)
    logits = network.node("Add", logits, network.weight(head.bias))
    # The table may have more rows than there are tokens.
    count = task.preprocessor.tokenizer.vocabulary_size()
    logits = network.node("Slice", logits, [0], [count], [2])
    plain = task.preprocessor.label_tokens
    if plain is not None:
        logits = _merge_labels(network, logits, np.array(plain))
    return {"logits": _Output(logits, ["batch", "time", count])}


def _transposed_table(layer, network):
    if network.precision == "float32":
        table = network.weight(layer.token_table, layer.token_embedding)
        return network.node("Transpose", table)
    # Weights are quantized, not tensors that the graph computes.
    table = keras.ops.convert_to_numpy(keras.ops.cast(layer.token_table, "float32"))
    return network.constant(np.ascontiguousarray(table.T))


def _merge_labels(network, logits, plain):
    """Count `##` and a character as the character, as Keras does."""
    node, ids = network.node, np.arange(len(plain))
    marked = ids.copy()
    marked[plain] = np.where(plain == ids, marked[plain], ids)
    has_label, is_label = marked != ids, plain != ids
    others = node("Gather", logits, marked, axis=2)
    high, low = node("Max", logits, others), node("Min", logits, others)
    ratio = node("Exp", node("Sub", low, high))
    merged = node("Add", high, node("Log", node("Add", ratio, 1.0)))
    logits = node("Where", has_label, merged, logits)
    return node("Where", is_label, _NEVER, logits)


# === The fields of config.json ===


def _class_fields(task):
    fields = label_fields(task.num_classes, task.class_names)
    fields["problem_type"] = task.problem_type
    if thresholds := getattr(task, "thresholds", None):
        fields["classifier_thresholds"] = list(thresholds)
    return fields


def _score_fields(task):
    return {**label_fields(1, ["score"]), "problem_type": "regression"}


def _tag_fields(task):
    """Return the tags with the prefixes that transformers.js groups."""
    tags = []
    for tag in task.exported_settings()["tags"]:
        prefix, label = split_tag(tag)
        tags.append(f"{prefix}-{label}" if label else prefix)
    return label_fields(0, tags)


_CLASSES = "AlbertForSequenceClassification"
_TARGETS = {
    "text-classification": _Target(_CLASSES, _class_logits, _class_fields),
    "multi-label": _Target(_CLASSES, _class_logits, _class_fields),
    "regression": _Target(_CLASSES, _logits, _score_fields),
    "token-classification": _Target(
        "BertForTokenClassification", _logits, _tag_fields, decodes=True
    ),
    "question-answering": _Target(
        "AlbertForQuestionAnswering", _span_logits, decodes=True
    ),
    "fill-mask": _Target("AlbertForMaskedLM", _token_logits, decodes=True),
    "text-embedding": _Target("AlbertModel", _vectors),
}


# === Comparison with Keras ===


class WebNetwork:
    """A written network, with the inputs and outputs of its task in Keras.

    Its logits are multiplied by the temperature, by which the network divides them.

    Args:
        task: the task.
        path: path of a file in `onnx/`.
    """

    def __init__(self, task: AlbertTask, path: str | os.PathLike):
        self.path = path
        session = import_extra("onnxruntime").InferenceSession
        self._session = session(os.fspath(path), providers=["CPUExecutionProvider"])
        self._task = task

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Return the outputs of the task for ids, as arrays [batch, time].

        Those of a question answering model are stacked.
        """
        feeds = {
            name: features[ours].astype("int64")
            for name, ours in zip(_INPUTS, INPUTS, strict=True)
        }
        outputs = self._session.run(None, feeds)
        if self._task.name_of_task == "question-answering":
            return np.stack(outputs, axis=-1)
        activation: Any = getattr(self._task, "activation", None)
        # An embedder has its vectors as the last output.
        output = outputs[-1] * np.float32(_temperature(self._task))
        return np.array(activation(output)) if activation else output
