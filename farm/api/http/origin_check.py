"""Refusal of calls by web pages: they have none of a farm's tokens, but could call one on loopback."""

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api.http.problems import problem_of_caller, problem_response
from farm.core.base.address import is_loopback
from farm.core.errors import Forbidden
from farm.wire.base import Problem


class OriginCheck:
    """Refuses requests by their headers, ahead of all else."""

    def __init__(self, app: ASGIApp, refusal: Callable[[Headers], Problem | None]) -> None:
        self._app = app
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (self._app if problem is None else problem_response(problem))(scope, receive, send)


#: Headers that proxies add (RFC 9110, 7.6.3; RFC 7239), beside the `x-forwarded-` ones. Never trusted, only
#: detected; nginx adds none of them by default.
_OF_PROXIES = frozenset({"forwarded", "via", "x-real-ip"})

_REFUSED = problem_of_caller(
    421,
    "The request is not for a loopback address.",
    "this farm answers requests to 127.0.0.1, [::1] and localhost only, and none from pages elsewhere",
    hint="use http://127.0.0.1 with the farm's port; from another machine through an SSH tunnel",
)

_PROXIED = problem_of_caller(
    421,
    "The request came through a proxy.",
    "this farm trusts every caller on its own machine, and a caller behind a proxy may be anywhere",
    hint="start it with FARM_REQUIRE_TOKENS=1: then everybody shows an access token, and a proxy is welcome",
)

_FROM_ELSEWHERE = problem_of_caller(
    403,
    "The request comes from a page elsewhere.",
    "Origin and Host differ: pages of other sites do not call this farm",
    hint="call it from a program, with an access token",
    kind=Forbidden,
)


def refuse_beyond_loopback(headers: Headers) -> Problem | None:
    """Refuse requests that were not made for a loopback address, or that a page from elsewhere makes.

    A browser on the farm's machine can be sent here by any page: through a name of the page's own that
    resolves to loopback (DNS rebinding), or by a form that needs no permission. The first shows in Host, the
    second in Origin.

    It also refuses a reverse proxy that names itself: all of its clients would seem to be on this machine.
    """
    if any(header in _OF_PROXIES or header.startswith("x-forwarded-") for header in headers):
        return _PROXIED
    return None if is_for_loopback(headers) else _REFUSED


def refuse_other_origin(headers: Headers) -> Problem | None:
    """Refuse requests that a page from elsewhere makes, on a farm that needs a token for every call.

    No cookie and no other credential of a browser is accepted here, so a page has no rights to borrow,
    whatever the farm is called: this only keeps it from trying. A caller with a token may use any host name.
    """
    return None if is_of_same_origin(headers) else _FROM_ELSEWHERE


def is_of_same_origin(headers: Headers) -> bool:
    """Return whether there is no Origin, or one with the authority that Host names."""
    host = headers.get("host", "")
    return all(
        origin.partition("://")[0] in ("http", "https") and origin.partition("://")[2] == host
        for origin in headers.getlist("origin")
    )


def is_for_loopback(headers: Headers) -> bool:
    """Return whether Host, and Origin where there is one, name loopback."""
    return is_loopback_authority(headers.getlist("host")) and all(
        origin.startswith(("http://", "https://")) and is_loopback_authority([origin.partition("//")[2]])
        for origin in headers.getlist("origin")
    )


def is_loopback_authority(authorities: Sequence[str]) -> bool:
    """Return whether there is one `host[:port]`, and it is a loopback one."""
    if len(authorities) != 1:
        return False
    try:
        parts = urlsplit(f"//{authorities[0]}")
        # Reading the port checks it.
        name, _port = parts.hostname or "", parts.port
        return parts.netloc == authorities[0] and is_loopback(name)
    except ValueError:
        return False
