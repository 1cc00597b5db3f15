"""A record on disk of ports that are switched off, for the next agent process after a kill."""

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path

import structlog

from agents.host.atomic_file import write_file_durably
from agents.host.usb_power import UsbPort, switch_power
from farm.core.errors import FarmError

log = structlog.get_logger(__name__)


async def save_ports(file: Path, ports: Collection[UsbPort]) -> None:
    """Record which ports are off; call it before the first one is."""
    content = json.dumps([asdict(port) for port in ports]).encode()
    await asyncio.to_thread(write_file_durably, file, content)


async def restore_ports(file: Path, command: Sequence[str] | None) -> tuple[UsbPort, ...]:
    """Switch on the ports that an earlier process left off; return those that stay off. Never raises."""
    try:
        ports = [UsbPort(**port) for port in json.loads(await asyncio.to_thread(file.read_bytes))]
    except (OSError, ValueError, TypeError):
        return ()
    off = tuple([port for port in ports if not await _is_switched_on(port, command)])
    if off:
        await save_ports(file, off)
    else:
        await asyncio.to_thread(file.unlink)
    return off


async def _is_switched_on(port: UsbPort, command: Sequence[str] | None) -> bool:
    if command is None:
        log.warning("port_stays_off", serial=port.serial, reason="no FARM_AGENT_POWER_COMMAND any more")
        return False
    try:
        await switch_power(command, port, "on")
    except FarmError as error:
        log.warning("port_stays_off", serial=port.serial, code=error.code, reason=error.message)
        return False
    return True
