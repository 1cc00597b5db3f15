"""Output of `getprop`: every system property of a device."""

import re
from collections.abc import Mapping

from farm.phone.adb.decoding import complete_lines, lines

#: From `grep -n`: the line's number, with `-` behind it in lines of context, and the file before it where
#: several are searched.
_NUMBERED = r"(?:[\w./-]{1,200}?[:-])?\d{1,9}[:-]\s*"
#: `[key]: [value]`, the value sometimes over several lines; `grep -o` may cut the first bracket.
_START = re.compile(rf"\s*(?:\[|{_NUMBERED}\[?)([^\[\]\s]+)\]:\s?\[(.*)")
#: Between two properties that lost their line end; a value with brackets may look like it.
_JOINT = re.compile(r"\][ \t]*(?=\[[\w.\-/:@]{1,120}\]:\s?\[)")
#: build.prop, where a dump of properties is missing. `?=` gives a default value.
_ASSIGNMENT = re.compile(rf"(?:{_NUMBERED})?([A-Za-z][\w.\-]*)\s*(\??)=\s*(.*)")

Properties = Mapping[str, str]


def properties(text: str) -> dict[str, str]:
    """Return properties by name; the last of equal names counts. A value that is cut off is left out.

    Anything between properties is dropped: echoed commands, prompts, warnings.
    """
    value_by_name: dict[str, str] = {}
    key, value = "", [""]
    for line in [*lines(_in_lines(text)), "[end]: ["]:
        if not (start := _START.fullmatch(line)):
            value.append(line)
            continue
        if key and (complete := _until_bracket(value)) is not None:
            value_by_name[key] = complete
        key, value = start[1], [start[2]]
    return value_by_name or _assignments(text)


def _in_lines(text: str) -> str:
    """Restore the line ends of a dump that lost them; where most are there, brackets belong to values."""
    joints, ends = sum(1 for _ in _JOINT.finditer(text)), len(lines(text.strip())) - 1
    return _JOINT.sub("]\n", text) if joints > ends else text


def _until_bracket(value: list[str]) -> str | None:
    """Return a value up to the first line that ends with a bracket."""
    for count, line in enumerate(value, start=1):
        if line.endswith("]"):
            return "\n".join(value[:count]).removesuffix("]")
    return None


def _assignments(text: str) -> dict[str, str]:
    matches = [match for line in complete_lines(text) if (match := _ASSIGNMENT.fullmatch(line.strip()))]
    optional = {match[1]: match[3] for match in matches if match[2]}
    return optional | {match[1]: match[3] for match in matches if not match[2]}
