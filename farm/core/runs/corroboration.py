"""Corroboration of a tool's placement by the CPU time of the run.

A tool may name a delegate that took all nodes, and the driver below it compute them on the CPU. What the
processes of a run used of the CPU cannot be talked away: the kernel counts it. It also counts what loading
and preparing took, and a driver that waits by spinning looks like one that computes; so a contradiction
makes a measurement unproven, never a fall back.
"""

from dataclasses import dataclass, replace

from farm.core.devices.condition import Condition
from farm.core.runs.evidence import ExitRecord
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Reading
from farm.core.runs.placement import CPU_BACKENDS, Accelerator, accelerators
from farm.core.runs.stats import measured_s

#: Of one core, during the iterations alone. A thread that computes uses all of one.
BUSY = 0.9
#: Less than this, and the CPU did not compute: it handed over, and waited.
IDLE = 0.2
#: Less than this, and it was not the CPU that computed, however many others wanted it, too.
ABSENT = 0.05
#: The kernel counts in steps of 10 ms; below this much of measured time they say nothing.
MIN_MEASURED_S = 1.0
#: Samples cannot take longer than the process; a little more is rounding.
_ROUNDING = 1.02
#: A GPU that says so was busy a moment ago.
_GPU_BUSY_PCT = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCpuUsage:
    """The CPU usage of a run while it iterated."""

    #: At least so many cores; all that came before the iterations is taken for one busy core.
    least_cores: float
    #: At most so many: as if all of it had been used by the iterations.
    most_cores: float
    measured_s: float


def run_cpu_usage(reading: Reading, ended: ExitRecord | None) -> RunCpuUsage | None:
    """Return the CPU usage; None where the device did not count, or the run was too short for its ticks."""
    if ended is None or ended.cpu_s is None:
        return None
    worked_s = measured_s(reading)
    if worked_s is None:
        worked_s = (reading.mean_ns or 0.0) * reading.expected_samples / 1e9
    if worked_s < MIN_MEASURED_S or worked_s > ended.duration_s * _ROUNDING:
        return None
    besides_s = max(0.0, ended.duration_s - worked_s)
    return RunCpuUsage(
        least_cores=max(0.0, ended.cpu_s - besides_s) / worked_s,
        most_cores=ended.cpu_s / worked_s,
        measured_s=worked_s,
    )


def corroborate(
    reading: Reading, ended: ExitRecord | None, after: Condition | None, *, requested_backend: str
) -> Reading:
    """Return the reading; an accelerator that CPU time contradicts becomes unknown, with the reason.

    Args:
        reading: what the adapter read.
        ended: the run's exit record.
        after: the phone right after the run.
        requested_backend: what the cell asked for; a reading of something else is left as it is.
    """
    use = run_cpu_usage(reading, ended)
    if use is None or reading.actual_backend != requested_backend:
        return reading
    if reading.accelerator == UNKNOWN_ACCELERATOR:
        hint = _hint(use, after, requested_backend)
        return replace(reading, proof=f"{reading.proof}; {hint}") if hint else reading
    against = _contradiction(reading, use)
    if against is None:
        return reading
    return replace(
        reading, accelerator=UNKNOWN_ACCELERATOR, proof=f"{against}, so this is not believed: {reading.proof}"
    )


def _contradiction(reading: Reading, use: RunCpuUsage) -> str | None:
    if reading.accelerator == Accelerator.CPU:
        return (
            None
            if use.most_cores >= ABSENT
            else f"{_upper_bound_text(use)} of the measured {use.measured_s:.1f} s"
        )
    is_all = reading.placement is not None and Accelerator.CPU not in accelerators(reading.placement)
    if not is_all or use.least_cores < BUSY:
        return None
    return f"{_lower_bound_text(use)} of the measured {use.measured_s:.1f} s, as if it computed"


def _hint(use: RunCpuUsage, after: Condition | None, requested: str) -> str | None:
    """Return the likely cause, where nothing is proven."""
    if requested in CPU_BACKENDS:
        return None
    if use.least_cores >= BUSY:
        return f"{_lower_bound_text(use)} of the time, so it may have computed this itself"
    if use.most_cores >= IDLE:
        return None
    busy = None if after is None else after.gpu_busy_pct
    if busy is not None and busy >= _GPU_BUSY_PCT:
        return f"{_upper_bound_text(use)} of the time, and the GPU said {busy:.0f} % right after it"
    return f"{_upper_bound_text(use)} of the time, so other hardware did most of the work"


def _lower_bound_text(use: RunCpuUsage) -> str:
    return f"the CPU worked at least {use.least_cores:.0%}"


def _upper_bound_text(use: RunCpuUsage) -> str:
    return f"the CPU worked at most {use.most_cores:.0%}"
