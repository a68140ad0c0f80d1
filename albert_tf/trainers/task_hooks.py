"""The attributes and methods in which tasks differ, as trainers use them."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.backbone.presets import Presets
from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.trainers.batching import BatchOptions, TextBatches, text_batches
from albert_tf.trainers.class_weights import (
    ClassWeight,
    balanced_weights,
    check_class_weight,
    weights_by_id,
)
from albert_tf.trainers.datasets import (
    batches_of_ids,
    check_no_strings,
    check_targets_per_token,
    with_targets_of_one_type,
    with_weights_per_token,
)
from albert_tf.trainers.examples import (
    Column,
    Examples,
    Inputs,
    read_examples,
    refuse_for_datasets,
)
from albert_tf.trainers.keras_metrics import (
    Loss,
    Metrics,
    OutputsAre,
    TargetsAre,
    TaskOutputs,
)
from albert_tf.trainers.labels import scores
from albert_tf.trainers.prediction import Outputs
from albert_tf.training import fine_tuning_learning_rate, lower_learning_rate
from albert_tf_lite.errors import AlbertError

# Heads with a meaning that the names of their labels tell.
_LABELLED_HEADS = {"classifier", "token_classifier"}
# Keras replaces the bases of functional models, so this class cannot be one itself: a
# task inherits from it, then from a class of KerasHub.
_Model: Any = Presets


class TaskHooks(_Model):
    """The attributes and methods of a task that trainers read and call.

    All methods have defaults but `targets`. `AlbertTask` documents the attributes.
    """

    # A preprocessor of texts, or `None` if the task takes ids.
    preprocessor: Any
    preprocessor_cls: Any = None
    heads: tuple[str, ...] = ()
    keeps_pooler = False
    labels: list | None = None
    pairs = False
    starts_trained = False
    reads_windows = False
    takes_class_weight = False
    ignored_class: int | None = None
    outputs_are: OutputsAre = "logits"
    targets_are: TargetsAre = "ids"
    weights_targets = False

    # === Heads ===

    @classmethod
    def read_heads(
        cls, checkpoint: Checkpoint, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """Return the arguments with those of the checkpoint, and the heads it lacks."""
        stored: dict[str, Any] = {}
        for head in cls.heads:
            stored.update(checkpoint.head_config(head))
        missing = [head for head in cls.heads if head not in checkpoint.heads]
        return {**stored, **arguments}, missing

    @classmethod
    def has_heads_in(cls, checkpoint: Checkpoint) -> bool:
        """Return whether a checkpoint has the trained heads of the task."""
        return set(cls.heads) <= set(checkpoint.heads)

    # === Compiling ===

    def default_loss(self) -> Loss:
        """Return the loss: the cross-entropy of each output with class ids.

        Targets of `ignored_class` do not count.
        """
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=self.ignored_class
        )
        outputs = self.output
        return dict.fromkeys(outputs, loss) if isinstance(outputs, dict) else loss

    def default_metrics(self) -> dict[str, Metrics]:
        """Return the metrics of the task, as arguments of `keras.Model.compile`."""
        return {"metrics": None}

    @property
    def default_learning_rate(self) -> float:
        """The peak learning rate of `optimizer="auto"`."""
        stored = self.backbone.fine_tuning.get("learning_rate")
        return stored or fine_tuning_learning_rate(self.backbone.hidden_dim)

    def lowered_rate(self, rate: float, examples: int) -> float:
        """Return a learning rate for few examples of labels that the head has."""
        is_labelled = not _LABELLED_HEADS.isdisjoint(self.heads)
        if is_labelled and self.starts_trained:
            return lower_learning_rate(rate, examples)
        return rate

    @property
    def task_outputs(self) -> TaskOutputs:
        """The kinds of outputs and targets, which losses and metrics must fit."""
        activation = getattr(self, "probability_activation", None)
        return TaskOutputs(
            task=type(self).__name__,
            outputs_are=self.outputs_are,
            targets_are=self.targets_are,
            ignored_class=self.ignored_class,
            weights_targets=self.weights_targets,
            default_loss=self.default_loss(),
            activation=None if activation is None else activation.__name__,
            names=tuple(self.output) if isinstance(self.output, dict) else (),
        )

    # === Examples in ===

    def read_examples(
        self,
        x: Inputs | Examples,
        y: Column | None = None,
        sample_weight: Column | None = None,
    ) -> Examples:
        """Read what a user passes; without a preprocessor, data in memory are ids."""
        takes_texts = self.preprocessor is not None
        return read_examples(x, y, sample_weight, takes_texts=takes_texts)

    def adapt_to(self, examples: Examples) -> None:
        """Set what depends on the examples of a training, such as `pairs`.

        `fit` calls it once, before it makes batches.
        """
        if examples.is_pair is not None:
            self.pairs = examples.is_pair

    def is_trained_for(self, x: Inputs, y: Column | None) -> bool:
        """Return whether the model, before training, is one for such labels."""
        return self.starts_trained

    def targets(
        self, x: Inputs, y: Column | None, packed: PackedTexts | None = None
    ) -> Any:
        """Return what the loss compares the outputs of `packed` with.

        That is an array [rows, ...]; a `tf.RaggedTensor` [rows, (tokens)], which is
        padded with `PADDING_TARGET`; or a dict of these by output.
        """
        raise NotImplementedError

    def examples_to_predict(self, x: Inputs | Examples) -> Examples:
        """Read the `x` of `predict`; tasks with windows read datasets into memory."""
        examples = self.read_examples(x)
        self._check_pairs(examples)
        return examples.in_memory() if self.reads_windows else examples

    def _check_pairs(self, examples):
        """Raise if examples are single texts and the model was trained on pairs."""
        takes_pairs = self.pairs and self.text_inputs == ("text", "text_b")
        if takes_pairs and examples.is_pair is False:
            raise AlbertError(
                "This model takes pairs of texts: the tuple of two lists, "
                "(first_texts, second_texts). Received single texts."
            )

    # === Batches ===

    def batches(self, examples: Examples, options: BatchOptions) -> tf.data.Dataset:
        """Return the batches of `fit` or `evaluate`: features, targets and weights."""
        self._check_pairs(examples)
        if examples.kind == "texts":
            batches = self.training_batches(examples, options)
            return with_weights_per_token(batches, self.output)
        refuse_for_datasets(max_tokens=options.max_tokens)
        if examples.kind == "ids":
            examples = batches_of_ids(examples, options)
        dataset = self.prepare_dataset(examples, options.fixed)
        if self.ignored_class is not None:
            check_targets_per_token(dataset)
        dataset = with_weights_per_token(dataset, self.output)
        needs_labels = self.takes_class_weight and not self.labels
        check_no_strings(dataset, type(self).__name__, needs_labels)
        return with_targets_of_one_type(dataset)

    def training_batches(
        self, examples: Examples, options: BatchOptions
    ) -> tf.data.Dataset:
        """Return texts in memory as batches of features, targets and weights."""
        packed = self.preprocessor.pack_texts(examples.x)
        targets = self.targets(examples.x, examples.y, packed)
        labels = [targets]
        if examples.sample_weight is not None:
            weights = scores(examples.x, examples.sample_weight, "sample_weight")
            labels.append(packed.of_rows(weights))
        batches = text_batches(self.preprocessor, packed, *labels, **options.sizes)
        return batches.dataset

    def prepare_dataset(self, examples: Examples, fixed: bool) -> tf.data.Dataset:
        """Return a dataset for the model, to train on or (`fixed`) to evaluate."""
        if self.reads_windows and examples.are_texts:
            raise TypeError(
                f"{type(self).__name__} learns from lists. Received a dataset of texts."
            )
        return examples.x

    def prediction_batches(
        self,
        packed: PackedTexts,
        batch_size: int | None = None,
        max_tokens: int | None = None,
    ) -> TextBatches:
        """Return the rows to predict in batches."""
        return text_batches(
            self.preprocessor, packed, batch_size=batch_size, max_tokens=max_tokens
        )

    # === Class weights ===

    def check_class_weight(self, class_weight: ClassWeight, examples: Examples) -> None:
        """Raise unless `class_weight` of `fit` is for the task and its examples."""
        if class_weight is not None and not self.takes_class_weight:
            raise AlbertError(
                "`class_weight` is for classifiers with one class per text. Use "
                f"`sample_weight` or your own loss for {type(self).__name__}."
            )
        check_class_weight(class_weight, examples)

    def weights_by_id(
        self, class_weight: ClassWeight, examples: Examples
    ) -> dict[int, float] | None:
        """Return the `class_weight` of `fit` by class id."""
        if class_weight is None:
            return None
        if isinstance(class_weight, dict):
            return weights_by_id(class_weight, self.num_classes, self.labels)
        targets = np.asarray(self.targets(examples.x, examples.y))
        # One column per class, for another loss.
        ids = targets.argmax(axis=-1) if targets.ndim > 1 else targets
        return dict(enumerate(balanced_weights(ids, self.num_classes)))

    # === Outputs ===

    def predicted_mask(self, x: dict[str, tf.Tensor]) -> tf.Tensor | None:
        """Return the mask of places to keep in outputs per token; `None` for all."""
        return x["padding_mask"]

    def predictions(
        self, x: Inputs, packed: PackedTexts | None, outputs: Outputs
    ) -> Any:
        """Return what `predict` returns; `packed` is `None` for ids and datasets."""
        return outputs
