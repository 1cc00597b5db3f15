"""Short tracebacks: the line of the caller, the message and the hint."""

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import ParamSpec, TypeVar

from farm.core.errors import FarmError

C = TypeVar("C")
P = ParamSpec("P")
T = TypeVar("T")


def with_short_tracebacks(kind: type[C]) -> type[C]:
    """Have the methods of a class raise errors without the frames and the errors that led to them."""
    for name, method in list(vars(kind).items()):
        if isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _shortened(method))
    return kind


def _shortened(method: Callable[P, T]) -> Callable[P, T]:
    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (FarmError, TimeoutError, KeyboardInterrupt) as error:
            raise error.with_traceback(None) from None

    return call
