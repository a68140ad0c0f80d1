"""Types, activations, configs and inner layers of all layers of ALBERT."""

import difflib
import functools
import inspect
import numbers
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, ParamSpec, TypeAlias, TypeVar

import keras
from keras import ops

from albert_tf_lite.errors import AlbertError

# A tensor of Keras' backend, symbolic or not, or an array.
Tensor: TypeAlias = Any
Activation: TypeAlias = str | Callable[[Tensor], Tensor]
# The last axis, which layers build on, is always known.
Shape: TypeAlias = tuple[Any, ...]
Policy: TypeAlias = str | keras.DTypePolicy | None
_P = ParamSpec("_P")
_R = TypeVar("_R")
# The variables of a layer in a file.
Store: TypeAlias = MutableMapping[str, Tensor]
# Begins the names of values without the sum of kernel and LoRA.
_LORA = "lora_"

# As in all layers of both original code bases, the masked LM head included.
LAYER_NORM_EPSILON = 1e-12


def gelu_approximate(x: Tensor) -> Tensor:
    """Compute the tanh form of GELU, which both original code bases call "gelu"."""
    return keras.activations.gelu(x, approximate=True)


def get_activation(identifier: Activation | None) -> Callable[[Tensor], Tensor]:
    """Return an activation by its name in Keras, or `"gelu_approximate"`."""
    if identifier == "gelu_approximate":
        return gelu_approximate
    return keras.activations.get(identifier)


def albert_initializer(stddev: float = 0.02) -> keras.initializers.Initializer:
    """Return the initializer of all matrices, `create_initializer` of the original."""
    return keras.initializers.TruncatedNormal(stddev=stddev)


def at_least_float32(dtype: str) -> str:
    """Return the type for sums and losses of values of type `dtype`."""
    return keras.backend.result_type(dtype, "float32")


class Dense(keras.layers.Dense):
    """Dense layer whose files have the parts of a kernel with LoRA beside their sum.

    Keras saves the sum alone. Loaded, LoRA would be zero and have no gradients.
    """

    lora_enabled: bool

    def save_own_variables(self, store: Store) -> None:
        super().save_own_variables(store)
        if not self.lora_enabled:
            return
        # The same values without the sum of kernel and LoRA.
        plain: dict[str, Tensor] = {}
        self.lora_enabled = False
        try:
            super().save_own_variables(plain)
        finally:
            self.lora_enabled = True
        plain["kernel_a"] = self.lora_kernel_a
        plain["kernel_b"] = self.lora_kernel_b
        for name, value in plain.items():
            store[f"{_LORA}{name}"] = value

    def load_own_variables(self, store: Store) -> None:
        merged, plain = {}, {}
        for name, value in dict(store).items():
            if name.startswith(_LORA):
                plain[name.removeprefix(_LORA)] = value
            else:
                merged[name] = value
        if not plain or not self.lora_enabled:
            super().load_own_variables(merged)
            return
        super().load_own_variables(plain)
        self.lora_kernel_a.assign(plain["kernel_a"])
        self.lora_kernel_b.assign(plain["kernel_b"])

    def quantize(
        self,
        mode: str | None = None,
        type_check: bool = True,
        config: keras.quantizers.QuantizationConfig | None = None,
    ) -> None:
        # Keras quantizes subclasses only if asked to.
        super().quantize(mode, type_check=False, config=config)


def dense(units: int, **kwargs: Any) -> keras.layers.Dense:
    """Create a dense layer with ALBERT's initializer."""
    kwargs.setdefault("kernel_initializer", albert_initializer())
    return Dense(units, **kwargs)


class LayerNormalization(keras.layers.LayerNormalization):
    """LayerNormalization that is one operation in graphs for a CPU, in inference."""

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        # Eager calls fuse nothing, and LiteRT (of fixed lengths) lacks this form.
        any_length = None in inputs.shape and self.compute_dtype != "float64"
        if training or not (any_length and computes_on_tensorflow_cpu()):
            return super().call(inputs)
        from albert_tf.layers.fused_layer_norm import fused_layer_norm

        gamma, beta = (ops.cast(x, inputs.dtype) for x in (self.gamma, self.beta))
        return fused_layer_norm(inputs, gamma, beta, self.epsilon)


def layer_norm(**kwargs: Any) -> keras.layers.LayerNormalization:
    """Create a LayerNormalization with ALBERT's epsilon."""
    return LayerNormalization(epsilon=LAYER_NORM_EPSILON, name="layer_norm", **kwargs)


def computes_on_tensorflow_cpu() -> bool:
    """Return whether TensorFlow is the backend and has no GPU."""
    return keras.backend.backend() == "tensorflow" and not has_gpu()


def has_gpu() -> bool:
    """Return whether Keras' backend has a GPU."""
    return any("gpu" in x.lower() for x in keras.distribution.list_devices())


def argument_names(cls: type, base: type, *others: str) -> list[str]:
    """Return the constructors' arguments, of `base` and below, except `others`."""
    names: list[str] = []
    left_out = {"self", "args", "kwargs", *others}
    for class_ in cls.__mro__:
        if issubclass(class_, base) and "__init__" in vars(class_):
            for name in _parameters(vars(class_)["__init__"]):
                if name not in left_out:
                    left_out.add(name)
                    names.append(name)
    return names


@functools.cache
def _parameters(function: Callable) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def arguments_of(instance: object, base: type, *others: str) -> dict[str, Any]:
    """Return the arguments, which are attributes of these names, for `get_config`."""
    config = {}
    for name in argument_names(type(instance), base, *others):
        value = getattr(instance, name)
        if isinstance(value, keras.layers.Dropout):
            value = value.rate
        elif value is gelu_approximate:
            value = "gelu_approximate"
        elif callable(value) and not isinstance(value, keras.layers.Layer):
            value = keras.activations.serialize(value)
        # Keras wraps lists.
        config[name] = list(value) if isinstance(value, list) else value
    return config


def check_arguments(cls: type, given: Iterable[str], *others: str) -> None:
    """Raise if an argument is in no constructor of a class and its bases.

    Keras would ignore it, or raise without the right name. `others` are names that are
    suggested, too.
    """
    # Keras and KerasHub take these from `kwargs`.
    known = [*argument_names(cls, object), "inputs", "outputs", "config_file"]
    for name in given:
        if name not in known:
            raise TypeError(unknown_argument(cls.__name__, name, known, others))


def unknown_argument(
    owner: str, name: str, known: list[str], others: Iterable[str] = ()
) -> str:
    """Return a message about an argument with the names that are near it."""
    close = difflib.get_close_matches(name, {*known, *others}, 2, 0.65)
    hint = f"Its arguments: {known}."
    if close:
        names = " or ".join(f"`{argument}`" for argument in close)
        hint = f"Did you mean {names}?"
    return f"{owner} has no argument `{name}`. {hint}"


def suggest_arguments(
    *elsewhere: str, owner: str = ""
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator of functions that names what is near an unknown argument.

    Args:
        *elsewhere: strings, arguments that users pass to the function although they
            are those of another one.
        owner: string, the function that takes these.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        known = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            for name in kwargs:
                if name in known:
                    continue
                message = unknown_argument(function.__name__, name, known)
                if close := difflib.get_close_matches(name, elsewhere, 1, 0.65):
                    message += f" `{close[0]}` is an argument of {owner}."
                raise TypeError(message)
            return function(*args, **kwargs)

        return wrapper

    return decorate


def check_sizes(**sizes: Any) -> None:
    """Raise if an argument is not a positive integer of 31 bits."""
    for name, value in sizes.items():
        is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not is_whole or not 0 < value < 2**31:
            raise AlbertError(
                f"`{name}` must be a positive integer. Received: {value!r:.80}"
            )


class AlbertLayer(keras.layers.Layer):
    """A layer that keeps the arguments of its constructor as attributes."""

    def __init__(self, **kwargs: Any):
        check_arguments(type(self), kwargs)
        super().__init__(**kwargs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **arguments_of(self, AlbertLayer)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        arguments = dict(config)
        for name, value in config.items():
            if isinstance(value, dict):
                arguments[name] = keras.saving.deserialize_keras_object(value)
        return cls(**arguments)
