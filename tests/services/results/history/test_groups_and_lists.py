"""Speedups over devices, trends of series, and lists of matrices; none of them reads all of the history."""

import math
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId, SeriesId
from farm.core.errors import InvalidInput, NotFound
from farm.database.transaction import bind_tx
from farm.services.matrices.views import list_matrix_summaries
from farm.services.results.history.group_speedups import group_speedups
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.history.retractions import apply_retraction
from farm.services.results.history.trends import has_histories, list_histories
from farm.store.matrices.search import MatrixFilter, index_names, matrices_query
from farm.store.operations.alarms import last_alarms_query
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView, RetractRequest, VersionPart
from tests.services.results.history.test_latest_speedups import Unsteady, measured, register_program
from tests.support.database.sent_statements import sent_to
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

THREE_FLAGS = {
    "model": "mobilenet_v2",
    "precision": "float32",
    "format": "torchscript",
    "backend": "cpu",
    "warmup": [0, 1, 2],
}


def check_close(views: list[GroupSpeedupView], others: list[GroupSpeedupView]) -> None:
    """Check that they are equal, but for the last digits of sums that the database or Python added up."""
    assert len(views) == len(others)
    for view, other in zip(views, others, strict=True):
        expected = other.model_dump()
        for name, value in view.model_dump().items():
            is_sum = isinstance(value, float)
            assert value == (pytest.approx(expected[name], rel=1e-9) if is_sum else expected[name]), name


def test_a_group_counts_each_device_once_with_its_newest_session(farm: FarmRig, host: HostRig) -> None:
    for number in (2, 3, 4):
        host.plug_in(f"phone-{number}", device_model="virtual phone" if number < 4 else "another one")
    host.earn_health()
    farm.submit(devices={"virtual": True}, rounds=5)
    host.run(Unsteady(farm))
    measured(farm, host, rounds=6, slower=2.0)
    pending = farm.read(group_speedups, GroupBy.DEVICE_MODEL)
    compute_points(farm)
    groups = farm.read(group_speedups, GroupBy.DEVICE_MODEL)
    check_close(groups, pending)
    assert [(view.group, view.devices, view.of_devices) for view in groups] == [
        ("another one", 1, 1),
        ("virtual phone", 3, 3),
    ]
    alone, three = groups
    assert alone.ci_low is None
    assert three.ci_low is not None
    assert three.low < 1.1 < 1.8 < three.high
    # Two devices with a speedup of 2, and one whose newest session says 1: rounds would weigh it more.
    assert three.speedup == pytest.approx(2 ** (2 / 3), rel=0.02)
    (everything,) = farm.read(group_speedups, GroupBy.ALL)
    assert everything.devices == 4


def test_a_row_for_each_device_is_what_the_row_over_all_is_made_of(farm: FarmRig, host: HostRig) -> None:
    for number in (2, 3):
        host.plug_in(f"phone-{number}")
    host.earn_health()
    farm.submit(devices={"virtual": True}, rounds=5)
    host.run(Unsteady(farm))
    pending = farm.read(group_speedups, GroupBy.DEVICE, candidate="int8")
    compute_points(farm)
    rows = farm.read(group_speedups, GroupBy.DEVICE, candidate="int8")
    assert rows == pending
    (over_all,) = farm.read(group_speedups, GroupBy.ALL)
    assert [(row.group, row.device_id, row.devices, row.of_devices, row.rounds) for row in rows] == [
        (name, name, 1, 1, 5) for name in ("phone-1", "phone-2", "phone-3")
    ]
    logs = [math.log(row.speedup) for row in rows]
    assert over_all.speedup == pytest.approx(math.exp(math.fsum(logs) / 3))
    assert (over_all.low, over_all.high) == (
        min(row.speedup for row in rows),
        max(row.speedup for row in rows),
    )
    # Each interval is that of the session in its history.
    for row in rows:
        (trend,) = [view for view in farm.read(list_histories, device=row.group) if view.baseline]
        (point,) = trend.points
        assert (row.cell_id, row.ci_low, row.ci_high) == (point.cell_id, point.ci_low, point.ci_high)
        assert row.speedup == pytest.approx(point.speedup)
    assert farm.read(group_speedups, GroupBy.DEVICE, candidate="int8", at=farm.clock.now()) == rows
    with pytest.raises(InvalidInput, match="one candidate"):
        farm.read(group_speedups, GroupBy.DEVICE)


def test_a_session_that_is_not_stored_yet_counts_beside_the_stored_ones_of_other_devices(
    farm: FarmRig, host: HostRig
) -> None:
    for number in (2, 3, 4):
        host.plug_in(f"phone-{number}")
    host.earn_health()
    farm.submit(devices={"virtual": True}, rounds=5)
    host.run(Unsteady(farm))
    compute_points(farm)
    # Another comparison, so that of some devices it is asked whether they measured the model at all.
    farm.submit(devices={"device_id": "phone-2"}, axes=THREE_FLAGS, baseline={"warmup": 0}, rounds=2)
    host.run(good_evidence)
    farm.clock.advance(10)
    begin = farm.clock.now()
    measured(farm, host, rounds=5, slower=2.0)
    for since in (None, begin):
        pending = farm.read(group_speedups, GroupBy.ALL, since=since)
        counts = {(view.candidate, view.devices, view.of_devices) for view in pending}
        if since is None:
            assert {(devices, of) for _, devices, of in counts} == {(4, 4), (1, 4)}
        else:
            assert {(devices, of) for _, devices, of in counts} == {(1, 1)}
    everything = farm.read(group_speedups, GroupBy.ALL)
    compute_points(farm)
    check_close(farm.read(group_speedups, GroupBy.ALL), everything)
    check_close(farm.read(group_speedups, GroupBy.ALL, since=begin), pending)


def test_devices_are_grouped_by_what_their_newest_facts_say(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-2", soc="another one")
    host.earn_health()
    host.plug_in("phone-2")
    host.plug_in("phone-3", device_model="Pixel 8", soc="Tensor G3", android=None, virtual=False)
    host.earn_health()
    farm.submit(devices="all", rounds=2)
    host.run(good_evidence)
    compute_points(farm)
    for by, virtual, physical in (
        (GroupBy.DEVICE_MODEL, "virtual phone", "Pixel 8"),
        (GroupBy.SOC, "host CPU", "Tensor G3"),
        (GroupBy.ANDROID, "virtual", None),
        (GroupBy.ALL, "all devices", "all devices"),
    ):
        views = farm.read(group_speedups, by)
        found = {(view.group, view.virtual): (view.devices, view.of_devices) for view in views}
        assert found == {(virtual, True): (2, 2), (physical, False): (1, 1)}


def test_a_version_that_changed_is_marked_at_the_first_point_that_has_it(
    farm: FarmRig, host: HostRig
) -> None:
    first = measured(farm, host, rounds=5)
    register_program(farm, b"#!/bin/sh\n# another one\n")
    second, third = measured(farm, host, rounds=5), measured(farm, host, rounds=2)
    pending = farm.read(list_histories)
    compute_points(farm)
    histories = farm.read(list_histories)
    assert histories == pending
    (trend,) = [view for view in histories if view.baseline is not None]
    assert [point.matrix_id for point in trend.points] == [first, second, third]
    both = (VersionPart.PROGRAM, VersionPart.BASELINE_PROGRAM)
    assert [point.changed for point in trend.points] == [(), both, ()]
    assert trend.points[2].ci_low is None
    first_low = trend.points[0].ci_low
    assert first_low is not None
    assert first_low < (trend.points[0].speedup or 0)
    assert farm.read(list_histories, variant="INT8") == [trend]
    assert farm.read(list_histories, variant="INT8", since=farm.clock.now()) == []
    for filters in ({}, {"device": "phone-1"}, {"after": SeriesId(0)}):
        with pytest.raises(NotFound, match="no series has `float16` in its name"):
            farm.read(list_histories, variant="float16", **filters)
    with pytest.raises(NotFound) as unknown:
        farm.read(list_histories, variant="int8-cor/torchscript")
    assert "`farm history` names them" in unknown.value.hint
    with pytest.raises(NotFound) as near:
        farm.read(list_histories, variant="INT8-crore")
    assert near.value.hint == "did you mean `int8-core`?"
    assert farm.read(list_histories, device="phone-1", model="mobilenet_v2", limit=1) == histories[:1]
    assert farm.read(list_histories, after=histories[0].series_id, limit=1) == histories[1:]
    with pytest.raises(NotFound, match="no model"):
        farm.read(list_histories, model="mobilenet_v3")
    with sent_to(farm.database.engine) as sent:
        assert farm.read(list_histories) == histories
        statements = len(sent)
        named = {"model": "mobilenet_v2", "harness": "speed_benchmark_torch"}
        assert farm.read(list_histories, **named) == histories
    # Names are checked where nothing is found.
    assert len(sent) == 2 * statements
    with pytest.raises(NotFound, match="no harness `speed_benchmark_torhc`") as unknown:
        farm.read(list_histories, harness="speed_benchmark_torhc")
    assert unknown.value.hint == "did you mean `speed_benchmark_torch`?"


def test_whether_there_are_further_histories_is_told_without_their_points(
    farm: FarmRig, host: HostRig
) -> None:
    def check() -> None:
        last = max(view.series_id for view in farm.read(list_histories))
        future = farm.clock.now() + timedelta(days=1)
        for filters in (
            {},
            {"device": "phone-1", "since": begin},
            {"since": future},
            {"variant": "int8"},
            {"variant": "float16"},
            {"which": MatrixFilter(name="second")},
            {"which": MatrixFilter(name="third")},
            {"harness": "none"},
        ):
            for after in map(SeriesId, range(1, last + 1)):
                # Refused where nothing is listed at all.
                with suppress(NotFound):
                    listed = farm.read(list_histories, after=after, limit=1, **filters)
                    assert farm.read(has_histories, after=after, **filters) is bool(listed), (filters, after)

    measured(farm, host, rounds=5, name="first", axes=THREE_FLAGS, baseline={"warmup": 0})
    compute_points(farm)
    begin = farm.clock.now()
    measured(farm, host, rounds=5, name="second")
    check()
    compute_points(farm)
    check()
    with sent_to(farm.database.engine) as sent:
        assert farm.read(has_histories, after=SeriesId(1))
    assert not any("points.time_ns" in sql for sql, _ in sent)


def test_lists_of_matrices_are_filtered_by_the_farm(farm: FarmRig, host: HostRig) -> None:
    old = farm.submit(name="Nightly 50%")
    farm.clock.advance(100)
    begin = farm.clock.now()
    new = farm.submit(name="other")

    def listed(**which: Any) -> list[MatrixId]:
        service = bind_tx(list_matrix_summaries, now=farm.clock.now())
        return [view.matrix_id for view in farm.read(service, which=MatrixFilter(**which))]

    for index in (lambda: None, lambda: farm.write(bind_tx(index_names, now=begin), limit=9)):
        index()
        assert listed() == [new, old]
        assert listed(since=begin) == [new]
        assert listed(since=begin + timedelta(days=1)) == []
        assert listed(name="nightly") == [old]
        assert listed(name="NIGHTLY 50", since=begin) == []
        assert listed(name="nightly", since=begin + timedelta(days=1)) == []
        assert listed(name="nightly", submitted_by="user") == [old]
        assert listed(name="nightly", submitted_by="user:ann") == []
        assert listed(name="tightly") == []
        assert listed(name="0%") == [old]
        assert listed(name="_") == []
        assert listed(submitted_by="user") == [new, old]
        assert listed(submitted_by="user:ann") == []


def plan_of(farm: FarmRig, statements: list[str]) -> str:
    """How the database executes statements, with their parameters written out."""

    def explain(connection: Connection) -> str:
        is_sqlite = connection.dialect.name == "sqlite"
        explain = "EXPLAIN QUERY PLAN " if is_sqlite else "EXPLAIN "
        if not is_sqlite:
            # Of tables as small as these a scan is quicker, which says nothing of large ones.
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        return "\n".join(
            str(row) for each in statements for row in connection.exec_driver_sql(explain + each).all()
        )

    return farm.read(explain)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (
            "SELECT cell_id FROM measurements WHERE superseded_at IS NOT NULL AND superseded_at > 5",
            "ix_measurements_superseded_at",
        ),
        (
            "SELECT * FROM points WHERE newest AND device_id = 'a' AND baseline_series_id > 0",
            # Either of the two: in an empty table they cost PostgreSQL the same.
            "_points_newest",
        ),
        (
            "SELECT * FROM points WHERE series_id = 1 AND baseline_series_id = 2 AND replica = 1"
            " ORDER BY matrix_id DESC LIMIT 20",
            "ix_points_series",
        ),
        ("SELECT * FROM points WHERE matrix_id = 1 AND device_id = 'a'", "ix_points_session"),
        ("SELECT MAX(matrix_id) FROM points WHERE series_id = 1 AND matrix_id < 5", "ix_points_series"),
        (
            "SELECT matrix_id FROM name_trigrams WHERE trigram = 'abc' AND matrix_id < 9"
            " ORDER BY matrix_id DESC LIMIT 9",
            "name_trigrams",
        ),
        ("SELECT MAX(matrix_id) FROM name_trigrams WHERE trigram = ''", "name_trigrams"),
        (
            "SELECT * FROM series WHERE model = 'm' AND series_id > 5 ORDER BY series_id LIMIT 9",
            "ix_series_model",
        ),
        (
            "SELECT * FROM matrices WHERE submitted_by = 'user:ann' ORDER BY matrix_id DESC LIMIT 9",
            "ix_matrices_submitted_by",
        ),
        (
            "SELECT matrix_id FROM matrices WHERE created_at <= 5 ORDER BY created_at DESC LIMIT 1",
            "ix_matrices_created_at",
        ),
    ],
)
def test_a_question_over_the_history_is_an_index_range(farm: FarmRig, statement: str, index: str) -> None:
    plan = plan_of(farm, [statement])
    assert index in plan
    assert "Seq Scan" not in plan
    assert "SCAN points" not in plan


def test_the_matrices_since_a_time_are_found_by_their_time(farm: FarmRig) -> None:
    query = matrices_query(MatrixFilter(since=farm.clock.now()), before=None, limit=100)

    def compiled(connection: Connection) -> str:
        return str(query.compile(connection, compile_kwargs={"literal_binds": True}))

    assert "ix_matrices_created_at" in plan_of(farm, [farm.read(compiled)])


@pytest.mark.parametrize("days", [None, 1])
def test_the_newest_alarms_are_found_by_their_time(farm: FarmRig, days: int | None) -> None:
    since = None if days is None else farm.clock.now() - timedelta(days)
    query = last_alarms_query(since=since, limit=20)

    def compiled(connection: Connection) -> str:
        return str(query.compile(connection, compile_kwargs={"literal_binds": True}))

    plan = plan_of(farm, [farm.read(compiled)])
    assert "ix_alarms_raised_at" in plan
    assert "TEMP B-TREE" not in plan
    assert "Sort" not in plan


def test_the_cost_of_the_newest_speedups_does_not_grow_with_the_number_of_matrices(
    farm: FarmRig, host: HostRig
) -> None:
    counts = []
    for _ in range(4):
        measured(farm, host, rounds=1)
        compute_points(farm)
        (view,) = farm.read(list_latest_speedups, pooled=2)
        counts.append((len(view.matrices), view.rounds))
    assert counts == [(1, 1), (2, 2), (2, 2), (2, 2)]


def test_groups_are_of_the_comparisons_that_are_chosen(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    farm.submit(devices={"virtual": True}, rounds=5)
    host.run(Unsteady(farm))
    farm.submit(devices={"device_id": "phone-1"}, axes=THREE_FLAGS, baseline={"warmup": 0}, rounds=2)
    host.run(good_evidence)
    for compute in (lambda: 0, lambda: compute_points(farm)):
        compute()
        everything = farm.read(group_speedups, GroupBy.ALL)
        assert len(everything) == 3
        (int8,) = farm.read(group_speedups, GroupBy.ALL, candidate="INT8", baseline="float32")
        assert int8 in everything
        assert (int8.devices, int8.of_devices) == (2, 2)
        (flag,) = farm.read(group_speedups, GroupBy.ALL, candidate="warmup=2")
        assert flag in everything
        assert (flag.devices, flag.of_devices) == (1, 2)
        for words in ({"baseline": "int9"}, {"candidate": "int9"}):
            with pytest.raises(NotFound):
                farm.read(group_speedups, GroupBy.ALL, **words)
        with pytest.raises(NotFound, match="no model `mobilenet_v3`"):
            farm.read(group_speedups, GroupBy.ALL, model="mobilenet_v3")


def test_groups_are_as_they_were_known_then(farm: FarmRig, host: HostRig) -> None:
    moments = []
    for slower in (1.0, 1.2, 1.4):
        matrix_id = measured(farm, host, rounds=5, slower=slower)
        farm.clock.advance(100)
        compute_points(farm)
        moments.append((farm.clock.now(), farm.read(group_speedups, GroupBy.ALL)))
        farm.clock.advance(100)
    request = RetractRequest(matrix_id=matrix_id, reason="a swollen battery")
    farm.write(bind_tx(apply_retraction, now=farm.clock.now(), actor="user:ann"), request)
    for compute in (lambda: 0, lambda: compute_points(farm)):
        compute()
        for at, known in moments:
            check_close(farm.read(group_speedups, GroupBy.ALL, at=at), known)
        now = farm.read(group_speedups, GroupBy.ALL, at=farm.clock.now())
        check_close(now, farm.read(group_speedups, GroupBy.ALL))
        assert farm.read(group_speedups, GroupBy.ALL, at=moments[0][0] - timedelta(days=1)) == []
    assert moments[2][1] != farm.read(group_speedups, GroupBy.ALL) != moments[0][1]
