"""Output of controls.sh about clocks and cores: each file before, as requested, and now."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from farm.core.devices.controls import ControlState
from farm.phone.adb.decoding import lines, whole_number

#: File below devices/system/cpu, value before, requested value, value now; `-` where there is none.
_ROW = re.compile(
    r"(?:cpufreq/(policy\d{1,3})/scaling_(\w+)|(cpu\d{1,3})/(online)) (\S+) (\S+) (\S+)", re.ASCII
)
_NAME_BY_FILE = {"governor": "governor", "min_freq": "min_hz", "max_freq": "max_hz", "online": "online"}


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    before: str | None
    asked: str
    now: str | None


def control_states(text: str) -> tuple[ControlState, ...]:
    """Return the settings as they were read back at once."""
    return tuple(
        ControlState(
            name=row.name,
            asked=row.asked,
            before=row.before,
            actual_before=row.now,
            problem=None if row.before is not None else "the device does not have it",
        )
        for row in _rows(text)
    )


def with_read_back(states: Sequence[ControlState], text: str) -> tuple[ControlState, ...]:
    """Return the settings with the values after the run; those missing in the text stay unknown."""
    now_by_name = {row.name: row.now for row in _rows(text)}
    return tuple(
        replace(state, actual_after=now_by_name[state.name]) if state.name in now_by_name else state
        for state in states
    )


def _rows(text: str) -> Iterator[_Row]:
    for line in lines(text):
        match = _ROW.fullmatch(line)
        if match is None or (file := match[2] or match[4]) not in _NAME_BY_FILE:
            continue
        name = f"{match[1] or match[3]}.{_NAME_BY_FILE[file]}"
        before, requested, now = (_value(match[number], in_hz=file.endswith("_freq")) for number in (5, 6, 7))
        if requested is not None:
            yield _Row(name, before, requested, now)


def _value(text: str, *, in_hz: bool) -> str | None:
    """Convert a value: frequencies are in kilohertz in those files, and in hertz everywhere else."""
    if text == "-":
        return None
    kilohertz = whole_number(text)
    return str(kilohertz * 1000) if in_hz and kilohertz is not None else text
