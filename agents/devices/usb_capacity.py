"""Which USB controllers of this machine have no room for one more device: what the farm is told."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import structlog

from agents.host.config import AgentConfig
from agents.host.kernel_log import KernelLog, find_kernel_log, wants_kernel_log
from farm.clock import Clock
from farm.phone.adb.kernel_log import UsbRefusal, usb_refusals
from farm.wire.agents.protocol import MAX_CONTROLLERS, FullController

log = structlog.get_logger(__name__)

USB_DEVICES = Path("/sys/bus/usb/devices")
#: How the kernel's folder of a bus's root hub is called below that of its controller.
_ROOT_HUB = "usb{}"


class UsbCapacity:
    """Full controllers by name, in memory. What runs on phones that are there goes on: nothing is stopped.

    Invariant: what the kernel said first of a controller is what is told for as long as it lasts, so that the
    farm has one incident of it.
    """

    def __init__(self, changed: asyncio.Event, *, lasts_s: float) -> None:
        """`changed` is set when the farm should hear; `lasts_s` after its last line none counts as full."""
        self._changed = changed
        self._lasts_s = lasts_s
        self._said_by_controller: dict[str, str] = {}
        self._seen_s: dict[str, float] = {}

    def note(self, refusals: Iterable[tuple[str, UsbRefusal]], *, now_s: float, is_first: bool) -> None:
        """Apply what the log says of controllers; what is old enough by now is forgotten.

        Args:
            refusals: with the name of the controller.
            now_s: since the machine started.
            is_first: what was logged before the agent was there counts from when it was, and not at all where
                nothing tells that.
        """
        for controller, refusal in refusals:
            at_s = refusal.at_s if is_first else now_s
            if at_s is not None and now_s - at_s < self._lasts_s:
                self._see(controller, refusal.message, min(at_s, now_s))
        for controller in [each for each, at_s in self._seen_s.items() if now_s - at_s >= self._lasts_s]:
            del self._seen_s[controller], self._said_by_controller[controller]
            log.info("usb_controller_not_full", controller=controller)
            self._changed.set()

    @property
    def full(self) -> tuple[FullController, ...]:
        """The full ones, by name."""
        found = sorted(self._said_by_controller.items())[:MAX_CONTROLLERS]
        return tuple(FullController(controller=controller, said=said) for controller, said in found)

    def _see(self, controller: str, said: str, at_s: float) -> None:
        self._seen_s[controller] = max(at_s, self._seen_s.get(controller, at_s))
        if controller not in self._said_by_controller:
            self._said_by_controller[controller] = said
            log.warning("usb_controller_full", controller=controller, said=said)
            self._changed.set()


async def watch_usb_capacity(
    config: AgentConfig, room: UsbCapacity, clock: Clock, devices: Path = USB_DEVICES
) -> None:
    """Look at the kernel's log now and then, for ever; ends where there is none to look at."""
    if not wants_kernel_log(config):
        return
    kernel_log = await asyncio.to_thread(find_kernel_log, config)
    if kernel_log is None:
        log.info("kernel_log_unreadable", hint="farm doctor --agent says what would allow it")
        return
    await _watch(kernel_log, room, clock, devices)


async def _watch(kernel_log: KernelLog, room: UsbCapacity, clock: Clock, devices: Path) -> NoReturn:
    is_first, told = True, ""
    while True:
        text, was_read = "", True
        try:
            text = await asyncio.to_thread(kernel_log.read)
        except OSError as error:
            # What a file says that comes later is news.
            was_read = isinstance(error, FileNotFoundError)
            if str(error) != told:
                log.warning("kernel_log_not_read", source=kernel_log.name, reason=str(error))
                told = str(error)
        refusals = list(name_controllers(usb_refusals(text), devices))
        room.note(refusals, now_s=clock.monotonic(), is_first=is_first)
        is_first = is_first and not was_read
        await asyncio.sleep(kernel_log.every_s)


def name_controllers(
    refusals: Iterable[UsbRefusal], devices: Path = USB_DEVICES
) -> Iterator[tuple[str, UsbRefusal]]:
    """Each with the name of its controller: of the one that has the bus, where the line names a port."""
    for refusal in refusals:
        yield refusal.controller or _controller(refusal.bus, devices), refusal


def _controller(bus: int | None, devices: Path) -> str:
    """The name of a bus's controller; the bus's own where the kernel shows it no more."""
    hub = _ROOT_HUB.format(bus)
    return (devices / hub).resolve().parent.name if (devices / hub).exists() else hub
