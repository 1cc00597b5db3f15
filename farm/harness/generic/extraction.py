"""Extraction of numbers from program output, by patterns or JSON paths of users."""

import json
import re
from functools import cached_property
from itertools import islice

from farm.core.base.json_path import json_path, values_at
from farm.core.base.safe_regex import Capture, captures
from farm.core.programs.definition import OutputStream, ValueLocator
from farm.core.runs.evidence import Evidence
from farm.harness.base.printed_numbers import last_digit

#: More than any run prints before its time-out; a bound on the work of parsing.
MAX_NUMBERS = 100_000
_SHOWN_CHARS = 40
#: Attempts after which text that only resembles JSON is given up.
_GONE_THROUGH = 20

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?")
_WITH_COMMA = re.compile(r"[+-]?[0-9][0-9.' ]*,[0-9]+")
_START = re.compile(r"^[ \t]*(?=[\[{]\s{0,100}[\"\[\]{}0-9tfnN-])([\[{])", re.MULTILINE)
#: Separators of thousands other than a comma; none of them separates fields.
_THOUSANDS = r"['\u2019_\u00a0\u2009\u202f]"
#: Text beside a group that matched only a part of a number.
_BEGUN_BEFORE = re.compile(rf"[0-9](?:[.,]|{_THOUSANDS}|[eE][+-]?)?$|(?:^|[\s=:(\[])-$")
_GOES_ON = re.compile(rf"(?:[.,]|{_THOUSANDS})?[0-9]|[eE][+-]?[0-9]|[xX][0-9a-fA-F]")
#: `1,` before `234.5`: a separate field, or thousands?
_MAYBE_A_THOUSAND = re.compile(r"(?:^|[^0-9])[0-9]{1,3},$")
_BESIDE_BYTES = 8


class InvalidNumber(ValueError):
    """A match that is not a number; the message gives a person the reason."""


class PrintedNumber(float):
    """A number with the weight of its last printed digit."""

    step: float

    def __new__(cls, text: str) -> "PrintedNumber":
        """Convert a decimal number."""
        number = super().__new__(cls, text)
        number.step = last_digit(text)
        return number


class ProgramOutput:
    """Output of a program, with plain line ends and without a line that was cut off."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def document(self) -> object:
        """Return the JSON: the whole text, or the last object or list that starts a line."""
        try:
            # NaN is accepted here; it matters only where a number is needed.
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return _last_document(self.text)

    def numbers(self, place: ValueLocator) -> list[PrintedNumber]:
        """Return every number at a place, in the order printed; empty where nothing matches.

        Raises:
            InvalidNumber: a match is no number, or there are more than any program prints.
        """
        numbers = self._by_pattern(place.pattern) if place.pattern else self._by_path(place.json)
        if len(numbers) > MAX_NUMBERS:
            raise InvalidNumber(f"more than {MAX_NUMBERS} numbers are at {place}")
        return numbers

    def _by_pattern(self, pattern: str) -> list[PrintedNumber]:
        matches = captures(pattern, self.text, beside=_BESIDE_BYTES)
        return [_number_of_capture(capture) for capture in islice(matches, MAX_NUMBERS + 1)]

    def _by_path(self, path: str) -> list[PrintedNumber]:
        values = values_at(self.document, json_path(path))
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        return [_in_json(value) for value in values[: MAX_NUMBERS + 1]]


def program_output(evidence: Evidence, stream: OutputStream) -> ProgramOutput:
    """Return the output of a stream, or of both."""
    out = _whole_lines(evidence.stdout, evidence.stdout_dropped_bytes)
    err = _whole_lines(evidence.stderr, evidence.stderr_dropped_bytes)
    match stream:
        case OutputStream.STDOUT:
            return ProgramOutput(out)
        case OutputStream.STDERR:
            return ProgramOutput(err)
        case OutputStream.BOTH:
            return ProgramOutput(f"{out}\n{err}")


def dropped_bytes(evidence: Evidence, stream: OutputStream) -> int:
    """Return how many bytes were over the limit and were dropped."""
    out = 0 if stream is OutputStream.STDERR else evidence.stdout_dropped_bytes
    return out + (0 if stream is OutputStream.STDOUT else evidence.stderr_dropped_bytes)


def _whole_lines(text: str, dropped: int) -> str:
    """Return the whole lines; progress bars end theirs with a bare CR."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return lines[: lines.rfind("\n") + 1] if dropped else lines


def _number_of_capture(capture: Capture) -> PrintedNumber:
    text = capture.text.strip()
    if not text:
        raise InvalidNumber("the pattern's group is empty where the pattern matches")
    before = capture.before if capture.text.startswith(text) else ""
    after = capture.after if capture.text.endswith(text) else ""
    begun, goes_on = _BEGUN_BEFORE.search(before), _GOES_ON.match(after)
    # `12.5` beside a comma is a field of its own: it already has its point.
    is_field = begun is not None and begun[0].endswith(",") and "." in text
    is_thousand = re.match(r"[0-9]{3}\.", text) is not None and _MAYBE_A_THOUSAND.search(before) is not None
    if begun and (not is_field or is_thousand):
        raise _partial_number_error(before, text, after)
    if goes_on and not (goes_on[0].startswith(",") and "." in text):
        raise _partial_number_error(before, text, after)
    return _number(text)


def _partial_number_error(before: str, text: str, after: str) -> InvalidNumber:
    begins = before.split()[-1] if before and not before[-1].isspace() else ""
    ends = after.split()[0] if after and not after[0].isspace() else ""
    shown = f"{begins}{text}{ends}"[:_SHOWN_CHARS]
    if _WITH_COMMA.search(shown):
        return _comma_error(shown)
    return InvalidNumber(f"the pattern's group matches only a part of a number, in `{shown}`")


def _comma_error(shown: str) -> InvalidNumber:
    question = f"`{shown}` has a comma: is it a decimal comma, or does it separate numbers?"
    hint = "print numbers with a point (LC_ALL=C), or have the pattern match what stands between them"
    return InvalidNumber(f"{question} {hint}")


def _number(text: str) -> PrintedNumber:
    if _NUMBER.fullmatch(text):
        return PrintedNumber(text)
    shown = text[:_SHOWN_CHARS]
    raise _comma_error(shown) if _WITH_COMMA.search(shown) else InvalidNumber(f"`{shown}` is no number")


def _in_json(value: object) -> PrintedNumber:
    """Convert a JSON number, or a text that is one: some tools print numbers as text."""
    if isinstance(value, str):
        return _number(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return PrintedNumber(repr(value))
    raise InvalidNumber(f"`{json.dumps(value)[:_SHOWN_CHARS]}` in the JSON is no number")


def _last_document(text: str) -> object:
    """Return the last object, or else the last list, of those that start a line; None without one."""
    last_by_kind: dict[type, object] = {}
    budget, position = _GONE_THROUGH * len(text) + 1, 0
    while budget > 0 and (start := _next_start(text, position)) is not None:
        after = text.find("\n", start)
        end_of_line = len(text) if after < 0 else after
        document, end, is_unfinished = _decode_json(text[start:end_of_line])
        position = max(start + end, start + 1)
        if is_unfinished:
            budget -= len(text) - start
            document, end, _ = _decode_json(text[start:])
            position = start + end if document is not None else end_of_line
        if document is not None:
            last_by_kind[type(document)] = document
    return last_by_kind.get(dict, last_by_kind.get(list))


def _decode_json(text: str) -> tuple[object, int, bool]:
    """Decode the JSON at the start of a text; return it, its end, and whether it goes on after the text."""
    try:
        document, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        return None, len(text), error.pos >= len(text.rstrip())
    except (ValueError, RecursionError):
        return None, len(text), False
    return document, end, False


def _next_start(text: str, position: int) -> int | None:
    match = _START.search(text, position)
    return None if match is None else match.start(1)
