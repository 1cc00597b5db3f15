"""A hub drops all its phones in their runs, and they stay away for long: the host is in trouble."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.database.tables import attempts, events, incidents
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

PHONES = 3


def rows(farm: FarmProcess, wanted: sa.Select[tuple[object, ...]]) -> list[tuple[object, ...]]:
    with farm.database.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(wanted)]


def has_begun(phone: VirtualDeviceHandle) -> bool:
    return (phone.state / STARTS).exists()


@pytest.mark.invariant("I15")
@pytest.mark.fault(2, 19)
@pytest.mark.timeout(600)
def test_phones_that_vanish_together_in_their_runs_are_one_incident_and_none_of_them_is_blamed(
    tmp_path: Path,
) -> None:
    with (
        running_farm(FarmProcess(tmp_path / "farm", environment={"FARM_REAP_EVERY_S": "0.5"})) as farm,
        running_phones(PHONES, tmp_path / "phones", shared_cpu=False) as phones,
    ):
        # A run that ends while its phone is away is collected later: these do not end by themselves.
        farm.register_program(steady_program(600))
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        with running_agent(AgentProcess(farm, tmp_path / "agent", phones, host="bench-1")):
            farm.await_phones(phones)
            farm.submit(matrix_spec(rounds=1))
            eventually(lambda: all(map(has_begun, phones)), "a run is under way on each phone")
            for phone in phones:
                set_faults(phone.state, Faults(vanish=True))
            names = sorted(phone.serial for phone in phones)
            kinds = sa.select(incidents.c.kind, incidents.c.devices).order_by(incidents.c.incident_id)
            eventually(
                lambda: ("correlated_failures", names) in rows(farm, kinds), "an incident of all three"
            )
            ends = sa.select(attempts.c.code, attempts.c.blame).where(attempts.c.blame.is_not(None))
            eventually(lambda: len(rows(farm, ends)) == PHONES, "their runs are given up", within_s=200)
            assert set(rows(farm, ends)) == {("host.incident", "host")}
            for phone in phones:
                set_faults(phone.state, Faults())
            eventually(lambda: are_at_work(farm), "all have work again", within_s=120)
        assert rows(farm, kinds) == [("correlated_failures", names)]
        changes = sa.select(events.c.to_state).where(events.c.kind == "device_health_changed")
        assert rows(farm, changes) == [("good",)] * PHONES
        check_invariants(farm.database_path)


def are_at_work(farm: FarmProcess) -> bool:
    """Whether each phone measures, which none does whose health is in doubt."""
    measuring = sa.select(attempts.c.device_id).where(attempts.c.state == "measuring")
    return len(rows(farm, measuring)) == PHONES
