"""Whether the kernel's log can be read, and what it says of USB controllers."""

from collections.abc import Sequence
from pathlib import Path

from agents.devices.usb_capacity import USB_DEVICES, name_controllers
from agents.host.config import AgentConfig
from agents.host.kernel_log import find_kernel_log
from farm.core.operations.diagnostic import Diagnostic, ok, warning
from farm.phone.adb.kernel_log import UsbRefusal, usb_refusals

_SUBJECT = "kernel log"
_PERMISSION_HINT = (
    "sudo usermod -aG systemd-journal USER for the agent's user, or name a file with FARM_AGENT_KERNEL_LOG"
)


def read_refusals(
    config: AgentConfig, devices: Path = USB_DEVICES
) -> tuple[str, list[tuple[str, UsbRefusal]]] | None:
    """Which log an agent reads, and what is kept there of controllers that refused a device.

    None when it may read none.
    """
    try:
        kernel_log = find_kernel_log(config)
        if kernel_log is None:
            return None
        return kernel_log.name, list(name_controllers(usb_refusals(kernel_log.read()), devices))
    except OSError:
        return None


def check_kernel_log(found: tuple[str, Sequence[tuple[str, UsbRefusal]]] | None) -> Diagnostic:
    """Whether the farm would be told of a USB controller that is full."""
    if found is None:
        return warning(
            _SUBJECT,
            "this user cannot read it: that a USB controller has no room for one more phone goes unnoticed",
            _PERMISSION_HINT,
        )
    name, refusals = found
    if not refusals:
        return ok(_SUBJECT, f"{name} can be read; no USB controller refused a device")
    controller, last = refusals[-1]
    return warning(
        _SUBJECT,
        f"USB controller {controller} refused a device: {last.message.rstrip('.')}",
        "phones that are plugged in there stay away: use another controller, or take phones or hubs off it",
    )
