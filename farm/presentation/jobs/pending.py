"""Pending reasons as text: each with its start, its actor and a hint."""

from collections.abc import Iterator
from datetime import UTC, datetime

from farm.core.jobs.job import JobState
from farm.core.jobs.pending_reasons import PendingReason
from farm.presentation.text import age_text, plural
from farm.wire.documents.matrices.pending import (
    DevicePendingView,
    JobPendingView,
    MatrixPendingView,
    RunningJobView,
)


class PendingReport:
    """Formats pending reasons, with durations up to one moment."""

    def __init__(self, now: datetime | None = None) -> None:
        """`now` is the moment for durations; default: the current time."""
        self._now = now or datetime.now(UTC)

    def job(self, view: JobPendingView) -> Iterator[str]:
        """Return the state of one job, its pending reasons and its place in the queue."""
        name = f"job {view.job_id} on {view.device}"
        if view.state is JobState.FINISHED:
            cause = f": {view.cause}" if view.cause and view.cause != view.outcome else ""
            yield f"{name} is finished: {view.outcome}{self._by(view.by)}{self._ago(view.since)}{cause}"
            return
        doing = "runs" if view.state is JobState.ACTIVE else "waits"
        yield f"{name} {doing}{self._since(view.since)}:"
        for reason in view.reasons:
            yield f"- {self.reason(reason)}"
            yield f"  hint: {reason.hint}"
        if view.state is JobState.QUEUED:
            yield f"- {self._queue_position(view)}"

    def matrix(self, view: MatrixPendingView) -> Iterator[str]:
        """Return the remaining jobs of a matrix by device."""
        if not view.devices and not view.not_queued:
            yield f"matrix {view.matrix_id} ({view.name}) is not pending: all of its jobs are finished"
            return
        moved = f"; the last job began or ended{self._ago(view.moved_at)}" if view.moved_at else ""
        left, devices = plural(view.left, "job"), plural(len(view.devices), "device")
        yield f"matrix {view.matrix_id} ({view.name}): {left} left on {devices}{moved}"
        if view.not_queued:
            yield f"- {plural(view.not_queued, 'job')} not queued yet: the farm is expanding the matrix"
        for device in view.devices:
            yield from self.device(device)

    def reason(self, reason: PendingReason) -> str:
        """Return `the device is cordoned by ann since 2 h 3 min: swollen battery`."""
        cause = f": {reason.cause}" if reason.cause else ""
        return f"{reason.message}{self._by(reason.by)}{self._since(reason.since)}{cause}"

    def device(self, view: DevicePendingView) -> Iterator[str]:
        """Return why the jobs of a matrix wait for one device; hints are indented."""
        waits = f"{plural(view.queued, 'job')} {'waits' if view.queued == 1 else 'wait'} for {view.device}"
        runs = "" if view.active is None else f"job {view.active} runs on {view.device}"
        head = "; ".join(filter(None, [runs, waits if view.queued else ""]))
        if not view.reasons:
            yield f"{head}: {_queue_text(view.jobs_before, view.more_before)}"
        for number, reason in enumerate(view.reasons):
            yield f"{'  also' if number else head}: {self.reason(reason)}"
            yield f"  hint: {reason.hint}"
        if view.reasons and view.jobs_before:
            yield f"  {_queue_text(view.jobs_before, view.more_before)}"

    def _queue_position(self, view: JobPendingView) -> str:
        running = view.running
        now = f"; on the device now: {_run(running)}{self._since(running.claimed_at)}" if running else ""
        return f"{_queue_text(view.jobs_before, view.more_before)}{now}"

    def _since(self, at: datetime | None) -> str:
        return "" if at is None else f" since {age_text(at, self._now)}"

    def _ago(self, at: datetime | None) -> str:
        return "" if at is None else f" {age_text(at, self._now)} ago"

    @staticmethod
    def _by(actor: str | None) -> str:
        """Return the name of a person; nothing for the farm and agents."""
        kind, _, name = (actor or "").partition(":")
        return f" by {name}" if kind == "user" and name else ""


def _queue_text(jobs_before: int, more: bool) -> str:
    if not jobs_before:
        return "no job is queued ahead"
    return f"behind {'more than ' if more else ''}{plural(jobs_before, 'job')}"


def _run(running: RunningJobView) -> str:
    of = "a check" if running.matrix_id is None else f"matrix {running.matrix_id}"
    return f"job {running.job_id} ({of}), {running.phase}"
