"""`fit`, `evaluate` and `predict` on lists of strings."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.models.keras_warnings import of_unknown_length, with_unread_pooler
from albert_tf.models.predicting import predict_by_engine, predict_grouped
from albert_tf.models.text_answers import AnswersTexts
from albert_tf.models.token_outputs import (
    outputs_of_nothing,
    pad_target,
    split_ragged,
    targets_of_one_type,
    without_padding,
)
from albert_tf.preprocessing.examples import (
    check_batched,
    count_examples,
    count_steps,
    is_pair,
    split_off,
)
from albert_tf.preprocessing.length_grouping import (
    GroupedTexts,
    bucketed_dataset,
    first_batch_size,
    longest_rows,
    most_texts,
)
from albert_tf.preprocessing.texts import Texts
from albert_tf.preprocessing.token_budget import TokenBudget, check_budget
from albert_tf.training.loss_watch import with_loss_watch

DEFAULT_BATCH_SIZE = 32
# Without one, batches have as many tokens as 32 texts of full length; of so many, which
# keep the cores busy, no more where that means more padding.
ENOUGH_TOKENS = 512


class FitsTexts(AnswersTexts):
    """A task on texts: lists are tokenized once and batched by length.

    The task supplies `targets` and `answers`. An output whose second axis is that of
    the tokens is predicted for the tokens of each text alone, without padding.

    Attributes:
        pairs: bool. Whether an example is a pair of texts; `fit` sets it.
    """

    pairs = False
    _was_fitted = False

    def targets(self, x: Texts, y: Any) -> Any:
        """Check what `fit` was given as `y`, and turn it into what the loss takes.

        Args:
            x: the texts.
            y: their labels, in the form of the task.

        Returns:
            An array [examples, ...]; or a `tf.RaggedTensor` [examples, (tokens)],
            which is padded as the tokens are, with `PADDING_TARGET`; or a dict of
            these, by output.
        """
        raise NotImplementedError

    def dataset_targets(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """As `targets`, of a dataset of `(x, y)` or `(x, y, sample_weight)` batches."""
        return dataset

    def fit(
        self,
        x: Texts | tf.data.Dataset | None = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        sample_weight: Any = None,
        validation_data: Any = None,
        validation_split: float | None = None,
        shuffle: bool = True,
        group_by_length: bool = False,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Train on strings; as `keras.Model.fit`.

        Args:
            x: list or array of strings, the tuple of two such lists for pairs, or a
                `tf.data.Dataset` of `(x, y)` or `(x, y, sample_weight)` batches.
            y: what the task learns of each text; for a classifier an int array
                [examples], the classes.
            batch_size: int, 32 by default.
            epochs, sample_weight, validation_split, shuffle: as Keras takes them.
            validation_data: optional `(x, y)`, `(x, y, sample_weight)` or dataset.
            group_by_length: bool. Make new batches, as large as its first one, of
                the texts of a dataset, so that little is padded, as those of lists
                always are.
            max_tokens: optional int, in place of `batch_size`: a batch has as many
                examples as fit in so many tokens, padding included. A text in a batch
                of few counts for more than one of many. Of lists, and of datasets with
                `group_by_length`, whose learning rate is then constant.
            **kwargs: passed on to `keras.Model.fit`.

        Raises:
            AlbertError: if `x` and `y` are of unequal lengths or empty, or from
                `targets`.
        """
        batch_size = self._batching(x, batch_size, max_tokens, group_by_length)
        x, validation_data = map(self._with_targets, (x, validation_data))
        pairs = is_pair(x)
        self.pairs = self.pairs if pairs is None else pairs
        if self._takes_texts(x):
            if validation_split and validation_data is None:
                (x, y, sample_weight), validation_data = split_off(
                    x, y, sample_weight, validation_split
                )
            if isinstance(validation_data, tuple):
                validation = self._grouped(*validation_data, batch_size=batch_size)
                validation_data = validation.dataset
            options = {"batch_size": batch_size or DEFAULT_BATCH_SIZE}
            x = self._grouped(x, y, sample_weight, shuffle=shuffle, **options).dataset
            y = sample_weight = batch_size = validation_split = None
        steps = kwargs.get("steps_per_epoch") or count_steps(
            x, y, batch_size or DEFAULT_BATCH_SIZE, validation_split
        )
        self.schedule_learning_rate(steps, epochs, kwargs.get("initial_epoch", 0))
        if group_by_length:
            x = self._bucketed(x, batch_size)
            validation_data = self._bucketed(validation_data, batch_size)
        if isinstance(batch_size, TokenBudget):
            batch_size = None
        if not (self._was_fitted or kwargs.get("initial_epoch")):
            kwargs["callbacks"] = with_loss_watch(kwargs.get("callbacks"))
        self._was_fitted = True
        with of_unknown_length(group_by_length), with_unread_pooler():
            return super().fit(
                x,
                y,
                batch_size=batch_size,
                epochs=epochs,
                sample_weight=sample_weight,
                validation_data=validation_data,
                validation_split=validation_split,
                # Keras warns that it will not shuffle a dataset.
                shuffle=shuffle and not isinstance(x, tf.data.Dataset),
                **kwargs,
            )

    def evaluate(
        self,
        x: Texts | tf.data.Dataset | None = None,
        y: Any = None,
        batch_size: int | None = None,
        sample_weight: Any = None,
        group_by_length: bool = False,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Loss and metrics on strings, given as for `fit`."""
        batch_size = self._batching(x, batch_size, max_tokens, group_by_length)
        x = self._with_targets(x)
        if self._takes_texts(x):
            x = self._grouped(x, y, sample_weight, batch_size=batch_size).dataset
            y = sample_weight = batch_size = None
        elif group_by_length:
            x = self._bucketed(x, batch_size)
            batch_size = None if max_tokens else batch_size
        with of_unknown_length(group_by_length):
            return super().evaluate(
                x, y, batch_size=batch_size, sample_weight=sample_weight, **kwargs
            )

    def predict(
        self,
        x: Texts | tf.data.Dataset | None = None,
        batch_size: int | None = None,
        max_tokens: int | None = None,
        engine: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """The outputs of the model for strings.

        Args:
            x, max_tokens: as for `fit`; the latter of lists.
            batch_size: optional int, by default more than 32 where texts are short.
            engine: optional `"onnx"` or `"litert"`, extras of these names, for lists:
                compute in 8 bits, faster, of a file that is made for new weights.
            **kwargs: passed on to `keras.Model.predict`.

        Returns:
            An array [examples, ...] for each output, in the order of `x`. Where an
            output has an axis for the tokens, a list of arrays [tokens, ...], the
            special tokens included.

        Raises:
            ImportError, TypeError, ValueError: if the engine is not installed, is not
                for the task, or does not take `x`.
        """
        if engine is not None:
            return predict_by_engine(self, x, engine, batch_size, max_tokens)
        batch_size = self._batching(x, batch_size, max_tokens)
        if not self._takes_texts(x):
            return split_ragged(super().predict(x, batch_size=batch_size, **kwargs))
        if count_examples(x) == 0:
            return outputs_of_nothing(self.output)
        texts = self._grouped(x, batch_size=batch_size)
        return predict_grouped(self, texts, super().predict, **kwargs)

    def predict_step(self, data: Any) -> Any:
        """As Keras', without the outputs of padding."""
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        outputs = super().predict_step(data)
        return without_padding(outputs, self.output, self.predicted_mask(x))

    def predicted_mask(self, x: dict[str, tf.Tensor]) -> tf.Tensor:
        """1 for each place that outputs with an axis for tokens are kept of, else 0."""
        return x["padding_mask"]

    def _with_targets(self, x):
        if not isinstance(x, tf.data.Dataset):
            return x
        return targets_of_one_type(self.dataset_targets(check_batched(x)))

    def _takes_texts(self, x):
        """Whether `x` is texts held in memory, which can be batched by length."""
        parts = x if isinstance(x, tuple) else (x,)
        if any(isinstance(part, (str, bytes)) for part in parts):
            raise TypeError(
                "`x` should be a list of strings, or the tuple of two such lists, "
                f"not one example. Received: {x!r}"
            )
        texts = isinstance(x, (list, tuple)) or hasattr(x, "__array__")
        return texts and self.preprocessor is not None

    def _grouped(self, x, *labels, batch_size=None, shuffle=False):
        """The texts, and if given `y` and weights, in padded batches of like length."""
        if labels:
            y, *weights = labels
            weights = [np.asarray(x, "float32") for x in weights if x is not None]
            labels = (y, *weights)
        tokens, first_lengths, *labels = self._examples(x, *labels)
        packer = self.preprocessor.packer
        if batch_size is None:
            most = DEFAULT_BATCH_SIZE * packer.sequence_length
            batch_size = TokenBudget(most, packer, ENOUGH_TOKENS)

        def pad(tokens, first_lengths, *labels):
            features = packer.pad(tokens, first_lengths)
            shape = tf.shape(features["token_ids"], tf.int64)
            labels = tf.nest.map_structure(lambda x: pad_target(x, shape), labels)
            return (features, *labels) if labels else features

        return GroupedTexts.of(
            (tokens, first_lengths, *labels),
            longest_rows(tokens),
            pad,
            batch_size,
            shuffle,
            most_texts(tokens),
        )

    def _examples(self, x, *labels):
        """Packed tokens and their first lengths; of `y` and weights, the targets."""
        if labels:
            y, *weights = labels
            labels = (self.targets(x, y), *weights)
        tokens, first_lengths, cut = self.preprocessor.tokenize_and_pack(x)
        if cut:
            warnings.warn(
                f"{cut} of {count_examples(x)} texts are longer than "
                f"sequence_length={self.preprocessor.sequence_length} tokens and "
                "were cut; what follows was not read.",
                stacklevel=4,
            )
        return tokens, first_lengths, *labels

    def _batching(self, x, batch_size, max_tokens, grouped=False):
        """What a batch has: a number of examples, or a `TokenBudget`."""
        if max_tokens is None:
            return batch_size
        is_dataset = isinstance(x, tf.data.Dataset)
        can_group = grouped and is_pair(x) is not None
        check_budget(
            batch_size, max_tokens, can_group if is_dataset else self._takes_texts(x)
        )
        return TokenBudget(max_tokens, self.preprocessor.packer)

    def _bucketed(self, x, batch_size=None):
        """A dataset of string batches as one of padded batches of like length."""
        if not isinstance(x, tf.data.Dataset) or is_pair(x) is None:
            return x
        if not isinstance(batch_size, TokenBudget):
            batch_size = first_batch_size(x)
        packer = self.preprocessor.packer
        return bucketed_dataset(x, self.preprocessor.pack, packer, batch_size)
