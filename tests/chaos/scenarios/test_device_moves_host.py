"""A phone is carried to another host in the middle of a run, while its own host is not to be heard."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agents.virtual.pool import VirtualDeviceHandle
from agents.virtual.processes import JOURNAL_FILE, open_runs
from farm.database.tables import attempts, events, jobs
from tests.chaos.network.cable import Wire
from tests.chaos.testbed.event_loop_thread import looping
from tests.support.fakes import STARTS, matrix_spec, stand_in_model, waiting_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    eventually,
    running_agent,
    running_farm,
    running_phones,
)
from tests.support.faults.port_faults import held_port
from tests.support.invariants.invariants import check_invariants

pytestmark = pytest.mark.long

HASTE = {"FARM_REAP_EVERY_S": "0.5", "FARM_SILENT_AFTER_S": "5"}


@contextmanager
def plugged_in(phone: VirtualDeviceHandle) -> Iterator[tuple[VirtualDeviceHandle, Callable[[], None]]]:
    """The phone at the end of a cable, and what pulls that out."""
    with looping() as loop, held_port() as port:
        wire = Wire(port, int(phone.address.rpartition(":")[2]))
        loop.run(wire.plug_in())
        try:
            yield replace(phone, address=wire.address), lambda: loop.run(wire.pull_out())
        finally:
            loop.run(wire.pull_out())


def starts(phone: VirtualDeviceHandle) -> list[int]:
    """The fencing tokens of all runs that began on the phone."""
    path = phone.state / STARTS
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def alive(phone: VirtualDeviceHandle) -> set[int]:
    """Of which runs a process is alive there."""
    return {entry.fence for entry in open_runs(phone.state / JOURNAL_FILE).values()}


def tried(farm: FarmProcess) -> Sequence[sa.Row[Any]]:
    """All attempts of the matrix, in their order."""
    wanted = sa.select(attempts).join(jobs, jobs.c.job_id == attempts.c.job_id)
    with farm.database.engine.connect() as connection:
        return connection.execute(
            wanted.where(jobs.c.matrix_id.is_not(None)).order_by(attempts.c.attempt_id)
        ).all()


def happened(farm: FarmProcess, kind: str) -> int:
    wanted = sa.select(sa.func.count()).where(events.c.kind == kind)
    with farm.database.engine.connect() as connection:
        return int(connection.execute(wanted).scalar_one())


@pytest.mark.invariant("I3", "I4", "I8", "I21")
@pytest.mark.fault(22, 25)
@pytest.mark.timeout(300)
def test_the_run_of_a_phone_that_moved_is_ended_there_and_its_old_host_is_not_believed_any_more(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    with (
        running_farm(FarmProcess(tmp_path / "farm", environment=HASTE)) as farm,
        running_phones(1, tmp_path / "phones") as (phone,),
        plugged_in(phone) as (phone_there, unplug),
    ):
        farm.register_program(waiting_program(go))
        farm.register_model(*stand_in_model("float32"))
        old = AgentProcess(farm, tmp_path / "old", [phone_there], host="bench-1")
        new = AgentProcess(farm, tmp_path / "new", [phone], host="bench-2")
        with running_agent(old):
            farm.await_phones([phone])
            matrix_id = farm.submit(matrix_spec(rounds=1, exclude=[{"precision": "int8-core"}]))
            (first,) = eventually(lambda: starts(phone), "its run is under way")
            old.send(signal.SIGSTOP)
            unplug()
            with running_agent(new):
                eventually(lambda: tried(farm)[0].state == "lost", "the run is given up", within_s=120)
                assert (tried(farm)[0].code, tried(farm)[0].host_id) == ("host.device_moved", "bench-1")
                eventually(lambda: first not in alive(phone), "it was ended on the phone")
                _, second = eventually(
                    lambda: starts(phone)[1:] and starts(phone), "the next run", within_s=120
                )
                eventually(lambda: second in alive(phone), "the next one is under way")
                before = happened(farm, "session_live")
                old.send(signal.SIGCONT)
                eventually(lambda: happened(farm, "session_live") > before, "bench-1 is heard again")
                assert second in alive(phone)
                go.touch()
                farm.await_matrix(matrix_id, within_s=120)
                assert starts(phone) == [first, second]
                assert second > first + 1, "the token rose for the clean-up, too"
                with farm.client() as client:
                    assert client.device(phone.serial).host == "bench-2"
                    assert [job.outcome for job in client.jobs(matrix_id)] == ["succeeded"]
                ended = [(each.host_id, each.fence, each.outcome) for each in tried(farm)]
                assert ended == [("bench-1", first, "inconclusive"), ("bench-2", second, "succeeded")]
        check_invariants(farm.database_path)
