"""The disk of an agent is full, before its start and at each step of a run: it waits, tells, and goes on."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from agents.virtual.pool import VirtualDeviceHandle
from farm.core.base.ids import MatrixId
from farm.database.tables import attempts, incidents
from tests.support.fakes import STARTS, matrix_spec, stand_in_model, steady_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    eventually,
    running_agent,
    running_farm,
    running_farm_with_agent,
    running_phones,
)
from tests.support.faults.disk_faults import SmallDisk, small_disk
from tests.support.invariants.invariants import check_invariants

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MIB = 2**20
_SETTINGS = {"FARM_REAP_EVERY_S": "0.2", "FARM_AGENT_RESERVE_BYTES": str(MIB), "FARM_AGENT_ADB_USB": "0"}
_UP = (sys.executable, "-m", "farm.cli.shell.main", "up")


@pytest.fixture
def disk(short_path: Path) -> Iterator[SmallDisk]:
    with small_disk(short_path / "disk", 24) as disk:
        yield disk


@pytest.fixture
def phones(tmp_path: Path) -> Iterator[list[VirtualDeviceHandle]]:
    with running_phones(1, tmp_path / "phones") as phones:
        yield phones


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[FarmProcess]:
    with running_farm(FarmProcess(tmp_path / "farm", environment=_SETTINGS)) as farm:
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        yield farm
        check_invariants(farm.database_path)


def agent_on(disk: SmallDisk, farm: FarmProcess, phones: list[VirtualDeviceHandle]) -> AgentProcess:
    """With its data folder on the small disk; its log is elsewhere."""
    log, folder = farm.log.with_name("agent.log"), disk.folder / "agent"
    return AgentProcess(farm, folder, phones, host="bench-1", environment=_SETTINGS, log=log)


@pytest.fixture
def agent(farm: FarmProcess, disk: SmallDisk, phones: list[VirtualDeviceHandle]) -> Iterator[AgentProcess]:
    with running_agent(agent_on(disk, farm, phones)) as agent:
        yield agent


def incident_causes(farm: FarmProcess, *, is_open: bool) -> list[str]:
    """Of the host's disk."""
    ended = incidents.c.ended_at.is_(None) if is_open else sa.true()
    wanted = sa.select(incidents.c.cause).where(incidents.c.kind == "pressure", ended)
    with farm.database.engine.connect() as connection:
        return list(connection.execute(wanted).scalars())


def await_shortage(farm: FarmProcess, *texts: str) -> None:
    """Until the farm has an incident that says all of this."""
    eventually(
        lambda: [
            cause for cause in incident_causes(farm, is_open=True) if all(text in cause for text in texts)
        ],
        f"the farm knows: {texts}",
    )


def submit(farm: FarmProcess, *, run_s: float, rounds: int = 1, content: bytes = b"") -> MatrixId:
    farm.register_program(steady_program(run_s) + content)
    return farm.submit(matrix_spec(rounds=rounds, exclude=[{"precision": "int8-core"}]))


def check_ran_once(
    farm: FarmProcess, matrix_id: MatrixId, phones: list[VirtualDeviceHandle], *, jobs: int = 1
) -> None:
    """Every job succeeded, with one measurement, and no run was started twice."""
    view = farm.await_matrix(matrix_id, within_s=120)
    assert view.jobs_by_outcome == {"succeeded": jobs}
    for path in phones[0].state.glob(STARTS):
        starts = path.read_text().split()
        assert len(starts) == len(set(starts))


def attempt_count(farm: FarmProcess, outcome: str) -> int:
    query = sa.select(sa.func.count()).select_from(attempts).where(attempts.c.outcome == outcome)
    with farm.database.engine.connect() as connection:
        return int(connection.execute(query).scalar_one())


@pytest.mark.invariant("I12")
@pytest.mark.fault(29)
def test_evidence_waits_for_space_and_is_reported_once(
    farm: FarmProcess, agent: AgentProcess, phones: list[VirtualDeviceHandle], disk: SmallDisk
) -> None:
    farm.await_phones(phones)
    matrix_id = submit(farm, run_s=2.0)
    eventually(lambda: (phones[0].state / STARTS).exists(), "the run has started")
    disk.fill()
    # The reserve, and the reports that were answered, are others' now: nothing is left to give.
    for path in (agent.spool / "reserve", *(agent.spool / "acknowledged").glob("*.json")):
        path.unlink(missing_ok=True)
    disk.fill()
    await_shortage(farm, "less than 1.05 MB free", str(agent.spool))
    eventually(lambda: "evidence_not_spooled" in agent.log.read_text(), "the evidence waits")
    agent.check_alive()
    # In this state, too, a new process has to find all there is.
    agent.kill()
    agent.spawn()
    eventually(lambda: agent.log.read_text().count("evidence_not_spooled") > 1, "the evidence waits again")
    disk.free()
    check_ran_once(farm, matrix_id, phones)
    eventually(lambda: incident_causes(farm, is_open=True) == [], "the incident is over")
    assert attempt_count(farm, "succeeded") == 2, "the device's check, and the job"


@pytest.mark.invariant("I16")
@pytest.mark.fault(29)
def test_an_agent_that_starts_on_a_full_disk_tells_so_gets_no_work_and_works_when_there_is_space(
    farm: FarmProcess, agent: AgentProcess, phones: list[VirtualDeviceHandle], disk: SmallDisk
) -> None:
    farm.await_phones(phones)
    agent.kill()
    disk.fill()
    # The pid in the lock's file, a page of it, is gone, too.
    (agent.folder / "agent.lock").write_bytes(b"")
    disk.fill()
    agent.spawn()
    await_shortage(farm, "less than 1.05 MB free", str(agent.spool))
    matrix_id = submit(farm, run_s=0.05, rounds=2)
    with farm.client() as client:
        eventually(lambda: client.hosts()[0].session == "live", "it exchanges")
        assert [job.attempts for job in client.jobs(matrix_id)] == [(), ()]
    agent.check_alive()
    disk.free()
    check_ran_once(farm, matrix_id, phones, jobs=2)


@pytest.mark.fault(29)
def test_an_agent_whose_first_start_finds_a_full_disk_spends_no_token_and_joins_when_there_is_space(
    farm: FarmProcess, disk: SmallDisk, phones: list[VirtualDeviceHandle]
) -> None:
    agent = agent_on(disk, farm, phones)
    disk.fill()
    with running_agent(agent):
        said = json.loads(
            eventually(
                lambda: next(
                    (line for line in agent.log.read_text().splitlines() if "waits_for_space" in line), None
                ),
                "it waits",
            )
        )
        assert said["folder"] == str(agent.folder)
        assert "65.5 kB" in said["reason"]
        agent.check_alive()
        with farm.client() as client:
            assert client.hosts() == []
        disk.free()
        farm.await_phones(phones)


@pytest.mark.fault(29)
def test_a_file_that_does_not_fit_keeps_its_job_queued_until_it_does(
    farm: FarmProcess, agent: AgentProcess, phones: list[VirtualDeviceHandle], disk: SmallDisk
) -> None:
    farm.await_phones(phones)
    disk.fill(leave_bytes=4 * MIB)
    matrix_id = submit(farm, run_s=0.05, content=b"\n# " + b"x" * (8 * MIB))
    await_shortage(farm, "no space for a file of 8.39 MB", str(agent.folder / "cache"))
    agent.check_alive()
    assert sum(path.stat().st_size for path in (agent.folder / "cache").iterdir()) < MIB, "no part is left"
    disk.free()
    check_ran_once(farm, matrix_id, phones)


@pytest.mark.fault(29)
def test_a_farm_whose_embedded_agent_has_a_full_disk_starts_and_tells_so(
    tmp_path: Path, disk: SmallDisk, phones: list[VirtualDeviceHandle]
) -> None:
    environment = {**_SETTINGS, "FARM_AGENT_ADB_CONNECT": phones[0].address}
    farm = FarmProcess(tmp_path / "farm", command=_UP, environment=environment)
    farm.folder.mkdir(exist_ok=True)
    # SQLite follows a path into the namespace in its own way; the agent's folder alone is there.
    (disk.folder / "agent").mkdir()
    (farm.folder / "agent").symlink_to(disk.folder / "agent")
    disk.fill()
    with running_farm_with_agent(farm):
        eventually(lambda: "embedded_agent_waits" in farm.log.read_text(), "its agent waits")
        farm.check_alive()
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        disk.free()
        farm.await_phones(phones)
        farm.stop()
        disk.fill()
        (farm.folder / "agent" / "spool" / "reserve").unlink()
        disk.fill()
        farm.start()
        await_shortage(farm, "less than 1.05 MB free", str(farm.folder / "agent" / "spool"))
        matrix_id = submit(farm, run_s=0.05, rounds=2)
        disk.free()
        check_ran_once(farm, matrix_id, phones, jobs=2)
        farm.check_alive()
        check_invariants(farm.database_path)
