"""A second stage of pretraining on labelled texts, with a head for each kind of label.

Each batch has labelled texts, text with masked tokens and segments in either order,
and pairs of similar texts, whose vectors attract each other.

References: [Muppet](https://arxiv.org/abs/2101.11038), whose losses are divided by the
logarithm of the number of classes; section 4 of
[SimCSE](https://arxiv.org/abs/2104.08821).
"""

import functools
import json
import os
import pathlib
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.files import complete_file, write_json
from albert_tf.layers import WholeWordMaskGenerator
from albert_tf.layers.common import Tensor, dense
from albert_tf.pretraining.dataset import PretrainingRecords
from albert_tf.pretraining.labelled_records import (
    IGNORED,
    LabelledBatches,
    LabelledRecords,
)
from albert_tf.pretraining.model import PretrainingModel
from albert_tf.pretraining.network import backbone_of, features_of, read_arrays
from albert_tf.pretraining.records import TARGETS
from albert_tf.pretraining.step import attraction, squared_errors, weighted_losses
from albert_tf.pretraining.training import (
    check_fits,
    check_same_tokens,
    model_identity,
    train,
)
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_downloaded

HEADS = "heads"
# The weight of each loss.
WEIGHTS = {
    **{"classes": 1.0, "tags": 1.0, "spans": 0.5, "scores": 0.3},
    **{"mlm_logits": 1.0, "sop_logits": 0.3, "pairs": 0.3},
}
# Below any logit.
NEVER = -1e9
# The fields of a head that are arguments of its task.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "classes": ("labels", "pairs", "pooling_mode"),
    "scores": ("pairs", "pooling_mode"),
    "tags": ("tags",),
    "spans": (),
}


class JointDense(keras.layers.Layer):
    """Dense layers of the same input, each with its own name, as one product.

    Args:
        units: dict by name of the outputs of each.
        input_dim: int, the width of the input.
        seed: int, of the initial weights.
    """

    def __init__(
        self, units: dict[str, int], input_dim: int, seed: int = 0, **kwargs: Any
    ):
        super().__init__(dtype="float32", **kwargs)
        self.parts = {
            name: dense(
                count,
                dtype="float32",
                name=name,
                kernel_initializer=keras.initializers.TruncatedNormal(
                    stddev=0.02, seed=seed + i
                ),
            )
            for i, (name, count) in enumerate(units.items())
        }
        with keras.name_scope(self.name):
            for part in self.parts.values():
                part.build((None, input_dim))
        self.built = True

    def call(self, inputs: Tensor) -> Tensor:
        parts = self.parts.values()
        kernel = ops.concatenate([x.kernel for x in parts], axis=1)
        return ops.matmul(inputs, kernel) + ops.concatenate([x.bias for x in parts])


class LabelledModel(PretrainingModel):
    """A network with pretraining heads, and heads for labelled texts on its backbone.

    Classes and scores read the mean of the last hidden states, tags and spans each
    state.

    Args:
        network: as for `PretrainingModel`.
        labelled: a `LabelledRecords`, whose heads the model has.
        masks: as for `PretrainingModel`.
        seed: int, of the initial weights of the heads.
        weights: optional dict, the weight of each loss, by default `WEIGHTS`.

    Call arguments:
        batch: a dict of `LabelledBatches`, without the axis of steps.

    Returns:
        See `StepModel`; losses are `classes`, `scores`, `tags` and `spans`, those of
        the pretraining, and `pairs`.
    """

    def __init__(
        self,
        network: keras.Model,
        labelled: LabelledRecords,
        masks: WholeWordMaskGenerator | None,
        seed: int = 0,
        weights: dict[str, float] | None = None,
    ):
        kinds = [x for x in TARGETS.values() if labelled.heads_of(x)]
        names = [*kinds, *network.output, *["pairs"] * (labelled.pairs is not None)]
        weights = {**WEIGHTS, **(weights or {})}
        super().__init__(network, masks, {x: weights[x] for x in names})
        # A score is neither right nor wrong.
        self.means.pop("scores_accuracy", None)
        self.labelled_heads = labelled.heads
        self.allowed = {kind: labelled.allowed(kind) for kind in kinds}
        variances = [
            labelled.heads[x["head"]].get("variance", 1.0) for x in labelled.sets
        ]
        self.variances = np.array(variances, "float32")
        self.joint = {
            kind: JointDense(
                {
                    name: 2 if kind == "spans" else count
                    for name, count in labelled.heads_of(kind).items()
                },
                backbone_of(network).hidden_dim,
                seed + 1000 * i,
                name=kind,
            )
            for i, kind in enumerate(kinds)
        }

    def call(self, batch: dict[str, Any], training: bool = False) -> Any:
        text, text_labels = self.masked(batch["text"])
        positions = text.pop("mask_positions")
        labelled = batch["labelled"]
        parts = [features_of(labelled), text]
        if "pairs" in batch:
            parts.append(features_of(batch["pairs"]))
        features = {x: ops.concatenate([y[x] for y in parts]) for x in text}
        encoded = backbone_of(self.network)(features, training=training)
        hidden = ops.cast(encoded["sequence_output"], "float32")
        mask = ops.cast(features["padding_mask"], "float32")[..., None]
        pooled = ops.sum(hidden * mask, axis=1) / ops.sum(mask, axis=1)
        count = ops.shape(parts[0]["token_ids"])[0]
        end = count + ops.shape(text["token_ids"])[0]
        is_token = parts[0]["padding_mask"] > 0
        found = self._labelled(labelled, hidden[:count], pooled[:count], is_token)
        # The heads of the network, on the sequences of text.
        outputs = {
            "mlm_logits": self.network.get_layer("mlm_logits")(
                encoded["sequence_output"][count:end], positions
            )
        }
        if "sop_logits" in self.heads:
            outputs["sop_logits"] = self.network.get_layer("sop_logits")(
                encoded["pooled_output"][count:end]
            )
        guesses = {name: x.shape[-1] for name, x in self.network.output.items()}
        found |= self.text_losses(outputs, text_labels, batch["text"], guesses)
        if "pairs" in batch:
            found |= attraction(pooled[end:], features["token_ids"][end:])
        return found

    def _labelled(self, batch, hidden, pooled, is_token):
        """Return the losses of labelled texts."""
        found = {}
        for kind, joint in self.joint.items():
            of_texts = kind in ("classes", "scores")
            y, outputs = batch[kind], joint(pooled if of_texts else hidden)
            allowed = ops.take(self.allowed[kind], batch["sets"], axis=0)
            if kind == "scores":
                own = ops.sum(ops.where(allowed, outputs, 0.0), axis=-1)
                variances = ops.take(self.variances, batch["sets"])
                found |= squared_errors(own, y, variances, kind)
                continue
            guesses = ops.sum(ops.cast(allowed, "int32"), axis=-1)
            if kind == "classes":
                logits = ops.where(allowed, outputs, NEVER)
            elif kind == "tags":
                logits = ops.where(allowed[:, None], outputs, NEVER)
                guesses = guesses[:, None]
            else:
                # The first and the last token are two choices among the tokens.
                rows, guesses = ops.shape(is_token)
                outputs = ops.reshape(outputs, (rows, guesses, -1, 2))
                own = ops.where(allowed[:, None, :, None], outputs, 0.0)
                own = ops.where(is_token[..., None], ops.sum(own, axis=2), NEVER)
                logits = ops.swapaxes(own, 1, 2)
            weights = ops.cast(y != IGNORED, "float32")
            y = ops.maximum(y, 0)
            found |= weighted_losses(logits, y, weights, kind, guesses)
        return found


# === Training ===


def pretrain_labelled(
    network: keras.Model,
    labelled: LabelledRecords,
    records: PretrainingRecords,
    output: str | os.PathLike,
    steps: int | None = None,
    batch_tokens: int = 65_536,
    masks: WholeWordMaskGenerator | None = None,
    seed: int = 0,
    interval: int | None = None,
    settings: dict[str, Any] | None = None,
    *,
    minutes: float | None = None,
    learning_rate: float | None = None,
    warmup_share: float = 0.05,
    steps_per_call: int = 1,
    shares: tuple[float, float] = (0.25, 0.0625),
    **options: Any,
) -> dict[str, Any]:
    """Train a compiled network on labelled texts and text, and write the heads.

    It is resumed as `pretrain`.

    Args:
        network: as `model` of `pretrain`; its weights are those of a pretraining.
        labelled: a `LabelledRecords`.
        records: a `PretrainingRecords` of the same vocabulary, the text.
        output: string, the directory for the state and the heads, `heads.npz` and
            `heads.json`, of which `build_heads` builds tasks.
        batch_tokens: int. Tokens of the labelled texts per batch, padding included.
        shares: tuple of floats. Sequences of text, and pairs of similar texts, that
            join a batch, per labelled text.
        steps, masks, seed, interval, settings, minutes, learning_rate, warmup_share,
            steps_per_call: as for `pretrain`.
        **options: `callbacks`, `verbose` and `progress`, as for `pretrain`.

    Returns:
        As `pretrain`; the metrics are those of `LabelledModel`.

    Raises:
        AlbertError: as by `pretrain`, or if both records have different vocabularies.

    Example:
    ```python
    network = albert_tf.models.AlbertPretrainer.from_checkpoint("my_albert")
    network.compile(albert_tf.training.scheduled_optimizer("adamw", 8e-4))
    labelled = albert_tf.pretraining.LabelledRecords("labelled")
    records = albert_tf.pretraining.PretrainingRecords("records")
    albert_tf.pretraining.pretrain_labelled(
        network, labelled, records, "out", steps=10_000, learning_rate=8e-4
    )
    heads = albert_tf.pretraining.build_heads(network.backbone, "out")
    albert_tf.save_checkpoint(network, "my_heads", "albert_zh", heads=heads)
    ```
    """
    check_fits(network, records)
    check_same_tokens(labelled, records)
    check_length(network, labelled)
    if masks is None and not records.is_masked:
        masks = records.masks()
    numbers: dict[str, Any] = {
        "batch_tokens": batch_tokens,
        "seed": seed,
        "shares": shares,
    }
    identity = {
        **model_identity(network, records, masks),
        # The names contain a hash of the texts.
        "labelled": [x["name"] for x in labelled.manifest["shards"]],
        **numbers,
        **(settings or {}),
    }
    # The same layers, so that the state fits the network of any machine.
    model = LabelledModel(
        keras.Model(network.input, network.output), labelled, masks, seed
    )
    numbers["steps_per_call"] = steps_per_call
    done = train(
        model,
        network.optimizer,
        functools.partial(LabelledBatches, labelled, records, **numbers),
        output,
        identity,
        steps=steps,
        minutes=minutes,
        interval=interval,
        learning_rate=learning_rate,
        warmup_share=warmup_share,
        steps_per_call=steps_per_call,
        **options,
    )
    write_heads(model, output)
    return done


def check_length(network: keras.Model, labelled: LabelledRecords) -> None:
    """Raise if a network has too few positions for labelled texts."""
    positions = backbone_of(network).max_sequence_length
    if labelled.sequence_length > positions:
        raise AlbertError(
            f"The records of {labelled.folder} have {labelled.sequence_length} tokens "
            f"per sequence, but the model has {positions} positions."
        )


def write_heads(model: LabelledModel, folder: str | os.PathLike) -> None:
    """Write the heads of a model: `heads.npz`, the weights, and `heads.json`.

    Args:
        model: a `LabelledModel`.
        folder: string, the directory of the weights of the network.
    """
    folder, arrays = pathlib.Path(folder), {}
    for joint in model.joint.values():
        for name, part in joint.parts.items():
            for kind in ("kernel", "bias"):
                value = ops.convert_to_numpy(getattr(part, kind))
                arrays[f"{name}/{kind}"] = value
    # The arguments of classifiers and regressors.
    pooling = {x: {"pooling_mode": "mean"} for x in ("classes", "scores")}
    heads = {
        name: {**head, **pooling.get(TARGETS[head["task"]], {})}
        for name, head in model.labelled_heads.items()
    }
    write_json(folder / f"{HEADS}.json", heads)
    path = folder / f"{HEADS}.npz"
    with complete_file(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def read_heads(folder: str | os.PathLike) -> dict[str, dict[str, Any]]:
    """Return the heads in a directory of `write_heads`.

    Args:
        folder: string, the directory.

    Returns:
        By name a dict as in the manifest (`task`, `pairs`, `labels`, `tags`) with the
        `pooling_mode` of a head of texts, and the arrays `kernel` [hidden_dim, outputs]
        and `bias` [outputs].

    Raises:
        AlbertError: if both files do not belong together.
    """
    folder = pathlib.Path(folder)
    file = folder / f"{HEADS}.json"
    check_downloaded(file)
    try:
        heads = dict(json.loads(file.read_text("utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise AlbertError(f"{file} is damaged: {error}. Copy it again.") from error
    arrays = read_arrays(folder / f"{HEADS}.npz")
    needed = {f"{name}/{kind}" for name in heads for kind in ("kernel", "bias")}
    if differ := needed ^ {*arrays}:
        raise AlbertError(
            f"{folder / HEADS}.npz and heads.json differ in {sorted(differ)[:3]}. "
            "Copy both files of one training."
        )
    for name, head in heads.items():
        head |= {x: arrays[f"{name}/{x}"] for x in ("kernel", "bias")}
    return heads


def build_heads(
    backbone: keras.Model, folder: str | os.PathLike
) -> dict[str, keras.Model]:
    """Build the task of each head that `pretrain_labelled` wrote. Needs TensorFlow.

    Args:
        backbone: the `AlbertBackbone` of the trained network, which the tasks share.
        folder: string, the directory of the heads.

    Returns:
        The tasks by name, such as `save_checkpoint` takes as `heads`.

    Raises:
        AlbertError: as by `read_heads`.
    """
    # Here, because the rest of this module needs no TensorFlow.
    from albert_tf.checkpoints.heads import HEADS as ROWS
    from albert_tf.models import TASKS

    tasks = {}
    for name, head in read_heads(folder).items():
        cls = TASKS[head["task"]]
        arguments = {x: head[x] for x in _ARGUMENTS[TARGETS[head["task"]]]}
        if "labels" in arguments:
            arguments["num_classes"] = len(arguments["labels"])
        task = tasks[name] = cls(backbone, compile=False, **arguments)
        dense = getattr(task, ROWS[cls.heads[0]].attribute)
        for kind in ("kernel", "bias"):
            getattr(dense, kind).assign(head[kind])
    return tasks
