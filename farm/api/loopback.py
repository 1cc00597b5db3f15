"""Keeps pages on the web away from a farm on loopback."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api.problems import problem_response
from farm.core.address import is_loopback
from farm.core.errors import Blame, InvalidInput
from farm.wire.base import Problem


class LoopbackOnly:
    """Refuses requests that were not made for a loopback address, or that a page from elsewhere makes.

    A browser on the farm's machine can be sent here by any page: through a name of the page's own that
    resolves to loopback (DNS rebinding), or by a form that needs no permission. The first shows in Host, the
    second in Origin.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_for_loopback(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        await problem_response(_REFUSED)(scope, receive, send)


_REFUSED = Problem(
    title="The request is not for a loopback address.",
    status=421,
    detail="this farm answers requests to 127.0.0.1, [::1] and localhost only, and none from pages elsewhere",
    code=InvalidInput.code,
    blame=Blame.USER,
    transient=False,
    hint="use http://127.0.0.1 with the farm's port; from another machine through an SSH tunnel",
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
