"""A phone that is held for programs on this machine: served on one port, until the hold ends."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from agents.adb.client import AdbClient
from agents.adb.passthrough import check_server, check_user, environment_without_adb
from agents.adb.server import bundled_adb
from agents.device.facts import read_facts
from farm.cli.devices.live.phone import LivePhone, live_phone
from farm.cli.devices.live.release import SIGNALS
from farm.cli.devices.live.tracker import PhoneTracker
from farm.cli.shell.output import print_notice
from farm.client.farm_client import FarmClient
from farm.core.base.ids import Digest
from farm.core.errors import Conflict, FarmError, HarnessInvalid
from farm.core.programs.abi import select_abi
from farm.core.programs.bundle import Bundle
from farm.wire.documents.devices import AdbAccess

LOOPBACK = "127.0.0.1"
#: A reservation that another person has ended is noticed after so long.
_LOOK_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A reserved device that is attached to this machine, and how programs reach it."""

    access: AdbAccess
    name: str
    by: str
    #: When the reservation ends, by `time.monotonic`.
    end_s: float
    key: str
    harness: str
    #: Any free one where it is 0.
    port: int


def serve_phone(farm: FarmClient, hold: Hold) -> None:
    """Serve a phone until its hold ends, whether by its time, by a signal or by another person.

    Raises:
        NotFound, HarnessInvalid: the farm has no program that serves sessions on it.
        DeviceError, HostError: the phone or adb does not answer, or the port is taken.
    """
    binary, access = bundled_adb(), hold.access
    adb = (str(binary), "-L", access.adb_address, "-s", access.serial)
    check_user(access.adb_address, adb)
    check_server(binary, access.adb_address)
    asyncio.run(_serve(farm, hold, adb))


async def _serve(farm: FarmClient, hold: Hold, adb: tuple[str, ...]) -> None:
    stopped = asyncio.Event()
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    starting = asyncio.create_task(_ready_phone(farm, hold, adb))
    stop = asyncio.create_task(stopped.wait())
    await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
    if stopped.is_set():
        starting.cancel()
        return
    phone, program = starting.result()
    about = {"device": hold.access.device_id, "program": program, "threads": "1"}
    async with _listening(phone, hold, about) as port:
        print_notice(_instructions(hold, port))
        print_notice(f"{await _end_of_hold(farm, hold, stopped)}.")
    # A phone that is gone is cleared at the next start.
    with suppress(FarmError):
        await phone.clear()


async def _ready_phone(farm: FarmClient, hold: Hold, adb: tuple[str, ...]) -> tuple[LivePhone, Digest]:
    """Return the phone with its program in place, and the program's digest."""
    device = AdbClient(hold.access.adb_address).device(hold.access.serial)
    abis = (await read_facts(device)).abis
    programs = {each.abi: each for each in farm.harness(hold.harness).programs if each.in_use}
    abi = select_abi(abis, programs)
    if abi is None:
        raise HarnessInvalid(
            f"{hold.harness} has no program for {hold.name}, whose ABI is {', '.join(abis) or 'unknown'}",
            hint="docs/harnesses.md#tvm_benchmark says how it is built and registered",
        )
    program = programs[abi]
    print_notice(f"Starting {program.name} {program.digest[:12]} on {hold.name}.")
    with TemporaryDirectory(prefix="benchfarm-live-") as folder:

        async def local_path(digest: Digest) -> Path:
            return await asyncio.to_thread(_downloaded, farm, digest, Path(folder, digest))

        bundle = Bundle(files=program.files, entry=program.entry, env=program.env, command=program.command)
        environment = environment_without_adb(os.environ)
        phone = await live_phone(device, bundle, local_path, adb, environment, print_notice)
    return phone, program.digest


def _downloaded(farm: FarmClient, digest: Digest, path: Path) -> Path:
    if not path.exists():
        path.write_bytes(farm.download(digest))
    return path


@asynccontextmanager
async def _listening(phone: LivePhone, hold: Hold, about: dict[str, str]) -> AsyncIterator[int]:
    """Serve clients during the block, and yield the port."""

    def remaining_s() -> float:
        return hold.end_s - asyncio.get_running_loop().time()

    tracker = PhoneTracker(hold.key, phone.serve_session, remaining_s, about=about, say=print_notice)
    server = await asyncio.start_server(tracker.serve, LOOPBACK, hold.port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await tracker.close()


async def _end_of_hold(farm: FarmClient, hold: Hold, stopped: asyncio.Event) -> str:
    """Return why the hold has ended, as soon as it has."""
    clock = asyncio.get_running_loop().time
    while (remaining_s := hold.end_s - clock()) > 0:
        with suppress(TimeoutError):
            async with asyncio.timeout(min(_LOOK_S, remaining_s)):
                await stopped.wait()
                return "Stopped"
        try:
            await asyncio.to_thread(farm.adb_access, hold.access.device_id, hold.by)
        except Conflict as error:
            return f"The hold has ended: {error.message}"
        except FarmError:
            # A farm that does not answer has not given the phone to anyone.
            continue
    return "The time of the hold is over"


def _instructions(hold: Hold, port: int) -> str:
    return (
        f"{hold.name} is yours. Ctrl-C ends it and releases the device.\n"
        f"  tracker {LOOPBACK}:{port}, key {hold.key}\n"
        f"  farm live time LIBRARY --tracker {LOOPBACK}:{port} --key {hold.key} --input 1x3x224x224:float32\n"
        f'  tvm.rpc.connect_tracker("{LOOPBACK}", {port}).request("{hold.key}", session_timeout=600)'
    )
