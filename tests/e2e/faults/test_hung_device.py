"""A farm with an agent and scripted phones of which one hangs during a run: the others finish their work."""

from collections import Counter
from pathlib import Path

import pytest

from agents.virtual.faults import Faults, set_faults
from farm.core.base.ids import MatrixId
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

PHONES = 8
ROUNDS = 2


def done_by_phone(farm: FarmProcess, matrix_id: MatrixId) -> Counter[str]:
    with farm.client() as client:
        return Counter(job.device_id for job in client.jobs(matrix_id) if job.outcome == "succeeded")


@pytest.mark.invariant("I13")
@pytest.mark.fault(7)
def test_the_phones_beside_one_that_hangs_finish_all_their_jobs(tmp_path: Path) -> None:
    with (
        running_farm(FarmProcess(tmp_path / "farm")) as farm,
        running_phones(PHONES, tmp_path / "phones", shared_cpu=False) as phones,
    ):
        farm.register_program(steady_program(0.5))
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        with running_agent(AgentProcess(farm, tmp_path / "agent", phones, host="bench-1")):
            farm.await_phones(phones)
            matrix_id = farm.submit(matrix_spec(rounds=ROUNDS))
            hung, others = phones[0], [phone.serial for phone in phones[1:]]
            with farm.client() as client:
                eventually(lambda: client.device(hung.serial).job_id, "it is at a job")
            set_faults(hung.state, Faults(hang=True))
            wanted = Counter(dict.fromkeys(others, 2 * ROUNDS))

            def others_are_done() -> bool:
                return all(done_by_phone(farm, matrix_id)[name] == wanted[name] for name in others)

            eventually(others_are_done, "the others have finished all jobs", within_s=120, every_s=0.2)
            assert done_by_phone(farm, matrix_id)[hung.serial] < 2 * ROUNDS
            set_faults(hung.state, Faults())
            farm.await_matrix(matrix_id, within_s=120)
            assert done_by_phone(farm, matrix_id)[hung.serial] == 2 * ROUNDS
        check_invariants(farm.database_path)
