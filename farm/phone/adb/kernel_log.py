"""Messages of a host's Linux kernel about a USB controller without capacity for another device."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm.phone.adb.decoding import table_lines

_LONGEST_NAME = 100

# Linux: drivers/usb/host/xhci.c (xhci_alloc_dev, xhci_configure_endpoint_result), drivers/usb/core/message.c.
# Controllers run out of slots (devices), of endpoint contexts (-12), or of periodic bandwidth (-28). A line
# about bandwidth alone may be a camera that wants a larger stream; only a failed configuration is a device
# that stays away. `no room on ep ring` is about one transfer, and "Command Aborted" about a controller that
# hangs.
_OF_CONTROLLER = re.compile(
    r"[\w-]+ ([\w:.-]+): ("
    r"Error while assigning device slot ID(?:: (?:No Slots Available Error|Resource Error))?"
    r"|Not enough host resources, active endpoint contexts = \d{1,10})",
    re.ASCII,
)
_OF_DEVICE = re.compile(
    r"usb (\d{1,4})-\d+(?:\.\d+)*: ("
    r"Not enough host controller resources for new device state\.?"
    r"|can't set config #\d{1,10}, error -(?:12|28))",
    re.ASCII,
)
#: Older kernels print only this about a slot that was not assigned: none was free, or the command failed.
_WITHOUT_REASON = "Error while assigning device slot ID"
#: A command is aborted after 5 s; a controller that hung long before no longer matters.
_HANGS_S = 60.0
_OF_HUNG_CONTROLLER = re.compile(
    r"[\w-]+ ([\w:.-]+): (?:Command timeout|Abort command ring|No stop event for abort"
    r"|Timeout while waiting for|Abort failed to stop command ring|HC died).*",
    re.ASCII,
)
#: /dev/kmsg: priority, sequence, microseconds, flags.
_RECORD = re.compile(r"\d+,\d+,(\d{1,18}),[^;]*;(.*)", re.ASCII)
#: syslog and journalctl write `host kernel: ` before or after the prefix of dmesg.
_STAMPED = re.compile(r"(?:\[\s*(\d{1,12}\.\d{1,9})\]\s*|\[[^\]]{1,40}\]\s*|(?:\S{1,64}\s+){1,5}?kernel:\s+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class UsbRefusal:
    """One line about a device that a USB controller rejected. Invariant: it has a controller or a bus."""

    #: The kernel's name, `0000:00:14.0`; None where the line names a port only.
    controller: str | None
    #: The bus of the port in the line: 1 of `usb 1-4.2`.
    bus: int | None
    #: Seconds since the kernel started; None where the line has no time.
    at_s: float | None
    #: The kernel's own words.
    message: str


def usb_refusals(text: str) -> tuple[UsbRefusal, ...]:
    """Return all such lines of a log: records of /dev/kmsg, or output of dmesg, journalctl or syslog.

    A line without a reason is dropped where the log shows that its controller hung right before.
    """
    hung: dict[str, float | None] = {}
    refusals: list[UsbRefusal] = []
    for line in table_lines(text):
        at_s, message = _parts(line)
        if (match := _OF_HUNG_CONTROLLER.fullmatch(message)) is not None:
            hung[match[1]] = at_s
        elif (refusal := _refusal(line)) is not None and not _is_of_hung_controller(refusal, hung):
            refusals.append(refusal)
    return tuple(refusals)


def _is_of_hung_controller(refusal: UsbRefusal, hung: Mapping[str, float | None]) -> bool:
    if refusal.message != _WITHOUT_REASON or refusal.controller is None or refusal.controller not in hung:
        return False
    since_s = hung[refusal.controller]
    return since_s is None or refusal.at_s is None or refusal.at_s - since_s <= _HANGS_S


def _refusal(line: str) -> UsbRefusal | None:
    at_s, message = _parts(line)
    if (match := _OF_DEVICE.fullmatch(message)) is not None:
        return UsbRefusal(controller=None, bus=int(match[1]), at_s=at_s, message=match[2])
    match = _OF_CONTROLLER.fullmatch(message)
    if match is None or len(match[1]) > _LONGEST_NAME:
        return None
    return UsbRefusal(controller=match[1], bus=None, at_s=at_s, message=match[2])


def _parts(line: str) -> tuple[float | None, str]:
    """Return the time of a line, and the message without its prefix."""
    if (record := _RECORD.fullmatch(line)) is not None:
        return int(record[1]) / 1e6, record[2].strip()
    at_s, message = None, line.strip()
    while (stamp := _STAMPED.match(message)) is not None:
        at_s = at_s if stamp[1] is None else float(stamp[1])
        message = message[stamp.end() :]
    return at_s, message
