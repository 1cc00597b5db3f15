"""The alarm of a phone that nothing brought back is over when the phone is back, and not before."""

from farm.core.devices.device import Presence
from farm.core.upkeep.recovery import FailureMode, Recovery, RecoveryAttempt, RecoveryStep
from farm.database.transaction import bind_tx
from farm.services.operations.alarms import clear_by_operator
from farm.wire.documents.operations import ClearRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, phone


def says(host: HostRig, recovery: Recovery | None, presence: Presence = Presence.WRONG_MODE) -> None:
    host.phones["phone-1"] = phone("phone-1", presence=presence).model_copy(update={"recovery": recovery})
    host.exchange()


def failed(farm: FarmRig) -> Recovery:
    last = RecoveryAttempt(step=RecoveryStep.HUMAN, at=farm.clock.now(), result="nothing helped")
    return Recovery(failure_mode=FailureMode.WRONG_MODE, tries=(last,), failed=True)


def alarms(farm: FarmRig) -> list[tuple[str, bool]]:
    rows = farm.rows("SELECT kind, cleared_at IS NULL AS is_open FROM alarms ORDER BY alarm_id")
    return [(row["kind"], bool(row["is_open"])) for row in rows]


def test_a_climb_that_begins_again_neither_ends_the_alarm_nor_tells_it_again(
    farm: FarmRig, host: HostRig
) -> None:
    says(host, failed(farm))
    farm.clock.advance(3600)
    says(host, None)
    assert alarms(farm) == [("recovery_failed", True)]
    says(host, failed(farm))
    assert alarms(farm) == [("recovery_failed", True)]


def test_a_phone_that_is_back_when_its_agent_has_forgotten_it_ends_the_alarm(
    farm: FarmRig, host: HostRig
) -> None:
    says(host, failed(farm))
    host.restart()
    says(host, None)
    says(host, None, Presence.ONLINE)
    assert alarms(farm) == [("recovery_failed", False)]


def test_what_a_person_has_seen_to_is_not_told_of_by_the_next_climb(farm: FarmRig, host: HostRig) -> None:
    says(host, failed(farm))
    farm.write(
        bind_tx(clear_by_operator, now=farm.clock.now()),
        1,
        ClearRequest(by="ann", reason="it is at the repair"),
    )
    for hours, count in ((2, 1), (24, 2)):
        farm.clock.advance(hours * 3600)
        says(host, None)
        says(host, failed(farm))
        assert len(alarms(farm)) == count
