"""A second stage of pretraining on labelled texts, with a head for each kind of label.

Each batch has labelled texts, text with masked tokens and segments in either order,
and pairs of similar texts, whose vectors attract each other.

References: [Muppet](https://arxiv.org/abs/2101.11038), whose losses are divided by the
logarithm of the number of classes; section 4 of
[SimCSE](https://arxiv.org/abs/2104.08821).
"""

import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.files import BACKUP, complete_file, write_json
from albert_tf.layers import WholeWordMaskGenerator
from albert_tf.layers.common import Tensor, dense
from albert_tf.pretraining.batches import (
    Plan,
    draw,
    packed_lengths,
    step_values,
)
from albert_tf.pretraining.dataset import PretrainingRecords
from albert_tf.pretraining.model import (
    PretrainingModel,
    backbone_of,
    features_of,
    weighted_losses,
)
from albert_tf.pretraining.records import TARGETS, read_manifest, read_shard
from albert_tf.pretraining.training import (
    check_fits,
    check_same_tokens,
    linear_schedule,
    model_identity,
    settable_optimizer,
    train,
)
from albert_tf.training.run_state import without_names
from albert_tf_lite.errors import AlbertError

HEADS = "heads"
# A text or token without a class or position.
IGNORED = -1
# Of the losses.
WEIGHTS = {
    **{"classes": 1.0, "tags": 1.0, "spans": 0.5, "scores": 0.3},
    **{"mlm_logits": 1.0, "sop_logits": 0.3, "pairs": 0.3},
}
TEMPERATURE = 0.05
# Below any logit.
NEVER = -1e9
# Fewer sequences of a length are filled up with shorter ones.
POOL = 2000


class LabelledRecords:
    """The records of labelled texts, all of which are read into memory.

    Args:
        path: string, a directory written by `make_labelled_data`.

    Attributes:
        manifest: dict, the manifest.
        heads: dict by name, see `make_labelled_data`.
        sets: list of dicts, the `set`, `head` and `labels` of each shard.
        set: int array [texts], the index of the set of each text.
        texts: dict of arrays: `lengths`, `second_starts`, `starts` (index of the first
            token) [texts], and `token_ids` [tokens].
        pairs: such a dict of similar texts, in consecutive rows; `None` without any.
        targets: dict by kind (`classes`, `tags`, `spans`, `scores`) of arrays, -1 (of
            scores NaN) for texts of another kind. Classes and tags are numbered over
            all heads.
        weights: float array [texts], how often an epoch has each text. The share of a
            set is the square root of its size.

    Raises:
        FileNotFoundError: if there are no records, or a shard is missing.
        AlbertError: if a shard is damaged, or the records are incomplete or not
            labelled.
    """

    def __init__(self, path: str | os.PathLike):
        self.folder = pathlib.Path(path)
        self.manifest = read_manifest(self.folder)
        if not self.manifest:
            raise FileNotFoundError(
                f"There are no labelled records in {path}. Make them by `albert-tf "
                "pretrain-data --labelled`."
            )
        if "heads" not in self.manifest:
            raise AlbertError(
                f"{path} holds text without labels. Make labelled records by "
                "`albert-tf pretrain-data --labelled`."
            )
        if "shards" not in self.manifest:
            raise AlbertError(
                f"{path} holds only a part of its records: `albert-tf pretrain-data` "
                "was interrupted. Run the same command again to resume."
            )
        self.heads = self.manifest["heads"]
        arrays = []
        for entry in self.manifest["shards"]:
            folder = self.folder / entry["name"]
            if not folder.is_dir():
                raise FileNotFoundError(f"{folder} is missing. Copy the records again.")
            arrays.append(read_shard(folder, ("token_ids", "lengths", "second_starts")))
        self.sets = [x for x in self.manifest["shards"] if "set" in x]
        labelled = arrays[: len(self.sets)]
        self.texts = _joined(labelled)
        self.pairs = (
            _joined(arrays[len(self.sets) :]) if arrays[len(self.sets) :] else None
        )
        counts = [len(x["lengths"]) for x in labelled]
        self.set = np.repeat(np.arange(len(counts), dtype="int32"), counts)
        self.targets = self._targets(labelled)
        self.weights = self._weights()

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.set)

    @property
    def sequence_length(self) -> int:
        """Maximum number of tokens per text, with special tokens."""
        return self.manifest["settings"]["sequence_length"]

    @property
    def tokens(self) -> dict[str, int]:
        """As for `PretrainingRecords`."""
        return self.manifest["tokens"]

    @property
    def vocabulary(self) -> pathlib.Path:
        """The path of the vocabulary."""
        return self.folder / self.manifest["vocabulary"]

    def heads_of(self, kind: str) -> dict[str, int]:
        """Return the number of outputs of each head of a kind, such as `"tags"`."""
        return {
            name: 1 if kind in ("scores", "spans") else len(_outputs(head))
            for name, head in self.heads.items()
            if TARGETS[head["task"]] == kind
        }

    def allowed(self, kind: str) -> np.ndarray:
        """Return the outputs of a kind that each set may have, bool [sets, outputs].

        Sets of another kind may have all.
        """
        heads = self.heads_of(kind)
        rows = np.ones((len(self.sets), sum(heads.values())), bool)
        firsts = _firsts(heads)
        for row, entry in zip(rows, self.sets, strict=True):
            name, labels = entry["head"], entry["labels"]
            if name not in heads:
                continue
            first, outputs = firsts[name], _outputs(self.heads[name])
            row[:] = False
            row[first : first + heads[name]] = True
            if labels is not None and kind in ("classes", "tags"):
                if kind == "tags":
                    labels = [x for x in outputs if x == "O" or x[2:] in labels]
                row[first : first + len(outputs)] = np.isin(outputs, labels)
        return rows

    def _targets(self, labelled):
        """Return the labels of all texts by kind."""
        texts, tokens = len(self), len(self.texts["token_ids"])
        shapes = {
            "classes": texts,
            "scores": texts,
            "tags": tokens,
            "spans": (texts, 2),
        }
        targets = {}
        for kind, shape in shapes.items():
            if not (heads := self.heads_of(kind)):
                continue
            firsts, at = _firsts(heads), 0
            is_score = kind == "scores"
            dtype = "float32" if is_score else "int32"
            values = np.full(shape, np.nan if is_score else IGNORED, dtype)
            targets[kind] = values
            for arrays, entry in zip(labelled, self.sets, strict=True):
                size = len(arrays["token_ids" if kind == "tags" else "lengths"])
                if kind in arrays:
                    y = arrays[kind].astype(dtype)
                    if kind in ("classes", "tags"):
                        y = np.where(y < 0, IGNORED, y + firsts[entry["head"]])
                    values[at : at + size] = y
                at += size
        return targets

    def _weights(self):
        rows, sizes = [], []
        for i, entry in enumerate(self.sets):
            own = np.flatnonzero(self.set == i)
            groups = np.zeros(len(own), int)
            if entry["balanced"]:
                _, groups = np.unique(self.targets["classes"][own], return_inverse=True)
            counts = np.bincount(groups)
            rows.append(1 / len(counts) / counts[groups])
            sizes.append(len(counts) * counts.min())
        shares = np.sqrt(sizes) / np.sqrt(sizes).sum() * len(self)
        return np.concatenate([x * y for x, y in zip(rows, shares, strict=True)])


def _outputs(head):
    return head.get("tags", head["labels"])


def _firsts(heads):
    """Return the index of the first output of each head."""
    ends = np.cumsum(list(heads.values()))
    return dict(zip(heads, (ends - list(heads.values())).tolist(), strict=True))


def _joined(arrays):
    """Return the arrays of several shards as one dict."""
    found = {
        name: np.concatenate([x[name] for x in arrays])
        for name in ("token_ids", "lengths", "second_starts")
    }
    ends = np.cumsum(found["lengths"], dtype="int64")
    return {**found, "starts": ends - found["lengths"]}


# === Batches ===


class Companions:
    """Sequences that join each batch of a plan, drawn at random from those that fit.

    Args:
        lengths: int array [sequences].
        widths: list of ints, the padded lengths, the last at least the longest.
    """

    def __init__(self, lengths: np.ndarray, widths: list[int]):
        self.widths, self._pools = widths, []
        buckets, pool = np.searchsorted(widths, lengths), np.empty(0, "int64")
        for bucket in range(len(widths)):
            own = np.flatnonzero(buckets == bucket)
            pool = own if len(own) > POOL else np.concatenate([pool, own])
            self._pools.append(pool)
        self.shortest = next(
            x for x, y in zip(widths, self._pools, strict=True) if len(y)
        )

    def draw(self, random: np.random.Generator, width: int, shape: Any) -> np.ndarray:
        """Return the numbers of sequences of at most a width of `widths`."""
        return random.choice(self._pools[self.widths.index(width)], shape)


class LabelledBatches:
    """Batches of labelled texts, text and similar texts as `LabelledModel` takes them.

    Args:
        labelled: a `LabelledRecords`.
        records: a `PretrainingRecords`, the text.
        batch_tokens: int. Tokens of the labelled texts per batch, padding included.
        seed, steps_per_call, steps, schedule: as for `PretrainingBatches`.
        text_share, pair_share: floats. Sequences of text and pairs of similar texts
            per labelled text.

    Returns:
        By index a dict of `labelled`, `text` and optionally `pairs` (first all first
        texts, then the second ones), each a dict of arrays [sequences, steps, ...], and
        with a schedule of `learning_rate` [sequences, steps].
    """

    def __init__(
        self,
        labelled: LabelledRecords,
        records: PretrainingRecords,
        batch_tokens: int,
        seed: int = 0,
        steps_per_call: int = 1,
        steps: int | None = None,
        schedule: Callable[[np.ndarray], Any] | None = None,
        text_share: float = 0.25,
        pair_share: float = 0.0625,
    ):
        self.labelled, self.records = labelled, records
        self.seed, self.steps, self.schedule = seed, steps, schedule
        self.steps_per_call = steps_per_call
        self.text_share, self.pair_share = text_share, pair_share
        self.plan = Plan(
            labelled.texts["lengths"],
            max(labelled.sequence_length, records.sequence_length),
            batch_tokens,
            steps_per_call,
            seed,
            weights=labelled.weights,
        )
        self._text_lengths = packed_lengths(records)
        self._text = Companions(self._text_lengths, self.plan.widths)
        self._pairs = None
        if labelled.pairs is not None:
            lengths = labelled.pairs["lengths"].reshape(-1, 2).max(axis=1)
            self._pairs = Companions(lengths, self.plan.widths)
        # TensorFlow takes batches of any length.
        self._trims = keras.backend.backend() == "tensorflow"

    def __len__(self) -> int:
        """Return the number of items per epoch."""
        return self.plan.calls_per_epoch

    def __getitem__(self, call: int) -> dict[str, Any]:
        width, rows = self.plan[call]
        # Sequences first, as for `PretrainingBatches`.
        rows = rows.T
        size, steps = rows.shape
        random = np.random.default_rng((self.seed, call))
        width = max(width, *(x.shortest for x in (self._text, self._pairs) if x))
        count = max(int(size * self.text_share), 1)
        texts = self._text.draw(random, width, (count, steps))
        lengths = [self.labelled.texts["lengths"][rows], self._text_lengths[texts]]
        similar = None
        if self._pairs is not None:
            pairs = max(int(size * self.pair_share), 2)
            first = 2 * self._pairs.draw(random, width, (pairs, steps))
            similar = np.concatenate([first, first + 1])
            lengths.append(self.labelled.pairs["lengths"][similar])
        if self._trims:
            longest = max(int(x.max()) for x in lengths)
            width = min(-(-longest // 4) * 4, width)
        text = draw(self.records, texts.reshape(-1), width, random)
        text = {x: y.reshape(*texts.shape, *y.shape[1:]) for x, y in text.items()}
        values = step_values(self, call * steps + np.arange(steps), count)
        batch = {
            "labelled": {
                **self._features(self.labelled.texts, rows, width),
                **self._targets(rows, width),
            },
            "text": {**text, "weights": np.ones(texts.shape, "float32"), **values},
        }
        if similar is not None:
            batch["pairs"] = self._features(self.labelled.pairs, similar, width)
        if self.schedule is not None:
            batch["learning_rate"] = values["learning_rate"]
        return batch

    def _features(self, texts, rows, width):
        index, is_token = _places(texts, rows, width)
        token_ids = np.full(
            index.shape, self.labelled.tokens["pad"], texts["token_ids"].dtype
        )
        token_ids[is_token] = texts["token_ids"][index[is_token]]
        return {
            "token_ids": token_ids,
            "lengths": texts["lengths"][rows].astype("int32"),
            "second_starts": texts["second_starts"][rows].astype("int32"),
        }

    def _targets(self, rows, width):
        found = {"sets": self.labelled.set[rows]}
        for kind, values in self.labelled.targets.items():
            if kind == "tags":
                index, is_token = _places(self.labelled.texts, rows, width)
                found[kind] = np.full(index.shape, IGNORED, values.dtype)
                found[kind][is_token] = values[index[is_token]]
            else:
                found[kind] = values[rows]
        return found


def _places(texts, rows, width):
    """Return the index of each token of texts, and which are tokens."""
    place = np.arange(width)
    return (
        texts["starts"][rows][..., None] + place,
        place < texts["lengths"][rows][..., None],
    )


# === Model ===


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
            found |= attraction(pooled[end:])
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


def squared_errors(
    outputs: Tensor, scores: Tensor, variances: Tensor, name: str
) -> dict[str, Tensor]:
    """Return the mean of the errors by variance, where the scores are not NaN."""
    is_score = ~ops.isnan(scores)
    weights = ops.cast(is_score, "float32")
    errors = (outputs - ops.where(is_score, scores, 0.0)) ** 2 / variances
    total = ops.maximum(ops.sum(weights), 1.0)
    return {
        f"{name}_loss": ops.sum(weights * errors) / total,
        f"{name}_count": ops.sum(weights),
    }


def attraction(vectors: Tensor, name: str = "pairs") -> dict[str, Tensor]:
    """Return the losses of finding the second text of each pair among all.

    Args:
        vectors: float tensor [2 * pairs, hidden_dim], first those of the first texts.
        name: string, that of the loss.
    """
    norms = ops.sqrt(ops.sum(vectors**2, axis=-1, keepdims=True))
    vectors /= norms + 1e-6
    count = ops.shape(vectors)[0] // 2
    similarities = ops.matmul(vectors[:count], ops.transpose(vectors[count:]))
    both = ops.concatenate([similarities, ops.transpose(similarities)]) / TEMPERATURE
    y = ops.arange(2 * count) % count
    return weighted_losses(both, y, ops.ones_like(both[:, 0]), name, count)


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
    text_share: float = 0.25,
    pair_share: float = 0.0625,
    **options: Any,
) -> dict[str, Any]:
    """Train a compiled network on labelled texts and text, and write the heads.

    It is resumed as `pretrain`.

    Args:
        network: as `model` of `pretrain`; its weights are those of a pretraining.
        labelled: a `LabelledRecords`.
        records: a `PretrainingRecords` of the same vocabulary, the text.
        output: string, the directory for the heads (see `write_heads`) and the state.
        batch_tokens: int. Tokens of the labelled texts per batch, padding included.
        text_share, pair_share: floats. Sequences of text and pairs of similar texts
            that join a batch, per labelled text.
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
    ```
    """
    if (steps is None) == (minutes is None):
        raise AlbertError("Pass `steps` or `minutes`.")
    check_fits(network, records)
    check_same_tokens(labelled, records)
    check_length(network, labelled)
    if masks is None and not records.is_masked:
        masks = records.masks()
    numbers = {
        "batch_tokens": batch_tokens,
        "seed": seed,
        "steps_per_call": steps_per_call,
        "text_share": text_share,
        "pair_share": pair_share,
    }
    identity = {
        **model_identity(network, records, masks),
        # The names contain a hash of the texts.
        "labelled": [x["name"] for x in labelled.manifest["shards"]],
        "learning_rate": learning_rate,
        "steps": steps,
        "minutes": minutes,
        "interval": interval,
        "warmup_share": warmup_share,
        **numbers,
        **(settings or {}),
    }
    # The same layers, so that the state fits the network of any machine.
    model = LabelledModel(
        keras.Model(network.input, network.output), labelled, masks, seed
    )

    def batches(steps: int) -> LabelledBatches:
        schedule = linear_schedule(learning_rate, steps, warmup_share)
        return LabelledBatches(
            labelled, records, steps=steps, schedule=schedule, **numbers
        )

    done = train(
        model,
        settable_optimizer(network.optimizer, learning_rate),
        batches,
        pathlib.Path(output) / BACKUP,
        without_names(identity),
        steps=steps,
        minutes=minutes,
        interval=interval,
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
    write_json(folder / f"{HEADS}.json", dict(model.labelled_heads))
    path = folder / f"{HEADS}.npz"
    with complete_file(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def read_heads(folder: str | os.PathLike) -> dict[str, dict[str, Any]]:
    """Return the heads in a directory of `write_heads`.

    Args:
        folder: string, the directory.

    Returns:
        By name a dict as in the manifest (`task`, `pairs`, `labels`, `tags`) with the
        arrays `kernel` [hidden_dim, outputs] and `bias` [outputs]. Heads of texts read
        the mean of the last hidden states.

    Raises:
        AlbertError: if both files do not belong together.
    """
    folder = pathlib.Path(folder)
    heads = json.loads((folder / f"{HEADS}.json").read_text("utf-8"))
    with np.load(folder / f"{HEADS}.npz", allow_pickle=False) as arrays:
        needed = {f"{name}/{kind}" for name in heads for kind in ("kernel", "bias")}
        if differ := needed ^ {*arrays.files}:
            raise AlbertError(
                f"{folder / HEADS}.npz and heads.json differ in {sorted(differ)[:3]}. "
                "Copy both files of one training."
            )
        for name, head in heads.items():
            head |= {x: arrays[f"{name}/{x}"] for x in ("kernel", "bias")}
    return heads
