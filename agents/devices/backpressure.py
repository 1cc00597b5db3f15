"""Backpressure: the reasons why this host should get no new work, and its full USB controllers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import structlog

from agents.host.atomic_file import DiskThread
from agents.host.config import AgentConfig
from agents.host.kernel_log import find_kernel_log, wants_kernel_log
from agents.outbox.spool import Spool
from farm.clock import Clock
from farm.phone.adb.kernel_log import UsbRefusal, usb_refusals
from farm.wire.agents.protocol import MAX_CONTROLLERS, FullController

log = structlog.get_logger(__name__)

#: Between checks of the disk.
DISK_S = 10.0


class Backpressure:
    """Reasons by subject, in memory, so that composing an exchange never blocks.

    A reason contains no changing numbers: another text is another incident of the host.
    """

    def __init__(self, changed: asyncio.Event) -> None:
        """Start without a reason; `changed` is set when the farm should be called at once."""
        self._changed = changed
        self._reason_by_subject: dict[str, str] = {}

    def record(self, subject: str, reason: str | None) -> None:
        """Record what is wrong with a subject; None when it is well."""
        if reason == self._reason_by_subject.get(subject):
            return
        if reason is None:
            del self._reason_by_subject[subject]
            log.info("host_pressure_over", subject=subject)
        else:
            self._reason_by_subject[subject] = reason
            log.warning("host_pressure", subject=subject, reason=reason)
        self._changed.set()

    @property
    def reason(self) -> str | None:
        """Return all reasons as one text; None when all is well."""
        return "; ".join(self._reason_by_subject.values())[:500] or None


@dataclass(eq=False, kw_only=True)
class DiskWatch:
    """Checks whether the disk has space for evidence, and for the files of jobs."""

    spool: Spool
    disk: DiskThread
    #: Why a file of a job did not fit; None where all did.
    cache_shortage: Callable[[], Awaitable[str | None]]
    pressure: Backpressure

    async def run(self) -> NoReturn:
        """Check periodically."""
        while True:
            await asyncio.sleep(DISK_S)
            await self.run_once()

    async def run_once(self) -> None:
        """Record what is short."""
        self.pressure.record("disk", await self.disk.call(self.spool.shortage))
        self.pressure.record("cache", await self.cache_shortage())


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
        self._message_by_controller: dict[str, str] = {}
        self._seen_s: dict[str, float] = {}

    def record(self, refusals: Iterable[tuple[str, UsbRefusal]], *, now_s: float, is_first: bool) -> None:
        """Record the log's refusals by controller; forget those that are too old.

        `now_s` is since the machine started. A message of the first reading counts from when it was logged,
        and not at all where nothing tells that.
        """
        for controller, refusal in refusals:
            at_s = refusal.at_s if is_first else now_s
            if at_s is not None and now_s - at_s < self._lasts_s:
                self._see(controller, refusal.message, min(at_s, now_s))
        for controller in [name for name, at_s in self._seen_s.items() if now_s - at_s >= self._lasts_s]:
            del self._seen_s[controller], self._message_by_controller[controller]
            log.info("usb_controller_not_full", controller=controller)
            self._changed.set()

    @property
    def full(self) -> tuple[FullController, ...]:
        """Return the full controllers, by name."""
        messages = sorted(self._message_by_controller.items())[:MAX_CONTROLLERS]
        return tuple(FullController(controller=name, message=text) for name, text in messages)

    def _see(self, controller: str, message: str, at_s: float) -> None:
        self._seen_s[controller] = max(at_s, self._seen_s.get(controller, at_s))
        if controller not in self._message_by_controller:
            self._message_by_controller[controller] = message
            log.warning("usb_controller_full", controller=controller, message=message)
            self._changed.set()


async def watch_usb_capacity(config: AgentConfig, capacity: UsbCapacity, clock: Clock) -> None:
    """Poll the kernel log for ever; return at once where there is none to read."""
    if not wants_kernel_log(config):
        return
    kernel_log = await asyncio.to_thread(find_kernel_log, config)
    if kernel_log is None:
        log.info("kernel_log_unreadable", hint="`farm doctor --agent` lists the missing permission")
        return
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
        refusals = list(name_controllers(usb_refusals(text)))
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
