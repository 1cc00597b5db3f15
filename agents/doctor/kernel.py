"""Checks of the kernel log, and of the USB controllers it mentions."""

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
    """Return the name of the kernel log and its messages about refused USB devices.

    None when the agent cannot read a log.
    """
    try:
        kernel_log = find_kernel_log(config)
        if kernel_log is None:
            return None
        return kernel_log.name, list(name_controllers(usb_refusals(kernel_log.read()), devices))
    except OSError:
        return None


def check_kernel_log(found: tuple[str, Sequence[tuple[str, UsbRefusal]]] | None) -> Diagnostic:
    """Check whether a full USB controller would be reported to the farm."""
    if found is None:
        return warning(
            _SUBJECT,
            "this user cannot read it, so full USB controllers are not detected",
            _PERMISSION_HINT,
        )
    name, refusals = found
    if not refusals:
        return ok(_SUBJECT, f"{name} can be read; no USB controller refused a device")
    controller, last = refusals[-1]
    return warning(
        _SUBJECT,
        f"USB controller {controller} refused a device: {last.message.rstrip('.')}",
        "devices plugged in there do not appear: use another controller, or remove devices or hubs from it",
    )
