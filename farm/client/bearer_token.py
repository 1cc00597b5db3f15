"""The access token of a connection, and a newer one in its place where the farm refuses it."""

from collections.abc import Callable, Generator

import httpx


class BearerToken(httpx.Auth):
    """Sends the token with every request."""

    def __init__(self, token: str | None, find_newer: Callable[[], str | None]) -> None:
        """Keep a token; `find_newer` is called where it is refused, and may return the same."""
        self.token = token
        self._find_newer = find_newer

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send a request, and once more with a newer token: the farm did nothing of what it refused."""
        used = self._bear(request)
        response = yield request
        if response.status_code != httpx.codes.UNAUTHORIZED:
            return
        newer = self._find_newer()
        if newer is None or newer == used:
            return
        self.token = newer
        # A file is sent again by its upload, which knows where to go on.
        if can_repeat(request):
            self._bear(request)
            yield request

    def _bear(self, request: httpx.Request) -> str | None:
        """Put the token into a request, and return it."""
        token = self.token
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        return token


def can_repeat(request: httpx.Request) -> bool:
    """Return whether the body of a request can be sent a second time."""
    return isinstance(request.stream, httpx.ByteStream)
