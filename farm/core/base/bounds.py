"""Bounds of what devices, agents and farms tell each other: whatever is beyond them, none of them can mean.

Each is an annotation that pydantic reads where a message is validated; inside the program it changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from farm.core.base.ids import Digest

#: A part of pydantic's schema of a message.
_Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value of a number; infinities and NaN are outside of every range."""

    least: float
    most: float

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], _Schema]) -> _Schema:
        return {**handler(source), "ge": self.least, "le": self.most}


@dataclass(frozen=True, slots=True)
class AtMost:
    """The greatest length of a text, a list or a mapping."""

    length: int

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], _Schema]) -> _Schema:
        return {**handler(source), "max_length": self.length}


@dataclass(frozen=True, slots=True)
class Matches:
    """The pattern of a whole text, in the syntax that Rust's regex and Python's re share."""

    pattern: str

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], _Schema]) -> _Schema:
        return {**handler(source), "pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True, slots=True)
class CutTo:
    """The greatest length of a text that only people read; the rest of a longer one is left out."""

    length: int

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], _Schema]) -> _Schema:
        text = {**handler(source), "max_length": self.length}
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": self._cut},
            "schema": text,
        }

    def _cut(self, value: object) -> object:
        is_longer = isinstance(value, str) and len(value) > self.length
        return f"{value[: self.length - 1]}…" if is_longer and isinstance(value, str) else value


#: A name, a version, or one value of a property: Android's own limit is 92 bytes (PROP_VALUE_MAX), and longer
#: ones are only read.
Word = Annotated[str, AtMost(500)]
#: Several lines that a driver or a tool says of itself.
LongText = Annotated[str, AtMost(4000)]
#: A message to people.
Note = Annotated[str, CutTo(2000)]
#: One argument of a command: MAX_ARG_STRLEN of Linux.
Argument = Annotated[str, AtMost(131_072)]
#: The output of a program; the report that holds it has no more bytes.
Output = Annotated[str, AtMost(64 * 1024 * 1024)]

#: A digest that becomes the name of a file.
FileDigest = Annotated[Digest, Matches("[0-9a-f]{64}")]
#: A part of a path that is no `.` and no `..`.
_PART = r"(?:[^/.\x00-\x1f\x7f]|\.[^/.\x00-\x1f\x7f]|\.\.[^/\x00-\x1f\x7f])[^/\x00-\x1f\x7f]*"
#: A path that stays below its folder; empty for none.
RelativePath = Annotated[str, AtMost(4096), Matches(f"(?:{_PART}(?:/{_PART})*)?")]

#: mksh compares 32 bits, and the device's cache uses a token as a time that is older than any clock's (2001).
MAX_FENCE = 900_000_000
Fence = Annotated[int, Range(0, MAX_FENCE)]
#: Sensors of phones work from -40 to 150 °C.
Celsius = Annotated[float, Range(-100.0, 300.0)]
Percent = Annotated[int, Range(0, 100)]
#: Of one core, in percent or in processes that wait for it.
Load = Annotated[float, Range(0.0, 1e6)]
#: Ten times what any chip reaches.
MAX_HERTZ = 100_000_000_000
Hertz = Annotated[int, Range(0, MAX_HERTZ)]
#: Up to the greatest whole number that every JSON reader holds exactly; a database has room for more.
Cardinal = Annotated[int, Range(0, 2**53 - 1)]
Bytes = Cardinal
#: Of a tensor; negative ones are open.
Dimension = Annotated[int, Range(-(2**31), 2**31 - 1)]
#: Three years, for what one run may take.
RunSeconds = Annotated[float, Range(0.0, 1e8)]
#: Three hundred years, for clocks that nothing resets, in all cores' time together.
UptimeSeconds = Annotated[float, Range(0.0, 1e10)]
UptimeMilliseconds = Annotated[int, Range(0, 10**13)]
#: Of `farm.core.base.cpu_list`.
CoreNumber = Annotated[int, Range(0, 255)]
#: Time at each frequency.
TimeByClock = Annotated[Mapping[Hertz, UptimeMilliseconds], AtMost(1024)]
Cores = Annotated[tuple[CoreNumber, ...], AtMost(256)]
CoreCount = Annotated[int, Range(0, 256)]
