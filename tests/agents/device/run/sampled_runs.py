"""Runs that are sampled, and the processes that do it."""

from pathlib import Path

from agents.virtual.course import battery_files, cooling_files, gpu_files, policy_files, zone_files
from tests.support.agents.shell_phone import Phone, alive, eventually, of_session

DONE, LOST = 0, 13
FILES = {
    **policy_files(0, cores=(0,), khz=1_800_000),
    **policy_files(1, cores=(1,), khz=2_367_000),
    **gpu_files(hz=220_000_000, limit_hz=500_000_000, most_hz=680_000_000),
    **zone_files(0, "cpu-0", celsius=41.5),
    **zone_files(1, "modem", celsius=30),
    **cooling_files(0, "thermal-cpufreq-0", level=0),
    **battery_files(current=-350_000, charge=2_500_000),
}
#: A run that ends when its folder has a file `over`.
UNTIL_OVER = "while [ ! -e over ]; do sleep 0.05; done"


def supervisor_of(phone: Phone, fence: int = 1) -> int:
    return int((phone.folder(fence) / "supervisor").read_text().split()[0])


def sampler_of(phone: Phone, fence: int = 1) -> int:
    """The process that samples; its shell has been given the command `sample`."""

    def samples(pid: int) -> bool:
        try:
            return b"\0sample\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    found: list[int] = []

    def is_found() -> bool:
        # A shell about to start its pause is a copy of itself for a moment: the first one is the sampler.
        found[:] = sorted(pid for pid in of_session(supervisor_of(phone, fence)) if samples(pid))
        return bool(found)

    eventually(is_found)
    return found[0]


def run_sampled(phone: Phone, fence: int = 1, *, count: int = 3) -> None:
    """Have a run that waits, until it has so many samples."""
    assert phone.start(fence, UNTIL_OVER) == DONE
    trace = phone.folder(fence) / "run.trace"
    eventually(lambda: trace.read_text().count("\ns ") >= count)
    (phone.folder(fence) / "over").touch()
    assert phone.call("wait", fence, 20) == DONE


def left_of(phone: Phone) -> list[int]:
    """Whatever lives with the phone's mark."""
    mark = (phone.work / "id").read_bytes().strip()
    pids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes() and alive(int(path.parent.name)):
                pids.append(int(path.parent.name))
        except OSError:
            continue
    return pids
