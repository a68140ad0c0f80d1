import contextlib
import functools
import warnings

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.backbone.presets import ReadablePresets
from albert_tf.layers.common import albert_initializer
from albert_tf.models.classifier_from_checkpoint import ClassifierFromCheckpoint
from albert_tf.preprocessing.examples import (
    check_class_ids,
    count_examples,
    is_pair,
    split_off,
)
from albert_tf.preprocessing.length_grouping import grouped_dataset, length_order
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
    check_fits,
)
from albert_tf.training import adamw, fine_tuning_learning_rate

DEFAULT_BATCH_SIZE = 32


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifier(
    ClassifierFromCheckpoint, ReadablePresets, keras_hub.models.TextClassifier
):
    """ALBERT with a classification head: strings or pairs of strings in.

    `fit`, `evaluate` and `predict` take strings as KerasHub's classifiers do.
    Lists and arrays are tokenized once and batched by length, so that little is
    padded: `predict` gives its results in the order of the texts, `fit` shuffles
    anew each epoch.

    Args:
        backbone: an `AlbertBackbone`.
        num_classes: int.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the
            inputs are ids already.
        activation: optional string or callable for the output, such as
            `"softmax"`. Without it the model gives logits.
        dropout: float. Rate between the pooled output and the head, apart from
            the encoder's own.
        labels: optional list of `num_classes` strings, the names of the classes.
        pairs: bool. Whether an example is a pair of texts, which decides what
            an exported model takes. `fit` sets it by what it is given.
        compile: bool. Compile with the defaults of `compile`.

    Returns:
        Logits, or what `activation` makes of them, [batch, num_classes].

    Raises:
        ValueError: if `labels` has not `num_classes` different names, if the
            vocabulary of the preprocessor is not that of the backbone, or if its
            `sequence_length` is more than the backbone has positions for.

    Example:
    ```python
    classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
        "albert_tiny_zh", num_classes=2
    )
    classifier.fit(["很好", "太差了"], [1, 0])
    classifier.predict(["还不错"])
    ```

    Reference:
        google-research/albert `classifier_utils.py`, `create_model`.
    """

    backbone_cls = AlbertBackbone
    preprocessor_cls = AlbertTextClassifierPreprocessor
    heads = ("classifier",)

    def __init__(
        self,
        backbone,
        num_classes,
        preprocessor=None,
        activation=None,
        dropout=0.1,
        labels=None,
        pairs=False,
        **kwargs,
    ):
        if labels is not None and len(set(map(str, labels))) != num_classes:
            raise ValueError(
                f"`labels` must name each of the {num_classes} classes, each "
                f"differently. Received {len(labels)}: {list(labels)}"
            )

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = keras.layers.Dropout(
            dropout, dtype=backbone.dtype_policy, name="output_dropout"
        )
        # In float32 whatever the encoder computes in: the loss is taken of it.
        self.output_dense = keras.layers.Dense(
            num_classes,
            kernel_initializer=albert_initializer(),
            activation=activation,
            dtype="float32",
            name="logits",
        )

        # === Functional Model ===
        inputs = backbone.input
        pooled = self.output_dropout(backbone.pool(inputs))
        outputs = self.output_dense(pooled)

        # === Config ===
        self.num_classes = num_classes
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.labels = None if labels is None else [str(label) for label in labels]

        self.pairs = pairs

        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        if "num_classes" in kwargs:
            # The preset's labels name the classes of its own head.
            kwargs.setdefault("labels", None)
        return super().from_preset(preset, load_weights, **kwargs)

    @property
    def class_names(self):
        """The labels, or the numbers of the classes if they have none."""
        return list(self.labels or map(str, range(self.num_classes)))

    @property
    def preprocessor(self):
        """The `AlbertTextClassifierPreprocessor`, or `None`."""
        return getattr(self, "_preprocessor", None)

    @preprocessor.setter
    def preprocessor(self, preprocessor):
        check_fits(preprocessor, self.backbone)
        self._preprocessor = preprocessor

    def compile(
        self,
        optimizer="auto",
        loss="auto",
        *,
        metrics="auto",
        learning_rate=None,
        **kwargs,
    ):
        """Configure training; as `keras.Model.compile`, with defaults that train.

        Args:
            optimizer: `"auto"`, or anything Keras takes. `"auto"` is AdamW with
                10% warm-up and linear decay, which begins anew with each `fit`
                and ends with its last step.
            loss: `"auto"` for the sparse categorical cross-entropy.
            metrics: `"auto"` for the accuracy.
            learning_rate: optional float, the peak for `optimizer="auto"`. By
                default by the size of the model: 1e-4 for tiny and small, 3e-5
                for base and large, 1e-5 above.
            **kwargs: passed on to `keras.Model.compile`. `jit_compile` is
                `False` unless given: on a CPU, XLA compiles anew for every
                length and makes training slower (measured).
        """
        if learning_rate is not None and optimizer != "auto":
            raise ValueError(
                "`learning_rate` goes with optimizer='auto'; give it to your "
                "own optimizer otherwise."
            )
        if metrics == "auto":
            metrics = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        kwargs = {"jit_compile": False, **kwargs, "loss": loss, "metrics": metrics}
        self._auto_learning_rate = self._scheduled_steps = None
        # Another loss may want scores, or one column a class.
        self._labels_are_classes = loss == "auto"
        if optimizer == "auto":
            self._auto_learning_rate = learning_rate or fine_tuning_learning_rate(
                self.backbone.hidden_dim
            )
            # For `fit`, which knows the steps. A partial, since Keras would
            # track the metrics in a dict of ours as further ones.
            self._compile_with = functools.partial(super().compile, **kwargs)
            optimizer = adamw(self._auto_learning_rate)
        super().compile(optimizer=optimizer, **kwargs)

    def get_compile_config(self):
        config = super().get_compile_config()
        if self._auto_learning_rate is not None:
            config["optimizer"] = "auto"
            config["learning_rate"] = self._auto_learning_rate
        return config

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        sample_weight=None,
        validation_data=None,
        validation_split=None,
        shuffle=True,
        **kwargs,
    ):
        """Train on strings; as `keras.Model.fit`.

        Args:
            x: list or array of strings, the tuple of two such lists for pairs,
                or a `tf.data.Dataset` of `(x, y)` batches.
            y: int array [examples], the classes.
            batch_size: int, 32 by default.
            epochs: int.
            sample_weight: optional float array [examples].
            validation_data: optional `(x, y)`, `(x, y, sample_weight)` or
                dataset.
            validation_split: optional float, the share of the examples, from
                the end, to validate on.
            shuffle: bool. A new order each epoch.
            **kwargs: passed on to `keras.Model.fit`.

        Returns:
            A `keras.callbacks.History`.

        Raises:
            ValueError: if `x` and `y` have different lengths, are empty, or a
                class is not below `num_classes`.
        """
        self.pairs = is_pair(x)
        if self._takes_texts(x):
            if validation_split and validation_data is None:
                (x, y, sample_weight), validation_data = split_off(
                    x, y, sample_weight, validation_split
                )
            if isinstance(validation_data, tuple):
                validation_data = self._grouped(*validation_data, batch_size=batch_size)
            x = self._grouped(x, y, sample_weight, batch_size, shuffle=shuffle)
            y = sample_weight = batch_size = validation_split = None
        self._schedule_learning_rate(x, y, batch_size, epochs, **kwargs)
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

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Loss and metrics on strings; as `keras.Model.evaluate`.

        Args:
            x, y, batch_size, sample_weight: as for `fit`.
            **kwargs: passed on to `keras.Model.evaluate`.
        """
        if self._takes_texts(x):
            x = self._grouped(x, y, sample_weight, batch_size)
            y = sample_weight = batch_size = None
        return super().evaluate(
            x, y, batch_size=batch_size, sample_weight=sample_weight, **kwargs
        )

    def predict(self, x=None, batch_size=None, **kwargs):
        """Logits (or probabilities, by `activation`) of strings.

        Args:
            x: list or array of strings, the tuple of two such lists for pairs,
                or a dataset of batches.
            batch_size: int, 32 by default.
            **kwargs: passed on to `keras.Model.predict`.

        Returns:
            A float array [examples, num_classes], in the order of `x`.
        """
        if not self._takes_texts(x):
            return super().predict(x, batch_size=batch_size, **kwargs)
        if count_examples(x) == 0:
            return np.zeros((0, self.num_classes), "float32")
        tokens, first_lengths = self._tokenize(x)
        lengths = tokens.row_lengths()
        dataset = grouped_dataset(
            (tokens, first_lengths),
            lengths,
            self.preprocessor.packer.pad,
            batch_size or DEFAULT_BATCH_SIZE,
            shuffle=False,
        )
        self._trace_predict_function(dataset.element_spec)
        outputs = super().predict(dataset, **kwargs)
        in_order = np.empty_like(outputs)
        in_order[length_order(lengths)] = outputs
        return in_order

    def _trace_predict_function(self, spec):
        """Trace for any length at once.

        Keras would trace for the first shape, then for others of its batch size or
        length, then for any: three times the seconds of a deep model.
        """
        if self.predict_function is not None:
            return
        self.make_predict_function()
        function = self.predict_function
        if self.steps_per_execution == 1 and hasattr(function, "get_concrete_function"):
            function.get_concrete_function([spec])

    def _takes_texts(self, x):
        """Whether `x` is texts held in memory, which can be batched by length."""
        if isinstance(x, (str, bytes)) or (
            isinstance(x, tuple) and any(isinstance(part, (str, bytes)) for part in x)
        ):
            raise TypeError(
                "`x` should be a list of strings, or the tuple of two such lists, "
                f"not one example. Received: {x!r}"
            )
        texts = isinstance(x, (list, tuple)) or hasattr(x, "__array__")
        return texts and self.preprocessor is not None

    def _tokenize(self, x):
        tokens, first_lengths, cut = self.preprocessor.tokenize_and_pack(x)
        if cut:
            warnings.warn(
                f"{cut} of {len(first_lengths)} texts are longer than "
                f"sequence_length={self.preprocessor.sequence_length} tokens and "
                "were cut; what follows was not read.",
                stacklevel=3,
            )
        return tokens, first_lengths

    def _grouped(self, x, y=None, sample_weight=None, batch_size=None, shuffle=False):
        """A dataset of padded batches of like length."""
        classes = self.num_classes if self._labels_are_classes else None
        labels = check_class_ids(x, y, classes)
        tokens, first_lengths = self._tokenize(x)
        extras = [labels]
        if sample_weight is not None:
            extras.append(np.asarray(sample_weight, "float32"))
        pad = self.preprocessor.packer.pad
        return grouped_dataset(
            (tokens, first_lengths, *extras),
            tokens.row_lengths(),
            lambda tokens, first_lengths, *rest: (pad(tokens, first_lengths), *rest),
            batch_size or DEFAULT_BATCH_SIZE,
            shuffle,
        )

    def _schedule_learning_rate(
        self, x, y, batch_size, epochs, initial_epoch=0, steps_per_epoch=None, **_
    ):
        """Give the default optimizer its schedule for the steps of this `fit`."""
        if self._auto_learning_rate is None:
            return
        if steps_per_epoch:
            steps = steps_per_epoch
        elif isinstance(x, tf.data.Dataset):
            steps = int(x.cardinality())
        else:
            steps = -(-len(y) // (batch_size or DEFAULT_BATCH_SIZE))
        # A dataset that does not know its length trains at a constant rate.
        done = max(steps, 0) * initial_epoch
        steps = max(steps, 0) * epochs
        if steps == self._scheduled_steps:
            # As new, but without tracing the training step again.
            for variable in self.optimizer.variables:
                variable.assign(keras.ops.zeros_like(variable))
        else:
            self._compile_with(optimizer=adamw(self._auto_learning_rate, steps))
            self._scheduled_steps = steps
        self.optimizer.iterations.assign(done)

    def save_task_weights(self, filepath):
        with self._without_optimizer():
            super().save_task_weights(filepath)

    def load_task_weights(self, filepath):
        with self._without_optimizer():
            super().load_task_weights(filepath)

    @contextlib.contextmanager
    def _without_optimizer(self):
        """KerasHub would keep the optimizer's state of all weights in a preset."""
        optimizer, self.optimizer = self.optimizer, None
        try:
            yield
        finally:
            self.optimizer = optimizer

    def get_config(self):
        config = super().get_config()
        config.update(
            num_classes=self.num_classes,
            activation=keras.activations.serialize(self.activation),
            dropout=self.dropout,
            labels=None if self.labels is None else list(self.labels),
            pairs=self.pairs,
        )
        return config
