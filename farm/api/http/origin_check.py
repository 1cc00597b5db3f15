"""Keeps pages on the web away: they have none of a farm's tokens, but could call one on loopback."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api.http.problems import problem_response
from farm.core.base.address import is_loopback
from farm.core.errors import Blame, Forbidden, InvalidInput
from farm.wire.base import Problem


class LoopbackOnly:
    """Refuses requests that were not made for a loopback address, or that a page from elsewhere makes.

    A browser on the farm's machine can be sent here by any page: through a name of the page's own that
    resolves to loopback (DNS rebinding), or by a form that needs no permission. The first shows in Host, the
    second in Origin.

    Nor does it answer a reverse proxy that says so: everybody in front of that would be on this machine.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif any(map(_is_of_a_proxy, headers := Headers(scope=scope))):
            await problem_response(_PROXIED)(scope, receive, send)
        elif not is_for_loopback(headers):
            await problem_response(_REFUSED)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class SameOriginOnly:
    """Refuses requests that a page from elsewhere makes, on a farm that asks everybody for a token.

    No cookie and no other credential of a browser's lets anybody in here, so a page has no rights to borrow,
    whatever the farm is called: this only keeps it from trying. Whoever has a token may call by any name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_of_same_origin(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        await problem_response(_FROM_ELSEWHERE)(scope, receive, send)


#: What proxies add (RFC 9110, 7.6.3; RFC 7239), beside the many that were there before. Never trusted, only
#: noticed; nginx adds none of them by itself.
_OF_PROXIES = frozenset({"forwarded", "via", "x-real-ip"})

_REFUSED = Problem(
    title="The request is not for a loopback address.",
    status=421,
    detail="this farm answers requests to 127.0.0.1, [::1] and localhost only, and none from pages elsewhere",
    code=InvalidInput.code,
    blame=Blame.USER,
    transient=False,
    hint="use http://127.0.0.1 with the farm's port; from another machine through an SSH tunnel",
)


_PROXIED = Problem(
    title="The request came through a proxy.",
    status=421,
    detail="this farm trusts everybody on its own machine, and somebody behind a proxy may be anywhere",
    code=InvalidInput.code,
    blame=Blame.USER,
    transient=False,
    hint="start it with FARM_REQUIRE_TOKENS=1: then everybody shows an access token, and a proxy is welcome",
)

_FROM_ELSEWHERE = Problem(
    title="The request comes from a page elsewhere.",
    status=403,
    detail="Origin and Host differ: pages of other sites do not call this farm",
    code=Forbidden.code,
    blame=Blame.USER,
    transient=False,
    hint="call it from a program, with an access token",
)


def _is_of_a_proxy(header: str) -> bool:
    return header in _OF_PROXIES or header.startswith("x-forwarded-")


def is_of_same_origin(headers: Headers) -> bool:
    """Whether there is no Origin, or one with the authority that Host names."""
    host = headers.get("host", "")
    return all(
        origin.partition("://")[0] in ("http", "https") and origin.partition("://")[2] == host
        for origin in headers.getlist("origin")
    )


def is_for_loopback(headers: Headers) -> bool:
    """Whether Host, and Origin where there is one, name loopback."""
    return is_loopback_authority(headers.getlist("host")) and all(
        origin.startswith(("http://", "https://")) and is_loopback_authority([origin.partition("//")[2]])
        for origin in headers.getlist("origin")
    )


def is_loopback_authority(found: Sequence[str]) -> bool:
    """Whether there is one `host[:port]`, and it is a loopback one."""
    if len(found) != 1:
        return False
    try:
        parts = urlsplit(f"//{found[0]}")
        # Reading the port checks it.
        name, _port = parts.hostname or "", parts.port
        return parts.netloc == found[0] and is_loopback(name)
    except ValueError:
        return False
