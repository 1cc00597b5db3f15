"""Pydantic's errors about a user's document, with the farm's messages and the places in the document."""

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
    problems = []
    for details in error.errors():
        loc, kind, hint = details["loc"], details["type"], ""
        match kind:
            case "extra_forbidden":
                text = f"unknown key `{loc[-1]}`"
                hint = name_hint(str(loc[-1]), known_keys(loc))
            case "missing":
                text = "is missing"
            case "model_type" | "dict_type":
                text = "must be a mapping"
            case "tuple_type":
                text = "must be a list"
            case _:
                text = constraint_message(kind, details["msg"], details.get("ctx", {}))
        problems.append(SpecProblem(path=_path_as_written(loc, data), message=text, hint=hint, root=root))
    return problems


def _path_as_written(loc: DocumentPath, data: object) -> DocumentPath:
    """Return pydantic's place without list positions that the user left out, and without its tags."""
    path: list[str | int] = []
    here: Any = data
    for part in loc:
        is_tag = isinstance(part, str) and (part == "[key]" or part.startswith("<"))
        if is_tag or (isinstance(part, int) and isinstance(here, Mapping)):
            continue
        path.append(part)
        is_key = isinstance(here, Mapping) and part in here
        is_index = isinstance(here, Sequence) and isinstance(part, int) and part < len(here)
        here = here[part] if is_key or is_index else None
    return tuple(path)
