"""Responses of pages: rendered from templates, with strict headers and entity tags."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from farm.api.context import Context
from farm.api.http.problems import HEADERS_BY_STATUS, problem_document
from farm.core.errors import InvalidInput, NotFound
from farm.core.operations.role import Caller
from farm.database.transaction import Tx
from farm.store.operations.event_watermark import event_watermark
from farm.web.http.shared_parts import SharedParts
from farm.web.http.templates import TEMPLATES

STATIC_FOLDER = Path(__file__).parents[1] / "static"
#: Everything from the farm itself, and nothing inline: text of devices and programs that came into a page
#: unescaped would still run nothing.
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "Vary": "Cookie",
}

#: Loads what a part of a page shows, by the names that its template uses.
Load = Callable[[Tx], Mapping[str, Any]]


async def render_page(
    request: Request,
    template: str,
    *,
    caller: Caller,
    part: str | None = None,
    parts: Mapping[str, Load],
    page: str = "page",
    **values: Any,
) -> Response:
    """Return a page, or one part of it for the browser to replace: of one snapshot of the database.

    It is made on a reader's thread, so that no other request waits for templates. Where a filter is wrong,
    the page keeps its form and says so in place of what it would show.

    Args:
        request: whose entity tag, if the page still has it, is answered with 304.
        template: of the page; its parts are the templates of the folder of its name.
        caller: who may see buttons.
        part: only this part; a name that the page does not have is the whole page.
        parts: how to load what each part shows.
        page: the template of the whole page in that folder.
        values: further ones for the page.

    Raises:
        FarmError: of a part, but for those of filters.
    """
    # A part that is sent alone has the links of its page.
    query = urlencode([pair for pair in parse_qsl(request.url.query) if pair[0] != "part"])
    shown = {"caller": caller, "here": request.url.path, "query": query, "problem": None, **values}
    farm: Context = request.app.state.context

    async def made(name: str, loads: Collection[Load], **further: object) -> str:
        values = shown | further
        return await farm.database.read_async(farm.bind(_make), f"{template}/{name}.html", values, loads)

    if part is None or part not in parts:
        try:
            return respond(request, await made(page, parts.values()))
        except (InvalidInput, NotFound) as error:
            # An address without a name or number in its path is wrong in its filters only.
            if request.path_params or not query:
                raise
            problem = problem_document(error)
            return respond(request, await made(page, (), problem=problem), status=problem.status)
    watermark = await farm.database.read_async(event_watermark)
    address = f"{request.url.path}?{request.url.query}"
    reader = f"{caller.actor} {caller.role}"
    html = await _shared_parts(request).get(watermark, address, reader, lambda: made(part, [parts[part]]))
    return respond(request, html)


def _make(tx: Tx, template: str, shown: Mapping[str, Any], loads: Collection[Load]) -> str:
    values = dict(shown)
    for load in loads:
        values |= load(tx)
    return TEMPLATES.get_template(template).render(values)


def _shared_parts(request: Request) -> SharedParts:
    """Return the shared parts of this process."""
    state = request.app.state
    if not hasattr(state, "shared_parts"):
        state.shared_parts = SharedParts()
    shared: SharedParts = state.shared_parts
    return shared


def respond(request: Request, html: str, *, status: int = 200) -> Response:
    """Return HTML with the headers of pages; 304 where the browser has it."""
    body = html.encode()
    tag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {**_HEADERS, **HEADERS_BY_STATUS.get(status, {}), "ETag": tag}
    if status == 200 and request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(body, status_code=status, headers=headers)
