"""The diagnosis of everything an agent needs on its machine."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
from pydantic import SecretStr

from agents.adb.server import bundled_adb, find_own_server, key_home, own_address
from agents.devices.adb_supervisor import default_adb_port
from agents.doctor import machine
from agents.farm_api import farm_client
from agents.host.config import AgentConfig
from agents.host.kernel_log import wants_kernel_log
from agents.link.enrollment import CREDENTIAL_FILE, find_credential
from farm.core.base.address import host_and_port, is_loopback
from farm.core.errors import InvalidInput
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning


async def diagnose_agent(config: AgentConfig, *, has_farm: bool = True) -> list[Diagnostic]:
    """Diagnose this machine with an agent's settings; starts nothing, changes nothing.

    `has_farm` is False when its farm is known not to run, as that of an embedded agent.
    """
    folder = config.data_dir
    return [
        *machine.check_folder(machine.probe_folder(folder), "FARM_AGENT_DATA_DIR"),
        *machine.check_private_file(folder / CREDENTIAL_FILE),
        machine.check_file_limit(machine.read_file_limit()),
        machine.check_adb_version(bundled_adb()),
        *_keys(config),
        *await _servers(config),
        *([machine.check_kernel_log(machine.read_refusals(config))] if wants_kernel_log(config) else []),
        *(await _farm(config) if has_farm else []),
    ]


def _keys(config: AgentConfig) -> list[Diagnostic]:
    if config.adb_server is not None:
        # The keys are those of the server's owner.
        return []
    # A server without USB serves devices without authorization, and does not use the operator's key.
    home = Path.home() if config.adb_usb else key_home(config.data_dir / "adb")
    return machine.check_keys(home / ".android" / "adbkey", config.adb_key)


async def _farm(config: AgentConfig) -> list[Diagnostic]:
    credential = find_credential(config.data_dir)
    if credential is None:
        message = f"{config.host} has not joined a farm yet"
        return [warning("farm", message, HOW_TO_JOIN)]
    probe = await probe_farm(config.farm_url, credential.secret, plain_http=config.plain_http)
    return check_farm_connectivity(probe)


async def _servers(config: AgentConfig) -> list[Diagnostic]:
    if config.adb_server is not None:
        host, port = host_and_port(config.adb_server)
        server = await machine.probe_server(host, port, is_here=is_loopback(host))
        return [machine.check_external_server(server)]
    if not config.adb_usb:
        return []
    folder = config.data_dir / "adb"
    ours = await machine.read_adb_devices(own_address(folder))
    default = await machine.probe_server("127.0.0.1", default_adb_port(os.environ))
    devices = machine.read_usb_devices()
    return [
        machine.check_default_server(default, ours),
        *machine.check_usb(devices, find_own_server(folder)),
    ]


#: HTTP dates have a resolution of one second, and the request takes time.
_SKEW_S = 5.0
#: A digest without an artifact: even the empty file's is another.
_UNKNOWN_BLOB = "/api/v1/blobs/" + "0" * 64

HOW_TO_JOIN = "`farm token create` on the farm's machine, `farm agent join URL` here"


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmProbe:
    """The results of a health request and an authenticated request to the farm."""

    url: str
    #: The connection error; None when a server answered.
    error: str | None = None
    status: int = 0
    #: The farm's clock minus ours.
    skew_s: float | None = None
    #: True if the credential is accepted.
    is_known: bool = True


async def probe_farm(
    url: str,
    credential: SecretStr,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    *,
    plain_http: bool = False,
) -> FarmProbe:
    """Query the farm; nothing is changed there."""
    try:
        async with farm_client(url, plain_http=plain_http) as http:
            answer = await http.get("/api/v1/health")
            arrived_at = now()
            headers = {"Authorization": f"Bearer {credential.get_secret_value()}"}
            authenticated = await http.head(_UNKNOWN_BLOB, headers=headers)
    except (httpx.HTTPError, InvalidInput) as error:
        return FarmProbe(url=url, error=str(error) or type(error).__name__)
    return FarmProbe(
        url=url,
        status=answer.status_code,
        skew_s=_skew_s(answer.headers.get("date"), arrived_at),
        is_known=authenticated.status_code != httpx.codes.UNAUTHORIZED,
    )


def check_farm_connectivity(probe: FarmProbe) -> list[Diagnostic]:
    """Check whether the agent can work for that farm."""
    if probe.error is not None:
        hint = (
            "is the farm up, with --agents-on for other machines, and does a firewall let this one through?"
        )
        return [problem("farm", f"no farm answers at {probe.url}: {probe.error}", hint)]
    if probe.status != httpx.codes.OK:
        hint = "is that the address that `farm up --agents-on` prints?"
        return [
            problem(
                "farm", f"{probe.url} answers {probe.status} where a farm's health check is expected", hint
            )
        ]
    diagnostics = [ok("farm", f"the farm at {probe.url} answers")]
    if not probe.is_known:
        hint = f"join again: {HOW_TO_JOIN}"
        diagnostics.append(problem("farm", "the farm does not know this host's credential", hint))
    return [*diagnostics, *_check_skew(probe.skew_s)]


def _check_skew(skew_s: float | None) -> list[Diagnostic]:
    if skew_s is None:
        return []
    if abs(skew_s) > _SKEW_S:
        way = "ahead of" if skew_s > 0 else "behind"
        message = f"the farm's clock is {abs(skew_s):.0f} s {way} this one"
        return [warning("clock", message, "run an NTP client on both; times in reports are off until then")]
    return [ok("clock", "this clock and the farm's agree within a few seconds")]


def _skew_s(date: str | None, now: datetime) -> float | None:
    try:
        return (parsedate_to_datetime(date or "") - now).total_seconds()
    except (ValueError, TypeError):
        return None
