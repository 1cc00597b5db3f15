"""Answers of `farm mcp`, as short as an assistant needs them: it reads all of one."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from pydantic_core import to_json, to_jsonable_python

Answer = dict[str, Any]

#: Many assistants take 25,000 tokens at most, and a token of JSON has two to three characters.
PAGE_CHARACTERS = 40_000
#: Entries of a list inside of a document, and characters of a text.
LISTED, _TEXT_CHARACTERS = 50, 4_000
#: The same, where a document would be longer than a page.
_BOUNDS = ((LISTED, _TEXT_CHARACTERS), (20, 1_000), (5, 400), (2, 200))


def document(view: object) -> Answer:
    """Return a view without its empty fields: the first entries of its lists, and the ends of long texts."""
    whole, answer = to_jsonable_python(view), Answer()
    for listed, characters in _BOUNDS:
        answer = _shortened(whole, listed, characters)
        if len(to_json(answer)) <= PAGE_CHARACTERS:
            break
    return answer


def page(name: str, views: Iterable[object], limit: int, skip: int) -> Answer:
    """Return rows, as many as one reads, and the place where the next ones begin; null at the end."""
    rows: list[Answer] = []
    size = 0
    for view in islice(views, skip, None):
        row = document(view)
        size += len(to_json(row))
        if len(rows) == limit or (rows and size > PAGE_CHARACTERS):
            return {name: rows, "next_skip": skip + len(rows)}
        rows.append(row)
    return {name: rows, "next_skip": None}


def _shortened(value: Any, listed: int, characters: int) -> Any:
    """Return a document without nulls; of a list that is shortened, `NAME_left_out` counts the others."""
    if isinstance(value, str):
        return value if len(value) <= characters else f"...{value[-characters:]}"
    if isinstance(value, list):
        return [_shortened(entry, listed, characters) for entry in value[:listed]]
    if not isinstance(value, dict):
        return value
    left_out = {
        f"{name}_left_out": len(entry) - listed
        for name, entry in value.items()
        if isinstance(entry, list) and len(entry) > listed
    }
    present = {name: entry for name, entry in value.items() if entry is not None}
    return {name: _shortened(entry, listed, characters) for name, entry in present.items()} | left_out
