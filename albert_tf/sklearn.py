"""A text classifier for scikit-learn: `albert_tf.sklearn.TextClassifier`."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any, Self

import keras
import numpy as np

from albert_tf.extras import import_extra
from albert_tf.models import AlbertTextClassifier
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import complete

# Raises an error that names the command which installs it.
import_extra("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin  # noqa: E402
from sklearn.utils import check_random_state, column_or_1d  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

# The largest seed that NumPy takes, in a signed integer of any system.
_MAX_SEED = 2**31 - 1


class TextClassifier(ClassifierMixin, BaseEstimator):
    """Fine-tuned ALBERT as a scikit-learn classifier of texts.

    Each `fit` starts from the checkpoint and trains an `AlbertTextClassifier` on all
    texts. The estimator can be cloned and pickled, fitted or not; a pickle holds the
    weights. It works in `cross_val_score`, `GridSearchCV`, `CalibratedClassifierCV`,
    pipelines and cleanlab. Use `n_jobs=1` (the default there), because one training
    uses all cores.

    Args:
        checkpoint: string or path, what `AlbertTextClassifier.from_checkpoint` takes,
            such as `"albert_micro_zh"` or a directory. If it has a head for the labels
            of `y`, the training starts from that.
        epochs: optional int. By default as `AlbertTextClassifier.fit`: 3, and up to 30
            for fewer than 1,500 texts.
        batch_size: optional int. By default 16 for fewer than 10,000 texts, else 32.
        learning_rate: optional float, the peak of the schedule. By default that of the
            model's size.
        sequence_length: optional int. Maximum number of tokens per text; longer texts
            are truncated. `None` for the number of positions of the model.
        random_state: optional int or `numpy.random.RandomState`. `fit` passes it to
            `keras.utils.set_random_seed`, which seeds Python, NumPy and TensorFlow.
        verbose: int, that of `fit`: 0 for silence, 1 for a progress bar, 2 for a line
            per epoch.

    Attributes:
        classes_: array of the labels, sorted.
        model_: the fitted `AlbertTextClassifier`, which can be saved, exported and
            passed to `albert_tf.pipeline(path=...)`.

    Example:
    ```python
    from sklearn.model_selection import cross_val_score

    classifier = albert_tf.sklearn.TextClassifier(epochs=3, random_state=0)
    classifier.fit(["很好", "太差了"], ["好评", "差评"])
    classifier.predict_proba(["还不错"])  # [texts, classes], ordered as classes_
    cross_val_score(classifier, texts, labels, cv=2)
    ```
    """

    def __init__(
        self,
        checkpoint: str | os.PathLike = "albert_micro_zh",
        *,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        sequence_length: int | None = 128,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ):
        self.checkpoint = checkpoint
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.sequence_length = sequence_length
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fine-tune a new model on all texts.

        Args:
            X: strings [texts]: a list, an array, a Series or another column; for pairs
                a table of two columns [texts, 2], such as a list of tuples or a
                DataFrame.
            y: labels [texts], numbers or strings.
            sample_weight: optional numbers [texts], the weight of each text in the
                loss.

        Returns:
            This estimator.

        Raises:
            TypeError: if an element of `X` is not a string.
            AlbertError: if `X` has another form, the lengths differ, or `y` has missing
                labels or a single class.
        """
        texts = _read_texts(X)
        labels = column_or_1d(y, warn=True)
        complete(labels.tolist(), "y")
        check_classification_targets(labels)
        classes, ids = np.unique(labels, return_inverse=True)
        # The model has strings as labels, whatever their type in `y`.
        names = [str(label) for label in classes.tolist()]
        if self.random_state is not None:
            seed = check_random_state(self.random_state).randint(_MAX_SEED)
            keras.utils.set_random_seed(seed)
        model = AlbertTextClassifier.from_checkpoint(
            self.checkpoint, labels=names, sequence_length=self.sequence_length
        )
        model.compile(learning_rate=self.learning_rate)
        model.fit(
            texts,
            [names[i] for i in ids],
            batch_size=self.batch_size,
            epochs=self.epochs,
            verbose=self.verbose,
            sample_weight=sample_weight,
        )
        # Without the moments of the optimizer, pickles have a third of the size.
        model.compile()
        self.classes_ = classes
        self.model_ = model
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities [texts, classes], in the order of `classes_`.

        Args:
            X: texts, as for `fit`.

        Raises:
            sklearn.exceptions.NotFittedError: before `fit`.
        """
        check_is_fitted(self)
        outputs = self.model_.predict(_read_texts(X), verbose=0)
        return np.asarray(self.model_.probabilities(outputs))

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest label of each text.

        Args:
            X: texts, as for `fit`.

        Raises:
            sklearn.exceptions.NotFittedError: before `fit`.
        """
        positions = self.predict_proba(X).argmax(axis=1)
        return self.classes_[positions]

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__()}
        if "model_" in state:
            state["model_"] = _to_bytes(self.model_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {**state}
        if "model_" in state:
            state["model_"] = _from_bytes(state["model_"])
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.non_deterministic = self.random_state is None
        return tags


def _read_texts(X: Any) -> list | tuple[list, ...]:
    """Return a list of texts, or for a table of two columns the tuple of two lists."""
    table = np.asarray(X, dtype=object)
    if table.ndim == 1:
        return table.tolist()
    if table.ndim == 2 and table.shape[1] <= 2:
        columns = [column.tolist() for column in table.T]
        return columns[0] if len(columns) == 1 else tuple(columns)
    raise AlbertError(
        "`X` must be a list of strings, or for pairs a table of two columns. Received: "
        f"{type(X).__name__} of the shape {table.shape}"
    )


# A Keras model can be pickled, but then needs the optimizer's state, of twice the size
# of the weights.


def _to_bytes(model: AlbertTextClassifier) -> bytes:
    """Return a model as the content of a `.keras` file."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "model.keras")
        model.save(file)
        return file.read_bytes()


def _from_bytes(content: bytes) -> AlbertTextClassifier:
    """Load a model from the content of a `.keras` file."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "model.keras")
        file.write_bytes(content)
        return keras.saving.load_model(file, compile=False)
