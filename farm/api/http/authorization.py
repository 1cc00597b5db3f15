"""Authorization of callers: a route names the least role it needs by its parameter's type."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, TypeVar
from urllib.parse import unquote

from fastapi import Depends, Request

from farm.api.context import Context, Farm
from farm.api.http.authentication import authenticated_caller, bearer, identify_caller
from farm.core.errors import Forbidden, InvalidInput
from farm.core.operations.role import Caller, Role, is_permitted
from farm.wire.base import CALLER_HEADER
from farm.wire.documents.devices import PERSON, OperatorRequest

A = TypeVar("A", bound=OperatorRequest)

#: The name of a caller that gives none, where no token is needed.
_UNNAMED = "unnamed"
#: Characters of a path in an event.
_MAX_PATH_CHARS = 200


class AtLeast:
    """Dependency of a route that needs a role, or one above it; agents may call only with `or_agent`."""

    def __init__(self, needed: Role, *, or_agent: bool = False) -> None:
        self.needed = needed
        self.or_agent = or_agent

    async def __call__(self, request: Request, farm: Farm) -> Caller:
        """Return the caller.

        Raises:
            AuthError: the caller is not authenticated, and the farm needs that.
            Forbidden: they may not do this.
        """
        caller = authenticated_caller(request) or await _caller(request, farm)
        if not is_permitted(caller.role, self.needed) and not (self.or_agent and caller.role is Role.AGENT):
            async with telling_refusal(request, caller, farm):
                raise _refusal(caller, self.needed)
        return caller


Viewer = Annotated[Caller, Depends(AtLeast(Role.VIEWER))]
ViewerOrAgent = Annotated[Caller, Depends(AtLeast(Role.VIEWER, or_agent=True))]
Submitter = Annotated[Caller, Depends(AtLeast(Role.SUBMITTER))]
Operator = Annotated[Caller, Depends(AtLeast(Role.OPERATOR))]
Admin = Annotated[Caller, Depends(AtLeast(Role.ADMIN))]


@asynccontextmanager
async def telling_refusal(request: Request, caller: Caller, farm: Context) -> AsyncIterator[None]:
    """Record in the event log what a caller was refused, and raise it."""
    try:
        yield
    except Forbidden as refusal:
        asked = f"{request.method} {request.url.path[:_MAX_PATH_CHARS]}"
        await farm.refused.tell(_actor(caller), f"{asked}: {refusal.message}")
        raise


def as_caller(caller: Caller, request: A) -> A:
    """Return a request in its caller's name: an authenticated caller acts under no other."""
    return request.model_copy(update={"by": name_of(caller, request.by)})


def name_of(caller: Caller, claimed_name: str) -> str:
    """Return the caller's name: the proven one, else the one they give."""
    return caller.name if caller.is_authenticated else claimed_name


async def _caller(request: Request, farm: Farm) -> Caller:
    if farm.config.needs_tokens or bearer(request.headers) is not None:
        return await identify_caller(request.headers, farm)
    # Anyone who can log in on the farm's machine is its admin.
    name = unquote(request.headers.get(CALLER_HEADER, _UNNAMED))
    if not re.fullmatch(PERSON, name) or len(name) > 64:
        raise InvalidInput(f"{CALLER_HEADER} is no name", hint="up to 64 characters without blanks")
    return Caller(name=name, role=Role.ADMIN, is_authenticated=False)


def _refusal(caller: Caller, needed: Role) -> Forbidden:
    return Forbidden(
        f"{caller.name} is {_with_article(caller.role)}, and this needs {_with_article(needed)}",
        hint=f"an admin of this farm can make a token of that role: farm token create --role "
        f"{needed} --name {caller.name} --out FILE",
    )


def _actor(caller: Caller) -> str:
    return f"agent:{caller.name}" if caller.role is Role.AGENT else caller.actor


def _with_article(role: Role) -> str:
    return f"an {role}" if role[0] in "aeiou" else f"a {role}"
