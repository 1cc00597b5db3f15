"""USB controllers of this host without capacity for one more device."""

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
#: The name of a root hub's folder below its controller's.
_ROOT_HUB = "usb{}"


class UsbCapacity:
    """Full controllers by name, in memory. Runs on connected devices continue.

    Invariant: the first kernel message about a controller is reported as long as it is full, so that the farm
    has one incident of it.
    """

    def __init__(self, changed: asyncio.Event, *, lasts_s: float) -> None:
        """Start empty; `changed` is set on news; a message makes a controller full for `lasts_s`."""
        self._changed = changed
        self._lasts_s = lasts_s
        self._said_by_controller: dict[str, str] = {}
        self._seen_s: dict[str, float] = {}

    def record(self, refusals: Iterable[tuple[str, UsbRefusal]], *, now_s: float, is_first: bool) -> None:
        """Record the log's refusals by controller; forget those that are too old.

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
        """Return the full controllers, by name."""
        messages = sorted(self._said_by_controller.items())[:MAX_CONTROLLERS]
        return tuple(FullController(controller=controller, said=said) for controller, said in messages)

    def _see(self, controller: str, said: str, at_s: float) -> None:
        self._seen_s[controller] = max(at_s, self._seen_s.get(controller, at_s))
        if controller not in self._said_by_controller:
            self._said_by_controller[controller] = said
            log.warning("usb_controller_full", controller=controller, said=said)
            self._changed.set()


async def watch_usb_capacity(
    config: AgentConfig, capacity: UsbCapacity, clock: Clock, devices: Path = USB_DEVICES
) -> None:
    """Poll the kernel log for ever; return at once where there is none to read."""
    if not wants_kernel_log(config):
        return
    kernel_log = await asyncio.to_thread(find_kernel_log, config)
    if kernel_log is None:
        log.info("kernel_log_unreadable", hint="`farm doctor --agent` lists the missing permission")
        return
    await _monitor(kernel_log, capacity, clock, devices)


async def _monitor(kernel_log: KernelLog, capacity: UsbCapacity, clock: Clock, devices: Path) -> NoReturn:
    is_first, logged = True, ""
    while True:
        text, was_read = "", True
        try:
            text = await asyncio.to_thread(kernel_log.read)
        except OSError as error:
            # A file that appears later contains new messages.
            was_read = isinstance(error, FileNotFoundError)
            if str(error) != logged:
                log.warning("kernel_log_read_failed", source=kernel_log.name, reason=str(error))
                logged = str(error)
        refusals = list(name_controllers(usb_refusals(text), devices))
        capacity.record(refusals, now_s=clock.monotonic(), is_first=is_first)
        is_first = is_first and not was_read
        await asyncio.sleep(kernel_log.every_s)


def name_controllers(
    refusals: Iterable[UsbRefusal], devices: Path = USB_DEVICES
) -> Iterator[tuple[str, UsbRefusal]]:
    """Yield each refusal with the name of its controller: that of the bus, where the line names a port."""
    for refusal in refusals:
        yield refusal.controller or _controller(refusal.bus, devices), refusal


def _controller(bus: int | None, devices: Path) -> str:
    """Return the name of a bus's controller; the root hub's name where the kernel no longer shows it."""
    hub = _ROOT_HUB.format(bus)
    return (devices / hub).resolve().parent.name if (devices / hub).exists() else hub
