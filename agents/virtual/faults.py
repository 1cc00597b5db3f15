"""Faults of a virtual phone, on demand: the file `faults.json` in its folder lists the current ones.

Written by `set_faults`, or by hand; missing keys mean that all is well. The phone looks at it at each service
that is asked for and every `agents.virtual.device.TICK_S`. What is counted happens so often: the phone notes
in `faults-taken.json` what it has had, and begins again when `faults.json` is written again. Keys:

    vanish             connections are cut and nothing listens, until it is false again
    flap_s             it vanishes and is back in turns, so long each; what runs there goes on
    hang               connections are accepted and kept, and nothing is read or answered
    offline            connections are cut, and new ones never greeted: adb lists the phone as offline
    unauthorized       no key is known any more: adb lists the phone as unauthorized
    mode               what it greets as: `device`, or `recovery`, `sideload`, `bootloader`, `rescue`
    reboots            counted: everything that runs there dies, and the phone comes back with a new boot id
    reboot_s           how long it is away then
    ends_with_reboot   counted, once: a restart that a host orders, `adb reboot`, ends all that is wrong
    boot_loop          it reboots all the time, and Android is never up in between
    adbd_restarts      counted: all connections are cut, and new ones accepted at once
    adbd_takes_runs    a restart of adbd ends what it had started, as init does on a phone
    slow_ms            every service begins so much later
    exit1              every shell command does nothing and exits with 1
    drips              every shell command prints a byte now and then, and never ends
    no_stat_v2         its adbd is an old one, which knows no sizes from 4 GiB on
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
    battery_pct_per_s  how quickly the level moves: up while it charges, down while it does not
    rooted             its su works, and root may stop the charging
    slow               how many times as long its `sha256sum` takes, which the reference run of a check times
    build              what its system's fingerprint ends with, after an update; told at its next start
"""

import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

FILE, USED_FAULTS_FILE = "faults.json", "faults-taken.json"

#: Faults that happen a given number of times.
CountedFault = Literal[
    "reboots",
    "ends_with_reboot",
    "adbd_restarts",
    "eofs",
    "corrupt_pushes",
    "truncate_pushes",
    "power_cut_pushes",
]
#: Modification time, inode and size, which identify a version of the file.
_Stamp = list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The faults of a virtual phone; the module's docstring explains each."""

    vanish: bool = False
    flap_s: float = 0.0
    hang: bool = False
    offline: bool = False
    unauthorized: bool = False
    mode: str = "device"
    reboots: int = 0
    reboot_s: float = 1.0
    ends_with_reboot: int = 0
    boot_loop: bool = False
    adbd_restarts: int = 0
    adbd_takes_runs: bool = False
    slow_ms: int = 0
    exit1: bool = False
    drips: bool = False
    no_stat_v2: bool = False
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
    battery_pct_per_s: float = 0.0
    rooted: bool = False
    slow: int = 1
    build: str = ""


def set_faults(state: Path, faults: Faults) -> None:
    """Set the faults of the phone in folder `state`, within a tick; `Faults()` clears them."""
    _write(state / FILE, asdict(faults))


def parse_faults(raw: Mapping[str, Any]) -> Faults:
    """Parse faults from a file's content; unknown keys are ignored."""
    names = {field.name for field in fields(Faults)}
    return replace(Faults(), **{name: value for name, value in raw.items() if name in names})


class FaultState:
    """The faults of one phone as in the file, read again when it changed.

    The file is only read here: a value written by the phone might overwrite a newer one of another writer.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._stamp: _Stamp | None = None
        self._faults = Faults()
        self._taken: Counter[str] = Counter()

    def current(self) -> Faults:
        """Return the current faults. A file that is half written or invalid changes nothing."""
        if _find_stamp(self._state / FILE) != self._stamp:
            self._read()
        return Faults() if self._taken["ends_with_reboot"] else self._faults

    def left(self, kind: CountedFault) -> int:
        """Return how often a counted fault is still to happen."""
        self.current()
        requested: int = getattr(self._faults, kind)
        return max(0, requested - self._taken[kind])

    def take(self, kind: CountedFault) -> bool:
        """Return whether a counted fault is to happen now; recorded for later processes of the phone."""
        if self.left(kind) == 0:
            return False
        self._taken[kind] += 1
        _write(self._state / USED_FAULTS_FILE, {"of": self._stamp, "taken": self._taken})
        return True

    def _read(self) -> None:
        try:
            with (self._state / FILE).open() as file:
                # The stamp of the file that is read, not of one that may have replaced it since.
                self._stamp, raw = _file_stamp(os.fstat(file.fileno())), json.load(file)
        except FileNotFoundError:
            self._stamp, raw = None, {}
        except (OSError, ValueError):
            return
        if isinstance(raw, dict):
            self._faults, self._taken = parse_faults(raw), self._noted()

    def _noted(self) -> Counter[str]:
        """Return the counted faults of this very file that have happened already."""
        try:
            used = json.loads((self._state / USED_FAULTS_FILE).read_text())
        except FileNotFoundError:
            return Counter()
        return Counter(used["taken"]) if used["of"] == self._stamp else Counter()


def _find_stamp(path: Path) -> _Stamp | None:
    try:
        return _file_stamp(path.stat())
    except OSError:
        return None


def _file_stamp(status: os.stat_result) -> _Stamp:
    return [status.st_mtime_ns, status.st_ino, status.st_size]


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file atomically; of concurrent writers the last one wins."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}.", delete=False) as draft:
        json.dump(content, draft)
    Path(draft.name).replace(path)
