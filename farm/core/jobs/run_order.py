"""What ran on a device before a benchmark, and where in its block that was planned."""

from dataclasses import dataclass

from farm.core.base.ids import AttemptId, CellId, JobId, MatrixId, SeriesId
from farm.core.runs.measurement import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Predecessor:
    """The benchmark that really ran on the device right before another one, of whichever matrix."""

    attempt_id: AttemptId
    job_id: JobId
    matrix_id: MatrixId
    #: Whether that is the other's matrix, too.
    same_matrix: bool
    cell_id: CellId
    label: str
    #: None where it was not measured.
    series_id: SeriesId | None
    outcome: Outcome | None
    #: How long it ran; None where it was not measured, or an older release measured.
    ran_s: float | None
    #: From its end to the beginning of the other, by the device's own clock; None where the device restarted
    #: in between, or that is not known.
    pause_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """The place of a benchmark among the others on its device."""

    #: Of its round, from 0, and its place in the planned order of that block, from 1; None: not recorded.
    block: int
    place: int | None
    #: None after a health check, and for the first one on its device.
    predecessor: Predecessor | None


def pause_s(
    *, start_s: float | None, boot: str | None, end_s: float | None, boot_before: str | None
) -> float | None:
    """Return the time between two runs by the device's uptime; None over boots and where it is hidden.

    Args:
        start_s: the uptime at the beginning of the later one.
        boot: its boot.
        end_s: the uptime at the end of the earlier one.
        boot_before: its boot.
    """
    if start_s is None or end_s is None or boot is None or boot != boot_before:
        return None
    return max(start_s - end_s, 0.0)
