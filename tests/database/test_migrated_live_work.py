"""Work under way in a database of schema 0003 goes on after it is migrated, and ends."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command

from farm.core.base.ids import MatrixId
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.verdict import Verdict
from farm.database.migrate import config_for, tables_may_be_replaced, upgrade
from farm.database.schema_state import schema_state
from farm.services.matrices.cancel import cancel_matrix
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import FarmRig, HostRig, checked_rig, good_evidence, phase

OLD = "0003"
#: What plans of that schema's release said; they had no controls, passes or further gates.
PLAN = {
    "harness",
    "backend",
    "settings",
    "files",
    "argv",
    "env",
    "timeout_s",
    "gates",
    "output_limit_bytes",
}
GATES = {"max_thermal_status", "max_skin_c", "min_battery_pct", "min_storage_bytes", "wait_s"}


@pytest.fixture
def farm(any_database_url: str, tmp_path: Path) -> Iterator[FarmRig]:
    with checked_rig(tmp_path, any_database_url) as rig:
        yield rig


def taken_back(farm: FarmRig) -> None:
    """Bring the database, live work and all, to the schema and the plans that the older release had."""
    with (
        farm.database.engine.connect().execution_options(farm_writes=True) as connection,
        tables_may_be_replaced(connection),
        connection.begin(),
    ):
        command.downgrade(config_for(connection), OLD)
        for attempt_id, plan in connection.execute(sa.text("SELECT attempt_id, plan FROM attempts")).all():
            old = _old_plan(json.loads(plan) if isinstance(plan, str) else plan)
            connection.execute(
                sa.text("UPDATE attempts SET plan = :plan WHERE attempt_id = :id"),
                {"plan": json.dumps(old), "id": attempt_id},
            )
        assert schema_state(connection).revision == OLD


def _old_plan(plan: dict[str, object]) -> dict[str, object]:
    gates = plan["gates"]
    assert isinstance(gates, dict)
    kept = {name: value for name, value in plan.items() if name in PLAN}
    return {**kept, "gates": {name: value for name, value in gates.items() if name in GATES}}


def migrated(farm: FarmRig) -> None:
    taken_back(farm)
    upgrade(farm.database.engine)
    assert farm.read(schema_state).is_newest


def states(farm: FarmRig, table: str) -> dict[str, int]:
    rows = farm.rows(f"SELECT state, count(*) AS n FROM {table} GROUP BY state")
    return {row["state"]: row["n"] for row in rows}


def work_of_every_state(farm: FarmRig) -> tuple[HostRig, MatrixId, list[Assignment]]:
    """Queued jobs, and three attempts: one is reported, one is measuring, one is prepared."""
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    for device in ("phone-1", "phone-2", "phone-3"):
        host.plug_in(device)
    host.earn_health()
    matrix_id = farm.submit()
    reported, measuring, preparing = host.exchange().assignments
    host.report(reported.attempt_id, good_evidence(reported))
    host.exchange([phase(measuring, AttemptState.MEASURING), phase(preparing, AttemptState.PREPARING)])
    return host, matrix_id, [reported, measuring, preparing]


@pytest.mark.invariant("I4", "I6", "I12", "I13")
def test_work_of_every_state_goes_on_after_the_migration_and_ends(farm: FarmRig) -> None:
    host, matrix_id, (reported, measuring, preparing) = work_of_every_state(farm)
    before = states(farm, "jobs"), states(farm, "attempts")
    assert {"queued", "active", "finished"} <= before[0].keys()
    assert {"measuring", "preparing", "finished"} <= before[1].keys()
    migrated(farm)
    assert (states(farm, "jobs"), states(farm, "attempts")) == before
    # The report of before the migration is still the same one.
    assert host.report(reported.attempt_id, good_evidence(reported)).counted
    said = [phase(measuring, AttemptState.MEASURING), phase(preparing, AttemptState.PREPARING)]
    orders = {order.attempt_id: order.do for order in host.restart(said).orders}
    assert orders[measuring.attempt_id] == "continue"
    assert host.report(measuring.attempt_id, good_evidence(measuring)).counted
    for assignment in (reported, measuring, preparing):
        host.clean(assignment)
    host.run()
    assert states(farm, "jobs").keys() == {"finished"}
    assert states(farm, "attempts").keys() <= {"finished", "given_back"}
    view = farm.matrix(matrix_id)
    assert view.jobs_by_outcome == {"succeeded": view.jobs}
    assert {row.rounds for row in farm.speedups(matrix_id)} == {5}
    assert {row.verdict for row in farm.speedups(matrix_id)} == {Verdict.SAME}


@pytest.mark.invariant("I2", "I7")
def test_a_session_of_before_the_migration_goes_on(farm: FarmRig) -> None:
    host, _, (_, measuring, _) = work_of_every_state(farm)
    migrated(farm)
    listed = host.exchange([phase(measuring, AttemptState.MEASURING)]).assignments
    assert measuring.attempt_id in {each.attempt_id for each in listed}
    assert host.report(measuring.attempt_id, good_evidence(measuring)).counted


def test_a_matrix_of_then_can_be_cancelled_now(farm: FarmRig) -> None:
    _, matrix_id, _ = work_of_every_state(farm)
    migrated(farm)
    farm.write(cancel_matrix, matrix_id, now=farm.clock.now(), actor="user:ann")
    assert "queued" not in states(farm, "jobs")
