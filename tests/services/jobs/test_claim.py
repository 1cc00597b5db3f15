"""Claims use plans that were made before their transaction."""

import pytest

from farm.database.transaction import Tx, bind_tx
from farm.services.jobs.claim import ClaimResult, RunPlans, claim_jobs
from farm.store.files.programs import list_programs, put_program
from tests.support.farm.service_fixture import FarmRig, HostRig


def claim(host: HostRig, plans: RunPlans) -> ClaimResult:
    farm = host.farm
    return farm.write(bind_tx(claim_jobs, now=farm.clock.now()), host.host_id, host.session_id, plans=plans)


def claimed_devices(farm: FarmRig) -> list[str]:
    rows = farm.rows("SELECT device_id FROM attempts WHERE state = 'claimed' ORDER BY attempt_id")
    return [row["device_id"] for row in rows]


@pytest.mark.on_postgresql
@pytest.mark.invariant("I18")
def test_a_job_without_a_plan_stays_queued_and_keeps_the_turn_of_its_device(farm: FarmRig) -> None:
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    host.plug_in("phone-1", cpu_domain="host-cpu")
    host.plug_in("phone-2", cpu_domain="host-cpu")
    host.earn_health()
    farm.submit()
    plans = host.plans()
    (first,) = [key for key in plans if key is not None and claims_with(host, {key: plans[key]})]
    assert claim(host, {key: plan for key, plan in plans.items() if key != first}) == ClaimResult(
        needs_plans=True
    )
    assert claimed_devices(farm) == []
    assert claim(host, plans) == ClaimResult(had_candidates=True)
    assert len(claimed_devices(farm)) == 1


def claims_with(host: HostRig, plans: RunPlans) -> bool:
    """Tell whether a host would claim something with these plans; nothing is changed."""
    with host.farm.database.engine.connect() as connection:
        connection = connection.execution_options(farm_writes=True)
        result = claim_jobs(Tx(connection, host.farm.clock.now()), host.host_id, host.session_id, plans=plans)
        connection.rollback()
    return result.had_candidates


def test_one_missing_plan_keeps_no_other_device_from_its_job(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    plans = host.plans()
    (some, _) = (key for key in plans if key is not None)
    assert claim(host, {some: plans[some]}) == ClaimResult(had_candidates=True, needs_plans=True)
    (device_id,) = claimed_devices(farm)
    assert claim(host, host.plans()) == ClaimResult(had_candidates=True)
    assert sorted(claimed_devices(farm)) == ["phone-1", "phone-2"]
    assert device_id in ("phone-1", "phone-2")


def test_a_plan_is_not_used_after_its_program_was_registered_again(farm: FarmRig, host: HostRig) -> None:
    farm.submit(settings={"iter": 5, "warmup": 3})
    plans = host.plans()
    farm.clock.advance(1)
    for program in farm.read(list_programs, harness="speed_benchmark_torch"):
        farm.write(
            bind_tx(put_program, now=farm.clock.now()),
            harness=program.harness,
            abi=program.abi,
            bundle=program.bundle,
            missing_flags=frozenset({"warmup"}),
        )
    assert claim(host, plans) == ClaimResult(needs_plans=True)
    assert claimed_devices(farm) == []
    assert claim(host, host.plans()) == ClaimResult(had_candidates=True)
    assert len(claimed_devices(farm)) == 2


def test_a_check_has_the_same_plan_always(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-1")
    plans = host.plans()
    assert list(plans) == [None]
    assert [assignment.plan for assignment in host.exchange().assignments] == [plans[None]]


def test_a_device_at_work_needs_no_plan(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    assert len(host.exchange().assignments) == 2
    assert list(host.plans()) == [None]
