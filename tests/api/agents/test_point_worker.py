"""The worker computes the points of what was measured, and a session that fails delays no other."""

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.api.agents.point_worker import compute_points
from farm.services.results.history.session_points import QUIET_S
from farm.store.results.history.stale_points import has_unmarked, pending_sessions
from tests.support.farm.points import all_points
from tests.support.farm.service_fixture import FarmRig, HostRig

pytestmark = pytest.mark.anyio


async def test_points_are_there_once_a_session_rests(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=5)
    host.run()
    await compute_points(farm.database, farm.clock)
    assert not farm.read(has_unmarked)
    assert all_points(farm) == []
    farm.clock.advance(QUIET_S)
    await compute_points(farm.database, farm.clock)
    assert farm.read(pending_sessions) == []
    assert [point.values.rounds for point in all_points(farm)] == [5, 5]


async def test_a_session_that_cannot_be_computed_delays_no_other(farm: FarmRig, host: HostRig) -> None:
    for _ in range(2):
        farm.submit(devices={"device_id": "phone-1"}, rounds=1)
        host.run()
    await compute_points(farm.database, farm.clock)
    farm.clock.advance(QUIET_S)

    def damage(connection: Connection) -> None:
        connection.execute(sa.text("UPDATE matrices SET spec = '{}' WHERE matrix_id = 2"))

    farm.write(damage)
    await compute_points(farm.database, farm.clock)
    assert {point.matrix_id for point in all_points(farm)} == {1}
    assert [session.matrix_id for session in farm.read(pending_sessions)] == [2]
