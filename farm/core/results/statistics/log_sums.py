"""Sums of the logarithms of times and speedups of devices, which a database can add up."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from farm.core.results.statistics.interval import LogInterval, interval_of_mean


class LogSums(NamedTuple):
    """Sums over devices, each of which counts once; of one device at least.

    The variance is the difference of two sums. With ratios up to 10 and ten thousand devices, its error is
    below 1e-11, the square of 0.0003 %.
    """

    devices: int
    #: Of the logarithms of speedups, and of their squares; the smallest and the largest of them.
    speedup: float
    speedup_squared: float
    least: float
    most: float
    #: Of the logarithms of times, in nanoseconds.
    time: float
    baseline: float

    @classmethod
    def of(cls, times_ns: Iterable[tuple[float, float]]) -> "LogSums":
        """Return the sums of pairs of the time of a candidate and of its baseline."""
        logs = [(math.log(time), math.log(baseline)) for time, baseline in times_ns]
        speedups = [baseline - time for time, baseline in logs]
        return cls(
            devices=len(logs),
            speedup=math.fsum(speedups),
            speedup_squared=math.fsum(log * log for log in speedups),
            least=min(speedups),
            most=max(speedups),
            time=math.fsum(time for time, _ in logs),
            baseline=math.fsum(baseline for _, baseline in logs),
        )

    def with_others(self, others: "LogSums") -> "LogSums":
        """Return the sums over these devices and others."""
        return LogSums(
            devices=self.devices + others.devices,
            speedup=self.speedup + others.speedup,
            speedup_squared=self.speedup_squared + others.speedup_squared,
            least=min(self.least, others.least),
            most=max(self.most, others.most),
            time=self.time + others.time,
            baseline=self.baseline + others.baseline,
        )

    def interval(self) -> LogInterval:
        """Return the interval of the mean logarithm of speedups: Student's t over devices, two at least."""
        mean = self.speedup / self.devices
        variance = (self.speedup_squared - self.speedup * mean) / (self.devices - 1)
        # Of equal speedups, rounding may leave less than nothing.
        return interval_of_mean(mean, max(0.0, variance), self.devices)
