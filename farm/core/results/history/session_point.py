"""The point of a series: what one session, that is a matrix on a device, showed of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId, SeriesId
from farm.core.devices.controls import ControlLevel
from farm.core.results.counted_rounds import best_of_rounds, rounds_of_one_build, rounds_of_one_kind
from farm.core.results.pairing import MeasuredValue
from farm.core.results.speedup import PairedMeans
from farm.core.results.statistics.interval import (
    CONFIDENCE,
    bounded_exp,
    mean_and_variance,
    step_variance,
)
from farm.core.runs.measurement import COUNTED, MIN_ROUNDS
from farm.core.runs.stats import t_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class PointValues:
    """The numbers of a point. Times are geometric means over the rounds that count; None without any."""

    #: Rounds that count, and blocks that are left out.
    rounds: int
    left_out: int
    time_ns: float | None = None
    #: Standard errors of the mean logarithms of time and speedup; None of fewer than two rounds.
    se_time: float | None = None
    #: Of the baseline, over the same rounds; None of a cell that is compared with none.
    baseline_ns: float | None = None
    se_speedup: float | None = None
    #: What the device was in the last of these rounds.
    facts_id: FactsId | None = None
    control_level: ControlLevel = ControlLevel.FREE


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPoint:
    """What a session showed of one of its cells."""

    cell_id: CellId
    matrix_id: MatrixId
    device_id: DeviceId
    series_id: SeriesId
    #: What it is compared with; None for a cell that is compared with none.
    baseline_series_id: SeriesId | None
    #: Above 1 for a duplicate of the baseline.
    replica: int
    #: `farm.core.results.series.slot_number` of both series.
    slot: int
    baseline_slot: int | None
    values: PointValues
    #: The times of its first and last measurement.
    began_at: datetime
    ended_at: datetime


def compared_values(means: PairedMeans) -> PointValues:
    """Return the values of a candidate, by its comparison."""
    values = [candidate for _, candidate in means.usable]
    last = values[-1] if values else None
    return PointValues(
        rounds=means.rounds,
        left_out=len(means.excluded),
        time_ns=means.candidate_ns,
        se_time=_standard_error(values),
        baseline_ns=means.baseline_ns,
        se_speedup=means.standard_error,
        facts_id=None if last is None else last.facts_id,
        control_level=ControlLevel.FREE if last is None else last.control_level,
    )


def own_values(measured: Sequence[MeasuredValue], builds: Mapping[FactsId, int]) -> PointValues:
    """Return the values of a cell that is compared with none.

    Args:
        measured: the accepted measurements of the cell.
        builds: numbers of the device's builds, by what it was.
    """
    rounds = best_of_rounds([value for value in measured if value.quality in COUNTED and value.value_ns > 0])
    counted = rounds_of_one_build(rounds_of_one_kind(rounds), builds) if rounds else []
    left_out = len(measured) - len(counted)
    if not counted:
        return PointValues(rounds=0, left_out=left_out)
    logs = [math.log(value.value_ns) for value in counted]
    return PointValues(
        rounds=len(counted),
        left_out=left_out,
        time_ns=math.exp(math.fsum(logs) / len(logs)),
        se_time=_standard_error(counted),
        facts_id=counted[-1].facts_id,
        control_level=counted[-1].control_level,
    )


def session_interval(
    speedup: float | None, *, se_speedup: float | None, rounds: int
) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % interval of a session's speedup by its rounds alone; none of fewer than five."""
    if speedup is None or se_speedup is None or rounds < MIN_ROUNDS:
        return None, None
    half = t_quantile((1 + CONFIDENCE) / 2, rounds - 1) * se_speedup
    return bounded_exp(math.log(speedup) - half), bounded_exp(math.log(speedup) + half)


def _standard_error(values: Sequence[MeasuredValue]) -> float | None:
    """Return the standard error of the mean logarithm of times, with what the clock's steps hide."""
    if len(values) < 2:
        return None
    hidden = math.fsum(step_variance(value.value_ns, value.clock_step_ns) for value in values) / len(values)
    _, variance = mean_and_variance([math.log(value.value_ns) for value in values])
    return math.sqrt(variance / len(values) + hidden)
