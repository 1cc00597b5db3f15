"""Two phones with one serial number: refused and told of, until their operator names them by their places."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.virtual.pool import VirtualDeviceHandle
from tests.support.fakes import STARTS, matrix_spec, stand_in_model, steady_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    eventually,
    running_agent,
    running_farm,
    running_phones,
)
from tests.support.invariants.invariants import check_invariants

pytestmark = pytest.mark.long


class NamingAgent(AgentProcess):
    """An agent whose phones have names by their places from some life on."""

    def name(self, names: str) -> None:
        self._environment["FARM_AGENT_DEVICE_NAMES"] = names


@pytest.fixture
def duplicates(tmp_path: Path) -> Iterator[list[VirtualDeviceHandle]]:
    """Phones that both say they are the same one."""
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
        (folder / "suffix").write_text("same")
    with running_phones(1, folders[0]) as one, running_phones(1, folders[1]) as two:
        yield [*one, *two]


@pytest.mark.invariant("I21")
@pytest.mark.fault(21)
def test_phones_of_one_serial_number_get_no_work_and_an_alarm_until_their_places_have_names(
    tmp_path: Path, duplicates: list[VirtualDeviceHandle]
) -> None:
    one, two = duplicates
    assert one.serial == two.serial
    with running_farm(FarmProcess(tmp_path / "farm", environment={"FARM_REAP_EVERY_S": "0.5"})) as farm:
        farm.register_program(steady_program(0.05))
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        agent = NamingAgent(farm, tmp_path / "agent", duplicates, host="bench-1")
        with running_agent(agent), farm.client() as client:
            # A round is made once a minute, and one may just have been.
            alarms = eventually(lambda: client.alarms(), "somebody is called", within_s=120)
            assert [(alarm.kind, alarm.subject_id) for alarm in alarms] == [("identity_clash", one.serial)]
            assert "FARM_AGENT_DEVICE_NAMES" in alarms[0].hint
            (refused,) = client.devices()
            assert refused.presence == "offline"
            assert {one.address, two.address} <= set((refused.detail or "").replace(",", "").split())
            agent.stop()
            agent.name(f"{one.address}=left,{two.address}=right")
            agent.spawn()
            eventually(lambda: good(farm) == {"left", "right"}, "both pass their checks", within_s=120)
            matrix_id = farm.submit(matrix_spec(rounds=1, devices={"device_id": ["left", "right"]}))
            farm.await_matrix(matrix_id, within_s=120)
            outcomes = Counter((job.device_id, job.outcome) for job in client.jobs(matrix_id))
            assert outcomes == {("left", "succeeded"): 2, ("right", "succeeded"): 2}
        assert [len((phone.state / STARTS).read_text().split()) for phone in duplicates] == [2, 2]
        check_invariants(farm.database_path)


def good(farm: FarmProcess) -> set[str]:
    with farm.client() as client:
        return {str(device.device_id) for device in client.devices() if device.health == "good"}
