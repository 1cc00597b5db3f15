"""Routes of pages: their errors are pages, too, with the hint of the error."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from farm.api.http.authentication import authenticated_caller
from farm.api.http.problems import (
    invalid_values,
    on_http_error,
    problem_document,
    problem_of_caller,
    problem_response,
)
from farm.core.errors import FarmError, NotFound
from farm.web.http.rendering import respond
from farm.web.http.templates import TEMPLATES
from farm.wire.base import Problem

_NOT_PAGES = ("/api/", "/static/")
#: The pause before a page asks a busy farm again: long enough that one that is slow to read adds little load.
_AGAIN_S = 30


class PageRoute(APIRoute):
    """Answers errors with a page."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["include_in_schema"] = False
        super().__init__(*args, **kwargs)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which raises no error of the farm and none of an invalid request."""
        handle = super().get_route_handler()

        async def handle_page(request: Request) -> Response:
            try:
                return await handle(request)
            except FarmError as error:
                return error_page(request, problem_document(error), query=request.url.query)
            except RequestValidationError as error:
                return error_page(request, _invalid_address(error), query=request.url.query)

        return handle_page


def on_unknown_page(request: Request, error: Exception) -> Response:
    """Answer a browser that asks for a page which is none; programs get a problem document."""
    assert isinstance(error, HTTPException)
    if not _is_for_page(request):
        return on_http_error(request, error)
    detail = f"The farm has no page {request.url.path}."
    if error.status_code != 404:
        detail = f"{request.method} {request.url.path}: {error.detail}"
    problem = problem_of_caller(
        error.status_code,
        "There is no such page.",
        detail,
        hint="follow the links above, or correct the address",
        kind=NotFound,
    )
    return error_page(request, problem)


def refuse_visitor(request: Request, problem: Problem) -> Response:
    """Answer a caller who is not let in: a browser that asks for a page with a page."""
    return error_page(request, problem) if _is_for_page(request) else problem_response(problem)


def _is_for_page(request: Request) -> bool:
    is_browser = "text/html" in request.headers.get("accept", "")
    return is_browser and not request.url.path.startswith(_NOT_PAGES)


def error_page(request: Request, problem: Problem, *, query: str = "") -> Response:
    """Return a problem as a page; with the query of a page that is there, it leads to that page without.

    Where the farm was busy, the page loads itself again; the answer to a form does not, whose address is that
    of a page that asks before the action.
    """
    html = TEMPLATES.get_template("shared/error.html").render(
        problem=problem,
        caller=authenticated_caller(request),
        here=request.url.path,
        query=query,
        again_s=_AGAIN_S if problem.status == 503 and request.method == "GET" else None,
    )
    return respond(request, html, status=problem.status)


def _invalid_address(error: RequestValidationError) -> Problem:
    return problem_of_caller(
        422,
        "This address is not one of a page.",
        invalid_values(error),
        hint="follow the links of the pages, or correct the address",
    )
