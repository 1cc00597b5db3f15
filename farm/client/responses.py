"""HTTP responses, parsed into typed documents or raised as errors of the farm's tree."""

from typing import TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from farm.client.problem_errors import error_of
from farm.core.errors import FarmError, FarmFault, InvalidInput
from farm.wire.base import Problem

T = TypeVar("T")

_ADDRESS_HINT = "write FARM_URL like http://127.0.0.1:8470"


def parse_response(kind: type[T], response: httpx.Response) -> T:
    """Parse the document in a farm's response.

    Raises:
        FarmError: the one that the farm's problem document stands for.
        FarmFault: the answer is no such document.
    """
    try:
        return TypeAdapter(kind).validate_json(checked_response(response).content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole answer"
        raise FarmFault(
            f"{response.request.url} answered what this client cannot read: {where}: {first['msg']}",
            hint="is that a farm, and of this version? `farm --version` says what this client is",
        ) from error


def checked_response(response: httpx.Response) -> httpx.Response:
    """Return the response of a successful call; raise the error that a refusal describes."""
    if response.is_success:
        return response
    raise _refusal(response)


def _refusal(response: httpx.Response) -> FarmError:
    try:
        return error_of(Problem.model_validate_json(response.content))
    except ValidationError:
        status = f"{response.status_code} {response.reason_phrase}".strip()
        kind = InvalidInput if response.is_client_error else FarmFault
        return kind(
            f"{response.request.url} answered {status} and no reason", hint="is that the address of a farm?"
        )


def farm_address(url: str) -> httpx.URL:
    """Parse the address of a farm.

    Raises:
        InvalidInput: it is not the address of a web server.
    """
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidInput(f"{url!r} is not an address: {error}", hint=_ADDRESS_HINT) from error
    if address.scheme not in ("http", "https") or not address.host:
        raise InvalidInput(f"{url!r} is not the address of a farm", hint=_ADDRESS_HINT)
    return address
