"""Answers of `farm mcp`, as short as an assistant needs them: it reads all of one."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from pydantic_core import to_json, to_jsonable_python

Answer = dict[str, Any]

#: Many assistants take 25,000 tokens at most, and a token of JSON has two to three characters.
PAGE_CHARACTERS = 40_000
#: Entries of a list inside of a document.
LISTED = 50


def document(view: object) -> Answer:
    """Return a view without its empty fields, and of each of its lists the first entries."""
    answer: Answer = _shortened(to_jsonable_python(view))
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


def _shortened(value: Any) -> Any:
    """Return a document without nulls; of a list that is shortened, `NAME_left_out` counts the others."""
    if isinstance(value, list):
        return [_shortened(entry) for entry in value[:LISTED]]
    if not isinstance(value, dict):
        return value
    left_out = {
        f"{name}_left_out": len(entry) - LISTED
        for name, entry in value.items()
        if isinstance(entry, list) and len(entry) > LISTED
    }
    return {name: _shortened(entry) for name, entry in value.items() if entry is not None} | left_out
