"""A connection to one farm: its address, the caller, and the time-outs."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Self, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx

from farm.client.bearer_token import BearerToken, can_repeat
from farm.client.certificates import UNTRUSTED_HINT, is_untrusted, trusted_certificates
from farm.client.responses import checked_response, farm_address, parse_response
from farm.core.base.address import is_loopback, is_overheard
from farm.core.errors import FarmUnreachable
from farm.wire.base import CALLER_HEADER, EXPIRY_HEADER, MAX_LIST_PAGE, REQUEST_KEY_HEADER

T = TypeVar("T")
#: None leaves a parameter out; a sequence repeats it.
QueryValue = str | int | float | bool | Sequence[str] | None

#: Connecting, and each read or write; a request that sends a file takes as many writes as it needs.
CONNECT_S = 5.0
ANSWER_S = 60.0
#: Tries after a farm said that it is busy, or gets too many calls, and the longest pause that is made for it,
#: in seconds.
_CALL_TRIES, _MAX_WAIT_S = 4, 60


class FarmConnection:
    """A connection to one farm, as one caller."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        name: str | None = None,
        answer_s: float = ANSWER_S,
        away_hint: str | None = None,
        find_newer_token: Callable[[], str | None] = lambda: None,
        on_token_expiry: Callable[[str, datetime], None] | None = None,
    ) -> None:
        """Prepare a connection; nothing is sent yet.

        Args:
            url: the address of the farm.
            token: an access token, which authenticates the caller.
            name: the caller, for a farm that requires no token.
            answer_s: the time-out of each read and write.
            away_hint: the remedy when no farm answers there; None for the default.
            find_newer_token: called where the farm refuses the token; what it returns takes its place.
            on_token_expiry: called with the token and the time it expires, by each answer that has it.

        Raises:
            InvalidInput: `url` is not the address of a web server.
        """
        self.url = url.rstrip("/")
        self._away_hint = away_hint
        self._bearer = BearerToken(token, find_newer_token)
        self._on_token_expiry = on_token_expiry
        address = farm_address(self.url)
        #: True if others may read the traffic: it goes over a network, and is not encrypted.
        self.is_overheard = is_overheard(self.url)
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            auth=self._bearer,
            headers={} if name is None else {CALLER_HEADER: quote(name, safe="")},
            verify=trusted_certificates(self.url),
            timeout=httpx.Timeout(answer_s, connect=CONNECT_S),
            # A proxy cannot reach this machine's own loopback.
            trust_env=not is_loopback(address.host),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _get(self, kind: type[T], path: str, /, **query: QueryValue) -> T:
        params = {name: value for name, value in query.items() if value is not None}
        return parse_response(kind, self._send(self._http.build_request("GET", path, params=params)))

    def _list(self, kind: type[list[T]], path: str, key: Callable[[T], str | int]) -> list[T]:
        """Return all rows of a list, however many pages they take."""
        rows: list[T] = []
        page = self._get(kind, path, limit=MAX_LIST_PAGE)
        # A farm of an earlier release has no pages: it returns the whole list each time.
        while page and (not rows or key(page[-1]) != key(rows[-1])):
            rows += page
            if len(page) != MAX_LIST_PAGE:
                break
            page = self._get(kind, path, limit=MAX_LIST_PAGE, after=key(rows[-1]))
        return rows

    def _pages(
        self,
        kind: type[list[T]],
        path: str,
        key: Callable[[T], int],
        *,
        after: int | None = None,
        limit: int | None = None,
        max_page: int = MAX_LIST_PAGE,
        newest_first: bool = False,
        **query: QueryValue,
    ) -> Iterator[T]:
        """Yield the rows of a list behind a key, page by page.

        Args:
            kind: of a page.
            path: of the list.
            key: of a row, behind which its next page begins.
            after: the key behind which the first page begins; None begins the list.
            limit: rows in all; None for all.
            max_page: the most rows of a page.
            newest_first: keys fall, and the farm calls the one that a page begins behind `before`.
            query: the filters of the list.
        """
        left = limit
        while left is None or left > 0:
            behind = {"before" if newest_first else "after": after}
            size = None if left is None else min(left, max_page)
            page = self._get(kind, path, **query, **behind, limit=size)
            # A farm of an earlier release has no pages: it returns the whole list each time.
            if not page or key(page[-1]) == after:
                return
            yield from page
            after = key(page[-1])
            left = None if left is None else left - len(page)

    def _get_text(self, url: str) -> str:
        return checked_response(self._send(self._http.build_request("GET", url))).text

    def _post(self, kind: type[T], path: str, body: Mapping[str, object]) -> T:
        return parse_response(kind, self._send(self._http.build_request("POST", path, json=body)))

    def _post_once(
        self,
        kind: type[T],
        path: str,
        body: Mapping[str, object],
        *,
        lost_hint: str,
        key: str | None = None,
    ) -> T:
        """Post a request that must take effect once: it has a key, and is sent again if its answer is lost.

        Raises:
            FarmUnreachable: the second answer was lost, too; `lost_hint` says how to check the result.
        """
        request = self._http.build_request(
            "POST", path, json=body, headers={REQUEST_KEY_HEADER: f'"{key or uuid4()}"'}
        )
        try:
            return parse_response(kind, self._send(request))
        except FarmUnreachable as error:
            if isinstance(error.__cause__, (httpx.ConnectError, httpx.ConnectTimeout)):
                # Nothing was sent.
                raise
        try:
            return parse_response(kind, self._send(request))
        except FarmUnreachable as error:
            raise FarmUnreachable(error.message, hint=lost_hint) from error

    def _delete(self, kind: type[T], path: str) -> T:
        return parse_response(kind, self._send(self._http.build_request("DELETE", path)))

    def _send(self, request: httpx.Request) -> httpx.Response:
        response = self._send_now(request)
        for _ in range(_CALL_TRIES):
            if not _is_worth_repeating(request, response):
                break
            if (wait_s := _wait_s(response)) > _MAX_WAIT_S:
                break
            time.sleep(wait_s)
            response = self._send_now(request)
        return response

    def _sent(self, request: httpx.Request) -> httpx.Response:
        """Send a request; what only reads is sent again if its connection is cut off."""
        try:
            return self._http.send(request)
        except httpx.TransportError as error:
            if request.method != "GET" or not _is_cut_off(error):
                raise
        return self._http.send(request)

    def _send_now(self, request: httpx.Request) -> httpx.Response:
        try:
            response = self._sent(request)
        except httpx.TimeoutException as error:
            raise FarmUnreachable(
                f"the farm at {self.url} did not answer in time", hint="is it busy, or is it another program?"
            ) from error
        except httpx.RequestError as error:
            if is_untrusted(error):
                raise FarmUnreachable(f"{self.url} is not trusted: {error}", hint=UNTRUSTED_HINT) from error
            raise FarmUnreachable(f"no farm answers at {self.url}", hint=self._away_hint) from error
        text, token = response.headers.get(EXPIRY_HEADER), self._bearer.token
        if self._on_token_expiry is not None and text and token is not None:
            with suppress(ValueError):
                self._on_token_expiry(token, datetime.fromisoformat(text))
        return response


def _is_cut_off(error: httpx.TransportError) -> bool:
    """Return whether a connection that was there ended, as one that was idle too long."""
    return isinstance(error, (httpx.NetworkError, httpx.RemoteProtocolError)) and not isinstance(
        error, httpx.ConnectError
    )


def _is_worth_repeating(request: httpx.Request, response: httpx.Response) -> bool:
    """Return whether the same request may be sent again after a response, and may then be answered."""
    if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        # A transaction whose end was lost may have taken effect.
        is_harmless = request.method == "GET" or REQUEST_KEY_HEADER in request.headers
        return is_harmless and "Retry-After" in response.headers
    # Nothing was done. A file is sent again by its upload, which knows where to go on.
    return response.status_code == httpx.codes.TOO_MANY_REQUESTS and can_repeat(request)


def _wait_s(response: httpx.Response) -> float:
    """Return how long the farm, or a proxy, wants no further call; dates are not read."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 1.0
