"""Two machines with an agent each, as far as one machine can show: joined by tokens, each with its phones."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agents.virtual.pool import VirtualDeviceHandle
from farm.core.runs.measurement import Outcome
from farm.database.tables import attempts, events
from farm.wire.documents.devices import DeviceView
from tests.support.fakes import matrix_spec, stand_in_model, steady_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    Process,
    eventually,
    running_agent,
    running_farm,
    running_phones,
)
from tests.support.invariants.invariants import check_invariants

pytestmark = pytest.mark.long

FARM = [sys.executable, "-m", "farm.cli.shell.main"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A farm that agents of other machines reach at a listener of their own, and two such agents."""

    farm: FarmProcess
    #: One phone on each host.
    one: VirtualDeviceHandle
    two: VirtualDeviceHandle
    folder: Path

    def device(self, phone: VirtualDeviceHandle) -> DeviceView:
        with self.farm.client() as client:
            return next(each for each in client.devices() if each.device_id == phone.serial)

    def outcomes(self) -> Counter[str | None]:
        """How the jobs of a new matrix on all phones ended."""
        matrix_id = self.farm.submit(matrix_spec(rounds=1))
        self.farm.await_matrix(matrix_id, within_s=120)
        with self.farm.client() as client:
            return Counter(job.outcome for job in client.jobs(matrix_id))

    def attempts(self, phone: VirtualDeviceHandle) -> Sequence[sa.Row[Any]]:
        """Every attempt there was on a phone, with what came of it."""
        wanted = sa.select(attempts).where(attempts.c.device_id == phone.serial)
        return self.query(wanted.order_by(attempts.c.attempt_id))

    def query(self, wanted: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with self.farm.database.engine.connect() as connection:
            return connection.execute(wanted).all()

    def agent(self, host: str, phones: Sequence[VirtualDeviceHandle]) -> "JoinedAgent":
        return JoinedAgent(self.folder / host, phones)


class JoinedAgent(AgentProcess):
    """An agent that runs by `farm agent run` with what joining kept; its environment names its phones."""

    def __init__(self, folder: Path, phones: Sequence[VirtualDeviceHandle]) -> None:
        addresses = ",".join(phone.address for phone in phones)
        environment = {"FARM_AGENT_ADB_CONNECT": addresses, "FARM_AGENT_ADB_USB": "0"}
        command = [*FARM, "agent", "run", "--data-dir", str(folder)]
        Process.__init__(self, command, folder.with_suffix(".log"), environment)
        self.folder = folder


def join(farm: FarmProcess, agents_url: str, folder: Path, host: str) -> None:
    """What two operators type, one on either machine."""
    token = typed("token", "create", "--auto-admit", url=farm.url)
    typed("agent", "join", agents_url, "--host", host, "--data-dir", str(folder), stdin=token)


def typed(*words: str, url: str = "", stdin: str = "") -> str:
    """What a `farm` command prints."""
    environment = {**os.environ, "FARM_URL": url}
    command = [*FARM, *words]
    done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running_lab(folder: Path) -> Iterator[Lab]:
    up = [*FARM, "up", "--no-agent", "--agents-on", "127.0.0.1:0"]
    with (
        running_farm(FarmProcess(folder / "farm", command=up)) as farm,
        running_phones(2, folder / "phones") as (one, two),
    ):
        farm.register_program(steady_program(0.05))
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        with farm.client() as client:
            agents_url = client.farm().agents_url
        assert agents_url is not None
        for host in ("host-a", "host-b"):
            join(farm, agents_url, folder / host, host)
        yield Lab(farm=farm, one=one, two=two, folder=folder)
        check_invariants(farm.database_path)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with running_lab(tmp_path) as lab:
        yield lab


@pytest.mark.invariant("I8", "I21")
@pytest.mark.fault(22)
def test_two_hosts_share_a_matrix_and_a_phone_that_moves_works_on_at_the_other(lab: Lab) -> None:
    with running_agent(lab.agent("host-a", [lab.one])), running_agent(lab.agent("host-b", [lab.two])):
        lab.farm.await_phones([lab.one, lab.two])
        assert (lab.device(lab.one).host, lab.device(lab.two).host) == ("host-a", "host-b")
        assert lab.outcomes() == {Outcome.SUCCEEDED: 4}
        before = lab.attempts(lab.one)

    left = leave_something_behind(lab.one, before[-1].fence)
    # Somebody carries the phone over: the first host has it no more, the second one does.
    with running_agent(lab.agent("host-a", [])), running_agent(lab.agent("host-b", [lab.two, lab.one])):
        eventually(lambda: is_ready(lab.device(lab.one), "host-b"), "the phone works at its new host")
        assert not left.exists()
        assert lab.outcomes() == {Outcome.SUCCEEDED: 4}

    after = lab.attempts(lab.one)
    assert after[: len(before)] == before
    assert {attempt.host_id for attempt in before} == {"host-a"}
    assert {attempt.host_id for attempt in after[len(before) :]} == {"host-b"}
    moves = lab.query(sa.select(events.c.subject_id).where(events.c.kind == "device_moved"))
    assert [row.subject_id for row in moves] == [lab.one.serial]
    with lab.farm.client() as client:
        assert len(client.devices()) == 2


def leave_something_behind(phone: VirtualDeviceHandle, fence: int) -> Path:
    """A run's folder that the old host never came to remove."""
    run = phone.state / "data" / "local" / "tmp" / "benchfarm" / "runs" / str(fence)
    # It may be there already: a job is settled before its phone is clean, and the agent was stopped.
    run.mkdir(exist_ok=True)
    (run / "output").write_text("of another host")
    return run


def is_ready(device: DeviceView, host: str) -> bool:
    return (device.host, device.presence, device.health) == (host, "online", "good")
