"""What the trace of a run shows against its measurement: lowered ceilings, cooling, and memory swapped out.

Only the measured part of a run counts: its end, as long as its samples are together. Where the end or the
length is not known, that is the whole run.

A ceiling lowers a clock that the run used: the process used the CPU, its clock was at the ceiling, and, where
one thread did the work, that was on these cores. The loss of a moment is how far the ceiling was below the
hardware's, times the share of the moment in which the process used the CPU.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Annotated

from farm.core.base.bounds import Hertz, Range, RunSeconds, Word
from farm.core.base.cpu_list import MAX_CORES
from farm.core.devices.condition import FULL_CLOCK, Gates
from farm.core.devices.controls import ControlState
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import DEFAULT_MARGIN, Reading
from farm.core.runs.placement import Accelerator
from farm.core.runs.stats import measured_s
from farm.core.runs.trace import ClockSample, RunTrace, TraceSample

#: A ceiling counts against a run below this share of what the hardware can do; above, it is a notice.
CAPPED_CLOCK = 0.85
#: A clock at this share of its ceiling, or above, is held down by it: schedulers ask for steps, not for any
#: clock (Linux, cpufreq/schedutil).
AT_CEILING = 0.9
#: A process that uses less of one core than this waits for something else.
BUSY_SHARE = 0.1
#: A process that uses more of one core than this has several threads at work: its main thread does not tell
#: where the others run.
ONE_THREAD = 1.2
#: The samples account for the run's CPU time where they have this share of it: a child counts after its end.
OWN_SHARE = 0.5
#: Memory that is swapped out while a run is measured, from which it counts.
SWAPPED_BYTES = 1024 * 1024
#: The measured part is not known where more than this share of it has no sample.
UNSAMPLED_SHARE = 0.1
#: A sample tells of so long a time around it at least: a sampler beats twice a second.
_NEAR_S = 2.0
#: Linux cooling devices, by parts of their names: those that switch cores off, which no ceiling shows, and
#: those that lower clocks, which say less than ceilings and count where these are hidden.
_CORES_OFF = ("hotplug", "isolate", "pause")
_LOWER_CPU, _LOWER_GPU = ("cpu",), ("gpu", "kgsl", "mali")
GPU = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """How far the ceiling of one clock was below its hardware's maximum during a run."""

    #: Of the policy, or `gpu`.
    name: Word
    hardware_hz: Hertz
    lowest_hz: Hertz
    #: From the start of the process to the first sample with a lowered ceiling.
    first_s: RunSeconds
    #: Time with a lowered ceiling, of the whole run.
    lowered_s: RunSeconds
    #: The mean loss over the measured part, as far as the run used this clock.
    loss: Annotated[float, Range(0.0, 1.0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFindings:
    """Reasons by quality, notices that do not lower it, and the lowered ceilings."""

    throttled: tuple[str, ...] = ()
    capped: tuple[str, ...] = ()
    swapped: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    #: Lowered ones; None where no ceiling is known.
    ceilings: tuple[Ceiling, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A time between two samples; at either end of the run, both are the same one."""

    start_s: float
    end_s: float
    first: TraceSample
    last: TraceSample
    #: CPU time of the process over the time; None where it is not known.
    cpu_share: float | None
    #: False where work of children is not in the samples: then the main thread tells nothing.
    is_own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clock:
    """A clock of the hardware, and how to find it in a sample; `index` None is the GPU's."""

    name: str
    cores: frozenset[int]
    hardware_hz: int | None
    index: int | None

    def of(self, sample: TraceSample) -> ClockSample:
        return sample.gpu if self.index is None else sample.clock_of(self.index)


def trace_findings(
    trace: RunTrace | None,
    reading: Reading,
    evidence: Evidence,
    gates: Gates,
    *,
    margin: float = DEFAULT_MARGIN,
) -> TraceFindings:
    """Judge a run by its trace.

    Args:
        trace: None for a run that was not sampled, which shows nothing.
        reading: its samples together are as long as the measured part; its accelerator may be the GPU.
        evidence: the CPU time of the run, and the clocks that controls lowered on purpose.
        gates: where clocks may be limited before the run, a lowered ceiling is a notice only.
        margin: the mean loss that counts: the matrix's equivalence margin.
    """
    if trace is None:
        return TraceFindings()
    if not trace.samples:
        return TraceFindings(notices=("the device showed nothing of itself during the run",))
    start_s, end_s = _measured_part(trace, measured_s(reading))
    spans = list(_spans(trace, evidence.exit))
    parts = [
        (span, seconds)
        for span in spans
        if (seconds := min(span.end_s, end_s) - max(span.start_s, start_s)) > 0
    ]
    on_gpu = reading.accelerator == Accelerator.GPU
    clocks, began_s = _clocks(trace, evidence.controls, on_gpu=on_gpu), trace.began_uptime_s
    ceilings = [
        ceiling
        for clock in clocks
        if (ceiling := _ceiling(clock, spans, parts, end_s - start_s, began_s)) is not None
    ]
    total_loss = sum(
        seconds * max((_loss(clock, span, CAPPED_CLOCK) for clock in clocks), default=0.0)
        for span, seconds in parts
    ) / (end_s - start_s)
    used = [ceiling for ceiling in ceilings if ceiling.name in _used_when_lowered(clocks, parts)]
    reasons = tuple(_ceiling_text(ceiling, end_s - start_s) for ceiling in used)
    is_capped = total_loss > margin and gates.full_clocks
    swapped, swap_notice = _swap(parts)
    hidden = [*_hidden(trace, clocks, spans, on_gpu=on_gpu), *_unsampled(parts, end_s - start_s)]
    return TraceFindings(
        throttled=tuple(_cooling_reasons(clocks, parts, began_s, on_gpu=on_gpu)),
        capped=reasons if is_capped else (),
        swapped=swapped,
        notices=(
            *(() if is_capped else reasons),
            *swap_notice,
            *([f"unknown during the run: {', '.join(hidden)}"] if hidden else []),
        ),
        ceilings=tuple(ceilings) if any(_is_known(clock, spans) for clock in clocks) else None,
    )


def stored_ceilings(ceilings: Sequence[Ceiling] | None) -> list[dict[str, object]] | None:
    """Return ceilings as they are stored with a measurement."""
    return None if ceilings is None else [asdict(ceiling) for ceiling in ceilings]


def _measured_part(trace: RunTrace, length_s: float | None) -> tuple[float, float]:
    start_s, last_s = trace.began_uptime_s, trace.samples[-1].uptime_s
    end_s = max(last_s, trace.ended_uptime_s or last_s, start_s + 0.01)
    if trace.ended_uptime_s is None or length_s is None:
        return start_s, end_s
    return max(start_s, min(end_s - length_s, end_s - 0.01)), end_s


def _spans(trace: RunTrace, ended: ExitRecord | None) -> Iterator[_Span]:
    samples = trace.samples
    run_cpu_s = None if ended is None else ended.cpu_s
    of_run = None if ended is None or run_cpu_s is None else run_cpu_s / max(ended.duration_s, 0.01)
    is_own = run_cpu_s is None or _seen_cpu_s(trace) >= OWN_SHARE * run_cpu_s
    first_s, last_s = samples[0].uptime_s, samples[-1].uptime_s
    near_s = max([_NEAR_S, *(2 * (b.uptime_s - a.uptime_s) for a, b in list(pairwise(samples))[-1:])])
    edges = (
        (max(trace.began_uptime_s, first_s - _NEAR_S), first_s, samples[0], samples[0]),
        *((a.uptime_s, b.uptime_s, a, b) for a, b in pairwise(samples)),
        (last_s, min(trace.ended_uptime_s or last_s, last_s + near_s), samples[-1], samples[-1]),
    )
    for start_s, end_s, first, last in edges:
        share = of_run
        if is_own and first is not last and first.cpu_s is not None and last.cpu_s is not None:
            share = max(0.0, last.cpu_s - first.cpu_s) / (end_s - start_s)
        if end_s > start_s:
            yield _Span(start_s=start_s, end_s=end_s, first=first, last=last, cpu_share=share, is_own=is_own)


def _seen_cpu_s(trace: RunTrace) -> float:
    """Return the CPU time that the samples account for, without that of children that ended at once."""
    known = [sample for sample in trace.samples if sample.cpu_s is not None]
    cores = {core for policy in trace.policies for core in policy.cores}
    cores |= {core for sample in trace.samples for core in sample.allowed_cores}
    most = len(cores) or MAX_CORES
    own_s = sum(
        min((b.cpu_s or 0.0) - (a.cpu_s or 0.0), most * (b.uptime_s - a.uptime_s)) for a, b in pairwise(known)
    )
    return own_s + (known[0].cpu_s or 0.0 if known else 0.0)


def _clocks(trace: RunTrace, controls: Sequence[ControlState], *, on_gpu: bool) -> tuple[_Clock, ...]:
    """Return the clocks that count, without those that a control limits on purpose."""
    limited_on_purpose = {state.name.partition(".")[0] for state in controls}
    own = tuple(
        _Clock(
            name=policy.name, cores=frozenset(policy.cores), hardware_hz=policy.hardware_max_hz, index=index
        )
        for index, policy in enumerate(trace.policies)
        if policy.name not in limited_on_purpose
    )
    gpu = _Clock(name=GPU, cores=frozenset(), hardware_hz=trace.gpu_max_hz, index=None)
    return (*own, gpu) if on_gpu else own


def _limit(clock: _Clock, span: _Span) -> float | None:
    """Return the ceiling as a share of the hardware's, the mean of both ends; None where it is hidden."""
    limits = [limit for sample in (span.first, span.last) if (limit := clock.of(sample).limit_hz) is not None]
    return sum(limits) / len(limits) / clock.hardware_hz if limits and clock.hardware_hz else None


def _is_at_ceiling(clock: _Clock, span: _Span) -> bool:
    """Tell whether the clock was held down by its ceiling at either end, or hides whether it was."""
    known = [
        (reading.current_hz, reading.limit_hz)
        for sample in (span.first, span.last)
        if (reading := clock.of(sample)).limit_hz is not None
    ]
    return any(current is None or current >= AT_CEILING * (limit or 0) for current, limit in known)


def _used_share(clock: _Clock, span: _Span) -> float:
    """Return the share of a time in which a run used a clock that was at its ceiling."""
    if not _is_at_ceiling(clock, span):
        return 0.0
    if clock.index is None:
        return 1.0
    share = span.cpu_share
    if share is None or share < BUSY_SHARE:
        return 0.0
    allowed = {core for sample in (span.first, span.last) for core in sample.allowed_cores}
    if allowed and clock.cores and not allowed & clock.cores:
        return 0.0
    main = {sample.core for sample in (span.first, span.last) if sample.core is not None}
    if span.is_own and share <= ONE_THREAD and main and not main & clock.cores:
        return 0.0
    if clock.of(span.last).current_hz is None and not (main & clock.cores):
        return 0.0
    return min(1.0, share)


def _loss(clock: _Clock, span: _Span, below: float) -> float:
    """Return the loss of a time by a clock whose ceiling was below a share of the hardware's."""
    limit = _limit(clock, span)
    return 0.0 if limit is None or limit >= below else (1 - limit) * _used_share(clock, span)


def _is_known(clock: _Clock, spans: Sequence[_Span]) -> bool:
    return any(_limit(clock, span) is not None for span in spans)


def _ceiling(
    clock: _Clock,
    spans: Sequence[_Span],
    parts: Sequence[tuple[_Span, float]],
    length_s: float,
    began_s: float,
) -> Ceiling | None:
    """Return how a ceiling was lowered; None where it was not, or is hidden."""
    hardware_hz = clock.hardware_hz
    samples = [span.last for span in spans]
    lowered = [
        (sample.uptime_s, limit)
        for sample in samples
        if (limit := clock.of(sample).limit_hz) is not None
        and hardware_hz is not None
        and limit < FULL_CLOCK * hardware_hz
    ]
    if not lowered or hardware_hz is None:
        return None
    lowered_s = sum(
        span.end_s - span.start_s
        for span in spans
        if (share := _limit(clock, span)) is not None and share < FULL_CLOCK
    )
    return Ceiling(
        name=clock.name,
        hardware_hz=hardware_hz,
        lowest_hz=min(limit for _, limit in lowered),
        first_s=max(0.0, round(lowered[0][0] - began_s, 2)),
        lowered_s=round(lowered_s, 2),
        loss=round(sum(own_s * _loss(clock, span, FULL_CLOCK) for span, own_s in parts) / length_s, 4),
    )


def _used_when_lowered(clocks: Sequence[_Clock], parts: Sequence[tuple[_Span, float]]) -> frozenset[str]:
    return frozenset(
        clock.name for clock in clocks if any(_loss(clock, span, FULL_CLOCK) > 0 for span, _ in parts)
    )


def _ceiling_text(ceiling: Ceiling, length_s: float) -> str:
    limited = f"limited to {ceiling.lowest_hz / 1e9:.2f} of {ceiling.hardware_hz / 1e9:.2f} GHz"
    loss = f"{ceiling.loss:.1%} less on average over the measured {length_s:.1f} s"
    return f"{ceiling.name} was {limited}, first {ceiling.first_s:.1f} s after the start: {loss}"


def _swap(parts: Sequence[tuple[_Span, float]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the reason and the notice about memory that was swapped out."""
    known = [
        size
        for sample in ([parts[0][0].first, *(span.last for span, _ in parts)] if parts else [])
        if (size := sample.swap_bytes) is not None
    ]
    if not known:
        return (), ()
    grown = max(known) - known[0]
    if grown >= SWAPPED_BYTES:
        return (f"{grown / 2**20:.1f} MiB of its memory was swapped out while it was measured",), ()
    if max(known) >= SWAPPED_BYTES:
        return (), (f"{max(known) / 2**20:.1f} MiB of its memory was swapped out before it was measured",)
    return (), ()


def _cooling_reasons(
    clocks: Sequence[_Clock], parts: Sequence[tuple[_Span, float]], began_s: float, *, on_gpu: bool
) -> Iterator[str]:
    """Yield cooling that ceilings do not show."""
    spans = [span for span, _ in parts]
    is_cpu_known = any(_is_known(clock, spans) for clock in clocks if clock.index is not None)
    is_gpu_known = any(_is_known(clock, spans) for clock in clocks if clock.index is None)
    words = (
        *_CORES_OFF,
        *(() if is_cpu_known else _LOWER_CPU),
        *(_LOWER_GPU if on_gpu and not is_gpu_known else ()),
    )
    told: set[str] = set()
    for span in spans:
        for name, level in span.last.cooling.items():
            if level > 0 and name not in told and any(word in name.lower() for word in words):
                told.add(name)
                after_s = max(0.0, span.last.uptime_s - began_s)
                yield f"cooling device {name} was at level {level}, {after_s:.1f} s after the start"


def _hidden(
    trace: RunTrace, clocks: Sequence[_Clock], spans: Sequence[_Span], *, on_gpu: bool
) -> Iterator[str]:
    """Yield what the device hides of what would be judged."""
    policies = [clock for clock in clocks if clock.index is not None]
    if (policies or not trace.policies) and not any(_is_known(clock, spans) for clock in policies):
        yield "CPU ceilings"
    elif all(span.cpu_share is None for span in spans):
        yield "CPU time"
    if on_gpu and not any(_is_known(clock, spans) for clock in clocks if clock.index is None):
        yield "GPU ceiling"
    if all(sample.swap_bytes is None for sample in trace.samples):
        yield "swapped memory"


def _unsampled(parts: Sequence[tuple[_Span, float]], length_s: float) -> Iterator[str]:
    missing_s = length_s - sum(seconds for _, seconds in parts)
    if missing_s > UNSAMPLED_SHARE * length_s:
        yield f"{missing_s:.1f} of the measured {length_s:.1f} s"
