"""A small asyncio client of the adb server: tracking, shell commands and file transfer, with deadlines."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from agents.adb import sync
from agents.adb.shell_v2 import OutputCollector, ShellResult, read_packet_header, read_result, stdin_packets
from agents.adb.smartsocket import AdbProtocolError, AdbRequestFailed, SmartSocket, smart_socket
from farm.core.errors import (
    AdbServerDown,
    DeviceError,
    DeviceOffline,
    DeviceProtocol,
    DeviceTimeout,
    DeviceUnfit,
    PushFailed,
)
from farm.phone.adb.listing import AdbDeviceRow, adb_device_rows, state_by_serial
from farm.phone.adb.shell_output import output_by_section, section_command

OUTPUT_LIMIT_BYTES = 4 * 1024 * 1024
#: The server answers from memory; one that takes longer is wedged.
SERVER_DEADLINE_S = 5.0
#: The server waits 10 s for a device that accepts and stays silent.
CONNECT_DEADLINE_S = 15.0
_ATTACHED = ("connected to ", "already connected to ")
#: Extra time of a failed call to determine the blame; a healthy server needs 1 ms.
BLAME_DEADLINE_S = 1.0


class AdbClient:
    """A client of one adb server. It holds no connection, so there is nothing to close."""

    def __init__(self, address: str) -> None:
        """Name the server by its address in the notation of `adb -L`; nothing is opened yet."""
        self.address = address

    def device(self, serial: str, work_root: str = "") -> "AdbDevice":
        """Return one device, by the name adb has for its transport; no call is made yet."""
        return AdbDevice(self, serial, work_root)

    def connection(self) -> AbstractAsyncContextManager[SmartSocket]:
        """Open a connection for one request, or one service."""
        return smart_socket(self.address)

    async def version(self, deadline_s: float = SERVER_DEADLINE_S) -> int:
        """Return the server's protocol version.

        Raises:
            AdbServerDown: it does not answer in time, or something else listens there.
        """
        with _translate_server_errors(self.address):
            async with asyncio.timeout(deadline_s), self._query("host:version") as socket:
                return int(await socket.read_block(), 16)

    async def devices(self, deadline_s: float = SERVER_DEADLINE_S) -> dict[str, str]:
        """Return the state of every device by serial.

        Raises:
            AdbServerDown: the server does not answer in time, or something else listens there.
        """
        with _translate_server_errors(self.address):
            async with asyncio.timeout(deadline_s), self._query("host:devices") as socket:
                return state_by_serial(await socket.read_text())

    async def list_transports(self) -> tuple[AdbDeviceRow, ...]:
        """Return every device with its USB port. Raises as `devices`."""
        with _translate_server_errors(self.address):
            async with asyncio.timeout(SERVER_DEADLINE_S), self._query("host:devices-l") as socket:
                return adb_device_rows(await socket.read_text())

    async def connect(self, address: str, deadline_s: float = CONNECT_DEADLINE_S) -> None:
        """Have the server connect to the device at `address` (host:port); an existing row is left alone.

        Raises:
            DeviceOffline: the server cannot reach it, or the device asks for authorization first.
            DeviceTimeout: the server did not decide in time.
            AdbServerDown: it does not answer.
        """
        await self.version()
        with _translate_server_errors(self.address):
            try:
                async with asyncio.timeout(deadline_s), self._query(f"host:connect:{address}") as socket:
                    answer = await socket.read_text()
            except TimeoutError as error:
                message = f"the adb server at {self.address}: no answer within {deadline_s:g} s"
                raise DeviceTimeout(message) from error
        # The protocol answers every connect with OKAY; only the text tells the result.
        if not answer.startswith(_ATTACHED):
            raise DeviceOffline(f"adb cannot connect to {address}: {answer.strip()}")

    async def track_devices(self) -> AsyncGenerator[dict[str, str], None]:
        """Yield the state of every device by serial: now, and again at each change.

        Close it (`contextlib.aclosing`), or a task that is cancelled between two states leaves it open.

        Raises:
            AdbServerDown: the server is not there, or went away. A wedged one is silent: ask `version` too.
        """
        with _translate_server_errors(self.address):
            async with self.connection() as socket:
                async with asyncio.timeout(SERVER_DEADLINE_S):
                    await socket.request("host:track-devices")
                while True:
                    yield state_by_serial(await socket.read_text())

    @asynccontextmanager
    async def _query(self, service: str) -> AsyncIterator[SmartSocket]:
        async with self.connection() as socket:
            await socket.request(service)
            yield socket


class AdbDevice:
    """One device behind the server; any number of calls may run at once, each on its own connection.

    Every call raises DeviceTimeout when its deadline passes, DeviceOffline when the device is not there or
    goes away, DeviceProtocol when it refuses or answers nonsense, and AdbServerDown when the server is not
    there or is wedged. Features are cached: make a new object when the device was away.
    """

    def __init__(self, client: AdbClient, serial: str, work_root: str = "") -> None:
        self._client = client
        self._features: frozenset[str] | None = None
        self.serial = serial
        #: The folder that shell may write to, below which all of our files are; empty until it is known.
        self.work_root = work_root

    async def features(self, deadline_s: float) -> frozenset[str]:
        """Return the features of the device's adbd, e.g. `shell_v2`, that this server knows too."""
        async with self._call("features", deadline_s):
            return await self._find_features()

    async def shell(
        self,
        command: str,
        *,
        deadline_s: float,
        stdin: bytes = b"",
        limit_bytes: int = OUTPUT_LIMIT_BYTES,
        talk_s: float | None = None,
        again: bool = True,
    ) -> ShellResult:
        """Run a command line in the device's shell and wait for its end.

        Args:
            command: as the phone's shell is to read it.
            deadline_s: for everything, opening included.
            stdin: all of its input.
            limit_bytes: what is kept of each of stdout and stderr; the rest is counted.
            talk_s: how much longer it may take once it has said something; None where that tells nothing.
            again: run it once more where the connection ended before the command did.

        Raises:
            DeviceUnfit: the device has no shell v2, so that exit codes would be lost.
        """
        async with self._call(f"shell {command[:60]!r}", deadline_s) as deadline:
            while True:
                try:
                    if "shell_v2" not in await self._find_features():
                        raise DeviceUnfit(f"{self.serial} has no shell v2")
                    async with self._service(f"shell,v2,raw:{command}") as socket:
                        socket.write(stdin_packets(stdin))
                        first = await read_packet_header(socket)
                        if talk_s is not None:
                            _shorten_deadline(deadline, talk_s)
                        return await read_result(socket, OutputCollector(limit_bytes), first)
                except EOFError:
                    if not again:
                        raise
                    again = False

    async def read_sections(self, commands: Mapping[str, str], deadline_s: float) -> dict[str, str]:
        """Run several commands in one call; return the output of each, by name."""
        return output_by_section((await self.shell(section_command(commands), deadline_s=deadline_s)).text)

    async def push(self, source: Path, remote: str, *, mode: int, deadline_s: float) -> int:
        """Write a local file to the device; return the bytes sent.

        Raises:
            PushFailed: the device refused the file, with its reason.
            HostError: the local file cannot be read.
        """
        with await sync.open_source(source) as content:
            async with self._call(f"push {remote}", deadline_s):
                try:
                    async with self._service("sync:") as socket:
                        return await sync.send(socket, content, remote, mode)
                except AdbRequestFailed as error:
                    raise PushFailed(f"{self.serial} did not take {remote}: {error}") from error

    async def read(self, remote: str, *, limit_bytes: int, deadline_s: float) -> bytes:
        """Return the first `limit_bytes` of a file; a missing file is a DeviceProtocol error."""
        async with self._call(f"read {remote}", deadline_s), self._service("sync:") as socket:
            return await sync.receive(socket, remote, limit_bytes)

    async def reconnect(self, deadline_s: float) -> None:
        """Have the server drop its connection to the device, and make another."""
        async with self._call("reconnect", deadline_s), self._client.connection() as socket:
            await self._reach(socket, f"host-serial:{self.serial}:reconnect")
            await socket.read_block()

    async def reboot(self, deadline_s: float) -> None:
        """Restart the device into Android, from recovery too; return once it has accepted the command."""
        async with self._call("reboot", deadline_s), self._service("reboot:") as socket:
            # The device hangs up as it goes down; hanging up first might cancel the command.
            with suppress(EOFError, OSError, TimeoutError):
                async with asyncio.timeout(deadline_s / 2):
                    await socket.read_exactly(1)

    async def _find_features(self) -> frozenset[str]:
        if self._features is None:
            async with self._client.connection() as socket:
                await self._reach(socket, f"host-serial:{self.serial}:features")
                features = (await socket.read_text()).split(",")
            # A device that is still connecting has none yet: that must not be cached.
            self._features = frozenset(features) - {""} or None
        return self._features or frozenset()

    @asynccontextmanager
    async def _service(self, service: str) -> AsyncIterator[SmartSocket]:
        async with self._client.connection() as socket:
            await self._reach(socket, f"host:transport:{self.serial}")
            await socket.request(service)
            yield socket

    async def _reach(self, socket: SmartSocket, service: str) -> None:
        try:
            await socket.request(service)
        except AdbRequestFailed as error:
            raise DeviceOffline(f"{self.serial}: {error}") from error

    @asynccontextmanager
    async def _call(self, doing: str, deadline_s: float) -> AsyncIterator[asyncio.Timeout]:
        """Translate adbutils errors of every device call into errors of the tree."""
        what = f"{self.serial}: {doing}"
        try:
            async with asyncio.timeout(deadline_s) as deadline:
                yield deadline
        except TimeoutError as error:
            raise await self._unless_server_down(
                DeviceTimeout(f"{what}: no end within {deadline_s:g} s")
            ) from error
        except (AdbRequestFailed, AdbProtocolError, UnicodeError) as error:
            raise DeviceProtocol(f"{what}: {error}") from error
        except (OSError, EOFError) as error:
            raise await self._unless_server_down(
                DeviceOffline(f"{what}: the connection ended early ({error})")
            ) from error

    async def _unless_server_down(self, error: DeviceError) -> DeviceError | AdbServerDown:
        """Return the error, unless our server is down or wedged: then the device is not to blame."""
        try:
            await self._client.version(BLAME_DEADLINE_S)
        except AdbServerDown as down:
            return down
        return error


def _shorten_deadline(deadline: asyncio.Timeout, left_s: float) -> None:
    """Move a deadline to at most `left_s` from now."""
    end_s = asyncio.get_running_loop().time() + left_s
    if (before_s := deadline.when()) is None or end_s < before_s:
        deadline.reschedule(end_s)


@contextmanager
def _translate_server_errors(address: str) -> Iterator[None]:
    """Translate adbutils errors of every server call into AdbServerDown."""
    try:
        yield
    except (OSError, EOFError, AdbRequestFailed, AdbProtocolError, ValueError) as error:
        raise AdbServerDown(f"the adb server at {address} does not answer: {error!r}") from error
