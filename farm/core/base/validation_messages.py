"""Validation messages for users; those of the validation library are for programmers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

#: By the kind of error that pydantic gives, up to its first underscore.
_KINDS = MappingProxyType(
    {"int": "must be a whole number", "float": "must be a number", "bool": "must be true or false"}
)


def constraint_message(kind: str, message: str, limits: Mapping[str, Any]) -> str:
    """Return a message such as `must be at least 1`; the library's own where no other exists for its kind.

    Args:
        kind: the kind of error: `int_parsing`, `greater_than_equal`.
        message: what the library says.
        limits: what it says the message with: `{"ge": 1}`.
    """
    match kind:
        case "greater_than_equal":
            return f"must be at least {_limit_text(limits['ge'])}"
        case "less_than_equal":
            return f"must be at most {_limit_text(limits['le'])}"
        case "greater_than":
            return f"must be more than {_limit_text(limits['gt'])}"
        case "less_than":
            return f"must be less than {_limit_text(limits['lt'])}"
        case "string_too_short" | "too_short":
            least = limits["min_length"]
            return "must not be empty" if least == 1 else f"must have at least {least} {_parts(kind)}"
        case "string_too_long" | "too_long":
            return f"must have at most {limits['max_length']} {_parts(kind)}"
        case "string_type":
            return "must be a text"
        case "finite_number":
            return "must be a finite number"
        case _:
            text = message.removeprefix("Input ").removeprefix("Value error, ").strip()
            return _KINDS.get(kind.partition("_")[0], text)


def _parts(kind: str) -> str:
    return "characters" if kind.startswith("string") else "entries"


def _limit_text(limit: object) -> object:
    """Write `86400` where the library has `86400.0`."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit
