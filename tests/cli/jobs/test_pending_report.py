"""Why something waits, as a person reads it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from farm.core.jobs.pending_reasons import PendingReason
from farm.presentation.jobs.pending import PendingReport
from farm.wire.documents.matrices.pending import (
    DevicePendingView,
    JobPendingView,
    MatrixPendingView,
    RunningJobView,
)
from tests.support.sample_views import NOON

NOW = NOON + timedelta(hours=2, minutes=3)


def reason(**changes: Any) -> PendingReason:
    cordoned = PendingReason(
        code="cordoned",
        message="the device is cordoned",
        hint="farm device uncordon pixel-8",
        passes=False,
        since=NOON,
        by="user:ann",
        cause="swollen battery",
    )
    return replace(cordoned, **changes)


def job(**changes: object) -> list[str]:
    view = JobPendingView.model_validate(
        {
            "job_id": 17,
            "matrix_id": 3,
            "device_id": "phone-1",
            "device": "pixel-8",
            "state": "queued",
            "outcome": None,
            "since": NOON,
            "by": None,
            "cause": None,
            "reasons": (),
            "jobs_before": 0,
            "more_before": False,
            "running": None,
            **changes,
        }
    )
    return list(PendingReport(NOW).job(view))


def device(**changes: object) -> DevicePendingView:
    return DevicePendingView.model_validate(
        {
            "device_id": "phone-1",
            "device": "pixel-8",
            "queued": 37,
            "active": None,
            "reasons": (reason(),),
            "jobs_before": 0,
            "more_before": False,
            "running": None,
            **changes,
        }
    )


def matrix(*devices: DevicePendingView) -> list[str]:
    view = MatrixPendingView.model_validate(
        {"matrix_id": 3, "name": "nightly", "left": 37, "moved_at": NOON, "devices": devices}
    )
    return list(PendingReport(NOW).matrix(view))


def test_a_reason_says_what_since_when_by_whom_why_and_what_to_do() -> None:
    assert job(reasons=(reason(),)) == [
        "job 17 on pixel-8 waits since 2 h 3 min:",
        "- the device is cordoned by ann since 2 h 3 min: swollen battery",
        "  hint: farm device uncordon pixel-8",
        "- no job is queued ahead",
    ]


def test_that_the_farm_noted_something_goes_without_saying() -> None:
    lines = job(reasons=(reason(by="farm", cause=None), reason(by="agent:bench-1", since=None)))
    assert "- the device is cordoned since 2 h 3 min" in lines
    assert "- the device is cordoned: swollen battery" in lines


def test_a_place_in_the_queue_comes_with_what_runs_now() -> None:
    running = RunningJobView.model_validate(
        {"job_id": 9, "matrix_id": None, "attempt_id": 4, "phase": "measuring", "claimed_at": NOON}
    )
    assert job(jobs_before=1000, more_before=True, running=running)[-1] == (
        "- behind more than 1000 jobs; on the device now: job 9 (a check), measuring since 2 h 3 min"
    )


def test_a_finished_job_says_how_by_whom_and_when() -> None:
    lines = job(state="finished", outcome="cancelled", by="user:ann", cause="phone-1 was retired")
    assert lines == [
        "job 17 on pixel-8 is finished: cancelled by ann 2 h 3 min ago: phone-1 was retired",
    ]


def test_what_is_told_of_days_is_no_count_of_hours() -> None:
    assert "since 3 days" in job(reasons=(reason(since=NOW - timedelta(days=3)),))[1]


def test_a_matrix_is_told_phone_by_phone() -> None:
    active = device(queued=1, active=41, reasons=(reason(message="it is being measured", by=None),))
    waits = device(device="other", reasons=(), jobs_before=4)
    assert matrix(device(), active, waits) == [
        "matrix 3 (nightly): 37 jobs left on 3 devices; the last job began or ended 2 h 3 min ago",
        "37 jobs wait for pixel-8: the device is cordoned by ann since 2 h 3 min: swollen battery",
        "  hint: farm device uncordon pixel-8",
        "job 41 runs on pixel-8; 1 job waits for pixel-8: it is being measured since 2 h 3 min:"
        " swollen battery",
        "  hint: farm device uncordon pixel-8",
        "37 jobs wait for other: behind 4 jobs",
    ]


def test_a_matrix_that_is_finished_waits_for_nothing() -> None:
    assert matrix() == ["matrix 3 (nightly) is not pending: all of its jobs are finished"]
