"""The boots of a virtual phone: counted, and ended with everything that runs there."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid5

from agents.virtual.processes.process_monitor import DEVICE_VARIABLE, kernel_boot_id, process_environment

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
        self._count = _number(state / _COUNT)
        self._write()

    @property
    def boot_id(self) -> str:
        """Return the boot id: that of the machine until the first reboot."""
        machine = kernel_boot_id()
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
    """Yield what the phone started, by its environment, or by its folder where that was cleared."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - ten times as quick
        if name.isdigit() and int(name) != os.getpid():
            pid = int(name)
            if process_environment(pid).get(DEVICE_VARIABLE.encode()) == serial.encode() or _runs_in(
                pid, state
            ):
                yield pid


def _runs_in(pid: int, folder: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(folder / "data")
    except OSError:
        return False


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
