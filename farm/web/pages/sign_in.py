"""The sign-in page of a farm that wants tokens."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from farm.api.context import Farm
from farm.core.errors import AuthError
from farm.services.access.page_sessions import VALID_FOR, sign_in, sign_out
from farm.services.access.refused_requests import ANONYMOUS
from farm.web.http.forms import form_values
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import respond
from farm.web.http.sign_in import COOKIE, SIGN_IN_PATH, is_secure, local_path, session_secret
from farm.web.http.templates import TEMPLATES

router = APIRouter(route_class=PageRoute)


@router.get(SIGN_IN_PATH)
async def get_sign_in(
    request: Request, farm: Farm, next: Annotated[str, Query(max_length=4000)] = "/"
) -> Response:
    """Show the form, where this farm wants a token."""
    if not farm.config.needs_tokens:
        return RedirectResponse(local_path(next), status_code=303)
    return _form(request, next_path=local_path(next))


@router.post(SIGN_IN_PATH)
async def post_sign_in(request: Request, farm: Farm) -> Response:
    """Begin a session with an access token."""
    form = await form_values(request)
    next_path = local_path(form.get("next", "/"))
    try:
        async with farm.refused.telling(ANONYMOUS):
            secret = await farm.database.write_async(farm.bind(sign_in), form.get("token", ""))
    except AuthError as error:
        return _form(request, next_path=next_path, error=error)
    answer = RedirectResponse(next_path, status_code=303)
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=int(VALID_FOR.total_seconds()),
        path="/",
        httponly=True,
        samesite="strict",
        secure=is_secure(request.headers, request.url.scheme),
    )
    return answer


@router.post("/logout")
async def post_sign_out(request: Request, farm: Farm) -> Response:
    """End the browser's session."""
    await form_values(request)
    secret = session_secret(request.headers)
    if secret is not None:
        await farm.database.write_async(farm.bind(sign_out), secret)
    answer = RedirectResponse(SIGN_IN_PATH, status_code=303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def _form(request: Request, *, next_path: str, error: AuthError | None = None) -> Response:
    html = TEMPLATES.get_template("sign_in/page.html").render(
        caller=None, here=SIGN_IN_PATH, query="", title="Sign in", next_path=next_path, error=error
    )
    return respond(request, html, status=200 if error is None else 401)
