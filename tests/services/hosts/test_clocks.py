"""The clock of a host that is off raises an alarm of the host, which ends when it agrees again."""

import pytest

from farm.core.base.ids import HostId
from farm.core.devices.host_state import HostEvent
from farm.core.operations.alarm import QUIET_AFTER_ACKNOWLEDGED, Alarm, AlarmKind, AlarmSubject
from farm.core.operations.host_clock import ClockDifference
from farm.database.transaction import bind_tx
from farm.services.hosts.admin import retire_host
from farm.services.hosts.clocks import record_host_clock
from farm.services.hosts.views import list_host_views
from farm.services.operations.alarms import clear_by_operator, list_alarms
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.hosts import HostView
from farm.wire.documents.operations import ClearRequest
from tests.support.farm.service_fixture import FarmRig, HostRig

pytestmark = pytest.mark.fault(49)
HOUR_S = 3600.0


def compare(farm: FarmRig, host: HostRig, ahead_s: float, uncertainty_s: float = 0.01) -> list[Alarm]:
    """Report a comparison; the alarms that are open then."""
    difference = ClockDifference(ahead_s=ahead_s, uncertainty_s=uncertainty_s)
    farm.write(bind_tx(record_host_clock, now=farm.clock.now()), host.host_id, difference)
    return farm.read(list_alarms)


def view(farm: FarmRig) -> HostView:
    (only,) = farm.read(list_host_views, after=HostId(""), limit=10)
    return only


def test_the_farm_knows_the_difference_of_each_host(farm: FarmRig, host: HostRig) -> None:
    assert (view(farm).clock, view(farm).clock_compared_at) == (None, None)
    assert compare(farm, host, -0.25, 0.5) == []
    assert view(farm).clock == ClockDifference(ahead_s=-0.25, uncertainty_s=0.5)
    assert view(farm).clock_compared_at == farm.clock.now()


@pytest.mark.parametrize(("ahead_s", "text"), [(HOUR_S, "1 h 0 min ahead of"), (-HOUR_S, "1 h 0 min behind")])
def test_a_clock_that_is_off_is_one_alarm_of_its_host_until_it_agrees(
    farm: FarmRig, host: HostRig, ahead_s: float, text: str
) -> None:
    (alarm,) = compare(farm, host, ahead_s)
    assert (alarm.kind, alarm.subject, alarm.subject_id) == (
        AlarmKind.CLOCK_STEPPED,
        AlarmSubject.HOST,
        host.host_id,
    )
    assert text in alarm.message
    assert "NTP" in alarm.hint
    farm.clock.advance(60)
    assert compare(farm, host, ahead_s + 1) == [alarm]
    assert compare(farm, host, 0.1) == []


def test_a_slow_network_raises_no_alarm(farm: FarmRig, host: HostRig) -> None:
    assert compare(farm, host, 20.0, 16.0) == []


def test_an_alarm_that_a_person_cleared_stays_cleared_for_a_day(farm: FarmRig, host: HostRig) -> None:
    (alarm,) = compare(farm, host, HOUR_S)
    request = ClearRequest(by="kim", reason="it is an old machine")
    farm.write(bind_tx(clear_by_operator, now=farm.clock.now()), alarm.alarm_id, request)
    farm.clock.advance(60)
    assert compare(farm, host, HOUR_S) == []
    farm.clock.advance(QUIET_AFTER_ACKNOWLEDGED.total_seconds())
    assert len(compare(farm, host, HOUR_S)) == 1


def test_the_alarm_of_a_host_ends_when_it_is_retired(farm: FarmRig, host: HostRig) -> None:
    assert compare(farm, host, HOUR_S)
    retire = bind_tx(retire_host, now=farm.clock.now())
    farm.write(retire, host.host_id, OperatorRequest(by="kim", reason="sold"))
    assert farm.read(list_alarms) == []
    assert HostEvent.RETIRED in {row["kind"] for row in farm.rows("SELECT kind FROM events")}
