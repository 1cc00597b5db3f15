"""Signs that a device slowed down during a run: heat, clock limits and clocks."""

from collections.abc import Iterator, Sequence

from farm.core.base.cpu_list import core_list
from farm.core.devices.condition import Condition, CpuPolicy, Gates, limited_clocks
from farm.core.devices.controls import CORES, ControlState
from farm.core.runs.evidence import Evidence, ExitRecord

#: A run that keeps a core busy for this share of its time leaves its clock no reason to be low.
BUSY = 0.9
#: Then some policy is at this share of its hardware's clock, or above, for this share of the run.
HIGH_CLOCK, HIGH_TIME = 0.9, 0.5
#: Looks that lie further apart than the run, by more than this share, tell of other things, too.
RUN_OF_SPAN = 0.8
#: Time is counted in steps of 10 ms: a shorter run tells nothing.
SHORTEST_S = 1.0


def throttling_reasons(evidence: Evidence, gates: Gates) -> Iterator[str]:
    """Say what shows it, in words; what a phone hides shows nothing."""
    for condition, when in ((evidence.before, "before"), (evidence.after, "after")):
        if condition is not None:
            yield from _heat_reasons(condition, when, gates)
            if gates.full_clocks:
                yield from (
                    f"{words} {when} the run" for words in limited_clocks(condition, evidence.controls)
                )
    if gates.full_clocks and not any(state.name.startswith("policy") for state in evidence.controls):
        yield from _clock_reasons(evidence)


def _heat_reasons(condition: Condition, when: str, gates: Gates) -> Iterator[str]:
    status, limit = condition.thermal_status, gates.max_thermal_status
    if status is not None and status > limit:
        yield f"thermal status {status.name} {when} the run, at most {limit.name}"


def _clock_reasons(evidence: Evidence) -> Iterator[str]:
    """Yield reasons from time in state: the only sign of a limit lowered and lifted again within the run."""
    before, after, ended = evidence.before, evidence.after, evidence.exit
    if before is None or after is None or ended is None or not _is_conclusive(before, after, ended):
        return
    cores = _cores(evidence.controls)
    shares = [
        (share, policy.name)
        for policy in after.cpus
        if (not cores or cores & set(policy.cores)) and (share := _high_share(before, policy)) is not None
    ]
    # The one that the run was on is not known: one that was high is enough.
    if shares and (best := max(shares))[0] < HIGH_TIME:
        yield (
            f"the run kept the CPU busy, and no clock was near its maximum for long: "
            f"{best[1]} for {best[0]:.0%} of the time, at least {HIGH_TIME:.0%}"
        )


def _is_conclusive(before: Condition, after: Condition, ended: ExitRecord) -> bool:
    if before.uptime_s is None or after.uptime_s is None or ended.cpu_s is None:
        return False
    if ended.duration_s < SHORTEST_S or before.boot_id != after.boot_id:
        return False
    span_s = after.uptime_s - before.uptime_s
    return ended.duration_s >= RUN_OF_SPAN * span_s and ended.cpu_s >= BUSY * ended.duration_s


def _high_share(before: Condition, policy: CpuPolicy) -> float | None:
    """Return the share of time between two readings that a policy was near its hardware maximum."""
    earlier = next((other for other in before.cpus if other.name == policy.name), None)
    if earlier is None or policy.hardware_max_hz is None:
        return None
    spent = {hz: ms - earlier.time_in_state_ms.get(hz, 0) for hz, ms in policy.time_in_state_ms.items()}
    total = sum(spent.values())
    if total <= 0 or min(spent.values()) < 0:
        return None
    return sum(ms for hz, ms in spent.items() if hz >= HIGH_CLOCK * policy.hardware_max_hz) / total


def _cores(controls: Sequence[ControlState]) -> set[int]:
    cores = next((state.requested for state in controls if state.name == CORES), "")
    return set(core_list(cores) or ())
