"""The diagnosis of everything an agent needs on its machine."""

import os
from pathlib import Path

from agents.adb.server import bundled_adb, find_record, is_our_server, key_home
from agents.devices.other_adb_servers import default_adb_port
from agents.doctor import adb, farm_connectivity, kernel, machine, usb
from agents.host.config import AgentConfig
from agents.host.kernel_log import wants_kernel_log
from agents.host.process import command_line
from agents.link.enrollment import CREDENTIAL_FILE, find_credential
from farm.core.base.address import host_and_port, is_loopback
from farm.core.operations.diagnostic import Diagnostic


async def diagnose_agent(config: AgentConfig, *, has_farm: bool = True) -> list[Diagnostic]:
    """Diagnose this machine with an agent's settings; starts nothing, changes nothing.

    Args:
        config: the agent's.
        has_farm: False when its farm is known not to run, as that of an embedded agent.
    """
    folder = config.data_dir
    secret = folder / CREDENTIAL_FILE
    return [
        *machine.check_folder(machine.probe_folder(folder), "FARM_AGENT_DATA_DIR"),
        *machine.check_private_file(secret, machine.read_mode(secret)),
        machine.check_file_limit(machine.read_file_limit()),
        adb.check_adb_version(adb.probe_adb_version(bundled_adb())),
        *_keys(config),
        *await _servers(config),
        *([kernel.check_kernel_log(kernel.read_refusals(config))] if wants_kernel_log(config) else []),
        *(await _farm(config) if has_farm else []),
    ]


def _keys(config: AgentConfig) -> list[Diagnostic]:
    if config.adb_server is not None:
        # The keys are those of the server's owner.
        return []
    shared = None if config.adb_key is None else adb.probe_key(config.adb_key)
    # A server without USB serves devices without authorization, and does not use the operator's key.
    home = Path.home() if config.adb_usb else key_home(config.data_dir / "adb")
    return adb.check_keys(adb.probe_key(home / ".android" / "adbkey"), shared)


async def _farm(config: AgentConfig) -> list[Diagnostic]:
    credential = find_credential(config.data_dir)
    if credential is None:
        return [farm_connectivity.report_not_enrolled(config.host)]
    return farm_connectivity.check_farm_connectivity(
        await farm_connectivity.probe_farm(config.farm_url, credential.secret)
    )


async def _servers(config: AgentConfig) -> list[Diagnostic]:
    if config.adb_server is not None:
        host, port = host_and_port(config.adb_server)
        server = await adb.probe_server(host, port, is_here=is_loopback(host))
        return [adb.check_external_server(server)]
    if not config.adb_usb:
        return []
    own = find_record(config.data_dir / "adb")
    if own is not None and not is_our_server(command_line(own.pid), own.port):
        own = None
    ours = None if own is None else await adb.probe_server("127.0.0.1", own.port)
    default = await adb.probe_server("127.0.0.1", default_adb_port(os.environ))
    devices = usb.read_usb_devices()
    return [
        adb.check_default_server(default, ours),
        *usb.check_usb(devices, None if own is None else own.pid),
    ]
