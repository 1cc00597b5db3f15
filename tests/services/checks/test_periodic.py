"""Good phones are checked now and then, and never at the cost of more than a check."""

from farm.core.checks.check_schedule import CheckRules
from farm.core.devices.condition import ThermalStatus
from farm.core.devices.device import Presence
from farm.database.transaction import bind_tx
from farm.services.checks.periodic import UNFIT_MAX_RETRIES, UNFIT_RETRY_AFTER, queue_due_checks
from farm.services.devices.reservations import reserve
from farm.wire.documents.devices import ReservationRequest
from tests.services.checks.test_reference_runs import answer
from tests.support.farm.service_fixture import FarmRig, HostRig, plan_of

RULES = CheckRules(after_jobs=10)


def checks(farm: FarmRig, device_id: str = "phone-1") -> int:
    sql = "SELECT count(*) n FROM jobs WHERE kind = 'check' AND device_id = :id"
    return int(farm.rows(sql, id=device_id)[0]["n"])


def due(farm: FarmRig, after_s: float = 0.0) -> int:
    """How many checks of phone-1 there are after a round."""
    farm.clock.advance(after_s)
    farm.write(bind_tx(queue_due_checks, now=farm.clock.now()), RULES)
    return checks(farm)


def test_a_phone_without_work_is_checked_once_a_day(farm: FarmRig, host: HostRig) -> None:
    assert due(farm, RULES.every.total_seconds() - 10) == 1
    assert due(farm, 10) == 2
    assert due(farm) == 2
    host.run()
    assert due(farm, 60) == 2


def test_a_phone_with_work_is_not_kept_from_it_by_the_daily_check(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=2)
    assert due(farm, 2 * RULES.every.total_seconds()) == 1
    host.run()
    assert due(farm) == 2


def test_after_so_many_jobs_one_check_comes_before_the_next(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=20)
    kinds: list[bool] = []
    for _ in range(25):
        due(farm)
        (assignment,) = host.exchange().assignments
        kinds.append(plan_of(assignment).harness == "device_check")
        host.report(assignment.attempt_id, answer(20.0)(assignment))
        host.clean(assignment)
    assert [place for place, is_check in enumerate(kinds) if is_check] == [10, 21]


def test_a_phone_that_someone_holds_or_that_is_away_is_not_checked(farm: FarmRig, host: HostRig) -> None:
    farm.write(
        bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by="ann", for_s=14 * 86400)
    )
    host.phones["phone-2"] = host.phones["phone-2"].model_copy(update={"presence": Presence.OFFLINE})
    host.exchange()
    assert due(farm, 2 * RULES.every.total_seconds()) == 1
    assert checks(farm, "phone-2") == 1


def test_a_phone_that_was_too_warm_to_be_judged_is_tried_again_a_few_times(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-1", virtual=False)
    host.run(answer(20.0, ThermalStatus.LIGHT))
    tries = 0
    for _ in range(10):
        due(farm, UNFIT_RETRY_AFTER.total_seconds())
        tries += host.run(answer(20.0, ThermalStatus.LIGHT))
    assert tries == UNFIT_MAX_RETRIES
