"""Checks of the connection to the farm."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
from pydantic import SecretStr

from agents.farm_api import farm_client
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning

#: HTTP dates have a resolution of one second, and the request takes time.
_SKEW_S = 5.0
#: A digest without an artifact: even the empty file's is another.
_UNKNOWN_BLOB = "/api/v1/blobs/" + "0" * 64

_HOW_TO_JOIN = "`farm token create` on the farm's machine, `farm agent join URL` here"


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmProbe:
    """The results of a health request and an authenticated request to the farm."""

    url: str
    #: The connection error; None when a server answered.
    error: str | None = None
    status: int = 0
    #: The farm's clock minus ours.
    skew_s: float | None = None
    #: Whether the credential is accepted.
    is_known: bool = True


def report_not_enrolled(host: str) -> Diagnostic:
    """Return the diagnostic of a host without a credential."""
    return warning("farm", f"{host} has not joined a farm yet", _HOW_TO_JOIN)


async def probe_farm(
    url: str, credential: SecretStr, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> FarmProbe:
    """Query the farm; nothing is changed there."""
    try:
        async with farm_client(url) as http:
            answer = await http.get("/api/v1/health")
            arrived_at = now()
            headers = {"Authorization": f"Bearer {credential.get_secret_value()}"}
            authenticated = await http.head(_UNKNOWN_BLOB, headers=headers)
    except httpx.HTTPError as error:
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
        hint = f"join again: {_HOW_TO_JOIN}"
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
