"""Faults of a virtual phone, on demand: the file `faults.json` in its folder says what is wrong with it now.

Written by `set_faults`, or by hand; missing keys mean that all is well. The phone looks at it at each service
that is asked for and every `agents.virtual.phone.TICK_S`. What is counted happens so often, and is counted
down by the phone when it begins. Keys:

    vanish             connections are cut and nothing listens, until it is false again
    hang               connections are accepted and kept, and nothing is read or answered
    offline            connections are cut, and new ones never greeted: adb lists the phone as offline
    unauthorized       no key is known any more: adb lists the phone as unauthorized
    mode               what it greets as: `device`, or `recovery`, `sideload`, `bootloader`, `rescue`
    reboots            counted: everything that runs there dies, and the phone comes back with a new boot id
    reboot_s           how long it is away then
    boot_loop          it reboots all the time, and Android is never up in between
    adbd_restarts      counted: all connections are cut, and new ones accepted at once
    adbd_takes_runs    a restart of adbd ends what it had started, as init does on a phone
    slow_ms            every service begins so much later
    exit1              every shell command does nothing and exits with 1
    eofs               counted: services that are closed without a word
    corrupt_pushes     counted: pushes that have a byte of theirs flipped
    truncate_pushes    counted: pushes of which half is kept, and called whole
    power_cut_pushes   counted: pushes that are called whole, and are zeros afterwards
    disk_full          pushes are refused with "No space left on device"
    thermal_status     Android's thermal status, in `dumpsys thermalservice`
    skin_c             the skin temperature there
    battery_level_pct  the level in `dumpsys battery`; the phone then has a battery
    battery_c          its temperature
    charging           whether it is on mains
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

FILE = "faults.json"


#: Faults that happen so often, and no more.
Counted = Literal["reboots", "adbd_restarts", "eofs", "corrupt_pushes", "truncate_pushes", "power_cut_pushes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What is wrong; the module's docstring says what each means."""

    vanish: bool = False
    hang: bool = False
    offline: bool = False
    unauthorized: bool = False
    mode: str = "device"
    reboots: int = 0
    reboot_s: float = 1.0
    boot_loop: bool = False
    adbd_restarts: int = 0
    adbd_takes_runs: bool = False
    slow_ms: int = 0
    exit1: bool = False
    eofs: int = 0
    corrupt_pushes: int = 0
    truncate_pushes: int = 0
    power_cut_pushes: int = 0
    disk_full: bool = False
    thermal_status: int = 0
    skin_c: float | None = None
    battery_level_pct: int | None = None
    battery_c: float | None = None
    charging: bool = True


def set_faults(state: Path, faults: Faults) -> None:
    """Have the phone in folder `state` behave so within a tick; `Faults()` makes it well again."""
    # The phone writes the file, too, where it counts one down.
    draft = state / f"{FILE}.{os.getpid()}.new"
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

    def take(self, kind: Counted) -> bool:
        """Whether a counted fault is to happen now; counted down in the file."""
        faults = self.current()
        left: int = getattr(faults, kind)
        if left <= 0:
            return False
        set_faults(self._state, faults_of({**asdict(faults), kind: left - 1}))
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
