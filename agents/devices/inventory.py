"""Pure decisions from adb's listing to the devices of this host."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agents.host.usb_ports import USB_PREFIX
from farm.core.base.address import is_loopback
from farm.core.base.ids import DeviceId
from farm.core.devices.condition import Condition
from farm.core.devices.device import DeviceFacts, Presence
from farm.core.upkeep.recovery import Recovery
from farm.wire.agents.plausibility import check_report
from farm.wire.agents.protocol import DeviceReport

_NOT_IN_A_NAME = re.compile(r"[\x00-\x20/\x7f]+")
_NAME_LIMIT = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportObservation:
    """The last known state of one adb transport.

    Invariant: an ONLINE observation has facts and a boot id.
    """

    #: Its name in adb.
    serial: str
    presence: Presence
    detail: str | None = None
    #: The last known facts; kept while it is away, so that its device keeps its identity.
    facts: DeviceFacts | None = None
    boot_id: str | None = None
    #: The mark from `agents.device.probe`.
    mark: str | None = None
    condition: Condition | None = None
    #: Its recovery, if any.
    recovery: Recovery | None = None
    #: Its name by port or address, which overrides its serial number.
    name: str | None = None
    #: The transports of all devices that claim this identity, where there are several.
    claimants: tuple[str, ...] = ()

    @property
    def is_tcp(self) -> bool:
        """Return whether adb reaches it over TCP: its serial is host:port then."""
        return ":" in self.serial and not self.serial.startswith(USB_PREFIX)

    @property
    def is_reachable_elsewhere(self) -> bool:
        """Return whether adb on another machine could reach the device: on TCP, and not on our loopback.

        Phones that adb found by mDNS have names like `adb-SERIAL._adb-tls-connect._tcp`.
        """
        host = self.serial.rpartition(":")[0].strip("[]")
        return "._tcp" in self.serial or (self.is_tcp and not is_loopback(host))


def is_usb(serial: str) -> bool:
    """Return whether adb reaches a device over USB, by the name of its transport."""
    return serial.startswith(USB_PREFIX) or (":" not in serial and "._tcp" not in serial)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredState:
    """The facts and condition of a device that the farm knows in this session."""

    facts: DeviceFacts | None = None
    condition: Condition | None = None


def device_id(observation: TransportObservation) -> DeviceId | None:
    """Return the identity of a device: ro.serialno, or the USB serial of one that never answered.

    None for a TCP transport that was never identified: host:port does not identify a device. A named port or
    address is the identity of the device there.
    """
    if observation.name is not None:
        return to_wire_name(observation.name)
    if observation.facts is not None and observation.facts.serialno:
        return to_wire_name(observation.facts.serialno)
    return None if observation.is_tcp else to_wire_name(observation.serial)


def to_wire_name(text: str) -> DeviceId | None:
    """Return the text as a valid device id; None when nothing is left of it."""
    name = _NOT_IN_A_NAME.sub("-", text.strip())[:_NAME_LIMIT]
    return DeviceId(name) if name else None


def select_transports(observations: Iterable[TransportObservation]) -> dict[DeviceId, TransportObservation]:
    """Return each device with the transport to use: online before others, USB before TCP.

    Where two devices claim one identity, none of them is online: it is unknown which one a measurement
    came from.
    """
    return {identity: _merge_observations(group) for identity, group in _by_identity(observations).items()}


def find_conflicts(observations: Iterable[TransportObservation]) -> dict[DeviceId, tuple[str, ...]]:
    """Return identities that two devices claim, with the transports they claim them on.

    One USB and one TCP transport are one device while their boot ids agree. Two on TCP, such as a name and an
    address, are one when they show the same mark too: virtual phones of one host share a boot id until one
    reboots. Two on USB never are: some makers give several phones one serial number.
    """
    online = (observation for observation in observations if observation.presence is Presence.ONLINE)
    return {
        identity: tuple(sorted(observation.serial for observation in group))
        for identity, group in _by_identity(online).items()
        if not _is_one_device(group)
    }


def _by_identity(observations: Iterable[TransportObservation]) -> dict[DeviceId, list[TransportObservation]]:
    group_by_identity: dict[DeviceId, list[TransportObservation]] = {}
    for observation in observations:
        if (identity := device_id(observation)) is not None:
            group_by_identity.setdefault(identity, []).append(observation)
    return group_by_identity


def _is_one_device(group: Sequence[TransportObservation]) -> bool:
    boots = {observation.boot_id for observation in group}
    on_tcp = [observation for observation in group if observation.is_tcp]
    marks = {observation.mark for observation in on_tcp}
    is_one_on_tcp = len(on_tcp) < 2 or (len(marks) == 1 and None not in marks)
    return len(boots) == 1 and is_one_on_tcp and len(group) - len(on_tcp) < 2


def device_reports(
    device_by_id: Mapping[DeviceId, TransportObservation],
    cleaned_fence_by_id: Mapping[DeviceId, int],
    delivered_by_device: Mapping[DeviceId, DeliveredState],
    *,
    known_fence_by_id: Mapping[DeviceId, int] | None = None,
    wants_provisioning: bool = False,
) -> tuple[DeviceReport, ...]:
    """Return the reports of all devices for the next exchange; known facts and conditions are left out.

    `wants_provisioning` is set for each device with its facts.
    """
    reports: list[DeviceReport] = []
    for identity, observation in sorted(device_by_id.items()):
        delivered = delivered_by_device.get(identity, DeliveredState())
        cleaned_fence = cleaned_fence_by_id.get(identity, 0)
        known_fence = (known_fence_by_id or {}).get(identity, 0)
        report = DeviceReport(
            device_id=identity,
            serial=observation.serial[:256],
            presence=observation.presence,
            detail=observation.detail,
            facts=observation.facts if observation.facts != delivered.facts else None,
            condition=observation.condition if observation.condition != delivered.condition else None,
            recovery=observation.recovery,
            wants_provisioning=wants_provisioning and observation.facts is not None,
            claimants=observation.claimants[:100],
            cleaned_fence=cleaned_fence,
            known_fence=max(known_fence, cleaned_fence),
        )
        reports.append(check_report(report))
    return tuple(reports)


def update_delivered(
    before: Mapping[DeviceId, DeliveredState], reports: Sequence[DeviceReport], wanted: Iterable[DeviceId]
) -> dict[DeviceId, DeliveredState]:
    """Return the state that the farm knows after it answered these reports and requested these facts."""
    delivered = dict(before)
    for report in reports:
        identity = DeviceId(report.device_id)
        old = delivered.get(identity, DeliveredState())
        delivered[identity] = DeliveredState(
            facts=report.facts or old.facts, condition=report.condition or old.condition
        )
    for identity in wanted:
        delivered[identity] = replace(delivered.get(identity, DeliveredState()), facts=None)
    return delivered


def _merge_observations(group: Sequence[TransportObservation]) -> TransportObservation:
    best = min(group, key=lambda row: (row.presence is not Presence.ONLINE, row.is_tcp, row.serial))
    rivals = next(iter(find_conflicts(group).values()), ())
    if not rivals:
        return best
    detail = f"several devices claim this identity: {', '.join(rivals)}"
    return replace(best, presence=Presence.OFFLINE, detail=detail, claimants=rivals)
