"""The processes of a virtual phone, seen through /proc, and its journal: when each run was alive.

A run is any process with BENCHFARM_RUN=FENCE in the environment it was started with. The file has one JSON
object a line: `phone` (the phone started), `seen` (a process of a run is alive at `at_ns`), `gone` (it was
alive at `last_seen_ns`, and is not now). Times are CLOCK_BOOTTIME in nanoseconds, comparable within one
`boot_id`. The resolution is one scan, `agents.virtual.device.TICK_S`: spans are shortened by up to that at
either end, never extended, so that a detected overlap is a real one.
"""

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import UUID, uuid5

from agents.host.log_rotation import rotate_if_over, rotated_path
from agents.host.process import host_boot_id, start_ticks, stat_fields
from agents.virtual.init import below_init

JOURNAL_FILE = "journal.jsonl"
#: Two parts of this size are kept at most: some 10000 runs of one process each.
LIMIT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One line of the journal."""

    event: str
    at_ns: int
    serial: str
    boot_id: str
    fence: int = -1
    pid: int = -1
    #: Start of the process, in clock ticks since boot: with the pid it names a process.
    ticks: int = -1
    last_seen_ns: int = -1


def read_events(path: Path) -> Iterator[RunEvent]:
    """Yield every readable line, rotated or not; one that was truncated by a kill is skipped."""
    # The later part first: a rotation in between is then read twice, which changes nothing, and
    # never missed.
    later = _lines(path)
    for line in _lines(rotated_path(path)) + later:
        try:
            yield RunEvent(**json.loads(line))
        except (ValueError, TypeError):
            continue


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def open_runs(path: Path) -> dict[tuple[int, int], RunEvent]:
    """Return the `seen` of every process without a `gone`, by pid and ticks; of the last boot only."""
    started: dict[tuple[int, int], RunEvent] = {}
    for entry in read_events(path):
        if entry.event == "phone":
            started = {key: event for key, event in started.items() if event.boot_id == entry.boot_id}
        elif entry.event == "seen":
            started[entry.pid, entry.ticks] = entry
        else:
            started.pop((entry.pid, entry.ticks), None)
    return started


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
        self._boot_id = boot_id or host_boot_id()
        self._strangers: set[int] = set()
        self._seen_by_pid: dict[int, TrackedProcess] = {}

    @property
    def pids(self) -> list[int]:
        """Return the processes of runs that were alive at the last scan."""
        return list(self._seen_by_pid)

    def resume(self) -> None:
        """Begin, with the runs that an earlier process of the phone saw."""
        self._write([self._entry("phone")])
        for (pid, _), entry in open_runs(self._journal).items():
            self._seen_by_pid[pid] = TrackedProcess(entry, entry.at_ns)

    def reboot(self, boot_id: str) -> None:
        """Continue in another boot; everything of the previous one was ended."""
        self.look()
        self._boot_id = boot_id
        self._write([self._entry("phone")])

    def look(self) -> None:
        """Scan every process once, and record the changes."""
        began_ns = now_ns()
        fence_by_pid = self._fences()
        started = [pid for pid in fence_by_pid if not self._is_known(pid, fence_by_pid[pid])]
        ended = [pid for pid in self._seen_by_pid if pid not in fence_by_pid or pid in started]
        ended_processes = [self._seen_by_pid.pop(pid) for pid in ended]
        lines = [
            replace(
                seen.entry,
                event="gone",
                at_ns=now_ns(),
                boot_id=self._boot_id,
                last_seen_ns=seen.last_seen_ns,
            )
            for seen in ended_processes
        ]
        for pid in started:
            ticks = start_ticks(pid)
            if ticks is not None:
                entry = self._entry("seen", fence=fence_by_pid[pid], pid=pid, ticks=ticks)
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

    def _fences(self) -> dict[int, int]:
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - ten times as quick
        self._strangers &= pids
        fences: dict[int, int] = {}
        for pid in pids - self._strangers:
            environment = process_environment(pid)
            if (fence := self._fence(pid, environment)) is not None:
                fences[pid] = fence
            elif not self._is_ours(environment) and _is_stable(pid, environment):
                self._strangers.add(pid)
        return fences

    def _fence(self, pid: int, environment: dict[bytes, bytes]) -> int | None:
        if not environment and pid in self._seen_by_pid and start_ticks(pid) is not None:
            # During an exec a process has no environment for a moment.
            return self._seen_by_pid[pid].entry.fence
        if not self._is_ours(environment):
            return None
        text = environment.get(RUN_VARIABLE.encode(), b"")
        return int(text) if text.isdigit() else None

    def _is_ours(self, environment: dict[bytes, bytes]) -> bool:
        return environment.get(DEVICE_VARIABLE.encode()) == self._serial.encode()

    def _entry(self, event: str, **process: int) -> RunEvent:
        return RunEvent(event=event, at_ns=now_ns(), serial=self._serial, boot_id=self._boot_id, **process)

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


BOOT_ID_FILE = "boot_id"
#: Tells processes on the phone where its boot id is: that of /proc is the machine's.
BOOT_ID_VARIABLE = "BENCHFARM_BOOT_ID"
_COUNT = "boots"
END_DEADLINE_S = 10.0
_STEP_S = 0.01


class BootCounter:
    """Counts the boots of the phone in a folder.

    Invariant: a boot id is never used again; it lasts as long as the machine's boot, and as long as the phone
    does not reboot, whatever happens to the phone's own process.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._count = read_number(state / _COUNT)
        self._write()

    @property
    def boot_id(self) -> str:
        """Return the boot id: that of the machine until the first reboot."""
        machine = host_boot_id()
        return machine if self._count == 0 else str(uuid5(UUID(machine), str(self._count)))

    def begin_next_boot(self) -> None:
        """Count another boot."""
        self._count += 1
        self._write()

    def _write(self) -> None:
        for name, text in ((_COUNT, str(self._count)), (BOOT_ID_FILE, f"{self.boot_id}\n")):
            draft = self._state / f"{name}.new"
            draft.write_text(text)
            draft.replace(self._state / name)


def kill_processes(serial: str, state: Path) -> None:
    """Kill everything that runs on the phone until nothing does; blocks.

    Raises:
        TimeoutError: something cannot be killed.
    """
    end_s = time.monotonic() + END_DEADLINE_S
    while alive := list(_processes(serial, state)):
        if time.monotonic() > end_s:
            raise TimeoutError(f"{alive} outlive the reboot of {serial}")
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_STEP_S)


def _processes(serial: str, state: Path) -> Iterator[int]:
    """Yield what the phone started: by its ancestors, its environment, or its folder."""
    yield from below_init(os.environ)
    for name in os.listdir("/proc"):  # noqa: PTH208 - ten times as quick
        if name.isdigit() and int(name) != os.getpid():
            pid = int(name)
            named = process_environment(pid).get(DEVICE_VARIABLE.encode())
            if named == serial.encode() or _runs_in(pid, state):
                yield pid


def _runs_in(pid: int, folder: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(folder / "data")
    except OSError:
        return False


def read_number(path: Path) -> int:
    """Return the number in a file; 0 where there is none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
