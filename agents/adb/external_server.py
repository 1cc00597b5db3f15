"""An adb server of the operator: used as it is, never started, stopped or restarted by the agent."""

from types import TracebackType
from typing import Self

import structlog

from agents.adb.client import AdbClient
from farm.core.errors import AdbServerDown

log = structlog.get_logger(__name__)

#: The protocol of the adb bundled with adbutils ("1.0.41"). An adb of another version kills the server.
PROTOCOL_VERSION = 41


class ExternalServer:
    """A stand-in for a server of our own; it may go away, and is waited for."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._version: int | None = None

    @property
    def public_key(self) -> None:
        """Return None: the key is the operator's."""
        return

    @property
    def pid(self) -> None:
        """Return None: the server may be on another machine."""
        return

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except AdbServerDown as error:
            log.warning("adb_server_not_started", reason=error.message, hint=error.hint)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def start(self) -> None:
        """Check whether it answers, and log once when its version is not ours.

        Raises:
            AdbServerDown: it does not.
        """
        try:
            version = await AdbClient(self.port, self.host).version()
        except AdbServerDown as error:
            raise AdbServerDown(error.message, hint=_start_hint(self.host, self.port)) from error
        if version not in (PROTOCOL_VERSION, self._version):
            log.warning("adb_server_version_differs", hint=version_hint(version))
        self._version = version

    async def stop(self) -> None:
        """Do nothing."""


def version_hint(version: int) -> str:
    """Return the hint for a server of another version than ours."""
    return (
        f"the shared adb server speaks version {version}, the agent's adb {PROTOCOL_VERSION}: the agent can "
        "use it, but an adb command of another version than the server's ends that server"
    )


def _start_hint(host: str, port: int) -> str:
    return (
        f"start it where the devices are (`adb -P {port} start-server`), or unset FARM_AGENT_ADB_SERVER: "
        f"then the agent runs its own server. The agent keeps trying {host}:{port}"
    )
