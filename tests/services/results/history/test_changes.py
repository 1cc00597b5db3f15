"""Changes: detected in stored points, recorded once, with one alarm each, and judged by people."""

import math
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.errors import NotFound
from farm.core.operations.alarm import AlarmKind
from farm.core.results.history.confirmation import Confirmation, ConfirmationOutcome
from farm.core.results.history.recorded_change import (
    ChangeCause,
    ChangedPart,
    ChangedVersion,
    ChangeState,
    DetectedChanges,
)
from farm.database.tables import changed_series, points
from farm.database.transaction import bind_tx
from farm.presentation.changes import cause_text
from farm.services.operations.alarms import list_alarms
from farm.services.results.history import detection
from farm.services.results.history.change_sweep import record_all
from farm.services.results.history.changes import (
    change_detail,
    decide,
    list_changes,
    record_confirmation,
    update_change,
)
from farm.services.results.history.detection import detect_recorded, open_database
from farm.services.results.history.trends import list_histories
from farm.store.results.history.changes import ChangeFilter, changes_query
from farm.store.results.history.confirmations import add_confirmation
from farm.wire.documents.results.changes import ChangeStateRequest, ChangeView
from tests.services.results.history.test_groups_and_lists import plan_of
from tests.services.results.history.test_latest_speedups import measured
from tests.support.farm.changes import found_change, recorded_change
from tests.support.farm.copied_sessions import FOUR_PAIRS, another_file, copy_session
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig

INT8 = "SELECT digest FROM variants WHERE name LIKE '%int8%' ORDER BY variant_id"


def rows_of_points(connection: Connection, which: sa.ColumnElement[bool]) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(sa.select(points).where(which)).mappings()]


def detected(farm: FarmRig) -> DetectedChanges:
    return farm.read(detect_recorded, now=farm.clock.now())


def search(farm: FarmRig) -> list[ChangeView]:
    """All changes after a search in the stored points."""
    record_all(farm.database, detected(farm), farm.clock)
    return farm.read(list_changes, all=True)


@pytest.fixture
def history(farm: FarmRig, host: HostRig) -> FarmRig:
    """Thirty sessions of four pairs; in the last ten, int8 has a file that takes 1.3 times as long."""
    source = measured(farm, host, axes=FOUR_PAIRS, rounds=2)
    compute_points(farm)
    newer = another_file(farm)
    for day in range(1, 30):
        if day < 20:
            copy_session(farm, source, days=day)
        else:
            copy_session(farm, source, days=day, slower=1.3, variant_id=newer)
    farm.clock.advance(31 * 86400)
    return farm


def test_a_file_that_is_slower_is_one_change_with_its_digests_and_evidence(history: FarmRig) -> None:
    (change,) = search(history)
    assert (change.cause, change.state, change.series) == (ChangeCause.FILE, ChangeState.NEW, 4)
    assert change.ratio_low < 1.3 < change.ratio_high * 1.01
    assert (change.devices, change.of_devices) == (1, 1)
    assert change.scope["model"] == "mobilenet_v2"
    assert "int8" in change.scope["variant"]
    (version,) = change.versions
    digests = [row["digest"] for row in history.rows(INT8)]
    assert [version.old, version.new] == digests
    assert change.since_at - change.before_at < timedelta(days=1, seconds=1)
    detail = history.read(change_detail, change.change_id)
    assert len(detail.evidence) == 4
    for own in detail.evidence:
        assert own.before_sessions == 20
        assert own.after_sessions == 10
        assert own.delta == pytest.approx(math.log(1.3), abs=0.02)
        assert own.before_speedup == pytest.approx(2.0, rel=0.05)
        assert (own.before_matrix_id, own.after_matrix_ids[0]) == (20, 21)


def test_a_trend_has_the_changes_that_were_found_in_its_series(history: FarmRig) -> None:
    (change,) = search(history)
    trends = [view for view in history.read(list_histories) if view.baseline is not None]
    assert len(trends) == 4
    for trend in trends:
        (own,) = trend.changes
        (begin,) = [point for point in trend.points if point.cell_id == own.cell_id]
        assert (own.change_id, begin.matrix_id) == (change.change_id, 21)


def test_a_trend_since_a_day_has_no_change_from_before(history: FarmRig) -> None:
    (change,) = search(history)

    def listed(since: datetime) -> list[list[int]]:
        trends = history.read(list_histories, since=since)
        return [[own.change_id for own in view.changes] for view in trends if view.baseline is not None]

    assert listed(change.since_at) == [[change.change_id]] * 4
    day = change.since_at + timedelta(days=2)
    assert listed(day) == [[]] * 4
    # A series that joined the change later has it from its own first session on.
    joined = next(view for view in history.read(list_histories, since=day) if view.baseline is not None)
    later = sa.update(changed_series).values(cell_id=joined.points[-1].cell_id)
    history.write(lambda tx: tx.execute(later.where(changed_series.c.series_id == joined.series_id)))
    assert sorted(listed(day)) == [[], [], [], [change.change_id]]


def test_a_search_that_is_repeated_or_interrupted_records_each_change_once(history: FarmRig) -> None:
    first = detected(history)
    assert len(first.added) == 1
    # Two processes have searched, or one that was killed before it said so.
    record_all(history.database, first, history.clock)
    record_all(history.database, first, history.clock)
    assert detected(history) == DetectedChanges(added=[], updated=[], gone=[])
    assert len(history.read(list_changes, all=True)) == 1


def test_a_search_may_compute_for_minutes_between_two_reads(farm: FarmRig) -> None:
    if farm.database.engine.dialect.name == "sqlite":
        pytest.skip("it ends no transaction that is idle")
    show = "SELECT current_setting('idle_in_transaction_session_timeout')"
    with closing(open_database(farm.database.engine.url.render_as_string(hide_password=False))) as database:
        assert database.read(lambda connection: connection.exec_driver_sql(show).scalar_one()) == "1h"


def test_a_change_whose_evidence_is_retracted_is_kept_and_said_to_be_gone(history: FarmRig) -> None:
    (change,) = search(history)
    new = points.c.matrix_id > 20
    kept = [dict(row) for row in history.read(rows_of_points, new)]
    history.write(lambda connection: connection.execute(points.delete().where(new)))
    (gone,) = search(history)
    assert (gone.change_id, gone.delta) == (change.change_id, change.delta)
    assert gone.gone_at is not None
    assert history.read(list_changes) == []
    assert history.read(change_detail, change.change_id).evidence == ()
    # Again is no news.
    assert search(history) == [gone]
    history.write(lambda connection: connection.execute(points.insert(), kept))
    assert search(history) == [change]


def test_the_newest_points_alone_show_the_same_change(
    history: FarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = detected(history).added
    cut = history.read(detect_recorded, now=history.clock.now(), most_points=25 * 8)
    (change,) = cut.added
    # Sums over other sessions differ in their last digits.
    assert [replace(own, delta=0.0) for own in change.series] == [
        replace(own, delta=0.0) for own in whole.series
    ]
    sizes = [own.delta for own in whole.series]
    assert [own.delta for own in change.series] == pytest.approx(sizes, abs=1e-9)
    assert change.delta == pytest.approx(whole.delta, abs=0.005)
    assert (change.since_at, change.told_at) == (whole.since_at, whole.told_at)
    # What was told in the first part of the days that are read is not recorded: too little came before it.
    monkeypatch.setattr(detection, "_TRUSTED_SHARE", 0.25)
    assert history.read(detect_recorded, now=history.clock.now(), most_points=25 * 8).added == []


@pytest.fixture
def source(farm: FarmRig, host: HostRig) -> MatrixId:
    matrix_id = measured(farm, host, rounds=2)
    compute_points(farm)
    return matrix_id


def test_a_change_raises_one_alarm_which_ends_when_a_person_judges_it(
    farm: FarmRig, source: MatrixId
) -> None:
    change_id = recorded_change(farm)
    assert change_id is not None
    assert recorded_change(farm) is None
    (alarm,) = farm.read(list_alarms)
    assert (alarm.kind, alarm.subject_id) == (AlarmKind.REGRESSION, str(change_id))
    assert alarm.message.startswith("mobilenet_v2 int8-core on phone-1: +5.1 % (+4.3 to +6.0), file aaaaaaaa")
    service = bind_tx(decide, now=farm.clock.now(), actor="user:ann")
    view = farm.write(service, change_id, ChangeStateRequest(state=ChangeState.EXPECTED, reason="float16"))
    assert view.state is ChangeState.EXPECTED
    assert farm.read(list_alarms) == []
    farm.write(service, change_id, ChangeStateRequest(state=ChangeState.NEW, reason="it was not"))
    decisions = farm.read(change_detail, change_id).decisions
    assert [(each.state, each.reason, each.decided_by) for each in decisions] == [
        (ChangeState.NEW, "it was not", "user:ann"),
        (ChangeState.EXPECTED, "float16", "user:ann"),
    ]
    # Once for each change, whatever is said of it.
    assert farm.read(list_alarms) == []
    with pytest.raises(NotFound, match="no change 99"):
        farm.write(service, 99, ChangeStateRequest(state=ChangeState.FIXED, reason="r"))


def test_a_change_that_turns_out_to_be_another_one_is_gone(farm: FarmRig, source: MatrixId) -> None:
    by_file, by_build = recorded_change(farm), recorded_change(farm, cause=ChangeCause.OS)
    assert by_build is not None
    service = bind_tx(update_change, now=farm.clock.now())
    farm.write(service, by_build, found_change(farm, cause=ChangeCause.DRIFT))
    assert [(view.change_id, view.cause) for view in farm.read(list_changes)] == [
        (by_build, ChangeCause.DRIFT),
        (by_file, ChangeCause.FILE),
    ]
    farm.write(service, by_build, found_change(farm))
    assert [view.change_id for view in farm.read(list_changes)] == [by_file]
    assert [alarm.subject_id for alarm in farm.read(list_alarms)] == [str(by_file)]


@pytest.mark.parametrize(("delta", "days"), [(-0.05, 0), (0.05, 8)])
def test_improvements_and_what_was_told_long_ago_raise_no_alarm(
    farm: FarmRig, source: MatrixId, delta: float, days: int
) -> None:
    told_at = farm.clock.now() - timedelta(days=days)
    assert recorded_change(farm, told_at=told_at, delta=delta) is not None
    assert farm.read(list_alarms) == []


def test_changes_are_filtered_by_time_device_model_cause_and_state(farm: FarmRig, source: MatrixId) -> None:
    slower = recorded_change(farm)
    begin = farm.clock.now() + timedelta(seconds=1)
    farm.clock.advance(10)
    quicker = recorded_change(farm, delta=-0.05, cause=ChangeCause.OS)
    drift = recorded_change(farm, cause=ChangeCause.DRIFT)

    def listed(**which: Any) -> list[int]:
        return [view.change_id for view in farm.read(list_changes, **which)]

    assert listed() == [drift, slower]
    assert listed(all=True) == [drift, quicker, slower]
    assert listed(all=True, since=begin) == [drift, quicker]
    assert listed(cause=ChangeCause.FILE) == [slower]
    assert listed(state=ChangeState.FIXED) == []
    assert listed(device="phone-1", model="mobilenet_v2") == [drift, slower]
    assert listed(limit=1) == [drift]
    assert listed(after=drift, all=True) == [quicker, slower]
    with pytest.raises(NotFound, match="no model"):
        listed(model="other")
    with pytest.raises(NotFound, match="no change 99"):
        listed(after=99)


@pytest.mark.parametrize("cause", [None, ChangeCause.NOISE])
def test_the_changes_since_a_time_are_an_index_range(
    farm: FarmRig, source: MatrixId, cause: ChangeCause | None
) -> None:
    which = ChangeFilter(since=farm.clock.now(), model="mobilenet_v2", cause=cause)

    def compiled(connection: Connection) -> str:
        query = changes_query(which, before=None, limit=20)
        return str(query.compile(connection, compile_kwargs={"literal_binds": True}))

    plan = plan_of(farm, [farm.read(compiled)])
    # Of a cause, PostgreSQL expects so few in an empty table that it begins with the model.
    assert "ix_changes_told_at" in plan or (cause is not None and "series" in plan)
    assert "SCAN changed_series" not in plan
    assert "SCAN confirmations" not in plan
    assert "Seq Scan" not in plan


def test_a_step_of_one_series_without_a_version_is_unknown_and_noise_when_it_went_away(
    farm: FarmRig, source: MatrixId
) -> None:
    for day in range(1, 26):
        copy_session(farm, source, days=day, slower=1.0 if day < 20 else 1.3)
    farm.clock.advance(26 * 86400)
    (change,) = search(farm)
    assert (change.cause, change.series, change.versions) == (ChangeCause.UNKNOWN, 1, ())
    assert len(farm.read(list_alarms)) == 1
    assert detected(farm) == DetectedChanges(added=[], updated=[], gone=[])
    for day in range(26, 31):
        copy_session(farm, source, days=day)
    farm.clock.advance(5 * 86400)
    (passed,) = search(farm)
    assert (passed.change_id, passed.cause, passed.found_cause) == (
        change.change_id,
        ChangeCause.NOISE,
        ChangeCause.UNKNOWN,
    )
    assert farm.read(list_alarms) == []
    assert detected(farm) == DetectedChanges(added=[], updated=[], gone=[])
    assert [view.change_id for view in farm.read(list_changes, cause=ChangeCause.NOISE)] == [change.change_id]
    assert farm.read(list_changes, cause=ChangeCause.UNKNOWN) == []
    (mark,) = [own for view in farm.read(list_histories) for own in view.changes]
    assert mark.cause is ChangeCause.NOISE


def test_a_return_to_the_slower_level_raises_no_alarm_where_what_came_before_is_noise(
    farm: FarmRig, source: MatrixId
) -> None:
    values: dict[str, Any] = {"cause": ChangeCause.UNKNOWN, "versions": [], "is_passing": True}
    change_id = recorded_change(farm, **values)
    assert [view.change_id for view in farm.read(list_changes, cause=ChangeCause.NOISE)] == [change_id]
    assert farm.read(list_alarms) == []


@pytest.mark.parametrize(
    ("further", "cause"),
    [
        ([], ChangeCause.NOISE),
        ([ChangedVersion(part=ChangedPart.OS, old="a", new="b")], ChangeCause.UNKNOWN),
    ],
)
def test_what_its_confirmation_does_not_show_is_noise_unless_another_version_began_with_it(
    farm: FarmRig, source: MatrixId, further: list[ChangedVersion], cause: ChangeCause
) -> None:
    found = found_change(farm)
    change_id = recorded_change(farm, versions=[*found.versions, *further])
    assert change_id is not None
    running = Confirmation(
        change_id=change_id,
        outcome=ConfirmationOutcome.RUNNING,
        matrix_id=source,
        device_id=DeviceId("phone-1"),
    )
    farm.write(bind_tx(add_confirmation, now=farm.clock.now()), running)
    assert farm.read(list_changes)[0].cause is ChangeCause.FILE
    refuted = bind_tx(record_confirmation, now=farm.clock.now())
    farm.write(refuted, change_id, ConfirmationOutcome.NOT_CONFIRMED, delta=0.0, half_width=0.01)
    (view,) = farm.read(list_changes, cause=cause)
    assert (view.cause, view.found_cause) == (cause, ChangeCause.FILE)
    assert farm.read(list_changes, cause=ChangeCause.FILE) == []
    assert len(farm.read(list_alarms)) == (cause is ChangeCause.UNKNOWN)
    assert str(cause_text(view)).startswith(f"{cause}: the file is not it")
    # Another cause, by later sessions, was not measured side by side.
    farm.write(bind_tx(update_change, now=farm.clock.now()), change_id, replace(found, cause=ChangeCause.OS))
    assert farm.read(list_changes)[0].cause is ChangeCause.OS
