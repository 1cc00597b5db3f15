"""Another parser version and a retraction change points, speedups, trends and regressions."""

from datetime import timedelta
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.results.history.recorded_change import ChangeCause
from farm.database.transaction import bind_tx
from farm.services.results.history.change_sweep import record_all
from farm.services.results.history.changes import list_changes
from farm.services.results.history.detection import detect_recorded
from farm.services.results.history.group_speedups import group_speedups
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.history.retractions import apply_retraction
from farm.services.results.history.trends import list_histories
from farm.wire.documents.results.changes import ChangeView
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView, RetractRequest
from farm.wire.documents.results.speedups import SpeedupView
from tests.services.results.history.test_groups_and_lists import check_close
from tests.services.results.history.test_latest_speedups import measured
from tests.services.results.reparse.test_reparse import NEWER, reparse
from tests.support.farm.copied_sessions import another_file
from tests.support.farm.points import all_points, compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig


class Answers(NamedTuple):
    """What the farm says of its history."""

    latest: list[SpeedupView]
    groups: list[GroupSpeedupView]
    #: Speedups of the sessions of the one pair, oldest first, in whole tenths.
    trend: list[float]
    regressions: list[ChangeView]


def answers(farm: FarmRig) -> Answers:
    """Compute what is due, search for changes, and ask."""
    compute_points(farm)
    record_all(farm.database, farm.read(detect_recorded, now=farm.clock.now()), farm.clock)
    (trend,) = [view for view in farm.read(list_histories) if view.baseline is not None]
    return Answers(
        latest=farm.read(list_latest_speedups, pooled=1),
        groups=farm.read(group_speedups, GroupBy.ALL),
        trend=[round(point.speedup or 0, 1) for point in trend.points],
        regressions=farm.read(list_changes),
    )


def test_a_newer_parser_version_and_a_retraction_change_all_answers_but_those_of_before(
    farm: FarmRig, host: HostRig
) -> None:
    for _ in range(2):
        measured(farm, host, rounds=5)
        farm.clock.advance(86400)
    another_file(farm)
    slow: list[MatrixId] = []
    for _ in range(2):
        # Four times as long as before, which the older version of the parser did not see.
        slow.append(measured(farm, host, rounds=5, slower=4.0))
        farm.clock.advance(86400)

    def read_by_an_older_one(connection: Connection) -> None:
        ratio = 4.0
        connection.execute(
            sa.text(
                f"UPDATE measurements SET parser_version = {NEWER - 1}, value_ns = value_ns / {ratio},"
                f" mean_ns = mean_ns / {ratio} WHERE measurement_id IN (SELECT m.measurement_id FROM"
                " measurements m JOIN cells c ON c.cell_id = m.cell_id"
                " WHERE c.baseline_index IS NOT NULL AND c.replica = 1 AND c.matrix_id >= :first)"
            ),
            {"first": slow[0]},
        )

    farm.write(read_by_an_older_one)
    before, before_at, points_before = answers(farm), farm.clock.now(), all_points(farm)
    assert before.trend == [2.0] * 4
    assert before.regressions == []

    farm.clock.advance(60)
    assert reparse(farm)
    # What is asked before the points are computed again is right, too.
    (pending,) = farm.read(group_speedups, GroupBy.ALL)
    after, after_at = answers(farm), farm.clock.now()
    changed = {old.cell_id for old, new in zip(points_before, all_points(farm), strict=True) if old != new}
    assert len(changed) == len(slow)
    assert after.trend == [2.0] * 2 + [0.5] * 2
    assert [round(view.speedup or 0, 1) for view in after.latest if not view.aa] == [0.5]
    check_close(after.groups, [pending])
    assert round(pending.speedup, 1) == 0.5
    (regression,) = after.regressions
    assert regression.cause is ChangeCause.FILE
    assert regression.ratio_low < 4.0 < regression.ratio_high * 1.01
    digests = [row["digest"] for row in farm.rows("SELECT digest FROM variants ORDER BY variant_id")]
    assert [(version.old, version.new) for version in regression.versions] == [(digests[1], digests[2])]

    farm.clock.advance(60)
    for matrix_id in slow:
        request = RetractRequest(matrix_id=matrix_id, reason="a swollen battery")
        farm.write(bind_tx(apply_retraction, now=farm.clock.now(), actor="user:ann"), request)
    last = answers(farm)
    assert last.trend == [2.0] * 2
    assert last.regressions == []
    (gone,) = farm.read(list_changes, all=True)
    assert gone.change_id == regression.change_id
    assert gone.gone_at is not None
    for at, known in ((before_at, before), (after_at, after)):
        at += timedelta(microseconds=1)
        check_close(farm.read(group_speedups, GroupBy.ALL, at=at), known.groups)
        assert farm.read(list_latest_speedups, at=at, pooled=1) == known.latest
    check_close(farm.read(group_speedups, GroupBy.ALL, at=farm.clock.now()), last.groups)
