"""Forms of pages: short, and from a page of this farm only."""

from urllib.parse import parse_qs

from fastapi import Request

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
    _demand_same_origin(request)
    body = await request.body()
    if len(body) > MAX_FORM_BYTES:
        raise InputTooLarge(f"a form has at most {MAX_FORM_BYTES} bytes")
    return {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}


def _demand_same_origin(request: Request) -> None:
    """Refuse what another site sends; browsers send Origin with every form, other programs need not."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    if not is_of_same_origin(request.headers) or site not in ("same-origin", "none"):
        raise Forbidden("the form comes from a page elsewhere", hint="open the farm's own page")
