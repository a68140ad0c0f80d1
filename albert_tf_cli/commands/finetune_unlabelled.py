"""The steps of `albert-tf finetune` that learn from texts without labels."""

import dataclasses
import pathlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from albert_tf_cli.commands.finetune_options import FinetuneOptions
from albert_tf_cli.shared.column_options import columns_of
from albert_tf_cli.shared.console import console
from albert_tf_cli.shared.new_models import new_model
from albert_tf_cli.shared.progress import interruptible
from albert_tf_cli.tasks import Examples, Task
from albert_tf_cli.tasks.unlabelled import Unlabelled, read_unlabelled
from albert_tf_lite.errors import AlbertError

if TYPE_CHECKING:
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.models import AlbertTask

# The adapted checkpoint, in the directory of the model.
ADAPTED = "adapted"
# The share of the tokens to predict. Of 0.15 and 0.3, the latter gave more.
MASK_RATE = 0.3


@dataclasses.dataclass(frozen=True)
class Adapted:
    """A checkpoint that has learned texts without labels.

    Attributes:
        weights: dict of the weights of the backbone's layers, by their names.
        metrics: dict, what `adapt` returned, and the number of texts `left_out`.
    """

    weights: dict[str, list[np.ndarray]]
    metrics: dict[str, Any]

    def load_into(self, backbone: "AlbertBackbone") -> None:
        """Set the weights of a backbone, which may have a pooler or none."""
        for layer in backbone.layers:
            # A pooler that the checkpoint lacks is new.
            if layer.name in self.weights:
                layer.set_weights(self.weights[layer.name])


def read_texts(
    options: FinetuneOptions, task: Task, parts: dict[str, Examples]
) -> Unlabelled | None:
    """Read the files of --unlabelled; raise if only its other options are given."""
    if options.unlabelled:
        return read_unlabelled(task, options.unlabelled, columns_of(options), parts)
    if options.minutes is not None:
        raise AlbertError("--minutes bounds the time for --unlabelled. Pass both.")
    return None


def distrust_head(model: "AlbertTask", train: Examples) -> None:
    """Take a head that was trained for other weights as a new one, and warn."""
    if model.heads and model.is_trained_for(train.x, train.y):
        warnings.warn(
            "The checkpoint has a head for these labels, which belongs to its weights "
            "before --unlabelled. Compare the scores with a training without "
            "--unlabelled, which may be better, for entities above all.",
            stacklevel=2,
        )
        model.starts_trained = False


def adapt_to(
    context: typer.Context, options: FinetuneOptions, unlabelled: Unlabelled
) -> Adapted:
    """Train the checkpoint on the texts without labels and those of train."""
    import zh
    from albert_tf.models import AlbertMaskedLM
    from albert_tf.tools import Adaptation, adapt

    model = new_model(
        AlbertMaskedLM,
        options.checkpoint,
        options.config,
        options.vocab,
        options.sequence_length,
        {"mask_selection_rate": MASK_RATE},
    )
    model.preprocessor.segmenter = zh.Jieba()
    model.compile(learning_rate=model.adaptation_learning_rate)
    folder = pathlib.Path(options.output) / ADAPTED
    settings = Adaptation(minutes=options.minutes, seed=options.seed)
    console.print(
        f"Learning {unlabelled.count:,} examples without labels and those of train "
        f"({unlabelled.left_out:,} left out, which are in dev or test)",
        soft_wrap=True,
    )
    with interruptible(context) as progress:
        metrics = adapt(model, unlabelled.texts, folder, settings, **progress)
    losses = metrics["history"]["loss"]
    console.print(
        f"Epochs: {metrics['epochs']}, loss {losses[0]:.3f} to {losses[-1]:.3f}, "
        f"{metrics['seconds']} s. The adapted checkpoint is in {folder}",
        soft_wrap=True,
    )
    metrics["left_out"] = unlabelled.left_out
    weights = {layer.name: layer.get_weights() for layer in model.backbone.layers}
    return Adapted(weights, metrics)
