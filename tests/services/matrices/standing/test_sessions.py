"""Standing matrices: exactly what is missing is queued, once, and the schedule queues all of it again."""

import re
from datetime import UTC, date, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.errors import MatrixInvalid
from farm.core.matrices.standing import Coverage
from farm.core.operations.alarm import AlarmSubject
from farm.database.tables import standing_matrices
from farm.database.transaction import bind_tx
from farm.services.matrices.standing.sessions import (
    OVERDUE_AFTER,
    StandingSweep,
    prepare_session,
    queue_next,
    queue_session,
    stand,
)
from farm.services.matrices.standing.views import end, list_standing_summaries, standing_view
from farm.store.operations import alarms as alarm_store
from farm.wire.documents.matrices.standing import StandingView, standing_spec
from tests.support.farm.alarm_scan import Rounds
from tests.support.farm.direct_calls import cancel_matrix
from tests.support.farm.service_fixture import FarmRig, HostRig, ended

NIGHT = timedelta(days=1)


@pytest.fixture
def host(farm: FarmRig, both_variants: None) -> HostRig:
    host = farm.host()
    host.plug_in("phone-1", build_fingerprint="one")
    host.earn_health()
    return host


def matrix(**changed: Any) -> dict[str, Any]:
    return {
        "name": "nightly",
        "harness": "speed_benchmark_torch",
        "axes": {
            "model": "mobilenet_v2",
            "precision": ["float32", "int8-core"],
            "format": "torchscript",
            "backend": "cpu",
            "warmup": [1, 2],
        },
        "settings": {"iter": 5},
        "devices": {"virtual": True},
        "rounds": 2,
        "baseline": {"precision": "float32"},
        **changed,
    }


def stands(farm: FarmRig, **changed: Any) -> int:
    spec = standing_spec(matrix(**changed))
    return farm.write(bind_tx(stand, now=farm.clock.now(), actor="user:ann"), spec)


def look(farm: FarmRig) -> MatrixId | None:
    return queue_next(farm.database, farm.clock, "nightly")


def coverage(farm: FarmRig, standing_id: int) -> StandingView:
    return farm.read(bind_tx(standing_view, now=farm.clock.now()), standing_id)


def counts(farm: FarmRig, standing_id: int) -> dict[str, int]:
    return {word: count for word, count in coverage(farm, standing_id).cells.model_dump().items() if count}


def why_missing(farm: FarmRig, standing_id: int) -> set[str]:
    """The reasons of the missing cells, with a word in place of each digest."""
    return {
        re.sub(r"\b[0-9a-f]{8}\b", "DIGEST", cell.reason.removesuffix(" (queued within a minute)"))
        for cell in coverage(farm, standing_id).uncovered
        if cell.coverage is Coverage.MISSING
    }


def cells(farm: FarmRig, matrix_id: MatrixId | None) -> set[tuple[str, str]]:
    rows = farm.rows("SELECT device_id, label FROM cells WHERE matrix_id = :m", m=matrix_id)
    return {(row["device_id"], row["label"]) for row in rows}


def test_what_is_missing_is_queued_once(farm: FarmRig, host: HostRig) -> None:
    standing_id = stands(farm)
    assert counts(farm, standing_id) == {"missing": 4}
    matrix_id = look(farm)
    assert matrix_id is not None
    assert counts(farm, standing_id) == {"queued": 4}
    assert look(farm) is None
    host.run()
    assert counts(farm, standing_id) == {"measured": 4}
    assert look(farm) is None
    # People go first, and it is the work of who let it stand.
    assert farm.matrix(matrix_id).submitted_by == "ann"
    assert farm.rows("SELECT DISTINCT priority FROM jobs WHERE kind = 'benchmark'") == [{"priority": -10}]


def test_a_new_file_makes_its_cells_missing_and_comes_with_its_baseline(farm: FarmRig, host: HostRig) -> None:
    standing_id = stands(farm)
    look(farm)
    host.run()
    farm.variant("int8-core", edition="another")
    assert counts(farm, standing_id) == {"measured": 2, "missing": 2}
    assert why_missing(farm, standing_id) == {"new file DIGEST, was DIGEST"}
    again = look(farm)
    labels = {label for _, label in cells(farm, again)}
    assert labels == {"float32 warmup=1", "float32 warmup=2", "int8-core warmup=1", "int8-core warmup=2"}
    assert look(farm) is None
    host.run()
    assert counts(farm, standing_id) == {"measured": 4}
    # The file of before is measured already.
    farm.variant("int8-core")
    assert look(farm) is None


def test_a_new_device_and_a_new_build_make_their_cells_missing(farm: FarmRig, host: HostRig) -> None:
    standing_id = stands(farm)
    look(farm)
    host.run()
    host.plug_in("phone-2", build_fingerprint="one")
    host.run()
    assert why_missing(farm, standing_id) == {"new device"}
    assert {device for device, _ in cells(farm, look(farm))} == {"phone-2"}
    host.run()
    host.plug_in("phone-1", build_fingerprint="two")
    host.run()
    assert counts(farm, standing_id) == {"measured": 4, "missing": 4}
    assert why_missing(farm, standing_id) == {"new build two, was one"}
    assert {device for device, _ in cells(farm, look(farm))} == {"phone-1"}


def test_a_schedule_measures_all_again_but_where_a_session_is_not_over(farm: FarmRig, host: HostRig) -> None:
    stands(farm, schedule="0 2 * * *")
    first = look(farm)
    host.run()
    assert look(farm) is None
    farm.clock.advance(NIGHT.total_seconds())
    second = look(farm)
    assert cells(farm, second) == cells(farm, first)
    assert look(farm) is None
    host.plug_in("phone-2")
    host.exchange()
    # Neither device has finished; what is new there is not waited for.
    assert {device for device, _ in cells(farm, look(farm))} == {"phone-2"}
    farm.clock.advance(NIGHT.total_seconds())
    assert look(farm) is None
    (summary,) = farm.read(list_standing_summaries)
    assert summary.next_due_at is not None
    assert farm.clock.now() < summary.next_due_at <= farm.clock.now() + NIGHT


def test_the_next_night_runs_the_file_that_has_its_name_again(farm: FarmRig, host: HostRig) -> None:
    stands(farm, schedule="0 2 * * *")
    files = "SELECT DISTINCT variant_id FROM cells WHERE matrix_id = :m ORDER BY variant_id"
    first = farm.rows(files, m=look(farm))
    host.run()
    farm.variant("int8-core", edition="another")
    farm.variant("int8-core")
    farm.clock.advance(NIGHT.total_seconds())
    assert farm.rows(files, m=look(farm)) == first


def test_nights_that_the_farm_missed_are_one_session(farm: FarmRig, host: HostRig) -> None:
    stands(farm, schedule="0 2 * * *")
    look(farm)
    host.run()
    farm.clock.advance(5 * NIGHT.total_seconds())
    assert look(farm) is not None
    host.run()
    assert look(farm) is None


def test_skipped_cells_are_left_out_until_their_day_is_over(farm: FarmRig, host: HostRig) -> None:
    today = farm.clock.now().date()
    until = today + timedelta(days=3)
    skip = {
        "cells": {"precision": "int8-core", "warmup": 2},
        "devices": {"device": "phone-1"},
        "reason": "BUG-12",
        "until": until.isoformat(),
    }
    standing_id = stands(farm, skip=[skip])
    assert len(cells(farm, look(farm))) == 3
    host.run()
    assert counts(farm, standing_id) == {"measured": 3, "skipped": 1}
    (uncovered,) = coverage(farm, standing_id).uncovered
    assert (uncovered.coverage, uncovered.reason, uncovered.until) == (Coverage.SKIPPED, "BUG-12", until)
    farm.clock.advance(3 * NIGHT.total_seconds())
    assert look(farm) is None
    farm.clock.advance(NIGHT.total_seconds())
    assert {label for _, label in cells(farm, look(farm))} == {"float32 warmup=2", "int8-core warmup=2"}


def test_a_cell_that_failed_is_not_tried_for_ever(farm: FarmRig, host: HostRig) -> None:
    standing_id = stands(farm)
    look(farm)
    host.run(lambda assignment: ended(assignment, "", code=1, stderr="no operator"))
    assert counts(farm, standing_id) == {"failed": 4}
    assert look(farm) is None
    assert all(cell.reason and cell.matrix_id for cell in coverage(farm, standing_id).uncovered)


def test_a_cancelled_session_stays_cancelled(farm: FarmRig, host: HostRig) -> None:
    standing_id = stands(farm)
    matrix_id = look(farm)
    farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user:ann"), matrix_id)
    assert look(farm) is None
    assert counts(farm, standing_id) == {"failed": 4}


def test_two_looks_at_once_queue_one_session(farm: FarmRig, host: HostRig) -> None:
    stands(farm)
    now = farm.clock.now()
    both = [farm.read(bind_tx(prepare_session, now=now), "nightly") for _ in range(2)]
    results = [farm.write(bind_tx(queue_session, now=now), session) for session in both]
    assert [is_queued for is_queued, _ in results] == [True, False]
    assert len(farm.rows("SELECT matrix_id FROM matrices")) == 1


def test_a_matrix_whose_model_is_gone_says_so_until_it_is_back(farm: FarmRig, host: HostRig) -> None:
    standing_id = stands(farm)
    host.plug_in("phone-1", virtual=False)
    host.exchange()
    assert look(farm) is None
    (summary,) = farm.read(list_standing_summaries)
    assert summary.problem is not None
    assert "virtual: true" in summary.problem
    assert coverage(farm, standing_id).problem is not None
    host.plug_in("phone-1", virtual=True)
    host.exchange()
    assert look(farm) is not None
    (summary,) = farm.read(list_standing_summaries)
    assert summary.problem is None
    kinds = [row["kind"] for row in farm.rows("SELECT kind FROM events WHERE subject = 'standing_matrix'")]
    assert kinds == [
        "standing_matrix_stands",
        "standing_matrix_blocked",
        "standing_matrix_unblocked",
        "standing_matrix_queued",
    ]


def test_a_second_file_of_a_name_replaces_the_first(farm: FarmRig, host: HostRig) -> None:
    first = stands(farm)
    look(farm)
    host.run()
    assert stands(farm, settings={"iter": 7}) == first
    assert counts(farm, first) == {"missing": 4}
    assert len(farm.read(list_standing_summaries)) == 1


def test_what_ended_stands_no_more(farm: FarmRig, host: HostRig) -> None:
    standing_id = stands(farm)
    farm.write(bind_tx(end, now=farm.clock.now(), actor="user:ann"), standing_id)
    assert look(farm) is None
    assert farm.read(list_standing_summaries) == []


def test_one_that_fails_keeps_no_other_waiting(farm: FarmRig, host: HostRig) -> None:
    stands(farm, name="a")
    stands(farm)
    farm.write(_break, "a")
    StandingSweep(farm.database, farm.clock)()
    assert {row["name"] for row in farm.rows("SELECT name FROM matrices")} == {"nightly"}


def _break(connection: Connection, name: str) -> None:
    spec = connection.execute(sa.select(standing_matrices.c.spec).filter_by(name=name)).scalar_one()
    spec["matrix"]["harness"] = "gone"
    connection.execute(standing_matrices.update().filter_by(name=name).values(spec=spec))


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("0 2 * *", "five fields are needed, not 4"),
        ("0 2 * * 1", "weekdays are named"),
        ("61 2 * * *", "61"),
        ("0 2 30 feb *", "no such time"),
    ],
)
def test_a_schedule_that_is_none_is_refused(
    farm: FarmRig, host: HostRig, schedule: str, message: str
) -> None:
    with pytest.raises(MatrixInvalid, match=message):
        stands(farm, schedule=schedule)
    assert farm.read(list_standing_summaries) == []


def test_a_step_of_weekdays_is_a_schedule(farm: FarmRig, host: HostRig) -> None:
    stands(farm, schedule="30 2 * * mon-fri/2")
    (summary,) = farm.read(list_standing_summaries)
    assert summary.next_due_at is not None
    assert summary.next_due_at.weekday() in (0, 2, 4)
    assert summary.next_due_at.astimezone(UTC).time().minute == 30


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"priority": 0}, "yields to people"),
        ({"skip": [{"reason": "x", "until": "31.1.2027"}]}, "2027-01-31"),
        ({"skip": [{"until": "2027-01-31"}]}, "reason"),
        ({"shedule": "x"}, "did you mean `schedule`"),
    ],
)
def test_bad_keys_are_named(changed: dict[str, Any], message: str) -> None:
    data = {"name": "a", "harness": "b", "devices": "all", **changed}
    with pytest.raises(MatrixInvalid) as refused:
        standing_spec(data)
    assert message in f"{refused.value.message} {refused.value.hint}"


def test_a_day_is_a_date() -> None:
    data = {"name": "a", "harness": "b", "devices": "all", "skip": [{"reason": "x", "until": "2027-01-31"}]}
    (skip,) = standing_spec(data).skip
    assert skip.until == date(2027, 1, 31)


def alarms(farm: FarmRig, scan: Rounds) -> list[str]:
    """The open alarms of standing matrices, by their messages."""
    scan.look()
    open_alarms = farm.read(alarm_store.open_alarms)
    return [alarm.message for alarm in open_alarms if alarm.subject is AlarmSubject.STANDING_MATRIX]


def test_a_standing_matrix_without_a_device_raises_one_alarm_until_it_goes_on_or_ends(
    farm: FarmRig, host: HostRig
) -> None:
    scan = Rounds(farm)
    standing_id = stands(farm)

    def is_virtual(virtual: bool) -> list[str]:
        host.plug_in("phone-1", virtual=virtual)
        host.exchange()
        look(farm)
        return alarms(farm, scan)

    (message,) = is_virtual(False)
    assert message.startswith("standing matrix nightly: ")
    assert is_virtual(False) == [message]
    assert is_virtual(True) == []
    assert is_virtual(False) == [message]
    farm.write(bind_tx(end, now=farm.clock.now()), standing_id)
    assert alarms(farm, scan) == []
    assert len(farm.rows("SELECT alarm_id FROM alarms WHERE subject = 'standing_matrix'")) == 2


def test_a_session_that_was_due_for_days_and_waits_for_the_last_one_raises_an_alarm(
    farm: FarmRig, host: HostRig
) -> None:
    scan = Rounds(farm)
    stands(farm, schedule="0 2 * * *")
    first = look(farm)
    farm.clock.advance(NIGHT.total_seconds())
    assert look(farm) is None
    assert alarms(farm, scan) == [], "it may end soon"
    farm.clock.advance((NIGHT + OVERDUE_AFTER).total_seconds())
    assert look(farm) is None
    (message,) = alarms(farm, scan)
    assert message.startswith(f"standing matrix nightly: matrix {first} is not over on any of its devices")
    assert look(farm) is None
    assert alarms(farm, scan) == [message]
    host.run()
    # The next session may be queued at once, or at the next time of the schedule.
    look(farm)
    assert alarms(farm, scan) == []


def test_a_skip_that_ended_since_may_stand_in_the_file_and_no_new_one_may(
    farm: FarmRig, host: HostRig
) -> None:
    ends = farm.clock.now().date()
    skip = {"reason": "BUG-12", "until": str(ends), "cells": {"warmup": 1}}
    stands(farm, skip=[skip])
    farm.clock.advance((2 * NIGHT).total_seconds())
    stands(farm, skip=[skip])
    with pytest.raises(MatrixInvalid, match="has passed"):
        stands(farm, skip=[skip, {**skip, "reason": "BUG-13"}])


def test_a_wrong_field_of_a_schedule_is_named(farm: FarmRig, host: HostRig) -> None:
    for schedule, words in (
        ("0 25 * * *", "`25` is no hour of cron, which is 0 to 23"),
        ("0 2 * * noday", "`noday` is no weekday of cron, which is `mon` to `sun`"),
    ):
        with pytest.raises(MatrixInvalid, match=words):
            stands(farm, schedule=schedule)
