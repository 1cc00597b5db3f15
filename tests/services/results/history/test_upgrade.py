"""A farm of an earlier release, filled and at work, is upgraded: its history is there, and work goes on."""

import pytest
import sqlalchemy as sa
from alembic import command

from farm.database.migrate import config_for, defer_foreign_keys, upgrade
from farm.services.results.history.group_speedups import group_speedups
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.history.trends import list_histories
from farm.services.results.speedups.listing import list_speedups
from farm.wire.documents.results.history import GroupBy
from tests.services.results.history.test_latest_speedups import ONE_PHONE, Unsteady, measured
from tests.support.farm.points import all_points, compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig

#: The schema before points, small blocks, retraction and changes.
BEFORE_HISTORY = "0102"


def put_back(farm: FarmRig) -> None:
    """Give a farm's database the schema of an earlier release, with its rows."""
    engine = farm.database.engine
    with (
        engine.connect().execution_options(farm_writes=True) as connection,
        defer_foreign_keys(connection),
        connection.begin(),
    ):
        command.downgrade(config_for(connection), BEFORE_HISTORY)
    engine.dispose()
    with engine.connect() as connection:
        assert not sa.inspect(connection).has_table("points")


@pytest.mark.long
def test_a_filled_database_of_an_earlier_release_is_upgraded_and_its_work_goes_on(
    farm: FarmRig, host: HostRig
) -> None:
    old = [measured(farm, host, rounds=5), measured(farm, host, rounds=6, slower=1.5)]
    ongoing = farm.submit(devices=ONE_PHONE, rounds=5)
    run = Unsteady(farm, slower=1.5)
    for _ in range(4):
        (assignment,) = host.exchange().assignments
        farm.clock.advance(1)
        host.report(assignment.attempt_id, run(assignment))
        host.clean(assignment)
    compute_points(farm)
    answers = [farm.read(list_speedups, matrix_id) for matrix_id in old]
    newest, trends = farm.read(list_latest_speedups), farm.read(list_histories)
    groups, points = farm.read(group_speedups, GroupBy.ALL), all_points(farm)
    assert len(points) == 6

    put_back(farm)
    upgrade(farm.database.engine)

    # Before points are computed again, and after.
    for compute in (lambda: 0, lambda: compute_points(farm)):
        compute()
        assert [farm.read(list_speedups, matrix_id) for matrix_id in old] == answers
        assert farm.read(list_latest_speedups) == newest
        assert farm.read(list_histories) == trends
        assert farm.read(group_speedups, GroupBy.ALL) == groups
    assert all_points(farm) == points
    assert farm.rows("SELECT * FROM changes") == []

    host.run(run)
    (view,) = farm.read(list_speedups, ongoing)
    assert view.rounds == 5
    compute_points(farm)
    (trend,) = [view for view in farm.read(list_histories) if view.baseline is not None]
    assert [point.matrix_id for point in trend.points] == [*old, ongoing]
    assert trend.points[-1].speedup == pytest.approx(view.speedup)
