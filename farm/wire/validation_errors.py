"""What pydantic finds wrong in a document of a user, in our words and at the user's places."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from farm.core.base.spec_errors import MatrixProblem, name_hint
from farm.core.base.validation_messages import must_be

Place = tuple[str | int, ...]


def problems_of(
    error: ValidationError, data: object, *, known_keys: Callable[[Place], Sequence[str]], root: str
) -> list[MatrixProblem]:
    """Everything pydantic found.

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
            must_be(details["type"], details["msg"], details.get("ctx", {})),
            data,
            known_keys,
            root,
        )
        for details in error.errors()
    ]


def _problem(
    loc: Place,
    kind: str,
    message: str,
    data: object,
    known_keys: Callable[[Place], Sequence[str]],
    root: str,
) -> MatrixProblem:
    path, hint = _written(loc, data), ""
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
    return MatrixProblem(path=path, message=said, hint=hint, root=root)


def _written(loc: Place, data: object) -> Place:
    """Pydantic's place without the list positions that the user left out, and without its remarks."""
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
