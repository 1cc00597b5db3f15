"""JSON of others: bounded, and read by names, with errors that say where something is wrong."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from farm.core.errors import InvalidInput
from farm.harness.external.results import MAX_RESULTS, Told

_MAX_DEPTH = 32
_HINT = "docs/import.md says which fields are read"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRecord:
    """An object of a document, and its place there. A field that is missing is one of null."""

    place: str
    fields: dict[str, Any]

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def text(self, name: str) -> str | None:
        """Return a text; None without one, or where it is empty.

        Raises:
            InvalidInput: it is something else.
        """
        value = self.fields.get(name)
        if value is None or isinstance(value, str):
            return value or None
        raise self.wrong(name, "a text")

    def number(self, name: str) -> float | None:
        """Return a number; raises like `text`."""
        value = self.fields.get(name)
        return None if value is None else self._number(name, value)

    def count(self, name: str) -> int | None:
        """Return a whole number from 0; raises like `text`."""
        value = self.fields.get(name)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
        raise self.wrong(name, "a number of things")

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a list of numbers, empty without one; raises like `text`."""
        values = self.fields.get(name)
        if values is None:
            return ()
        if not isinstance(values, list):
            raise self.wrong(name, "a list of numbers")
        return tuple(self._number(name, value) for value in values)

    def record(self, name: str) -> "JsonRecord":
        """Return an object, empty without one; raises like `text`."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return JsonRecord(place=self._place(name), fields=value or {})

    def records(self, name: str) -> "list[JsonRecord]":
        """Return a list of objects, empty without one; raises like `text`."""
        values = self.fields.get(name)
        return [] if values is None else list(_records(values, self._place(name)))

    def told(self, *names: str) -> dict[str, Told]:
        """Return those of the fields that are single values, by name."""
        found = {name: self.fields.get(name) for name in names}
        return {
            name: value
            for name, value in found.items()
            if isinstance(value, str | int | float | bool) and value != ""
        }

    def wrong(self, name: str, expected: str) -> InvalidInput:
        """Return the error of a field that is something else."""
        return InvalidInput(f"{self._place(name)} is not {expected}", hint=_HINT)

    def _number(self, name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(name, "a number")
        # An integer of hundreds of digits is none of a double.
        if abs(value) > 1e300 or not math.isfinite(value):
            raise self.wrong(name, "a number that can be measured")
        return float(value)

    def _place(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name


def json_documents(text: str) -> list[Any]:
    """Return a JSON document as the only one, or those of JSON lines.

    Raises:
        InvalidInput: the text is neither, is nested too deeply, or has NaN or Infinity.
    """
    whole = text.strip()
    try:
        return [_parsed(whole, "the document")]
    except InvalidInput as error:
        lines = [(number, line) for number, line in enumerate(whole.splitlines(), start=1) if line.strip()]
        # What is cut off, or written over several lines, is reported as a whole.
        if len(lines) < 2 or not _is_object(lines[0][1]):
            raise
        if len(lines) > MAX_RESULTS:
            raise InvalidInput(f"more than {MAX_RESULTS} lines", hint="split the file") from error
        return [_parsed(line, f"line {number}") for number, line in lines]


def record_list(documents: Sequence[Any]) -> list[JsonRecord]:
    """Return the objects of one document, of the list that it is, or of lines.

    Raises:
        InvalidInput: something in it is not an object.
    """
    only = documents[0] if len(documents) == 1 and isinstance(documents[0], list) else list(documents)
    return list(_records(only, ""))


def _records(values: object, place: str) -> Iterator[JsonRecord]:
    if not isinstance(values, list):
        raise InvalidInput(f"{place or 'the document'} is not a list", hint=_HINT)
    if len(values) > MAX_RESULTS:
        raise InvalidInput(
            f"{place or 'the document'} has more than {MAX_RESULTS} entries", hint="split the file"
        )
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise InvalidInput(f"{place}[{index}] is not an object", hint=_HINT)
        yield JsonRecord(place=f"{place}[{index}]", fields=value)


def _is_object(line: str) -> bool:
    try:
        return isinstance(_parsed(line, "the line"), dict)
    except InvalidInput:
        return False


def _parsed(text: str, place: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise _too_deep(place) from error
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"{place} is not JSON at line {error.lineno}, column {error.colno}: {error.msg}",
            hint="it may be cut off, or have other output in it",
        ) from error
    except ValueError as error:
        # Also of an integer of thousands of digits.
        raise InvalidInput(f"{place} is not JSON: {str(error)[:200]}", hint="correct or remove it") from error
    _check_depth(value, place)
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def _check_depth(value: object, place: str) -> None:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise _too_deep(place)


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _too_deep(place: str) -> InvalidInput:
    return InvalidInput(
        f"{place} is nested more than {_MAX_DEPTH} levels deep",
        hint="no format of results is: look at the file",
    )
