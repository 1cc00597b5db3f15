"""States of devices: the output of `adb devices -l`, with adb's own messages above, between or below."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from farm.core.devices.device import Presence
from farm.phone.adb.decoding import LONGEST_ROW_CHARS, lines

#: AOSP: to_string(ConnectionState) in adb.cpp. `device` means that adbd answers; Android may still be
#: booting.
_PRESENCE_BY_STATE: Mapping[str, Presence] = {
    "device": Presence.BOOTING,
    "offline": Presence.OFFLINE,
    "connecting": Presence.OFFLINE,
    "detached": Presence.OFFLINE,
    "authorizing": Presence.UNAUTHORIZED,
    "unauthorized": Presence.UNAUTHORIZED,
    "bootloader": Presence.WRONG_MODE,
    "fastboot": Presence.WRONG_MODE,
    "recovery": Presence.WRONG_MODE,
    "rescue": Presence.WRONG_MODE,
    "sideload": Presence.WRONG_MODE,
    "host": Presence.WRONG_MODE,
}
#: adb's state words (AOSP: to_string(ConnectionState)); `no permissions (...)` has several words.
_STATE = (
    r"(?:device|offline|connecting|detached|authorizing|unauthorized|bootloader|fastboot|recovery|rescue"
    r"|sideload|host|unknown)"
)
#: Two blanks or a tab end a serial; an mDNS serial may contain blanks; one blank ends the others.
_SERIAL = r"(?:[^\s>](?:[^\t]*?\S)?(?=\t|  )|[^\s>]\S*|[^\s>][^\t]*?\._\S+|\(no serial number\))"
_ROW = re.compile(rf"({_SERIAL})\s+({_STATE}|no permissions\b.*?)(?:\s+(\S.*))?", re.ASCII)
_TAG = re.compile(r"([A-Za-z_]\w*):(\S*)", re.ASCII)
#: `3-1`, `1-2.3`: adb of some systems leaves out `usb:`.
_BUS = re.compile(r"\d+-\d+(?:\.\d+)*", re.ASCII)
_REASON = re.compile(r"no permissions\s*(?:\(.*?\))?(?:; see \[.*?\])?", re.ASCII)
_TALK = re.compile(r"\s*(?:\*|adb server|List of |error:|adb(?:\.exe)?:|daemon |cannot |- waiting for )")
#: Used as a state: adb cannot distinguish devices with the same serial number, and serves none of them.
SEVERAL = "several devices with this serial number"
_GOING_OFFLINE = "offline"


def presence(state: str | None) -> Presence:
    """Return the presence of a state word; None for a device that adb does not list.

    `device` gives BOOTING, as only a probe earns ONLINE. An unknown word gives OFFLINE. `no permissions` of a
    listing carries a reason and a link behind it, in a form that differs by adb version.
    """
    if state is None:
        return Presence.ABSENT
    word = state.strip()
    if word.startswith("no permissions"):
        return Presence.NO_PERMISSION
    return _PRESENCE_BY_STATE.get(word, Presence.OFFLINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdbDeviceRow:
    """One row of the listing."""

    serial: str
    #: adb's word; `farm.phone.adb.listing.presence` translates it.
    state: str
    #: The port it is attached to, as the kernel names it: `1-2.3`; None for a device on TCP.
    usb_path: str | None = None
    product: str | None = None
    model: str | None = None
    device: str | None = None
    transport_id: int | None = None


def adb_device_rows(text: str) -> tuple[AdbDeviceRow, ...]:
    """Return the rows, in the order of the listing; other output of adb is left out.

    The last word of a last line without a line end may be cut, and is ignored.
    """
    *complete, last = lines(text)
    rows = (
        _device_row(line.strip()) for line in (*complete, _without_last_tag(last)) if not _TALK.match(line)
    )
    return tuple(row for row in rows if row is not None)


def _without_last_tag(line: str) -> str:
    row, _, word = line.rpartition(" ")
    return row if _TAG.fullmatch(word) or _BUS.match(word) else line


def _device_row(line: str) -> AdbDeviceRow | None:
    if len(line) > LONGEST_ROW_CHARS or (row := _ROW.fullmatch(line)) is None:
        return None
    state, rest = row[2], row[3] or ""
    if state.startswith("no permissions"):
        text = line[row.start(2) :]
        reason = _REASON.match(text)
        state, rest = (reason[0].strip(), text[reason.end() :]) if reason else (state, rest)
    words = rest.split()
    tags = {match[1]: match[2] for match in map(_TAG.fullmatch, words) if match}
    bus = next((word for word in words if _BUS.fullmatch(word)), None)
    number = tags.get("transport_id", "")
    return AdbDeviceRow(
        serial=row[1],
        state=state,
        usb_path=tags.get("usb") or bus,
        product=tags.get("product"),
        model=tags.get("model"),
        device=tags.get("device"),
        transport_id=int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None,
    )


def state_by_serial(text: str) -> dict[str, str]:
    """Parse the server's listing: a serial, a tab and a state word per line; other lines are dropped."""
    rows = (line.rstrip("\r").rpartition("\t") for line in text.split("\n"))
    return states((serial, state) for serial, tab, state in rows if tab)


def states(rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return state words by name; SEVERAL where devices share one.

    A device that is plugged in again may be listed a second time while its old row goes offline.
    """
    state_by_name: dict[str, str] = {}
    for serial, state in rows:
        before = state_by_name.get(serial, _GOING_OFFLINE)
        if before == _GOING_OFFLINE:
            state_by_name[serial] = state
        elif state != _GOING_OFFLINE:
            state_by_name[serial] = SEVERAL
    return state_by_name
