"""HTTP responses, parsed into typed documents or raised as errors of the farm's tree."""

from collections.abc import Iterator
from typing import TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from farm.core.base.address import NO_LOGIN, has_login
from farm.core.errors import Blame, DeviceError, FarmError, FarmFault, HostError, InvalidInput
from farm.wire.base import Problem

T = TypeVar("T")

_ADDRESS_HINT = "write FARM_URL like http://127.0.0.1:8470"
_LOGIN_HINT = f"{_ADDRESS_HINT}; `farm login URL` keeps an access token for it"


class VariantError(FarmError):
    """A failure of a model file, or of the harness running it, with a code unknown to this version."""

    code = "variant.error"
    blame = Blame.VARIANT
    default_hint = "`farm variant list` shows what the farm knows of the file"


class ProblemError(Exception):
    """The cause of an error that came over HTTP: the problem document as it was sent."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def error_of(problem: Problem) -> FarmError:
    """Return the error that a problem document describes, caused by a `ProblemError` that holds the document.

    A code this version does not know falls back to the class of its blame.
    """
    kind = error_class_by_code().get(problem.code) or _fallback(problem.blame)
    error = kind(problem.detail, hint=problem.hint)
    if isinstance(error, InvalidInput):
        error.places = problem.places
    error.__cause__ = ProblemError(problem)
    return error


def error_class_by_code() -> dict[str, type[FarmError]]:
    """Return every class of the error tree by its code on the wire."""
    return {kind.code: kind for kind in _walk(FarmError)}


def _walk(kind: type[FarmError]) -> Iterator[type[FarmError]]:
    # A class without a code of its own shares its parent's: the parent, met last, keeps it.
    for child in kind.__subclasses__():
        yield from _walk(child)
    yield kind


def _fallback(blame: str) -> type[FarmError]:
    fallbacks: dict[str, type[FarmError]] = {
        Blame.USER: InvalidInput,
        Blame.VARIANT: VariantError,
        Blame.DEVICE: DeviceError,
        Blame.HOST: HostError,
        Blame.FARM: FarmFault,
    }
    return fallbacks.get(blame, FarmFault)


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
        InvalidInput: it is not the address of a web server, or has a password, which is not repeated.
    """
    if has_login(url):
        raise InvalidInput(NO_LOGIN, hint=_LOGIN_HINT)
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidInput(f"{url!r} is not an address: {error}", hint=_ADDRESS_HINT) from error
    if address.scheme not in ("http", "https") or not address.host:
        raise InvalidInput(f"{url!r} is not the address of a farm", hint=_ADDRESS_HINT)
    return address
