"""The state of a cell of a matrix: what came of it, in five words that exclude each other."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from farm.core.base.ids import AttemptId
from farm.core.jobs.job import JobState
from farm.core.runs.measurement import COUNTED, CellState, Outcome
from farm.presentation.text import plural, with_attempt


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
    last = max(cell.attempt_by_problem.values(), default=None)
    for problem, count in cell.problems.items():
        attempt_id = cell.attempt_by_problem.get(problem)
        yield f"{with_attempt(problem, attempt_id or last)} ({count}x)", attempt_id


def refusal_text(cell: CellOutcome) -> str:
    """Return why a cell has no measurement that counts: `capped 3, throttled 1; run.crashed (2x)`."""
    return "; ".join(text for text, _ in refusals(cell))
