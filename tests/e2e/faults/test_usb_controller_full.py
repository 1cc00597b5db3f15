"""A host whose kernel says that a USB controller takes no further phone: told of, while all others go on."""

from pathlib import Path

import pytest

from farm.core.base.ids import MatrixId
from farm.core.checks.failures import HostIncident
from tests.support.fakes import matrix_spec, stand_in_model, steady_program
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

LINE = (
    "usb 1-4.2: can't set config #1, error -28\nxhci_hcd 0000:00:14.0: Error while assigning device slot ID\n"
)
LASTS_S = 8.0


class ListeningAgent(AgentProcess):
    """An agent that takes a plain file for its host's kernel log."""

    def __init__(self, farm: FarmProcess, folder: Path, *, log: Path, **given: object) -> None:
        super().__init__(farm, folder, **given)  # type: ignore[arg-type]
        self._environment |= {"FARM_AGENT_KERNEL_LOG": str(log), "FARM_AGENT_USB_FULL_S": str(LASTS_S)}


def incidents(farm: FarmProcess, *, past: bool = False) -> list[HostIncident]:
    with farm.client() as client:
        host = client.host("bench-1")
    return list(host.past_incidents if past else host.incidents)


def refuse_a_device(log: Path) -> None:
    with log.open("a") as file:
        file.write(LINE)


@pytest.mark.invariant("I13", "I15")
@pytest.mark.fault(20)
def test_a_full_usb_controller_is_told_of_by_name_while_runs_go_on_and_begin(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    log.write_text("xhci_hcd 0000:00:15.0: Error while assigning device slot ID\n")
    with (
        running_farm(FarmProcess(tmp_path / "farm")) as farm,
        running_phones(2, tmp_path / "phones", shared_cpu=False) as phones,
    ):
        farm.register_program(steady_program(0.5))
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        agent = ListeningAgent(farm, tmp_path / "agent", log=log, phones=phones, host="bench-1")
        with running_agent(agent):
            farm.await_phones(phones)
            matrix_id = farm.submit(matrix_spec(rounds=2))
            with farm.client() as client:
                eventually(lambda: client.device(phones[0].serial).job_id, "a run is under way")
            refuse_a_device(log)
            (incident,) = eventually(lambda: incidents(farm), "the farm is told")
            assert (incident.kind, incident.devices) == ("usb_full", ())
            assert "0000:00:14.0" in incident.cause
            # Of what was logged before the agent began, nobody knows when that was.
            assert "0000:00:15.0" not in incident.cause

            def is_done(matrix: MatrixId) -> bool:
                refuse_a_device(log)
                with farm.client() as client:
                    return client.matrix(matrix).finished_at is not None

            eventually(lambda: is_done(matrix_id), "what was queued is done", within_s=120, every_s=0.5)
            later = farm.submit(matrix_spec(rounds=1))
            eventually(lambda: is_done(later), "what came later is done", within_s=120, every_s=0.5)
            assert [each.incident_id for each in incidents(farm)] == [incident.incident_id]
            eventually(lambda: not incidents(farm), "it is over", within_s=120, every_s=0.2)
            assert [each.kind for each in incidents(farm, past=True)] == ["usb_full"]
            with farm.client() as client:
                jobs = [*client.jobs(matrix_id), *client.jobs(later)]
                assert {job.outcome for job in jobs} == {"succeeded"}
                assert {device.health for device in client.devices()} == {"good"}
        check_invariants(farm.database_path)
