"""Calls of the client: their arguments are checked, and a traceback is the caller's line and the hint."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import BoundArguments, Parameter, formatannotation, isfunction, signature
from numbers import Integral, Real
from reprlib import repr as short_repr
from types import GenericAlias
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from farm.core.errors import FarmError, InvalidInput

C = TypeVar("C", bound=type)
T = TypeVar("T")

_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


def checked_calls(kind: C) -> C:
    """Have the methods of a class check their arguments, and raise errors without the frames behind them."""
    for name, method in list(vars(kind).items()):
        if isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _checked(method))
    return kind


def _checked(method: Callable[..., T]) -> Callable[..., T]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> T:
        try:
            bound = _arguments(method, args, kwargs)
            return method(*bound.args, **bound.kwargs)
        except (FarmError, TimeoutError, KeyboardInterrupt) as error:
            raise error.with_traceback(None) from None

    return call


def _arguments(
    method: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> BoundArguments:
    """Return the arguments of a call by their names.

    Raises:
        InvalidInput: one is missing, unknown, or not of its annotation.
    """
    named = _signature(method)
    try:
        bound = named.bind(*args, **kwargs)
    except TypeError as error:
        known = [name for name in named.parameters if name != "self"]
        raise InvalidInput(f"{method.__name__}: {error}", hint=f"it takes {', '.join(known)}") from None
    for name, value in bound.arguments.items():
        parameter = named.parameters[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            for each in value:
                _check(parameter, each)
        # A text is the name of a type that would import this module.
        elif parameter.annotation is not Parameter.empty and not isinstance(parameter.annotation, str):
            bound.arguments[name] = plain = _plain(value)
            _check(parameter, plain)
    return bound


#: Made once; it takes longer than a call.
_signature = cache(signature)


def _plain(value: Any) -> Any:
    """Return a number, a mapping, or what can be iterated over, of another library as Python's own."""
    match value:
        case Mapping():
            return {key: _plain(own) for key, own in value.items()}
        case None | bool() | int() | float() | str() | bytes() | Sequence() | BaseModel():
            return value
        case Integral():
            return int(value)
        case Real():
            return float(value)
        case Iterable():
            return list(value)
    return value


def _check(parameter: Parameter, value: Any) -> None:
    """Refuse an argument that is not of its annotation."""
    try:
        _kind(parameter).validate_python((value,))
    except ValidationError:
        expected = re.sub(r"\b\w+\.", "", formatannotation(parameter.annotation))
        example = f": [{value!r}]" if isinstance(value, str) and "Sequence" in expected else ""
        message = f"{parameter.name} cannot be {short_repr(value)}"
        raise InvalidInput(message, hint=f"it is {expected}{example}") from None


@cache
def _kind(parameter: Parameter) -> TypeAdapter[Any]:
    # Of a model alone, an adapter takes no configuration.
    alone: Any = GenericAlias(tuple, (parameter.annotation,))
    return TypeAdapter(alone, config=_STRICT)
