"""Forms of pages: short, and from a page of this farm only."""

from urllib.parse import parse_qs

from fastapi import Request
from starlette.datastructures import Headers

from farm.api.http.origin_check import is_of_same_origin
from farm.core.errors import Forbidden, InputTooLarge

#: A token, or a reason, with all its characters escaped.
MAX_FORM_BYTES = 4096


async def form_values(request: Request) -> dict[str, str]:
    """Return the fields of a form; of a repeated one the last.

    Raises:
        Forbidden: a page elsewhere sent it, one of another port of this machine, too.
        InputTooLarge: it is no form of these pages.
    """
    if not is_of_own_page(request.headers):
        raise Forbidden("the form comes from a page elsewhere", hint="open the farm's own page")
    body = await request.body()
    if len(body) > MAX_FORM_BYTES:
        raise InputTooLarge(f"a form has at most {MAX_FORM_BYTES} bytes")
    return fields_of(body)


def fields_of(body: bytes) -> dict[str, str]:
    """Return the fields of the body of a form; of a repeated one the last."""
    return {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}


def is_of_own_page(headers: Headers) -> bool:
    """Return whether a form is of this farm: browsers send Origin with each, other programs need not."""
    site = headers.get("sec-fetch-site", "same-origin")
    return is_of_same_origin(headers) and site in ("same-origin", "none")
