"""The sign-in page of a farm that wants tokens: with one, or by its identity provider."""

from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from farm.api.context import Context, Farm
from farm.api.http.problems import status_of
from farm.api.routes.access import provider_of
from farm.core.errors import AuthError, FarmError
from farm.services.access.page_sessions import sign_in, sign_out
from farm.services.access.people import sign_in_browser
from farm.services.access.refused_requests import ANONYMOUS
from farm.services.access.sign_in_attempts import SignInAttempt, new_attempt
from farm.web.http.forms import form_values
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import respond
from farm.web.http.sign_in import (
    CALLBACK_PATH,
    COOKIE,
    PROVIDER_PATH,
    SIGN_IN_PATH,
    SIGN_OUT_PATH,
    is_secure,
    local_path,
    session_secret,
)
from farm.web.http.templates import TEMPLATES

router = APIRouter(route_class=PageRoute)

#: The secret of an attempt and the page to go on to. The provider leads the browser back from another site:
#: with links from there, this cookie is sent (SameSite=Lax).
_ATTEMPT_COOKIE = "benchfarm_sign_in"
_ATTEMPT_S = 600
#: It outlives each session, so that the farm can say that one has ended.
_COOKIE_S = 60 * 86_400
_NO_PROVIDER_HINT = "sign in with an access token"


@router.get(SIGN_IN_PATH)
async def get_sign_in(
    request: Request, farm: Farm, next: Annotated[str, Query(max_length=4000)] = "/", ended: bool = False
) -> Response:
    """Show the form, where this farm wants a token; say so if a session has ended."""
    if not farm.config.needs_tokens:
        return RedirectResponse(local_path(next), status_code=303)
    return _form(request, farm, next_path=local_path(next), has_ended=ended)


@router.get(PROVIDER_PATH)
async def get_provider(
    request: Request, farm: Farm, next: Annotated[str, Query(max_length=2000)] = "/"
) -> Response:
    """Lead the browser to the identity provider."""
    provider, attempt, next_path = provider_of(farm, hint=_NO_PROVIDER_HINT), new_attempt(), local_path(next)
    try:
        url = await provider.authorization_url(attempt, redirect_uri=_callback(request))
    except FarmError as error:
        return _form(request, farm, next_path=next_path, error=error)
    answer = RedirectResponse(url, status_code=303)
    answer.set_cookie(
        _ATTEMPT_COOKIE,
        urlencode({"secret": attempt.secret, "next": next_path}),
        max_age=_ATTEMPT_S,
        path=PROVIDER_PATH,
        httponly=True,
        samesite="lax",
        secure=is_secure(request.headers, request.url.scheme),
    )
    return answer


@router.get(CALLBACK_PATH)
async def get_callback(
    request: Request,
    farm: Farm,
    code: Annotated[str, Query(max_length=4000)] = "",
    state: Annotated[str, Query(max_length=200)] = "",
    error: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Begin a session of the person whom the identity provider sent back."""
    provider = provider_of(farm, hint=_NO_PROVIDER_HINT)
    kept = dict(parse_qsl(request.cookies.get(_ATTEMPT_COOKIE, "")))
    attempt, next_path = SignInAttempt(kept.get("secret", "")), local_path(kept.get("next", "/"))
    try:
        async with farm.refused.telling(ANONYMOUS):
            attempt.check(state)
            if error or not code:
                raise AuthError(
                    f"the identity provider did not sign you in: {error or 'it sent no code'}",
                    hint="sign in again, or ask who runs the provider whether you may use this farm",
                )
            person = await provider.identify(code, attempt, redirect_uri=_callback(request))
        secret, token = await farm.database.write_async(farm.bind(sign_in_browser), person)
    except FarmError as failure:
        answer = _form(request, farm, next_path=next_path, error=failure)
    else:
        # A redirect would still be of the provider's site, from which the session's cookie is not sent.
        html = TEMPLATES.get_template("sign_in/signed_in.html").render(
            caller=None, here=SIGN_IN_PATH, query="", title="Signed in", next_path=next_path, token=token
        )
        answer = respond(request, html)
        _set_session(request, answer, secret)
    answer.delete_cookie(_ATTEMPT_COOKIE, path=PROVIDER_PATH, httponly=True, samesite="lax")
    return answer


@router.post(SIGN_IN_PATH)
async def post_sign_in(request: Request, farm: Farm) -> Response:
    """Begin a session with an access token."""
    form = await form_values(request)
    next_path = local_path(form.get("next", "/"))
    try:
        async with farm.refused.telling(ANONYMOUS):
            secret = await farm.database.write_async(farm.bind(sign_in), form.get("token", ""))
    except AuthError as error:
        return _form(request, farm, next_path=next_path, error=error)
    answer = RedirectResponse(next_path, status_code=303)
    _set_session(request, answer, secret)
    return answer


@router.post(SIGN_OUT_PATH)
async def post_sign_out(request: Request, farm: Farm) -> Response:
    """End the browser's session."""
    await form_values(request)
    secret = session_secret(request.headers)
    if secret is not None:
        await farm.database.write_async(farm.bind(sign_out), secret)
    answer = RedirectResponse(SIGN_IN_PATH, status_code=303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def _set_session(request: Request, answer: Response, secret: str) -> None:
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=_COOKIE_S,
        path="/",
        httponly=True,
        samesite="strict",
        secure=is_secure(request.headers, request.url.scheme),
    )


def _callback(request: Request) -> str:
    """Return where the provider sends the browser back to: the farm as the browser calls it."""
    scheme = "https" if is_secure(request.headers, request.url.scheme) else "http"
    return f"{scheme}://{request.headers.get('host', '')}{CALLBACK_PATH}"


def _form(
    request: Request,
    farm: Context,
    *,
    next_path: str,
    error: FarmError | None = None,
    has_ended: bool = False,
) -> Response:
    provider = farm.identity_provider
    html = TEMPLATES.get_template("sign_in/page.html").render(
        caller=None,
        here=SIGN_IN_PATH,
        query="",
        title="Sign in",
        next_path=next_path,
        error=error,
        has_ended=has_ended,
        provider=None if provider is None else provider.label,
        provider_path=f"{PROVIDER_PATH}?{urlencode({'next': next_path})}",
    )
    status = 200 if error is None else status_of(error)
    # To a page that is read, 401 means that the browser shall be led here.
    return respond(request, html, status=403 if status == 401 and request.method == "GET" else status)
