"""Faults of a virtual phone, on demand: the file `faults.json` in its folder says what is wrong with it now.

Written by `set_faults`, or by hand; missing keys mean that all is well. The phone looks at it at each push
and every `agents.virtual.phone.TICK_S`. Keys:

    vanish             connections are cut and nothing listens, until it is false again
    hang               connections are accepted and kept, and nothing is read or answered
    corrupt_pushes     this many coming pushes have a byte of theirs flipped; counted down by the phone
    disk_full          pushes are refused with "No space left on device"
    thermal_status     Android's thermal status, in `dumpsys thermalservice`
    skin_c             the skin temperature there
    battery_level_pct  the level in `dumpsys battery`; the phone then has a battery
    battery_c          its temperature
    charging           whether it is on mains
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

FILE = "faults.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What is wrong; the module's docstring says what each means."""

    vanish: bool = False
    hang: bool = False
    corrupt_pushes: int = 0
    disk_full: bool = False
    thermal_status: int = 0
    skin_c: float | None = None
    battery_level_pct: int | None = None
    battery_c: float | None = None
    charging: bool = True


def set_faults(state: Path, faults: Faults) -> None:
    """Have the phone in folder `state` behave so within a tick; `Faults()` makes it well again."""
    draft = state / f"{FILE}.new"
    draft.write_text(json.dumps(asdict(faults)))
    draft.replace(state / FILE)


def faults_of(raw: Mapping[str, Any]) -> Faults:
    """Faults from a file's content; keys that mean nothing are passed over."""
    known = {field.name for field in fields(Faults)}
    return replace(Faults(), **{name: value for name, value in raw.items() if name in known})


class FaultBox:
    """The faults of one phone as the file has them, read again when it changed."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._stamp: tuple[int, int] | None = None
        self._faults = Faults()

    def current(self) -> Faults:
        """What is wrong now. A file that is half written or nonsense changes nothing."""
        if (stamp := self._find_stamp()) != self._stamp:
            self._stamp = stamp
            self._faults = self._read()
        return self._faults

    def take_corruption(self) -> bool:
        """Whether this push is to be corrupted; counted down in the file."""
        faults = self.current()
        if faults.corrupt_pushes <= 0:
            return False
        set_faults(self._state, replace(faults, corrupt_pushes=faults.corrupt_pushes - 1))
        return True

    def _find_stamp(self) -> tuple[int, int] | None:
        try:
            found = (self._state / FILE).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def _read(self) -> Faults:
        try:
            raw = json.loads((self._state / FILE).read_text())
        except FileNotFoundError:
            return Faults()
        except (OSError, ValueError):
            return self._faults
        return faults_of(raw) if isinstance(raw, dict) else self._faults
