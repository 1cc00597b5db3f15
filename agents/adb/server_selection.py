"""Selection of the adb server: one of the agent's own, or the operator's."""

import os

from agents.adb.external_server import ExternalServer
from agents.adb.key import find_fingerprint
from agents.adb.server import AdbServer
from agents.host.config import AgentConfig
from farm.core.base.address import host_and_port, is_loopback
from farm.core.errors import InvalidInput

#: Both have the same methods to start and stop, and the same address properties.
SelectedServer = AdbServer | ExternalServer


def select_server(config: AgentConfig) -> SelectedServer:
    """Return the server that the settings name; nothing is started yet.

    Raises:
        InvalidInput: the key that phones are to be shown cannot be read.
    """
    if config.adb_server is not None:
        return ExternalServer(*host_and_port(config.adb_server))
    if config.adb_key is not None and not os.access(config.adb_key, os.R_OK):
        # adb would ignore it silently, and every device would ask its owner for approval.
        raise InvalidInput(f"the key {config.adb_key} cannot be read", hint="set or unset FARM_AGENT_ADB_KEY")
    keys = str(config.adb_key) if config.adb_key else None
    return AdbServer(config.data_dir / "adb", usb=config.adb_usb, vendor_keys=keys)


def find_key_fingerprint(server: SelectedServer) -> str | None:
    """Return the fingerprint that a device shows when it asks for approval; None when unknown."""
    return find_fingerprint(server.public_key) if server.public_key is not None else None


def find_local_port(server: SelectedServer) -> int | None:
    """Return the server's port for users of this machine; None when it is on another one."""
    return server.port if is_loopback(server.host) else None
