"""Losses and metrics of Keras that fit what a task returns.

A name stands for the loss or metric that reads the outputs as what they are, logits or
probabilities. An object is used as it is, and refused if it reads them as the other.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import keras

from albert_tf.trainers.token_accuracy import TokenAccuracy
from albert_tf_lite.errors import AlbertError

_METRICS = keras.metrics
_LOSSES = keras.losses
# They decide by a threshold, 0.5 by default.
_WITH_THRESHOLD = (
    _METRICS.BinaryAccuracy,
    _METRICS.BinaryIoU,
    _METRICS.FalseNegatives,
    _METRICS.FalsePositives,
    _METRICS.Precision,
    _METRICS.Recall,
    _METRICS.TrueNegatives,
    _METRICS.TruePositives,
)
# They read probabilities, and have no option for logits.
_OF_PROBABILITIES = (
    _METRICS.KLDivergence,
    _METRICS.PrecisionAtRecall,
    _METRICS.RecallAtPrecision,
    _METRICS.SensitivityAtSpecificity,
    _METRICS.SpecificityAtSensitivity,
    _LOSSES.CategoricalGeneralizedCrossEntropy,
    _LOSSES.Dice,
    _LOSSES.KLDivergence,
    _LOSSES.Tversky,
)
_F_SCORES = (_METRICS.F1Score, _METRICS.FBetaScore)
# They read one class per example.
_OF_ONE_CLASS = (
    _METRICS.CategoricalAccuracy,
    _METRICS.CategoricalCrossentropy,
    _METRICS.CategoricalHinge,
    _METRICS.OneHotIoU,
    _METRICS.OneHotMeanIoU,
    _METRICS.SparseCategoricalAccuracy,
    _METRICS.SparseCategoricalCrossentropy,
    _METRICS.SparseTopKCategoricalAccuracy,
    _METRICS.TopKCategoricalAccuracy,
)
# They read targets with one column per class.
_OF_COLUMNS = (
    *_WITH_THRESHOLD,
    *_OF_PROBABILITIES,
    *_F_SCORES,
    _METRICS.AUC,
    _METRICS.BinaryCrossentropy,
    _METRICS.CategoricalAccuracy,
    _METRICS.CategoricalCrossentropy,
    _METRICS.OneHotIoU,
    _METRICS.OneHotMeanIoU,
    _METRICS.TopKCategoricalAccuracy,
    _METRICS.CategoricalHinge,
    _METRICS.CosineSimilarity,
    _METRICS.Hinge,
    _METRICS.MeanAbsoluteError,
    _METRICS.MeanSquaredError,
    _METRICS.Poisson,
    _METRICS.RootMeanSquaredError,
    _METRICS.SquaredHinge,
)


# A loss or metric of `compile`: an object, a function, a name, or a structure of these.
Loss: TypeAlias = (
    keras.losses.Loss | Callable | str | Sequence["Loss"] | Mapping[str, "Loss"] | None
)
Metrics: TypeAlias = (
    keras.metrics.Metric
    | Callable
    | str
    | Sequence["Metrics"]
    | Mapping[str, "Metrics"]
    | None
)
OutputsAre: TypeAlias = Literal["logits", "probabilities", "numbers", "vectors"]
TargetsAre: TypeAlias = Literal["ids", "columns"] | None


@dataclasses.dataclass(frozen=True)
class TaskOutputs:
    """Kinds of outputs and targets of a task, which losses and metrics must fit.

    Attributes:
        task: string, the name of its class for messages.
        outputs_are, targets_are, ignored_class, weights_targets: see `AlbertTask`.
        default_loss: the loss of the task.
        activation: optional string, the name of the function that turns its logits into
            probabilities.
        names: tuple of strings, those of its outputs if they are a dict.
    """

    task: str
    outputs_are: OutputsAre
    targets_are: TargetsAre
    ignored_class: int | None
    weights_targets: bool
    default_loss: Loss
    activation: str | None = None
    names: tuple[str, ...] = ()

    @property
    def ignores_ids(self) -> bool:
        """True if targets are class ids, of which one does not count."""
        return self.targets_are == "ids" and self.ignored_class is not None


def fitting_losses(outputs: TaskOutputs, loss: Loss) -> Loss:
    """Return the `loss` of `compile` as objects that read the outputs of a task."""

    _check_list(outputs, loss)

    def fitting(given):
        given = _named_loss(outputs, given)
        _check_vectors(outputs, given)
        _check_logits(outputs, given)
        _check_ignored(outputs, given)
        return given

    return _for_each(fitting, loss)


def fitting_metrics(
    outputs: TaskOutputs, metrics: Metrics, targets: TargetsAre
) -> Metrics:
    """Return the `metrics` of `compile` as objects that read the outputs of a task.

    `targets` are those of the loss, see `kind_of_targets`.
    """
    _check_outputs(outputs, metrics)

    def fitting(given):
        given = _named_metric(outputs, given)
        _check_vectors(outputs, given)
        _check_targets(outputs, given, targets)
        _check_logits(outputs, given)
        _check_ignored(outputs, given)
        return given

    return _for_each(fitting, metrics)


def check_weighted(outputs: TaskOutputs, metrics: Metrics) -> None:
    """Raise if `metrics`, which have no weights, count what has the weight 0."""
    if metrics and outputs.weights_targets:
        raise AlbertError(
            f"`metrics` would count the targets of {outputs.task} that have the "
            "weight 0. Pass them as `weighted_metrics`."
        )


def kind_of_targets(outputs: TaskOutputs, loss: Loss) -> TargetsAre:
    """Return the targets that a loss of a task reads: "ids", "columns" or others."""
    if outputs.targets_are != "ids":
        return outputs.targets_are
    classes = {type(given) for given in keras.tree.flatten(loss)}
    return "ids" if classes == {_LOSSES.SparseCategoricalCrossentropy} else None


def _for_each(fitting: Callable[[Any], Any], given: Any) -> Any:
    """Return a structure of losses or metrics after a function of each."""
    if isinstance(given, dict) and "class_name" not in given:
        return {name: _for_each(fitting, part) for name, part in given.items()}
    if isinstance(given, (list, tuple)):
        return [_for_each(fitting, part) for part in given]
    return None if given is None else fitting(given)


# === Names, and functions of Keras, which have no options ===


def _named_loss(outputs: TaskOutputs, given: Any) -> Any:
    """Return a loss with the options for the outputs of a task, if it is a name."""
    if isinstance(given, dict):
        return keras.losses.get(given)
    name = _name_of(given)
    if name is None:
        return given
    if name.lower() in ("crossentropy", "ce"):
        if outputs.targets_are is None:
            raise AlbertError(
                f"{outputs.task} has no classes for the loss {name!r}. Pass "
                'loss="auto".'
            )
        return outputs.default_loss
    known = given if inspect.isfunction(given) else keras.losses.get(name)
    kind = known if inspect.isfunction(known) else type(known)
    cls = _class_of(keras.losses, kind.__name__)
    if cls is None:
        return known
    return cls.from_config(
        {**cls().get_config(), "name": name, **_options(outputs, cls)}
    )


def _named_metric(outputs: TaskOutputs, given: Any) -> Any:
    """Return a metric with the options for the outputs of a task, if it is a name."""
    if isinstance(given, dict):
        return keras.metrics.get(given)
    if inspect.isclass(given):
        return given()
    name = _name_of(given)
    if name is None:
        return given
    if name.lower() in ("accuracy", "acc"):
        return _accuracy(outputs, name)
    if inspect.isfunction(given) and _class_of(keras.metrics, name) is None:
        return given
    metric: Any = keras.metrics.get(name)
    cls = type(metric)
    if cls is _METRICS.SparseCategoricalAccuracy and outputs.ignores_ids:
        cls = TokenAccuracy
    return cls.from_config(
        {**metric.get_config(), "name": name, **_options(outputs, cls)}
    )


def _accuracy(outputs: TaskOutputs, name: str) -> Any:
    """Return the metric "accuracy"."""
    if outputs.targets_are == "columns":
        raise AlbertError(
            f"{name!r} has several meanings for {outputs.task}. Pass "
            '"binary_accuracy" for the share of the decisions, one per text and class. '
            "It is keras.metrics.BinaryAccuracy(threshold=0) for logits."
        )
    if outputs.targets_are is None:
        raise AlbertError(
            f"{outputs.task} has no classes for the metric {name!r}. Pass "
            'metrics="auto".'
        )
    if outputs.ignored_class is not None or outputs.weights_targets:
        return TokenAccuracy(name=name)
    # Keras chooses between ids and columns by the shape of the targets.
    return name


def _name_of(given: Any) -> str | None:
    """Return a name, also that of a function of Keras; `None` for others."""
    if isinstance(given, str):
        return given
    if inspect.isfunction(given) and given.__module__.startswith("keras."):
        return given.__name__
    return None


def _class_of(module: Any, name: str) -> Any:
    """Return the class of Keras for a function such as `binary_crossentropy`."""
    for other, value in vars(module).items():
        if inspect.isclass(value) and other.lower() == name.replace("_", "").lower():
            return value
    return None


def _options(outputs: TaskOutputs, cls: type) -> dict[str, Any]:
    """Return the options with which a class of Keras reads the outputs of a task."""
    options: dict[str, Any] = {}
    names = inspect.signature(cls).parameters
    if outputs.outputs_are != "probabilities" and "from_logits" in names:
        options["from_logits"] = True
    if outputs.outputs_are == "logits" and cls in _WITH_THRESHOLD:
        name = "threshold" if "threshold" in names else "thresholds"
        options[name] = 0.0
    if "ignore_class" in names and outputs.ignores_ids:
        options["ignore_class"] = outputs.ignored_class
    return options


# === Checks ===


def _check_outputs(outputs: TaskOutputs, metrics: Metrics) -> None:
    """Raise unless metrics of a task with several outputs are given by output.

    Keras would read a list in the alphabetical order of the outputs.
    """
    names = outputs.names
    if len(names) < 2 or not metrics:
        return
    if not isinstance(metrics, dict) or not metrics.keys() <= {*names}:
        example = ", ".join(f'"{name}": [...]' for name in names)
        raise AlbertError(
            f"{outputs.task} has the outputs {', '.join(names)}. Pass the metrics of "
            f"each as {{{example}}}, of which some may be left out. Received: "
            f"{metrics!r:.200}"
        )


def _check_list(outputs: TaskOutputs, losses: Loss) -> None:
    """Raise if losses of several outputs are a list, which has no names."""
    if isinstance(losses, (list, tuple)) and outputs.names:
        example = ", ".join(f'"{name}": ...' for name in outputs.names)
        raise AlbertError(
            "Keras reads a list of losses in the alphabetical order of the outputs of "
            f"{outputs.task}. Pass the loss of each as {{{example}}}."
        )


def is_of_keras(given: Loss | Metrics) -> bool:
    """Return whether a loss or metric is of a class of Keras, not of a subclass."""
    name = type(given).__name__
    classes = getattr(_METRICS, name, None), getattr(_LOSSES, name, None)
    return type(given) in classes


def _check_vectors(outputs: TaskOutputs, given: Any) -> None:
    """Raise if a loss or metric of Keras compares vectors with the scores of pairs."""
    if outputs.outputs_are == "vectors" and is_of_keras(given):
        raise AlbertError(
            f"{_described(given)} compares each output with a target, but those of "
            f"{outputs.task} are vectors, and the targets are scores of pairs. "
            'Pass "auto", or one of your own.'
        )


def _check_logits(outputs: TaskOutputs, given: Any) -> None:
    """Raise if a loss or metric of Keras reads logits as probabilities, or reverse."""
    has_threshold = type(given) in (*_WITH_THRESHOLD, *_F_SCORES)
    if outputs.outputs_are == "numbers" and has_threshold:
        return
    returns_logits = outputs.outputs_are != "probabilities"
    reads_logits = _reads_logits(given)
    if reads_logits is None or reads_logits == returns_logits:
        return
    if reads_logits:
        raise AlbertError(
            f"{_described(given)} reads the outputs as logits, but this "
            f"{outputs.task} returns probabilities, because it has an "
            "`activation`. Pass it with from_logits=False, or with a threshold of 0.5."
        )
    ways = _ways_for_logits(given)
    if outputs.activation is not None:
        ways.append(f'build the model with activation="{outputs.activation}"')
    ways = ways or ["leave it out"]
    raise AlbertError(
        f"{_described(given)} reads the outputs as probabilities, but "
        f"{outputs.task} returns {outputs.outputs_are}. The value would be wrong "
        f"without from_logits=True or threshold=0: {', or '.join(ways)}."
    )


def _reads_logits(given: Any) -> bool | None:
    """Return whether a loss or metric reads logits; `None` if it reads anything."""
    if not is_of_keras(given):
        return None
    if type(given) in _OF_PROBABILITIES:
        return False
    if type(given) in _F_SCORES:
        return None if given.threshold is None else False
    try:
        config = given.get_config()
    except TypeError:
        # Of a function that Keras 3.16 cannot write down, such as a bound method.
        return None
    if type(given) in _WITH_THRESHOLD:
        return _decides_by_logits(config)
    return config.get("from_logits")


def _decides_by_logits(config: dict[str, Any]) -> bool | None:
    """Return whether the thresholds of a metric are for logits, all of them 0."""
    if config.get("top_k") is not None and config.get("thresholds") is None:
        return None
    thresholds = config.get("thresholds", config.get("threshold"))
    # The default of all these metrics.
    thresholds = 0.5 if thresholds is None else thresholds
    return not any(keras.tree.flatten(thresholds))


def _ways_for_logits(given: Any) -> list[str]:
    """Return what to write for logits instead, if a loss or metric has an option."""
    module = "metrics" if isinstance(given, keras.metrics.Metric) else "losses"
    name = f"keras.{module}.{type(given).__name__}"
    config = given.get_config()
    for option, value in (("from_logits", True), ("threshold", 0), ("thresholds", 0)):
        if option in config and type(given) not in _F_SCORES:
            return [f"pass {name}({option}={value})"]
    return []


def _check_targets(outputs: TaskOutputs, metric: Any, targets: str | None) -> None:
    """Raise if a metric of Keras reads other targets than those of the task."""
    if not is_of_keras(metric):
        return
    cls = type(metric)
    compares_ids = cls in (_METRICS.IoU, _METRICS.MeanIoU) and metric.sparse_y_pred
    if cls is _METRICS.Accuracy or compares_ids:
        raise AlbertError(
            f"{_described(metric)} compares class ids, but {outputs.task} "
            'returns a number per class. Pass the name "accuracy", or a metric of '
            "categories."
        )
    if targets == "ids" and cls in _OF_COLUMNS:
        raise AlbertError(
            f"{_described(metric)} reads targets with a column per class, but those "
            f'of {outputs.task} are class ids. Pass the name "accuracy" or a '
            "Sparse... metric; or train on columns of 0 and 1 with "
            'loss="categorical_crossentropy", and pass metrics of logits '
            "from_logits=True or threshold=0."
        )
    if outputs.outputs_are == "numbers" and cls in _OF_ONE_CLASS:
        raise AlbertError(
            f"{_described(metric)} compares classes, but {outputs.task} has "
            'none. Pass metrics="auto".'
        )
    chooses_one = cls in _F_SCORES and metric.threshold is None
    if targets == "columns" and (cls in _OF_ONE_CLASS or chooses_one):
        raise AlbertError(
            f"{_described(metric)} reads one class per text, but those of "
            f"{outputs.task} are any number. Pass "
            '"binary_accuracy", "precision" or "recall", or for logits metrics with '
            "from_logits=True or threshold=0."
        )


def _check_ignored(outputs: TaskOutputs, given: Any) -> None:
    """Raise if a loss or metric of Keras counts targets that do not count."""
    if outputs.ignored_class is None or not is_of_keras(given):
        return
    # In its mean, this one counts what it ignores as 0.
    is_mean = type(given) is _METRICS.SparseCategoricalCrossentropy
    if is_mean or given.get_config().get("ignore_class") != outputs.ignored_class:
        raise AlbertError(
            f"{_described(given)} would count the targets of {outputs.task} "
            f"that are {outputs.ignored_class}: padding and other tokens without "
            'target. Pass "auto", or one of your own that leaves them out.'
        )


def _described(given: Any) -> str:
    """Return the name of a loss or metric as the user may have written it."""
    return f"{type(given).__name__} ({given.name!r})"
