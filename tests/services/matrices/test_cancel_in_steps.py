"""A large matrix is cancelled in several transactions: what happens between them, and after a crash there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from farm.core.base.ids import MatrixId
from farm.core.jobs.attempt import AttemptState
from farm.database.notifications import ALL_HOSTS, HostNotification
from farm.database.transaction import bind_tx
from farm.services.matrices.cancel import (
    INTERRUPTED_AFTER,
    cancel_chunk,
    continue_cancellations,
)
from farm.wire.documents.matrices.plans import CancellationView
from tests.support.database.sent_statements import sent_to
from tests.support.farm.service_fixture import FarmRig, HostRig, phase

pytestmark = pytest.mark.usefixtures("both_variants")

_LONG_S = 2 * INTERRUPTED_AFTER.total_seconds()


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    host = farm.host()
    for device_id in ("phone-1", "phone-2"):
        host.plug_in(device_id)
    host.earn_health()
    return host


def cancel_some(
    farm: FarmRig, matrix_id: MatrixId, *, device: str | None = None, limit: int = 4
) -> CancellationView:
    service = bind_tx(cancel_chunk, now=farm.clock.now(), actor="user:ann")
    return farm.write(service, matrix_id, device=device, limit=limit)


def states(farm: FarmRig, matrix_id: MatrixId) -> dict[str, int]:
    rows = farm.rows(
        "SELECT state, count(*) AS n FROM jobs WHERE matrix_id = :id GROUP BY state", id=matrix_id
    )
    return {row["state"]: row["n"] for row in rows}


def cancellations(farm: FarmRig) -> list[dict[str, Any]]:
    return farm.rows("SELECT * FROM cancellations")


@contextmanager
def notifications(farm: FarmRig) -> Iterator[list[HostNotification]]:
    """The notifications of commits meanwhile."""
    given: list[HostNotification] = []
    farm.database.on_change = given.append
    yield given
    farm.database.on_change = lambda _: None


@pytest.mark.invariant("I16", "I17")
def test_a_cancel_that_a_crash_interrupts_goes_on_automatically(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    assert len(host.exchange().assignments) == 2
    assert not cancel_some(farm, matrix_id).is_done
    # The farm is killed here, and the request with it.
    assert states(farm, matrix_id) == {"active": 2, "queued": 14, "finished": 4}
    continue_cancellations(farm.database, farm.clock)
    assert states(farm, matrix_id)["queued"] == 14, "its request may be at work still"
    farm.clock.advance(_LONG_S)
    with notifications(farm) as given:
        continue_cancellations(farm.database, farm.clock, limit=5)
    assert states(farm, matrix_id) == {"finished": 20}
    assert given == [ALL_HOSTS], "agents are notified once, by the last transaction"
    (event,) = farm.rows("SELECT actor, cause FROM events WHERE kind = 'matrix_cancelled'")
    assert event == {"actor": "user:ann", "cause": "all devices: 18 queued and 2 active jobs"}
    of_jobs = farm.rows("SELECT actor, subject_id FROM events WHERE kind = 'job_cancelled'")
    assert {row["actor"] for row in of_jobs} == {"user:ann"}
    assert len(of_jobs) == len({row["subject_id"] for row in of_jobs}) == 20
    assert cancellations(farm) == []
    assert host.exchange().assignments == ()


def test_a_repeated_request_goes_on_where_the_first_was_interrupted(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    cancel_some(farm, matrix_id)
    progress = cancel_some(farm, matrix_id, limit=100)
    assert progress.is_done
    assert (progress.queued, progress.active, progress.finished) == (20, 0, 0)
    assert cancellations(farm) == []


def test_a_request_that_is_at_work_is_not_interrupted(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    for _ in range(3):
        cancel_some(farm, matrix_id)
        farm.clock.advance(0.9 * INTERRUPTED_AFTER.total_seconds())
    continue_cancellations(farm.database, farm.clock)
    assert states(farm, matrix_id) == {"queued": 8, "finished": 12}


def test_a_clock_that_was_set_back_does_not_stop_a_cancel(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    cancel_some(farm, matrix_id)
    farm.clock.advance(-_LONG_S)
    continue_cancellations(farm.database, farm.clock)
    assert states(farm, matrix_id) == {"finished": 20}


def test_a_job_that_returns_to_the_queue_meanwhile_is_cancelled_too(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    first, second = host.exchange().assignments
    cancel_some(farm, matrix_id)
    host.exchange([phase(first, AttemptState.RETURNED, "too warm"), phase(second, AttemptState.MEASURING)])
    (job,) = farm.rows("SELECT state FROM jobs WHERE job_id = :id", id=first.job_id)
    assert job["state"] == "queued", "its number is below that of jobs already cancelled"
    while not (progress := cancel_some(farm, matrix_id)).is_done:
        pass
    assert states(farm, matrix_id) == {"finished": 20}
    assert (progress.queued, progress.active) == (19, 1)


def test_the_part_of_one_device_goes_on_after_a_crash_and_the_rest_stays(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = farm.submit()
    cancel_some(farm, matrix_id, device="phone-2")
    farm.clock.advance(_LONG_S)
    continue_cancellations(farm.database, farm.clock)
    of_devices = farm.rows("SELECT DISTINCT device_id, state FROM jobs WHERE matrix_id = :id", id=matrix_id)
    assert {(row["device_id"], row["state"]) for row in of_devices} == {
        ("phone-1", "queued"),
        ("phone-2", "finished"),
    }
    (event,) = farm.rows("SELECT cause FROM events WHERE kind = 'matrix_cancelled'")
    assert event["cause"] == "phone-2: 10 queued and 0 active jobs"


def test_a_step_takes_the_same_statements_however_many_jobs_it_cancels(farm: FarmRig, host: HostRig) -> None:
    matrix_ids = [farm.submit() for _ in range(2)]
    executed: list[int] = []
    for matrix_id, limit in zip(matrix_ids, (2, 18), strict=True):
        with sent_to(farm.database.engine) as sent:
            cancel_some(farm, matrix_id, limit=limit)
        executed.append(len(sent))
    assert executed[0] == executed[1]
