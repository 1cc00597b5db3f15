"""Two hosts with two devices each: a pulled cable, a full disk and a killed agent lose nothing."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from farm.core.devices.device import Presence
from farm.database.tables import incidents, measurements
from tests.chaos.checks.checker import alive, reckon
from tests.chaos.checks.oracle import Start, starts, witness_program
from tests.chaos.testbed.testbed import Arena, set_arena
from tests.support.fakes import matrix_spec
from tests.support.farm.processes import eventually
from tests.support.faults.disk_faults import small_disk

PHONES, ROUNDS = 4, 3
#: Of the devices: 0 and 2 are at the first host, 1 and 3 at the second.
UNPLUGGED = 0


def run_of(arena: Arena, phone: int, *, after: int = 0) -> Start:
    """The run that is alive on a device, once it has begun more than so many."""
    state = arena.phones[phone].state

    def find() -> Start | None:
        begun = starts(state)
        return begun[-1] if len(begun) > after and list(alive(state)) else None

    return eventually(find, f"a run is alive on device {phone}", within_s=120)


def presence(arena: Arena, phone: int) -> Presence:
    with arena.farms[0].client() as client:
        return client.device(arena.phones[phone].serial).presence


def open_causes(arena: Arena) -> list[str]:
    wanted = sa.select(incidents.c.cause).where(
        incidents.c.kind == "pressure", incidents.c.ended_at.is_(None)
    )
    with arena.farms[0].database.engine.connect() as connection:
        return list(connection.execute(wanted).scalars())


@pytest.mark.long
@pytest.mark.invariant("I4", "I5", "I8", "I12")
@pytest.mark.fault(3, 24, 29)
@pytest.mark.timeout(900)
def test_a_cable_a_full_disk_and_a_killed_agent_cost_a_matrix_on_two_hosts_nothing(
    tmp_path: Path, short_path: Path
) -> None:
    with (
        small_disk(short_path / "disk", 32) as disk,
        set_arena(tmp_path, phones=PHONES, agent_folders={1: disk.folder / "agent"}) as arena,
    ):
        farm, (cable_agent, disk_agent) = arena.farms[0], arena.agents
        farm.register_program(witness_program(run_s=2.0, nonce=1))
        matrix_id = farm.submit(matrix_spec(rounds=ROUNDS))

        run_of(arena, UNPLUGGED)
        arena.pull_out(UNPLUGGED)
        eventually(lambda: presence(arena, UNPLUGGED) is not Presence.ONLINE, "its cable is missed")

        run_of(arena, 1)
        disk.fill()
        for path in (disk_agent.spool / "reserve", *(disk_agent.spool / "acknowledged").glob("*.json")):
            path.unlink(missing_ok=True)
        disk.fill()
        eventually(lambda: str(disk_agent.spool) in "".join(open_causes(arena)), "the disk is told of")

        arena.plug_in(UNPLUGGED)
        eventually(lambda: presence(arena, UNPLUGGED) is Presence.ONLINE, "it is back", within_s=120)
        run_of(arena, 2)
        cable_agent.kill()
        cable_agent.spawn()

        disk_agent.check_alive()
        disk.free()
        view = farm.await_matrix(matrix_id, within_s=600)
        for agent in arena.agents:
            eventually(lambda spool=agent.spool: not list(spool.glob("*.json")), "every report is sent")
        for phone in arena.phones:
            eventually(lambda state=phone.state: not list(alive(state)), "every run has ended")
        reckon(arena)
        # A run whose cable was out may be repeated, with the other ones of its block.
        assert view.jobs_by_outcome.keys() == {"succeeded"}
        assert view.jobs_by_outcome["succeeded"] >= PHONES * 2 * ROUNDS
        accepted = sa.select(sa.func.count()).where(measurements.c.accepted)
        with farm.database.engine.connect() as connection:
            assert connection.execute(accepted).scalar_one() == view.jobs_by_outcome["succeeded"]
        assert open_causes(arena) == []
