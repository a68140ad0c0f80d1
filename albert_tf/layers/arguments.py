"""Arguments of constructors and functions: names, values, checks."""

import difflib
import functools
import inspect
import numbers
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import keras

from albert_tf.layers.activations import gelu_approximate
from albert_tf_lite.errors import AlbertError

_P = ParamSpec("_P")
_R = TypeVar("_R")


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
