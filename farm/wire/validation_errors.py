"""Pydantic's errors about a user's document, in the farm's words and at the user's places."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from farm.core.base.spec_errors import SpecProblem, name_hint
from farm.core.base.validation_messages import constraint_message

DocumentPath = tuple[str | int, ...]


def problems_of(
    error: ValidationError, data: object, *, known_keys: Callable[[DocumentPath], Sequence[str]], root: str
) -> list[SpecProblem]:
    """Return all problems that pydantic reported.

    Args:
        error: what it raised.
        data: the document, so that places are as the user wrote them; None where it is not at hand.
        known_keys: the keys that make sense next to the last part of a place.
        root: what the whole document is called.
    """
    return [
        _problem(
            details["loc"],
            details["type"],
            constraint_message(details["type"], details["msg"], details.get("ctx", {})),
            data,
            known_keys,
            root,
        )
        for details in error.errors()
    ]


def _problem(
    loc: DocumentPath,
    kind: str,
    message: str,
    data: object,
    known_keys: Callable[[DocumentPath], Sequence[str]],
    root: str,
) -> SpecProblem:
    path, hint = _path_as_written(loc, data), ""
    match kind:
        case "extra_forbidden":
            said = f"unknown key `{loc[-1]}`"
            hint = name_hint(str(loc[-1]), known_keys(loc))
        case "missing":
            said = "is missing"
        case "model_type" | "dict_type":
            said = "must be a mapping"
        case "tuple_type":
            said = "must be a list"
        case _:
            said = message
    return SpecProblem(path=path, message=said, hint=hint, root=root)


def _path_as_written(loc: DocumentPath, data: object) -> DocumentPath:
    """Return pydantic's place without list positions that the user left out, and without its tags."""
    path: list[str | int] = []
    here: Any = data
    for part in loc:
        if (isinstance(part, int) and isinstance(here, Mapping)) or part == "[key]":
            continue
        path.append(part)
        known = isinstance(here, Mapping) and part in here
        listed = isinstance(here, Sequence) and isinstance(part, int) and part < len(here)
        here = here[part] if known or listed else None
    return tuple(path)
