"""Errors as problem documents (RFC 9457) with code, blame and hint."""

import json
from collections.abc import Mapping
from math import ceil

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from farm.core.base.validation_messages import constraint_message
from farm.core.errors import (
    ArtifactExpired,
    AuthError,
    Blame,
    Conflict,
    FarmDiskFull,
    FarmError,
    Forbidden,
    InputTooLarge,
    InputTooSlow,
    InvalidInput,
    LimitReached,
    NotFound,
)
from farm.wire.base import Problem

_log = structlog.get_logger(__name__)
_API_HINT = "/openapi.json describes every call"


def install_problem_handlers(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""
    app.add_exception_handler(FarmError, _on_farm_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(ClientDisconnect, _on_hang_up)
    app.add_exception_handler(Exception, _on_bug)


def status_of(error: FarmError) -> int:
    """Return the HTTP status of an error, from its class, blame and transience."""
    match error:
        case ArtifactExpired():
            return 410
        case NotFound():
            return 404
        case AuthError():
            return 401
        case Forbidden():
            return 403
        case Conflict():
            return 409
        case InputTooLarge():
            return 413
        case InputTooSlow():
            return 408
        case LimitReached():
            return 429
        case InvalidInput():
            return 422
        case FarmDiskFull():
            return 507
        case _ if error.blame in (Blame.USER, Blame.VARIANT):
            return 422
        case _:
            return 503 if error.transient else 500


#: Headers that HTTP requires beside a status (RFC 9110).
HEADERS_BY_STATUS = {
    401: {"WWW-Authenticate": "Bearer"},
    408: {"Connection": "close"},
    503: {"Retry-After": "1"},
}


class _ProblemResponse(JSONResponse):
    """A problem document in ASCII: half a surrogate pair, quoted from a request, has no other encoding."""

    def render(self, content: object) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem document as a response."""
    return _ProblemResponse(
        problem.model_dump(mode="json"),
        status_code=problem.status,
        headers={**HEADERS_BY_STATUS.get(problem.status, {}), **(headers or {})},
        media_type="application/problem+json",
    )


def problem_document(error: FarmError) -> Problem:
    """Return an error as a problem document."""
    return Problem(
        title=(type(error).__doc__ or "").strip().splitlines()[0],
        status=status_of(error),
        detail=error.message,
        code=error.code,
        blame=error.blame,
        transient=error.transient,
        hint=error.hint,
        places=tuple(error.places) if isinstance(error, InvalidInput) else (),
    )


def retry_after(error: LimitReached) -> dict[str, str]:
    """Return the header that says when the caller may ask again."""
    return {"Retry-After": str(ceil(error.wait_s))}


def problem_of_caller(
    status: int, title: str, detail: str, *, hint: str, kind: type[FarmError] = InvalidInput
) -> Problem:
    """Return a problem of a request that no route saw; the same request again has it again."""
    code, blame = kind.code, Blame.USER
    return Problem(
        title=title, status=status, detail=detail, code=code, blame=blame, transient=False, hint=hint
    )


def problem_of(error: BaseException, what: str) -> Problem:
    """Return any error as a problem document; one outside the tree is a fault of the farm, and logged."""
    if isinstance(error, FarmError):
        return problem_document(error)
    _log.error("request_failed", what=what, exc_info=error)
    return Problem(
        title="The farm made a mistake.",
        status=500,
        detail=f"{type(error).__name__} while answering {what}",
        code=FarmError.code,
        blame=Blame.FARM,
        transient=False,
        hint=FarmError.default_hint,
    )


def _on_farm_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, FarmError)
    headers = retry_after(error) if isinstance(error, LimitReached) else None
    return problem_response(problem_document(error), headers)


def _on_invalid_request(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    title, detail = "The request makes no sense as written.", invalid_values(error)
    return problem_response(problem_of_caller(422, title, detail, hint=_API_HINT))


def invalid_values(error: RequestValidationError) -> str:
    """Return what is wrong in a request: `matrix_id: must be a whole number; name: must not be empty`."""
    texts = []
    for problem in error.errors():
        kind, *place = problem["loc"]
        limits = problem.get("ctx", {})
        if problem["type"] == "json_invalid":
            # Its place is an offset in the text.
            text, place = f"is not JSON at character {place[0] + 1}: {limits['error']}", []
        else:
            text = constraint_message(problem["type"], problem["msg"], limits)
        texts.append(f"{'.'.join(map(str, place or [kind]))}: {text}")
    return "; ".join(texts)


def on_http_error(request: Request, error: Exception) -> Response:
    """Answer a call that no route has, or none with this method."""
    assert isinstance(error, HTTPException)
    kind = NotFound if error.status_code == 404 else InvalidInput
    detail = f"{request.method} {request.url.path}: {error.detail}"
    problem = problem_of_caller(error.status_code, str(error.detail), detail, hint=_API_HINT, kind=kind)
    return problem_response(problem, error.headers)


def _on_hang_up(_request: Request, _error: Exception) -> Response:
    """Answer a request that was cut off: the client is gone, and nothing failed here."""
    return Response(status_code=400)


def _on_bug(request: Request, error: Exception) -> Response:
    return problem_response(problem_of(error, f"{request.method} {request.url.path}"))
