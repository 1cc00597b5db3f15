"""A monitor of a virtual phone's processes through /proc, for the journal."""

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from agents.host.process import start_ticks, stat_fields
from agents.virtual.processes.journal import LIMIT_BYTES, RunEvent, open_runs
from agents.virtual.processes.log_rotation import rotate_if_over

RUN_VARIABLE = "BENCHFARM_RUN"
DEVICE_VARIABLE = "BENCHFARM_PHONE"
#: Linux: include/linux/sched.h, PF_KTHREAD.
_KERNEL_THREAD = 0x00200000
#: The environment of other users' processes.
_UNREADABLE = {b"": b""}


@dataclass(frozen=True, slots=True)
class TrackedProcess:
    """A live process of a run, with the last time it was seen."""

    entry: RunEvent
    last_seen_ns: int


class RunMonitor:
    """Scans for processes of one phone's runs, and records when each started and ended.

    Other processes are scanned once: whatever a phone starts has the phone's name in its environment from its
    first exec on, so only our own children, which may be before theirs, and processes with that name are
    scanned again.
    """

    def __init__(
        self, serial: str, journal: Path, *, boot_id: str | None = None, limit_bytes: int = LIMIT_BYTES
    ) -> None:
        """Scan nothing yet; without `boot_id` the phone has the machine's."""
        self._serial = serial
        self._journal = journal
        self._limit_bytes = limit_bytes
        self._boot_id = boot_id or kernel_boot_id()
        self._strangers: set[int] = set()
        self._seen_by_pid: dict[int, TrackedProcess] = {}
        self._last_look_ns = 0

    def resume(self) -> None:
        """Begin, with the runs that an earlier process of the phone saw."""
        self._write([self._entry("phone", now_ns())])
        for (pid, _), entry in open_runs(self._journal).items():
            self._seen_by_pid[pid] = TrackedProcess(entry, entry.at_ns)

    def reboot(self, boot_id: str) -> None:
        """Continue in another boot; everything of the previous one was ended."""
        self.look()
        self._boot_id = boot_id
        self._write([self._entry("phone", now_ns())])

    def look(self) -> None:
        """Scan every process once, and record the changes."""
        began_ns = now_ns()
        fence_by_pid = self._fences()
        started = [pid for pid in fence_by_pid if not self._is_known(pid, fence_by_pid[pid])]
        ended = [pid for pid in self._seen_by_pid if pid not in fence_by_pid or pid in started]
        lines = [self._gone(self._seen_by_pid.pop(pid)) for pid in ended]
        for pid in started:
            ticks = start_ticks(pid)
            if ticks is not None:
                entry = self._entry("seen", now_ns(), fence=fence_by_pid[pid], pid=pid, ticks=ticks)
                self._seen_by_pid[pid] = TrackedProcess(entry, began_ns)
                lines.append(entry)
        for pid, seen in self._seen_by_pid.items():
            # Alive at some time after the scan began: only its beginning is certain.
            self._seen_by_pid[pid] = TrackedProcess(seen.entry, max(began_ns, seen.entry.at_ns))
        if lines:
            self._write(lines)

    def _is_known(self, pid: int, fence: int) -> bool:
        seen = self._seen_by_pid.get(pid)
        return seen is not None and seen.entry.fence == fence and seen.entry.ticks == start_ticks(pid)

    def _gone(self, seen: TrackedProcess) -> RunEvent:
        entry = seen.entry
        return self._entry(
            "gone",
            now_ns(),
            fence=entry.fence,
            pid=entry.pid,
            ticks=entry.ticks,
            last_seen_ns=seen.last_seen_ns,
        )

    def _fences(self) -> dict[int, int]:
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - ten times as quick
        self._strangers &= pids
        fences: dict[int, int] = {}
        for pid in pids - self._strangers:
            environment = process_environment(pid)
            if (fence := self._fence(pid, environment)) is not None:
                fences[pid] = fence
            elif self._is_stranger(environment) and _is_stable(pid, environment):
                self._strangers.add(pid)
        return fences

    def _fence(self, pid: int, environment: dict[bytes, bytes]) -> int | None:
        if not environment and pid in self._seen_by_pid and start_ticks(pid) is not None:
            # During an exec a process has no environment for a moment.
            return self._seen_by_pid[pid].entry.fence
        if environment.get(DEVICE_VARIABLE.encode()) != self._serial.encode():
            return None
        text = environment.get(RUN_VARIABLE.encode(), b"")
        return int(text) if text.isdigit() else None

    def _is_stranger(self, environment: dict[bytes, bytes]) -> bool:
        return environment.get(DEVICE_VARIABLE.encode()) != self._serial.encode()

    def _entry(
        self, event: str, at_ns: int, fence: int = -1, pid: int = -1, ticks: int = -1, last_seen_ns: int = -1
    ) -> RunEvent:
        return RunEvent(
            event=event,
            at_ns=at_ns,
            serial=self._serial,
            boot_id=self._boot_id,
            fence=fence,
            pid=pid,
            ticks=ticks,
            last_seen_ns=last_seen_ns,
        )

    def _write(self, lines: Iterable[RunEvent]) -> None:
        if rotate_if_over(self._journal, self._limit_bytes):
            # Live processes are listed in each part, however long ago they started.
            lines = [*(seen.entry for seen in self._seen_by_pid.values()), *lines]
        text = "".join(json.dumps(asdict(line)) + "\n" for line in lines)
        with self._journal.open("a") as sink:
            sink.write(text)


def now_ns() -> int:
    """Return nanoseconds since boot, sleep included: the clock of process starts in /proc."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def kernel_boot_id() -> str:
    """Return an id that changes at each boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def process_environment(pid: int) -> dict[bytes, bytes]:
    """Return a process's initial environment; empty for zombies, kernel threads, and during an exec."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return _UNREADABLE
    except OSError:
        return {}
    pairs = (part.partition(b"=") for part in raw.split(b"\0") if part)
    return {name: value for name, _, value in pairs}


def _is_stable(pid: int, environment: dict[bytes, bytes]) -> bool:
    """Return whether the environment will stay: not before or during an exec."""
    fields = stat_fields(pid)
    if not fields or fields[0] in "ZX":
        return True
    is_kernel_thread = int(fields[6]) & _KERNEL_THREAD != 0
    return is_kernel_thread or (bool(environment) and int(fields[1]) != os.getpid())
