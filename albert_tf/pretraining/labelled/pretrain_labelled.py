"""Train on labelled texts and text."""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable
from typing import Any

import keras

from albert_tf.pretraining.labelled.head_files import write_heads
from albert_tf.pretraining.labelled.labelled_batches import LabelledBatches
from albert_tf.pretraining.labelled.labelled_model import LabelledModel
from albert_tf.pretraining.labelled.labelled_records import LabelledRecords
from albert_tf.pretraining.records.pretraining_records import PretrainingRecords
from albert_tf.pretraining.records.records_directory import check_same_tokens
from albert_tf.pretraining.training.network import backbone_of
from albert_tf.pretraining.training.pretrain import (
    check_fits,
    model_identity,
    same_network,
    with_masks,
)
from albert_tf.pretraining.training.run import Run
from albert_tf.pretraining.training.training_loop import Watch, train
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelledRun(Run):
    """Settings of the stage on labelled texts, which trains on one host.

    Args:
        steps: int. Number of training batches.
        minutes: optional float, instead of `steps`: the number of steps follows from a
            trial of each length of batches.
        batch_tokens: int. Tokens of the labelled texts per batch, padding included.
        shares: tuple of floats. Sequences of text, and pairs of similar texts, that
            join a batch, per labelled text.
        learning_rate: optional float, the peak of a warm-up and linear decay over the
            steps, instead of the rate of the optimizer.
        warmup_share: float. Share of the steps in which that rate rises.
        masks: optional `WholeWordMaskGenerator`. By default masked records keep their
            masks, and others are masked with `records.masks()`.
        seed: int from 0 to 2**31 - 1, of order, segments, masks and new heads.
        interval: optional int. Steps between two entries of the history. By default the
            largest number from 100 to 1,000 that divides the steps, or all steps; with
            `minutes` a twentieth of them.
        steps_per_call: int. Steps that a call of the device trains, more for a small
            model on a GPU.
        padded_lengths: ints. Sequences are padded to the next of these lengths, or to
            that of the longest. XLA compiles a program for each.
        settings: optional dict, further values that identify the run, such as the
            `data_digest` of the initial weights.

    Raises:
        AlbertError: unless one of `steps` and `minutes` is given, or for several
            `hosts`.

    Example:
    ```python
    run = albert_tf.pretraining.LabelledRun(steps=10_000, learning_rate=8e-4)
    ```
    """

    warmup_share: float = 0.05
    shares: tuple[float, float] = (0.25, 0.0625)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hosts != 1 or self.host != 0:
            raise AlbertError(
                "The stage on labelled texts trains on one host. Received: "
                f"hosts={self.hosts}, host={self.host}"
            )


def pretrain_labelled(
    network: keras.Model,
    labelled: LabelledRecords,
    records: PretrainingRecords,
    output: str | os.PathLike,
    run: LabelledRun,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    verbose: int | str = 1,
    progress: Callable[[int, int], Any] | None = None,
) -> dict[str, Any]:
    """Train a compiled network on labelled texts and text, and write the heads.

    It is resumed as `pretrain`.

    Args:
        network: a compiled `AlbertPretrainer`, or the result of `build_network`; its
            weights are those of a pretraining.
        labelled: a `LabelledRecords`.
        records: a `PretrainingRecords` of the same vocabulary, the text.
        output: string, the directory for the state and the heads, `heads.npz` and
            `heads.json`, of which `build_heads` builds tasks.
        run: a `LabelledRun`, the settings.
        callbacks: list of `keras.callbacks.Callback`.
        verbose: 0 for silence, 1 for a progress bar, 2 for a line per epoch.
        progress: optional function, called during the training with the numbers of
            completed steps and of all steps.

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
    run = albert_tf.pretraining.LabelledRun(steps=10_000, learning_rate=8e-4)
    albert_tf.pretraining.pretrain_labelled(network, labelled, records, "out", run)
    heads = albert_tf.pretraining.build_heads(network.backbone, "out")
    albert_tf.save_checkpoint(network, "my_heads", "albert_zh", heads=heads)
    ```
    """
    check_fits(network, records)
    check_same_tokens(labelled, records)
    check_length(network, labelled)
    run = with_masks(run, records)
    model = LabelledModel(same_network(network), labelled, run.masks, run.seed)
    shards = labelled.manifest["shards"]
    identity = {
        **model_identity(network, records),
        # The names contain a hash of the texts.
        "labelled": [shard["name"] for shard in shards],
    }
    done = train(
        model,
        network.optimizer,
        functools.partial(LabelledBatches, labelled, records, run, run.shares),
        run,
        output,
        identity,
        Watch(callbacks, verbose, progress),
    )
    write_heads(labelled.heads, model.dense_heads, output)
    return done


def check_length(network: keras.Model, labelled: LabelledRecords) -> None:
    """Raise if a network has too few positions for labelled texts."""
    positions = backbone_of(network).max_sequence_length
    if labelled.sequence_length > positions:
        raise AlbertError(
            f"The records of {labelled.folder} have {labelled.sequence_length} tokens "
            f"per sequence, but the model has {positions} positions."
        )
