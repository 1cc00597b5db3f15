"""The agent or its adb server is killed while a phone measures: the run goes on, and its result counts."""

import os
import signal
from pathlib import Path

import pytest

from farm.core.base.ids import MatrixId
from tests.chaos.scenarios.scenario import Stage, is_alive
from tests.support.farm.processes import runs_of

pytestmark = pytest.mark.long


@pytest.fixture
def matrix_id(stage: Stage) -> MatrixId:
    """A matrix of one run, long enough for an agent to die and live again within it."""
    devices = {"device_id": stage.phones[0].serial}
    return stage.submit(run_s=2.0, rounds=1, devices=devices, exclude=[{"precision": "int8-core"}])


@pytest.fixture
def run(stage: Stage, matrix_id: MatrixId) -> Path:
    """The folder of its run, which has begun."""
    return stage.await_run()


@pytest.mark.invariant("I4", "I8")
@pytest.mark.fault(24)
def test_a_run_whose_agent_is_killed_goes_on_and_is_adopted_by_the_next_one(
    stage: Stage, matrix_id: MatrixId, run: Path
) -> None:
    stage.agent.kill()
    stage.agent.spawn()
    assert is_alive(run)
    assert _evidence_of_only_attempt(stage, matrix_id)["adopted"] is True
    _check_run_once(stage, fence=int(run.name))


@pytest.mark.invariant("I4", "I12")
@pytest.mark.fault(24)
def test_a_run_that_ends_while_there_is_no_agent_counts_when_there_is_one_again(
    stage: Stage, matrix_id: MatrixId, run: Path
) -> None:
    stage.agent.kill()
    stage.await_end(run)
    stage.agent.spawn()
    assert _evidence_of_only_attempt(stage, matrix_id)["adopted"] is True
    _check_run_once(stage, fence=int(run.name))


@pytest.mark.invariant("I8")
@pytest.mark.fault(16)
def test_a_run_outlives_the_adb_server(stage: Stage, matrix_id: MatrixId, run: Path) -> None:
    os.kill(stage.agent.adb_server_pid(), signal.SIGKILL)
    assert is_alive(run)
    assert _evidence_of_only_attempt(stage, matrix_id)["adopted"] is False
    _check_run_once(stage, fence=int(run.name))


def _evidence_of_only_attempt(stage: Stage, matrix_id: MatrixId) -> dict[str, object]:
    """What the matrix's one job was settled by, when it is."""
    stage.farm.await_matrix(matrix_id, within_s=120)
    stage.ledger().check_jobs_succeeded(matrix_id, 1)
    stage.check_ledger()
    with stage.farm.client() as client:
        (job,) = client.jobs(matrix_id)
        (attempt_id,) = job.attempts
        evidence = client.attempt(attempt_id).evidence
    assert evidence is not None
    return evidence


def _check_run_once(stage: Stage, *, fence: int) -> None:
    (span,) = [span for span in runs_of(stage.phones[:1]) if span.fence == fence]
    # It sleeps for two seconds; a look at it may be late where the machine is busy.
    assert span.last_seen_ns - span.first_seen_ns > 1e9
    stage.check_phones()
