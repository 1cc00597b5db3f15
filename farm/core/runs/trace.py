"""The trace of a run: a time series of samples that the device took of itself while the run was measured.

None means that the device hides a value, never zero. A run without a trace was not sampled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from farm.core.base.bounds import (
    AtMost,
    Bytes,
    Celsius,
    CoreNumber,
    Cores,
    Hertz,
    Range,
    RunSeconds,
    UptimeSeconds,
    Word,
)
from farm.core.base.cpu_list import MAX_CORES

#: The sampler doubles its pause before a run of a century reaches this.
MAX_SAMPLES = 20_000
MAX_ZONES = 64

Amperes = Annotated[float, Range(-1000.0, 1000.0)]
Volts = Annotated[float, Range(0.0, 1000.0)]
AmpereHours = Annotated[float, Range(-1000.0, 1000.0)]

#: The charger of a device that runs on its battery.
DISCHARGING = "discharging"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePolicy:
    """A cpufreq policy of the device, and the limits of its hardware."""

    #: `policy0`.
    name: Word
    cores: Cores = ()
    hardware_min_hz: Hertz | None = None
    hardware_max_hz: Hertz | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSample:
    """One clock at one moment."""

    #: The ceiling in force (scaling_max_freq, or a lower one that the firmware reports).
    limit_hz: Hertz | None = None
    current_hz: Hertz | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSample:
    """One sample."""

    #: The device's clock (/proc/uptime), 10 ms steps.
    uptime_s: UptimeSeconds
    #: By policy, in the order of `RunTrace.policies`.
    clocks: Annotated[tuple[ClockSample, ...], AtMost(MAX_CORES)] = ()
    gpu: ClockSample = field(default_factory=ClockSample)
    #: The cores that the scheduler may put the measured process on; empty where they are unknown.
    allowed_cores: Cores = ()
    #: Memory of the measured process and its children together; the peaks are summed too.
    rss_bytes: Bytes | None = None
    swap_bytes: Bytes | None = None
    peak_rss_bytes: Bytes | None = None
    #: CPU time that the measured process and its children used so far, user and system; grandchildren count
    #: after their end.
    cpu_s: UptimeSeconds | None = None
    #: The core that the main thread of the busiest of these processes last ran on; None where that has ended.
    core: CoreNumber | None = None
    temperatures_c: Annotated[Mapping[Word, Celsius], AtMost(MAX_ZONES)] = field(default_factory=dict)
    #: How far each cooling device limits its hardware: 0 is not at all. No file holds the thermal status of
    #: Android itself.
    cooling: Annotated[Mapping[Word, Annotated[int, Range(0, 2**31 - 1)]], AtMost(MAX_ZONES)] = field(
        default_factory=dict
    )
    #: Current into the battery: negative while the device runs on it.
    battery_a: Amperes | None = None
    battery_v: Volts | None = None
    #: Of the fuel gauge.
    battery_charge_ah: AmpereHours | None = None
    #: `charging`, `discharging`, `full` or `not charging`.
    charger: Word | None = None

    def clock_of(self, index: int) -> ClockSample:
        """Return the clock of the policy at an index of `RunTrace.policies`."""
        return self.clocks[index] if index < len(self.clocks) else ClockSample()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTrace:
    """The samples of one run, in the order of their time, and what is constant during it."""

    policies: Annotated[tuple[TracePolicy, ...], AtMost(MAX_CORES)] = ()
    #: `kgsl`, or the name of a devfreq device.
    gpu_name: Word | None = None
    gpu_max_hz: Hertz | None = None
    #: The device's clock right before the measured process was started, and right after its end. The end is
    #: unknown where the supervisor was killed.
    started_uptime_s: UptimeSeconds | None = None
    ended_uptime_s: UptimeSeconds | None = None
    #: The usual pause between samples: shorter in the first second, doubled from time to time in a long run.
    pause_s: RunSeconds | None = None
    samples: Annotated[tuple[TraceSample, ...], AtMost(MAX_SAMPLES)] = ()
    #: Lines that could not be read: cut, doubled or interleaved.
    skipped_lines: Annotated[int, Range(0, 2**31 - 1)] = 0
    #: True where the trace has no end: the sampler or the supervisor was killed, or the trace was too long.
    is_cut: bool = False

    @property
    def began_uptime_s(self) -> float:
        """Return the start of the process, or the first sample; there is at least one sample."""
        first_s = self.samples[0].uptime_s
        return first_s if self.started_uptime_s is None else min(self.started_uptime_s, first_s)
