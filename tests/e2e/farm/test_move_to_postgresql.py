"""A farm is backed up at work, killed, and goes on on PostgreSQL; the agent on its host notices a pause."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.outbox.spool import Spool
from farm.core.base.ids import MatrixId
from tests.support.database.postgres import PostgresServer
from tests.support.fakes import matrix_spec, stand_in_model, steady_program
from tests.support.farm.processes import (
    CHECKOUT,
    AgentProcess,
    FarmProcess,
    eventually,
    running_agent,
    running_farm,
    running_phones,
)
from tests.support.invariants.invariants import check_engine


def admin(*words: str, environment: Mapping[str, str] | None = None) -> Any:
    """What a command of `farm admin` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "farm.cli.shell.main", "admin", *words, "--json"],
        cwd=CHECKOUT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def gated_program(gate: Path, *, from_run: int) -> bytes:
    """A quick one, whose later runs wait for a file."""
    wait = f'[ "$BENCHFARM_RUN" -lt {from_run} ] || until [ -e {gate} ]; do sleep 0.05; done'
    return steady_program(0.1).replace(b"sleep 0.1\n", f"sleep 0.1\n{wait}\n".encode())


def is_at_gate(farm: FarmProcess, from_run: int) -> bool:
    """Whether a run is under way that waits."""
    query = f"SELECT count(*) FROM attempts WHERE state = 'measuring' AND fence >= {from_run}"
    return bool(farm.database.read(lambda connection: connection.exec_driver_sql(query).scalar_one()))


def finished(farm: FarmProcess, matrix_id: MatrixId) -> int:
    with farm.client() as client:
        return client.matrix(matrix_id).jobs_by_outcome.get("succeeded", 0)


@pytest.mark.invariant("I3", "I4", "I7", "I9", "I12", "I17")
@pytest.mark.fault(44)
def test_a_matrix_that_was_begun_on_sqlite_ends_on_postgresql_after_a_backup_and_a_restore(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    farm = FarmProcess(tmp_path / "farm")
    with running_farm(farm), running_phones(2, tmp_path / "phones") as phones:
        agent = AgentProcess(farm, tmp_path / "agent", phones, host="bench-1")
        with running_agent(agent), postgres.database() as name:
            farm.await_phones(phones)
            for precision in ("float32", "int8-core"):
                farm.register_model(*stand_in_model(precision))
            gate = tmp_path / "gate"
            farm.register_program(gated_program(gate, from_run=4))
            matrix_id = farm.submit(matrix_spec(rounds=4))
            eventually(lambda: is_at_gate(farm, from_run=4), "a run waits")
            backup = admin("backup", str(tmp_path / "backups"), "--data", str(farm.folder))
            then = finished(farm, matrix_id)
            gate.touch()
            # The end of that run, and more that the database will forget.
            eventually(lambda: finished(farm, matrix_id) >= then + 4, "some more are done")
            farm.kill()

            moved = FarmProcess(tmp_path / "moved", database_url=postgres.url(name))
            admin(
                *("restore", backup["folder"], "--yes", "--data", str(moved.folder)),
                environment={"FARM_DATABASE_URL": postgres.url(name)},
            )
            moved.port = farm.port
            try:
                moved.start()
                view = moved.await_matrix(matrix_id, within_s=120)
                check_engine(moved.database.engine)
            finally:
                moved.stop()
                moved.database.close()
            assert view.jobs_by_outcome == {"succeeded": 16}
            log = agent.log.read_text()
            assert "database_restored" in log
            # What the farm never heard of is refused, and kept for a person to look at.
            refused = {path.stem for path in (agent.spool / "refused").glob("*.json")}
            assert len(refused) >= 2
            assert all(f"there is no attempt {attempt_id}" in log for attempt_id in refused)
            assert Spool(agent.spool).pending() == []
