"""Sign-in of browsers: an access token once, then a cookie that no script reads and no other site sends."""

from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farm.api.context import Context
from farm.api.http.authentication import bearer, identify_caller
from farm.api.http.request_bodies import content_length, receive_body
from farm.core.errors import InputTooSlow
from farm.core.operations.role import Caller
from farm.services.access.page_sessions import authenticate_session
from farm.web.http.forms import MAX_FORM_BYTES, fields_of, is_of_own_page

COOKIE = "benchfarm_session"
SIGN_IN_PATH, SIGN_OUT_PATH = "/login", "/logout"
#: By the identity provider: where a browser goes to it from, and comes back to.
PROVIDER_PATH, CALLBACK_PATH = f"{SIGN_IN_PATH}/oidc", f"{SIGN_IN_PATH}/oidc/callback"
_STATIC = "/static/"
_TYPED_FIELDS = ("reason", "for")
#: Encoded. It is encoded again in the address, the form and the cookie of the sign-in, which take 4 kB.
_MAX_TYPED = 2000
#: A caller who is not known yet is not waited for longer.
_FORM_S = 5.0


def is_open(method: str, path: str) -> bool:
    """Return whether anyone may make a call: those of the sign-in, and what its page looks like."""
    is_read = method in ("GET", "HEAD")
    return path == SIGN_IN_PATH or (
        is_read and (path in (PROVIDER_PATH, CALLBACK_PATH) or path.startswith(_STATIC))
    )


async def identify_visitor(headers: Headers, farm: Context) -> Caller:
    """Return who a request is from: by its bearer credential, or by the cookie of a browser.

    Raises:
        AuthError: it has neither, or one that is no longer valid.
    """
    secret = session_secret(headers)
    if bearer(headers) is not None or secret is None:
        return await identify_caller(headers, farm)
    return await farm.database.peek_async(farm.bind(authenticate_session), secret)


def secret_of(headers: Headers) -> str | None:
    """Return what `identify_visitor` looks at; None without one."""
    return bearer(headers) or session_secret(headers)


def session_secret(headers: Headers) -> str | None:
    """Return the secret of a browser's session; None without one."""
    return cookie_parser(headers.get("cookie", "")).get(COOKIE) or None


def is_secure(headers: Headers, scheme: str) -> bool:
    """Return whether the browser came by TLS; a proxy's word suffices, as it only adds a restriction."""
    return scheme == "https" or headers.get("x-forwarded-proto") == "https"


def local_path(path: str) -> str:
    """Return a path of this farm to go on to: another site's address becomes the overview."""
    parts = urlsplit(path)
    is_local = not parts.scheme and not parts.netloc and path.startswith("/") and "\\" not in path
    return path if is_local and not path.startswith("//") else "/"


class SignInRedirect:
    """Leads a browser without a session from a page to the sign-in, and back to the page.

    A form whose session ended leads back to the page that asks before the action, at the same address, with
    what was typed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _wants_page(scope):
            await self._app(scope, receive, send)
            return
        is_refused = False

        async def send_or_redirect(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start":
                is_refused = message["status"] == 401
            if not is_refused:
                await send(message)

        await self._app(scope, receive, send_or_redirect)
        if is_refused:
            query = scope["query_string"].decode("latin-1")
            has_ended = session_secret(Headers(scope=scope)) is not None
            if scope["method"] == "POST":
                query = await _typed_query(scope, receive)
            here = scope["path"] + (f"?{query}" if query else "")
            target = urlencode({"next": here} | ({"ended": "true"} if has_ended else {}))
            await RedirectResponse(f"{SIGN_IN_PATH}?{target}", status_code=303)(scope, receive, send)


def _wants_page(scope: Scope) -> bool:
    """Return whether a browser asks for a page, or sends a form other than that of the sign-in."""
    headers, path = Headers(scope=scope), scope["path"]
    is_form = scope["method"] == "POST" and path not in (SIGN_IN_PATH, SIGN_OUT_PATH)
    is_of_page = (scope["method"] in ("GET", "HEAD") or is_form) and not path.startswith("/api/")
    return is_of_page and "text/html" in headers.get("accept", "") and bearer(headers) is None


async def _typed_query(scope: Scope, receive: Receive) -> str:
    """Return what a person typed into a form that was refused before it was read; empty if it is long."""
    headers = Headers(scope=scope)
    if not (is_of_own_page(headers) and 0 < (content_length(headers) or 0) <= MAX_FORM_BYTES):
        return ""
    try:
        body = await receive_body(Request(scope, receive).body(), within_s=_FORM_S)
    except (InputTooSlow, ClientDisconnect):
        return ""
    fields = fields_of(body)
    query = urlencode({name: fields[name] for name in _TYPED_FIELDS if name in fields})
    return query if len(query) <= _MAX_TYPED else ""
