"""Points of sessions are computed beside settling, and are what `farm speedups` shows; nothing is lost."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import pytest
import sqlalchemy as sa

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.results.series import slot_number
from farm.core.runs.stats import t_quantile
from farm.database.transaction import bind_tx
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.history.session_points import (
    AT_LEAST_EVERY_S,
    QUIET_S,
    find_due_sessions,
    points_of_piece,
    session_pieces,
    session_points,
    store_points,
)
from farm.services.results.speedups.listing import list_speedups
from farm.store.matrices.search import MatrixFilter
from farm.store.results.history.stale_points import (
    MeasuredSession,
    has_unmarked,
    mark_measured,
    mark_sessions,
    pending_devices,
    pending_sessions,
)
from tests.services.results.history.test_latest_speedups import Unsteady, measured
from tests.support.farm.points import all_points, compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

PHONE = DeviceId("phone-1")


def test_a_point_says_what_the_comparison_of_its_matrix_says_to_the_last_digit(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = measured(farm, host, rounds=6, aa=True)
    compute_points(farm)
    points = {point.cell_id: point for point in all_points(farm)}
    views = farm.read(list_speedups, matrix_id)
    assert len(views) == 2
    for view in views:
        point = points[view.cell_id]
        own = point.values
        assert (own.time_ns, own.baseline_ns, own.rounds) == (view.candidate_ns, view.baseline_ns, 6)
        assert own.time_ns is not None
        assert own.baseline_ns is not None
        assert own.baseline_ns / own.time_ns == view.speedup
        assert (point.replica > 1) is view.aa
        assert point.ended_at <= view.measured_until
    baseline = points[views[0].baseline_cell_id]
    assert baseline.baseline_series_id is None
    assert baseline.values.rounds == 6


def test_the_standard_error_is_that_of_the_interval(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host, rounds=6)
    compute_points(farm)
    (view,) = farm.read(list_speedups, matrix_id)
    (point,) = [point for point in all_points(farm) if point.baseline_slot is not None]
    assert view.speedup is not None
    assert view.ci_high is not None
    assert point.values.se_speedup is not None
    half = math.log(view.ci_high / view.speedup)
    # The clock's step adds a little, and degrees of freedom.
    assert half == pytest.approx(t_quantile(0.975, 5) * point.values.se_speedup, rel=0.02)


def test_what_is_known_of_pairs_is_the_same_before_and_after_their_points_are_computed(
    farm: FarmRig, host: HostRig
) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    for rounds in (5, 1, 6):
        farm.submit(devices={"virtual": True}, rounds=rounds, aa=rounds == 6)
        host.run(Unsteady(farm))
    before = farm.read(list_latest_speedups)
    assert len(before) == 4
    assert len(farm.read(pending_sessions)) == 6
    assert compute_points(farm) == 6
    assert farm.read(pending_sessions) == []
    assert farm.read(list_latest_speedups) == before
    measured(farm, host, rounds=2)
    mixed = farm.read(list_latest_speedups)
    assert mixed != before
    compute_points(farm)
    assert farm.read(list_latest_speedups) == mixed


def test_sessions_without_points_are_found_by_device_and_matrix_newest_first(
    farm: FarmRig, host: HostRig
) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    for name in ("nightly", "other"):
        farm.submit(devices={"virtual": True}, rounds=1, name=name)
        host.run(good_evidence)
    phones = PHONE, DeviceId("phone-2")
    nightly, other = ([MeasuredSession(MatrixId(number), phone) for phone in phones] for number in (1, 2))
    which = MatrixFilter(name="nightly")
    # First they have measurements that are not marked yet.
    for mark in (False, True):
        if mark:
            farm.write(bind_tx(mark_measured, now=farm.clock.now()), limit=1000)
        assert farm.read(pending_sessions, newest=3) == [*other, nightly[0]]
        assert farm.read(pending_sessions, [PHONE], newest=1) == other[:1]
        assert farm.read(pending_sessions, phones, which=which, newest=9) == nightly
        assert farm.read(pending_devices, which=which) == {*phones}
        assert farm.read(pending_devices, [PHONE]) == {PHONE}
    compute_points(farm)
    assert farm.read(pending_devices) == set()


def test_a_slot_is_the_same_on_all_devices_and_another_for_other_work(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    farm.submit(devices={"virtual": True}, rounds=1)
    host.run(good_evidence)
    compute_points(farm)
    slots = {(point.device_id, point.baseline_slot is None): point.slot for point in all_points(farm)}
    assert len(slots) == 4
    assert len({*slots.values()}) == 2
    slot = partial(slot_number, model="m", recipe=None, backend="cpu", harness="h")
    assert slot(settings={}) != slot(settings={"threads": 4})
    assert 0 <= slot(settings={}) < 2**63


def test_points_are_computed_once_a_session_rests_or_has_lasted_long(farm: FarmRig, host: HostRig) -> None:
    measured(farm, host, rounds=1)
    start = farm.clock.now()
    farm.write(bind_tx(mark_measured, now=start), limit=1000)
    later = start + timedelta(seconds=QUIET_S - 1)
    assert farm.read(find_due_sessions, now=later) == []
    assert farm.read(find_due_sessions, now=later + timedelta(seconds=1))
    long_after = start + timedelta(seconds=AT_LEAST_EVERY_S)
    session = MeasuredSession(MatrixId(1), PHONE)
    farm.write(bind_tx(mark_sessions, now=long_after - timedelta(seconds=1)), [session])
    assert farm.read(find_due_sessions, now=long_after - timedelta(seconds=1)) == []
    assert farm.read(find_due_sessions, now=long_after)


def test_what_was_measured_while_points_were_computed_is_not_lost(farm: FarmRig, host: HostRig) -> None:
    first = measured(farm, host, rounds=5)
    farm.write(bind_tx(mark_measured, now=farm.clock.now()), limit=1000)
    late = farm.clock.now() + timedelta(seconds=QUIET_S)
    due = farm.read(find_due_sessions, now=late)
    out_of_date = farm.read(session_points, due[0].session)
    # Another process computes it, and then there is a further mark.
    assert farm.write(bind_tx(store_points, now=late), due, out_of_date)
    farm.write(bind_tx(mark_sessions, now=late), [due[0].session])
    assert not farm.write(bind_tx(store_points, now=late), due, [])
    assert [session.matrix_id for session in farm.read(pending_sessions)] == [first]
    compute_points(farm)
    assert all_points(farm) == sorted(out_of_date, key=lambda point: point.cell_id)


class Killed(Exception):
    """What ends a process between two statements."""


@contextmanager
def killed_at(farm: FarmRig, number: int) -> Iterator[None]:
    """Kill the first writer that gets to its statement of this number."""
    count = 0

    def kill(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal count
        if not statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE")):
            return
        count += 1
        if count == number:
            raise Killed

    sa.event.listen(farm.database.engine, "before_cursor_execute", kill)
    try:
        yield
    finally:
        sa.event.remove(farm.database.engine, "before_cursor_execute", kill)


@pytest.mark.invariant("I10")
def test_a_process_that_is_killed_at_any_statement_loses_and_doubles_no_point(
    farm: FarmRig, host: HostRig
) -> None:
    for rounds in (5, 1):
        measured(farm, host, rounds=rounds)
    for number in range(1, 50):
        with killed_at(farm, number):
            try:
                compute_points(farm)
            except Killed:
                continue
        break
    assert 5 < number < 49
    points = all_points(farm)
    assert not farm.read(has_unmarked)
    assert farm.read(pending_sessions) == []
    for session in (MeasuredSession(MatrixId(1), PHONE), MeasuredSession(MatrixId(2), PHONE)):
        own = [point for point in points if point.matrix_id == session.matrix_id]
        assert own == sorted(farm.read(session_points, session), key=lambda point: point.cell_id)
    newest = farm.rows("SELECT matrix_id FROM points WHERE newest")
    assert [row["matrix_id"] for row in newest] == [2, 2]


def test_the_newest_point_of_a_pair_is_the_last_with_rounds_in_whatever_order_they_come(
    farm: FarmRig, host: HostRig
) -> None:
    ids = [measured(farm, host, rounds=2) for _ in range(3)]
    compute_points(farm)
    own = {matrix_id: farm.read(session_points, MeasuredSession(matrix_id, PHONE)) for matrix_id in ids}

    def store(matrix_id: MatrixId, *, empty: bool = False) -> list[int]:
        session = MeasuredSession(matrix_id, PHONE)
        farm.write(bind_tx(mark_sessions, now=farm.clock.now()), [session])
        due = farm.read(find_due_sessions, now=farm.clock.now() + timedelta(seconds=QUIET_S))
        stored = farm.write(bind_tx(store_points, now=farm.clock.now()), due, [] if empty else own[matrix_id])
        assert stored
        rows = farm.rows("SELECT matrix_id FROM points WHERE newest ORDER BY cell_id")
        return [row["matrix_id"] for row in rows]

    for matrix_id in ids:
        assert store(matrix_id) == [ids[2]] * 2
    assert store(ids[2], empty=True) == [ids[1]] * 2
    assert store(ids[0], empty=True) == [ids[1]] * 2
    assert store(ids[2]) == [ids[2]] * 2
    assert store(ids[1], empty=True) == [ids[2]] * 2
    assert store(ids[2], empty=True) == []
    assert store(ids[0]) == [ids[0]] * 2


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_wide_session_is_computed_in_pieces_to_the_same_points(
    farm: FarmRig, host: HostRig, size: int
) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    farm.submit(devices={"virtual": True}, rounds=5, aa=True)
    host.run(Unsteady(farm))
    sessions = [MeasuredSession(MatrixId(1), DeviceId(f"phone-{number}")) for number in (1, 2)]
    pieces = farm.read(session_pieces, sessions, size=size)
    assert max(len(piece.cells) for piece in pieces) == min(size, 6)
    whole = [point for session in sessions for point in farm.read(session_points, session)]
    assert len(whole) == 6
    assert [point for piece in pieces for point in farm.read(points_of_piece, piece)] == whole


def test_a_session_without_any_pair_has_points_of_its_times(farm: FarmRig, host: HostRig) -> None:
    measured(farm, host, rounds=3, baseline=None)
    compute_points(farm)
    points = all_points(farm)
    assert [point.values.rounds for point in points] == [3, 3]
    assert {point.baseline_slot for point in points} == {None}
    assert farm.read(list_latest_speedups) == []
