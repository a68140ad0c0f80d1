"""Continue the pretraining of a checkpoint on texts without labels."""

import dataclasses
import math
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np

from albert_tf.files import BACKUP, read_json, write_json
from albert_tf.models.albert_masked_lm import AlbertMaskedLM
from albert_tf.training.batch_order import remaining_batches
from albert_tf.training.digests import data_digest, model_digest
from albert_tf.training.run_state import TrainingState, hold_state
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts, check_integer

# Passes over few texts, and the number of texts in all passes over many. 4 passes over
# 6,500 headlines led to the accuracy of 6, after the model learned its own labels.
MOST_EPOCHS, TEXTS_IN_ALL = 6, 30_000
# Batches that are timed for a number of minutes.
TIMED_BATCHES = 8


@dataclasses.dataclass(frozen=True)
class Adaptation:
    """Options of `adapt`.

    Attributes:
        epochs: optional int, by default 6, and fewer for more than 5,000 texts.
        minutes: optional float, the most that the training may take. Its texts, a
            random sample, and its passes are as many as a trial of some batches allows.
        batch_size: int, texts per step.
        seed: int. It determines the order of the texts and the masks.
    """

    epochs: int | None = None
    minutes: float | None = None
    batch_size: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs is not None:
            check_integer("epochs", self.epochs)
        check_integer("batch_size", self.batch_size)
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise AlbertError(
                f"`minutes` must be a positive number. Received: {self.minutes}"
            )


@dataclasses.dataclass(frozen=True)
class _Length:
    """The length of a training.

    Attributes:
        texts, epochs: ints, the texts of an epoch and the passes over them.
    """

    texts: int
    epochs: int


def adaptation_epochs(texts: int) -> int:
    """Return the default passes over a number of texts.

    Example:
    ```python
    print(albert_tf.tools.adaptation.adaptation_epochs(6500))  # 4
    ```
    """
    return min(max(TEXTS_IN_ALL // texts, 1), MOST_EPOCHS)


def adapt(
    model: AlbertMaskedLM,
    texts: Iterable[str],
    output: str | os.PathLike,
    options: Adaptation | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    verbose: int | str = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> dict[str, Any]:
    """Adapt a model to texts without labels, and write it as a checkpoint.

    The model learns to fill masked tokens of texts of the domain, after which few
    labels give more. Any task starts from the checkpoint. An interrupted run resumes
    when it is started again with the same texts and options, as `fine_tune`; its state
    stays in `output` until the caller removes it.

    Args:
        model: a compiled `AlbertMaskedLM`.
        texts: list of strings. Each text counts once.
        output: path of the directory to write.
        options: optional `Adaptation`.
        callbacks: optional callbacks of Keras.
        verbose: 0 for silence, 1 for a progress bar, 2 for a line per epoch.
        progress: optional function that is called after each step with the numbers of
            completed steps and of all steps.

    Returns:
        A dict of `texts`, the number of different texts, `epochs`, `seconds` and
        `history`.

    Raises:
        AlbertError: if there is no text, or the state in `output` is that of another
            run.

    Example:
    ```python
    masked_lm = albert_tf.models.AlbertMaskedLM.from_checkpoint("albert_micro_zh")
    albert_tf.tools.adapt(masked_lm, texts, "adapted")
    classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
        "adapted", num_classes=2
    )
    ```

    Reference:
        [Don't stop pretraining, section 4](https://arxiv.org/abs/2004.10964).
    """
    options = options or Adaptation()
    distinct = [text for text in dict.fromkeys(as_texts(texts)) if text.strip()]
    if not distinct:
        raise AlbertError("There are no texts to adapt to: all are empty.")
    output = pathlib.Path(output)
    backup = output / BACKUP
    identity = {
        **dataclasses.asdict(options),
        "texts": data_digest(distinct),
        "model": model_digest(model),
    }
    with hold_state(backup, identity):
        length = _length(model, distinct, options, backup)
        chosen = _sample(distinct, length.texts, options.seed)
        state = TrainingState(backup, progress=progress)
        if state.epochs < length.epochs:
            state.fit(
                model,
                length.epochs,
                remaining_batches(state, options.seed, [state, *callbacks]),
                x=chosen,
                batch_size=options.batch_size,
                verbose=verbose,
            )
        else:
            state.load(model)
        model.save_to_preset(str(output))
    return {
        "texts": len(chosen),
        "epochs": length.epochs,
        "seconds": state.seconds,
        "history": state.history,
    }


def _sample(texts: Sequence[str], count: int, seed: int) -> list[str]:
    """Return a random choice of texts in their order."""
    if count == len(texts):
        return list(texts)
    rows = np.random.default_rng(seed).permutation(len(texts))[:count]
    return [texts[row] for row in np.sort(rows)]


# === The length of a training in minutes ===


def _length(
    model: AlbertMaskedLM, texts: list[str], options: Adaptation, backup: pathlib.Path
) -> _Length:
    """Return the length of a training; one that follows from minutes is stored once."""
    epochs = options.epochs or adaptation_epochs(len(texts))
    if options.minutes is None:
        return _Length(len(texts), epochs)
    file = backup / "length.json"
    if file.exists():
        return _stored_length(file)
    allowed = 60 * options.minutes / _seconds_per_text(model, texts, options)
    length = _length_of(len(texts), epochs, allowed, options.batch_size)
    write_json(file, dataclasses.asdict(length))
    return length


def _stored_length(file: pathlib.Path) -> _Length:
    """Return the length in a file; raise if that is damaged."""
    fields = read_json(file, dict)
    names = {field.name for field in dataclasses.fields(_Length)}
    if fields.keys() != names or not all(type(x) is int for x in fields.values()):
        raise AlbertError(
            f"{file} is damaged: it must hold numbers of {sorted(names)}. Remove "
            f"{file.parent} to start over."
        )
    return _Length(**fields)


def _length_of(texts: int, epochs: int, allowed: float, batch_size: int) -> _Length:
    """Return a length of at most `allowed` texts in all epochs, but for one batch."""
    if allowed >= texts:
        return _Length(texts, min(epochs, int(allowed / texts)))
    return _Length(min(max(int(allowed), batch_size), texts), 1)


def _seconds_per_text(
    model: AlbertMaskedLM, texts: list[str], options: Adaptation
) -> float:
    """Return the mean duration of a text in training, and keep the model as it was."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    variables = [*model.variables, *model.optimizer.variables]
    before = [np.array(variable) for variable in variables]
    size = options.batch_size
    trial = _sample(texts, min(size * TIMED_BATCHES, len(texts)), options.seed)
    # The first pass compiles.
    model.fit(trial, batch_size=size, epochs=1, verbose=0)
    start = time.monotonic()
    model.fit(trial, batch_size=size, epochs=1, verbose=0)
    seconds = time.monotonic() - start
    for variable, value in zip(variables, before, strict=True):
        variable.assign(value)
    return seconds / len(trial)
