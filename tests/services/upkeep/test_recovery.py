"""What agents do to have phones back is told, and allowed only where nobody is at work."""

from typing import Any

import pytest

from farm.core.base.ids import DeviceId
from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Presence
from farm.core.upkeep.recovery import FailureMode, Recovery, RecoveryAttempt, RecoveryStep
from farm.database.transaction import bind_tx
from farm.services.agents.heartbeats import is_report_unchanged
from farm.services.devices.admin import change_admin
from farm.services.devices.reservations import reserve
from farm.services.devices.views import list_device_views
from farm.store.devices.devices import get_device
from farm.store.operations import alarms as alarm_store
from farm.wire.agents.protocol import DeviceReport
from farm.wire.documents.devices import OperatorRequest, ReservationRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, phone

ANN = OperatorRequest(by="ann", reason="a look at it")


def episode(
    farm: FarmRig, *steps: RecoveryStep, what: FailureMode = FailureMode.WRONG_MODE, **more: Any
) -> Recovery:
    tries = tuple(RecoveryAttempt(step=step, at=farm.clock.now(), result="done") for step in steps)
    return Recovery(**{"failure_mode": what, "tries": tries, **more})


def says(host: HostRig, recovery: Recovery | None, presence: Presence = Presence.WRONG_MODE) -> list[str]:
    """What the farm allows after an exchange with this."""
    host.phones["phone-1"] = phone("phone-1", presence=presence).model_copy(update={"recovery": recovery})
    return list(host.exchange().may_recover)


def told(farm: FarmRig) -> list[tuple[str, str | None]]:
    rows = farm.rows(
        "SELECT kind, to_state FROM events WHERE subject_id = 'phone-1' AND kind LIKE 'device_recovery%' "
        "ORDER BY event_id"
    )
    return [(row["kind"], row["to_state"]) for row in rows]


def opened(farm: FarmRig) -> list[str]:
    return [f"{alarm.kind}:{alarm.subject_id}" for alarm in farm.read(alarm_store.open_alarms)]


def health(farm: FarmRig) -> str:
    return str(farm.rows("SELECT health FROM devices WHERE device_id = 'phone-1'")[0]["health"])


def test_each_step_is_told_once_and_the_end_of_the_climb_too(farm: FarmRig, host: HostRig) -> None:
    first = episode(farm, RecoveryStep.REPROBE)
    says(host, first)
    says(host, first)
    second = Recovery(
        failure_mode=FailureMode.OFFLINE,
        tries=(
            *first.tries,
            RecoveryAttempt(step=RecoveryStep.RECONNECT, at=farm.clock.now(), result="done"),
        ),
    )
    says(host, second)
    shown = {
        view.device_id: view.recovery for view in farm.read(list_device_views, after=DeviceId(""), limit=10)
    }
    assert shown[DeviceId("phone-1")] == second
    assert {each for name, each in shown.items() if name != "phone-1"} <= {None}
    says(host, None, Presence.ONLINE)
    tried = "device_recovery_tried"
    assert told(farm) == [(tried, "reprobe"), (tried, "reconnect"), ("device_recovery_ended", None)]


@pytest.mark.fault(15)
def test_the_end_of_the_ladder_calls_someone_and_makes_a_phone_bad_until_it_is_back(
    farm: FarmRig, host: HostRig
) -> None:
    failed = episode(farm, RecoveryStep.REBOOT, RecoveryStep.HUMAN, failed=True)
    says(host, failed)
    says(host, failed)
    assert (opened(farm), health(farm)) == (["recovery_failed:phone-1"], "bad")
    (alarm,) = farm.read(alarm_store.open_alarms)
    assert "is wrong mode, and nothing brought it back; tried: reboot" in alarm.message
    says(host, None, Presence.ONLINE)
    assert opened(farm) == []
    host.earn_health()
    assert health(farm) == "good"


@pytest.mark.parametrize("what", [FailureMode.OFFLINE, FailureMode.ABSENT])
@pytest.mark.invariant("I15")
def test_a_cable_may_be_to_blame_so_a_silent_phone_keeps_its_health(
    farm: FarmRig, host: HostRig, what: FailureMode
) -> None:
    says(host, episode(farm, RecoveryStep.HUMAN, what=what, failed=True), Presence.OFFLINE)
    assert (opened(farm), health(farm)) == (["recovery_failed:phone-1"], "good")


@pytest.mark.invariant("I14")
def test_a_phone_may_be_disturbed_while_no_one_is_at_work_on_it(farm: FarmRig, host: HostRig) -> None:
    assert says(host, episode(farm, next=RecoveryStep.REBOOT)) == ["phone-1"]
    assert says(host, episode(farm, next=RecoveryStep.RECONNECT)) == []
    assert says(host, episode(farm)) == []


@pytest.mark.invariant("I14")
def test_a_phone_with_a_live_attempt_is_not_disturbed(farm: FarmRig, host: HostRig) -> None:
    farm.variant()
    farm.variant(precision="int8-core")
    farm.submit()
    assert host.exchange().assignments
    assert says(host, episode(farm, next=RecoveryStep.REBOOT)) == []


@pytest.mark.invariant("I14")
def test_a_phone_in_a_persons_hands_is_not_disturbed(farm: FarmRig, host: HostRig) -> None:
    asked = ReservationRequest(by="ann", reason="a driver to try", for_s=60)
    farm.write(bind_tx(reserve, now=farm.clock.now()), "phone-1", asked)
    assert says(host, episode(farm, next=RecoveryStep.REBOOT)) == []


@pytest.mark.invariant("I14")
def test_a_cordoned_phone_is_not_disturbed(farm: FarmRig, host: HostRig) -> None:
    farm.write(bind_tx(change_admin, now=farm.clock.now()), "phone-1", AdminEvent.CORDONED, ANN)
    assert says(host, episode(farm, next=RecoveryStep.POWER_CYCLE)) == []


def test_an_agent_that_asks_for_leave_again_and_again_is_answered_each_time(
    farm: FarmRig, host: HostRig
) -> None:
    asking = episode(farm, next=RecoveryStep.REBOOT)
    assert [says(host, asking) for _ in range(3)] == [["phone-1"]] * 3


def test_a_phone_that_waits_for_leave_is_never_one_with_nothing_new(farm: FarmRig, host: HostRig) -> None:
    """Else calls of agents that are answered together would never allow anything."""
    asking, shown = episode(farm, next=RecoveryStep.REBOOT), episode(farm, RecoveryStep.REPROBE)
    for recovery, has_news in ((asking, True), (shown, False)):
        says(host, recovery)
        device = farm.read(get_device, DeviceId("phone-1"))
        report = DeviceReport(
            device_id="phone-1", serial="phone-1", presence=Presence.WRONG_MODE, recovery=recovery
        )
        assert is_report_unchanged(device, report) is not has_news
