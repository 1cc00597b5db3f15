"""The farm looked over for alarms by a test."""

from farm.core.devices.device import Presence
from farm.core.operations.alarm import AlarmRules
from farm.services.operations.alarm_scan import AlarmScan
from farm.store.operations import alarms as alarm_store
from tests.support.farm.service_fixture import FarmRig, HostRig

RULES = AlarmRules()


class Rounds:
    """The farm looked over by the test."""

    def __init__(self, farm: FarmRig) -> None:
        self.farm = farm
        self.rounds = AlarmScan(rules=RULES)

    def look(self, after_s: float = 60.0) -> list[str]:
        """One round; what alarms are open then."""
        self.farm.clock.advance(after_s)
        now = self.farm.clock.now()
        self.farm.write(self.rounds.look, now=now, up_since=self.farm.up_since)
        return opened(self.farm)


def opened(farm: FarmRig) -> list[str]:
    found = farm.read(alarm_store.open_alarms)
    return [f"{alarm.kind} {alarm.subject}:{alarm.subject_id}" for alarm in found]


def silent_phone(host: HostRig, device_id: str = "phone-1") -> None:
    host.phones[device_id] = host.phones[device_id].model_copy(
        update={"presence": Presence.OFFLINE, "detail": "device offline"}
    )
    host.exchange()
