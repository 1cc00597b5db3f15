"""A scripted course of a virtual phone: what its sysfs, and the memory of its processes, show during a run.

A virtual phone has no clocks, sensors or battery of its own in sysfs: unless it has a course, its sampler
finds nothing to read. `set_course` gives it one, before a run or during it:

    set_course(
        handle.state,
        Course(
            files={**policy_files(0, cores=(0,), khz=1_800_000), **battery_files(current=-350_000)},
            steps=(
                CourseStep(at_s=1.0, files=policy_limit(0, khz=1_080_000)),
                CourseStep(at_s=3.0, files=policy_limit(0, khz=1_800_000)),
            ),
        ),
    )

The files are there from then on. The steps are played in each run: `at_s` after its first process was seen,
to within `agents.virtual.device.TICK_S`. When all of its processes are gone, the files are as before again,
so that looks before and after a run see nothing of the steps. `swap_kb` of a step is what the status of the
run's processes says of memory that was swapped out. `set_course(state, Course())` takes all files away.

Units are those of the files: kHz for CPUs, Hz for kgsl, µA or mA as the test likes for `current_now`.
"""

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from agents.virtual.sandbox import PROC_FOLDER, SYS_FOLDER, replace_file

FILE = "course.json"
_VM_SWAP = re.compile(r"^VmSwap:.*$", re.MULTILINE)
#: Text by path below /sys.
SysFiles = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseStep:
    """What changes so long after the start of a run."""

    at_s: float
    files: SysFiles = field(default_factory=dict)
    #: Swapped-out memory of each process from then on; None leaves it as it is.
    swap_kb: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The files of a phone, and how they change in a run."""

    files: SysFiles = field(default_factory=dict)
    steps: Sequence[CourseStep] = ()

    def at(self, since_s: float | None) -> CourseStep:
        """Return all that holds so long after the start of a run; None is outside of runs."""
        state = CourseStep(at_s=0.0, files=dict(self.files))
        for step in sorted(self.steps, key=lambda step: step.at_s):
            if since_s is not None and step.at_s <= since_s:
                swap_kb = state.swap_kb if step.swap_kb is None else step.swap_kb
                state = replace(state, files={**state.files, **step.files}, swap_kb=swap_kb)
        return state


def set_course(state: Path, course: Course) -> None:
    """Set the course of the phone in folder `state`; its files are there on return."""
    earlier = _read(state)
    _write_files(state, course.files)
    _remove_files(state, set(_paths(earlier)) - set(_paths(course)))
    shutil.rmtree(state / PROC_FOLDER, ignore_errors=True)
    if any(step.swap_kb is not None for step in course.steps):
        (state / PROC_FOLDER).mkdir()
    replace_file(state / FILE, json.dumps(asdict(course)))


def policy_files(number: int, *, cores: Sequence[int], khz: int, least_khz: int = 300_000) -> SysFiles:
    """Return a cpufreq policy whose hardware can do `khz`, without a limit, at its highest clock."""
    folder = f"devices/system/cpu/cpufreq/policy{number}"
    return {
        f"{folder}/related_cpus": " ".join(map(str, cores)),
        f"{folder}/cpuinfo_min_freq": str(least_khz),
        f"{folder}/cpuinfo_max_freq": str(khz),
        f"{folder}/scaling_min_freq": str(least_khz),
        f"{folder}/scaling_governor": "schedutil",
        **policy_limit(number, khz=khz),
    }


def policy_limit(number: int, *, khz: int, current_khz: int | None = None) -> SysFiles:
    """Return a limit of a policy, and its clock; without one it is at its limit."""
    folder = f"devices/system/cpu/cpufreq/policy{number}"
    current_khz = khz if current_khz is None else current_khz
    return {f"{folder}/scaling_max_freq": str(khz), f"{folder}/scaling_cur_freq": str(current_khz)}


def gpu_files(*, hz: int, limit_hz: int | None = None, most_hz: int | None = None) -> SysFiles:
    """Return Adreno's driver with the GPU at a clock; what is not given is the same."""
    folder = "class/kgsl/kgsl-3d0"
    return {
        f"{folder}/gpuclk": str(hz),
        f"{folder}/devfreq/max_freq": str(limit_hz or hz),
        f"{folder}/gpu_available_frequencies": f"{most_hz or limit_hz or hz} 180000000",
    }


def battery_files(
    *, current: int, status: str = "Discharging", voltage: int = 4_000_000, charge: int | None = None
) -> SysFiles:
    """Return a battery; `status` as Linux writes it: `Charging`, `Discharging`, `Full`, `Not charging`."""
    folder = "class/power_supply/battery"
    counter = {} if charge is None else {f"{folder}/charge_counter": str(charge)}
    return {
        f"{folder}/type": "Battery",
        f"{folder}/current_now": str(current),
        f"{folder}/voltage_now": str(voltage),
        f"{folder}/status": status,
        **counter,
    }


def zone_files(number: int, name: str, *, celsius: float) -> SysFiles:
    """Return a thermal zone; one of a CPU, a GPU, a battery or the skin is sampled."""
    folder = f"class/thermal/thermal_zone{number}"
    return {f"{folder}/type": name, f"{folder}/temp": str(round(celsius * 1000))}


def cooling_files(number: int, name: str, *, level: int) -> SysFiles:
    """Return a cooling device; `thermal-cpufreq-0` is a usual name."""
    folder = f"class/thermal/cooling_device{number}"
    return {f"{folder}/type": name, f"{folder}/cur_state": str(level)}


class CoursePlayer:
    """Plays the course of one phone."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._stamp = 0
        self._course = Course()
        self._shown = CourseStep(at_s=0.0)
        self._began_s: float | None = None

    def play(self, pids: Iterable[int], now_s: float) -> None:
        """Show what the course has for this moment; `pids` are the processes of the current run."""
        if (stamp := self._file_stamp()) != self._stamp:
            self._stamp, self._course = stamp, _read(self._state)
            self._shown = self._course.at(None)
        processes = list(pids)
        if not processes:
            self._began_s = None
        elif self._began_s is None:
            self._began_s = now_s
        due = self._course.at(None if self._began_s is None else now_s - self._began_s)
        changed = {path: text for path, text in due.files.items() if self._shown.files.get(path) != text}
        _write_files(self._state, changed)
        _remove_files(self._state, set(self._shown.files) - set(due.files))
        self._shown = due
        self._show_memory(processes, due.swap_kb)

    def _show_memory(self, pids: Iterable[int], swap_kb: int | None) -> None:
        folder = self._state / PROC_FOLDER
        for pid in pids if folder.is_dir() else ():
            # The process may have ended, or the course.
            with suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                if swap_kb is not None:
                    status = _VM_SWAP.sub(f"VmSwap:\\t{swap_kb:8} kB", status)
                (folder / str(pid)).mkdir(exist_ok=True)
                replace_file(folder / str(pid) / "status", status)

    def _file_stamp(self) -> int:
        try:
            return (self._state / FILE).stat().st_mtime_ns
        except OSError:
            return 0


def _read(state: Path) -> Course:
    """Return the course in the file; one that is missing, invalid or half written is empty."""
    try:
        raw = json.loads((state / FILE).read_text())
        steps = tuple(CourseStep(**step) for step in raw["steps"])
        return Course(files=raw["files"], steps=steps)
    except (OSError, ValueError, KeyError, TypeError):
        return Course()


def _paths(course: Course) -> Iterable[str]:
    yield from course.files
    for step in course.steps:
        yield from step.files


def _write_files(state: Path, files: SysFiles) -> None:
    for path, text in files.items():
        file = state / SYS_FOLDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, f"{text}\n")


def _remove_files(state: Path, paths: Iterable[str]) -> None:
    for path in paths:
        (state / SYS_FOLDER / path).unlink(missing_ok=True)
