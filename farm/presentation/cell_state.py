"""The state of a cell of a matrix: what came of it, in five words that exclude each other."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from farm.core.base.ids import AttemptId
from farm.core.jobs.job import JobState
from farm.core.matrices.matrix import RejectedCells, group_rejected
from farm.core.runs.measurement import COUNTED, CellState, Outcome
from farm.presentation.labels import device_name
from farm.presentation.text import plural, with_attempt
from farm.wire.documents.matrices.matrices import Rejection

#: What differs from run to run in the reason for one thing: `9.1%`, `10.0 ms`, but no exit code.
_QUANTITY = re.compile(r"\d+(?:\.\d+)? ?(?:%|(?:[mµn]?s|min|h|°C|[MG]Hz|[kMG]?B)\b)")


class CellOutcome(Protocol):
    """What came of a cell: a document, or a line of a page."""

    @property
    def jobs(self) -> int: ...
    @property
    def jobs_by_outcome(self) -> Mapping[str, int]: ...
    @property
    def measurements_by_quality(self) -> Mapping[str, int]: ...
    @property
    def problems(self) -> Mapping[str, int]: ...
    @property
    def attempt_by_problem(self) -> Mapping[str, AttemptId]: ...


def cell_state(cell: CellOutcome) -> CellState:
    """Return the state of a cell: a measurement that counts outweighs everything else."""
    return state_of_counts(cell.measurements_by_quality, cell.jobs_by_outcome)


def state_of_counts(
    measurements_by_quality: Mapping[str, int], jobs_by_outcome: Mapping[str, int]
) -> CellState:
    """Return the state by counts of accepted measurements and of jobs."""
    if any(measurements_by_quality.get(quality) for quality in COUNTED):
        return CellState.VALID
    if any(measurements_by_quality.values()):
        return CellState.REFUSED
    if jobs_by_outcome.get(Outcome.FAILED):
        return CellState.FAILED
    if jobs_by_outcome.get(Outcome.UNSUPPORTED):
        return CellState.UNSUPPORTED
    return CellState.NOT_RUN


def progress_text(cell: CellOutcome) -> str:
    """Return `3 of 10 runs`, `5 runs, 2 cancelled`, or `running` or `queued` before the first one ended."""
    jobs = cell.jobs_by_outcome
    left = jobs.get(JobState.QUEUED, 0) + jobs.get(JobState.ACTIVE, 0)
    cancelled = jobs.get(Outcome.CANCELLED, 0)
    ran = cell.jobs - left - cancelled
    if ran:
        state = f"{ran} of {cell.jobs} runs" if left else plural(ran, "run")
    else:
        state = "running" if jobs.get(JobState.ACTIVE) else "queued" if left else ""
    return ", ".join(filter(None, [state, f"{cancelled} cancelled" if cancelled else ""])) or "ended"


def refusals(cell: CellOutcome) -> Iterator[tuple[str, AttemptId | None]]:
    """Yield the qualities of a cell, then each of its problems with the last attempt that had it."""
    qualities = [f"{quality} {count}" for quality, count in cell.measurements_by_quality.items() if count]
    if qualities:
        yield ", ".join(qualities), None
    attempts = cell.attempt_by_problem
    last = max(attempts.values(), default=None)
    # Of problems that are one, the newest is shown.
    newest = sorted(cell.problems, key=lambda problem: attempts.get(problem, 0), reverse=True)
    for problem, times in alike_reasons((problem, cell.problems[problem]) for problem in newest):
        attempt_id = attempts.get(problem)
        yield f"{with_attempt(problem, attempt_id or last)} ({times})", attempt_id


def alike_reasons(reasons: Iterable[tuple[str, int]]) -> list[tuple[str, str]]:
    """Return reasons with how often: those that differ in their quantities only are the first of them.

    `coarse: the clock's step is 9.1% of the time`, `5x, with other numbers`.
    """
    alike: dict[str, list[tuple[str, int]]] = {}
    for reason, count in reasons:
        alike.setdefault(_QUANTITY.sub("#", reason), []).append((reason, count))
    return [
        (own[0][0], f"{sum(count for _, count in own)}x" + (", with other numbers" if own[1:] else ""))
        for own in alike.values()
    ]


def rejected_cells(rejections: Iterable[Rejection]) -> Sequence[RejectedCells]:
    """Return the cells that do not run, by reason and devices."""
    return group_rejected(
        (own.kind, own.reason, "", own.label, device_name(own) if own.device_id else None)
        for own in rejections
    )


def refusal_text(cell: CellOutcome) -> str:
    """Return why a cell has no measurement that counts: `capped 3, throttled 1; run.crashed (2x)`."""
    return "; ".join(text for text, _ in refusals(cell))
