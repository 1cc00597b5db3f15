"""Checks of `farm doctor --farm`: what a farm needs of its machine."""

from agents.doctor import machine
from agents.doctor.processes import ProcessInfo, find_listener, process_text
from farm.cli.admin.database_checks import check_database, probe_database
from farm.cli.admin.torch_checks import diagnose_torch, import_process
from farm.cli.shell.address import find_running
from farm.client.farm_client import FarmClient
from farm.config import FarmConfig
from farm.core.base.address import host_and_port
from farm.core.errors import Blame, FarmError
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning


def diagnose_farm(config: FarmConfig) -> list[Diagnostic]:
    """Check this machine with the settings of a farm, without starting or changing anything."""
    running = find_running(config.data_dir)
    with import_process() as torch:
        return [
            *machine.check_folder(machine.probe_folder(config.data_dir), "FARM_DATA_DIR"),
            check_database(probe_database(config)),
            *check_alarms(read_alarms(running)),
            *check_ports(config, running, {port: find_listener(port) for port in _ports(config)}),
            machine.check_file_limit(machine.read_file_limit()),
            diagnose_torch(torch),
        ]


def check_ports(
    config: FarmConfig, running: str | None, listener_by_port: dict[int, ProcessInfo | None]
) -> list[Diagnostic]:
    """Check that the farm listens on its ports, or that they are free."""
    if running is not None:
        return [ok("ports", f"the farm runs at {running}")]
    process_by_port = {port: process for port, process in listener_by_port.items() if process is not None}
    hint = "end that program, or choose another port with --port or --agents-on"
    return [
        problem("ports", f"port {port} is used by {process_text(process)}", hint, blame=Blame.USER)
        for port, process in process_by_port.items()
    ] or [ok("ports", f"free: {', '.join(map(str, _ports(config)))}")]


def read_alarms(running: str | None) -> list[str] | None:
    """Return the alarms of the farm that runs here; None if none runs or it does not answer."""
    if running is None:
        return None
    try:
        with FarmClient(running) as farm:
            return [alarm.message for alarm in farm.alarms()]
    except FarmError:
        return None


def check_alarms(messages: list[str] | None) -> list[Diagnostic]:
    """Check that no alarm is open; no diagnostic if that is unknown."""
    if messages is None:
        return []
    if not messages:
        return [ok("alarms", "none is open")]
    more = f", and {len(messages) - 1} more" if len(messages) > 1 else ""
    return [warning("alarms", f"{messages[0]}{more}", "farm alarms")]


def _ports(config: FarmConfig) -> list[int]:
    agents = [] if config.agents_bind is None else [host_and_port(config.agents_bind)[1]]
    return [port for port in (config.port, *agents) if port]
