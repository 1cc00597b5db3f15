"""From what adb lists to which phones there are: pure decisions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agents.host.usb_port_names import PORT
from farm.core.base.address import is_loopback
from farm.core.base.ids import DeviceId
from farm.core.devices.condition import Condition
from farm.core.devices.device import DeviceFacts, Presence
from farm.core.upkeep.recovery import Recovery
from farm.wire.agents.protocol import DeviceReport

_NOT_IN_A_NAME = re.compile(r"[\x00-\x20/\x7f]+")
_NAME_LIMIT = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One adb transport, as far as it is known.

    Invariant: an ONLINE sighting has facts and a boot id.
    """

    #: What adb calls it.
    serial: str
    presence: Presence
    detail: str | None = None
    #: Last known; kept while it is away, so that its phone keeps its identity.
    facts: DeviceFacts | None = None
    boot_id: str | None = None
    #: What `agents.device.state.identity_marker` found there.
    mark: str | None = None
    condition: Condition | None = None
    #: What is being done to have it back.
    recovery: Recovery | None = None
    #: Who it is by where it is plugged in, whatever it says itself.
    name: str | None = None
    #: The transports of all phones that say they are this one, where there are several.
    claimants: tuple[str, ...] = ()

    @property
    def is_tcp(self) -> bool:
        """Whether adb reaches it over TCP: its serial is host:port then."""
        return ":" in self.serial and not self.serial.startswith(PORT)

    @property
    def is_within_reach_of_others(self) -> bool:
        """Whether adb of another machine could reach the phone: it is on TCP, and not on our loopback.

        Phones that adb found by mDNS have names like `adb-SERIAL._adb-tls-connect._tcp`.
        """
        host = self.serial.rpartition(":")[0].strip("[]")
        return "._tcp" in self.serial or (self.is_tcp and not is_loopback(host))


def is_usb(serial: str) -> bool:
    """Whether adb reaches a phone over a cable, by what it calls the transport."""
    return serial.startswith(PORT) or (":" not in serial and "._tcp" not in serial)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What the farm knows of a device in the present session."""

    facts: DeviceFacts | None = None
    condition: Condition | None = None


def device_id(sighting: Sighting) -> DeviceId | None:
    """Who the phone is: its ro.serialno, or for a USB phone that never answered what adb read off the bus.

    None for a TCP transport that was never identified: host:port says nothing of the phone. Where a place has
    a name, that is who is there.
    """
    if sighting.name is not None:
        return as_name(sighting.name)
    if sighting.facts is not None and sighting.facts.serialno:
        return as_name(sighting.facts.serialno)
    return None if sighting.is_tcp else as_name(sighting.serial)


def as_name(text: str) -> DeviceId | None:
    """Text as the wire takes names; None when nothing is left of it."""
    name = _NOT_IN_A_NAME.sub("-", text.strip())[:_NAME_LIMIT]
    return DeviceId(name) if name else None


def phones(sightings: Iterable[Sighting]) -> dict[DeviceId, Sighting]:
    """Each phone with the transport to use: online before others, USB before TCP.

    Where two phones claim one identity, none of them is online: nobody could say which one a measurement came
    from.
    """
    found: dict[DeviceId, list[Sighting]] = {}
    for sighting in sightings:
        if (identity := device_id(sighting)) is not None:
            found.setdefault(identity, []).append(sighting)
    return {identity: _merged(group) for identity, group in found.items()}


def conflicts(sightings: Iterable[Sighting]) -> dict[DeviceId, tuple[str, ...]]:
    """Identities that two phones claim, with the transports they claim them on.

    One USB and one TCP transport are one phone while their boot ids agree. Two on TCP, a name and an address
    say, are one when they show the same mark too: virtual phones of one host share a boot id until one
    reboots. Two on USB never are: phones of a careless maker share a serial number.
    """
    found: dict[DeviceId, list[Sighting]] = {}
    for sighting in sightings:
        identity = device_id(sighting)
        if identity is not None and sighting.presence is Presence.ONLINE:
            found.setdefault(identity, []).append(sighting)
    return {
        identity: tuple(sorted(sighting.serial for sighting in group))
        for identity, group in found.items()
        if not _is_one_phone(group)
    }


def _is_one_phone(group: Sequence[Sighting]) -> bool:
    boots = {sighting.boot_id for sighting in group}
    on_tcp = [sighting for sighting in group if sighting.is_tcp]
    marks = {sighting.mark for sighting in on_tcp}
    is_one_on_tcp = len(on_tcp) < 2 or (len(marks) == 1 and None not in marks)
    return len(boots) == 1 and is_one_on_tcp and len(group) - len(on_tcp) < 2


def device_reports(
    phone_by_id: Mapping[DeviceId, Sighting],
    cleaned_fence_by_id: Mapping[DeviceId, int],
    delivered_by_id: Mapping[DeviceId, Delivered],
    *,
    known_fence_by_id: Mapping[DeviceId, int] | None = None,
    wants_setup: bool = False,
) -> tuple[DeviceReport, ...]:
    """All phones for the next exchange; facts and conditions only where the farm does not have them yet.

    `wants_setup` is said of each phone with its facts.
    """
    nothing = Delivered()
    known_fences = known_fence_by_id or {}
    return tuple(
        _report(
            identity,
            sighting,
            cleaned_fence_by_id.get(identity, 0),
            delivered_by_id.get(identity, nothing),
            known_fence=known_fences.get(identity, 0),
            wants_setup=wants_setup,
        )
        for identity, sighting in sorted(phone_by_id.items())
    )


def delivered_with(
    before: Mapping[DeviceId, Delivered], reports: Sequence[DeviceReport], wanted: Iterable[DeviceId]
) -> dict[DeviceId, Delivered]:
    """What the farm knows after it answered an exchange with these reports and asked for these facts."""
    known = dict(before)
    for report in reports:
        identity = DeviceId(report.device_id)
        old = known.get(identity, Delivered())
        known[identity] = Delivered(
            facts=report.facts or old.facts, condition=report.condition or old.condition
        )
    for identity in wanted:
        known[identity] = replace(known.get(identity, Delivered()), facts=None)
    return known


def _merged(group: Sequence[Sighting]) -> Sighting:
    best = min(group, key=lambda each: (each.presence is not Presence.ONLINE, each.is_tcp, each.serial))
    rivals = next(iter(conflicts(group).values()), ())
    if not rivals:
        return best
    detail = f"several phones say they are this one: {', '.join(rivals)}"
    return replace(best, presence=Presence.OFFLINE, detail=detail, claimants=rivals)


def _report(
    identity: DeviceId,
    sighting: Sighting,
    cleaned_fence: int,
    delivered: Delivered,
    *,
    known_fence: int,
    wants_setup: bool,
) -> DeviceReport:
    return DeviceReport(
        device_id=identity,
        serial=sighting.serial[:256],
        presence=sighting.presence,
        detail=sighting.detail,
        facts=sighting.facts if sighting.facts != delivered.facts else None,
        condition=sighting.condition if sighting.condition != delivered.condition else None,
        recovery=sighting.recovery,
        wants_setup=wants_setup and sighting.facts is not None,
        claimants=sighting.claimants[:100],
        cleaned_fence=cleaned_fence,
        known_fence=max(known_fence, cleaned_fence),
    )
