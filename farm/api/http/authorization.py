"""Who calls, and whether they may: a route names the least role it needs by its parameter's type."""

import re
from typing import Annotated, TypeVar
from urllib.parse import unquote

from fastapi import Depends, Request
from starlette.datastructures import Headers

from farm.api.context import Context, Farm, authenticate_agent, authenticated_caller, bearer
from farm.core.errors import AuthError, Forbidden, InvalidInput
from farm.core.operations.role import Caller, Role, is_permitted
from farm.services.access.refused_requests import ANONYMOUS
from farm.services.access.tokens import ASK_AN_ADMIN, authenticate_caller
from farm.wire.base import CALLER_HEADER
from farm.wire.documents.devices import PERSON, OperatorRequest

A = TypeVar("A", bound=OperatorRequest)

#: Whoever calls without saying a name, where nobody has to prove one.
_UNNAMED = "somebody"
#: So much of a path is told.
_MAX_PATH_CHARS = 200


class AtLeast:
    """Lets a route be called by who has a role, or one above it; hosts' agents only where it says so."""

    def __init__(self, needed: Role, *, or_agent: bool = False) -> None:
        self.needed = needed
        self.or_agent = or_agent

    async def __call__(self, request: Request, farm: Farm) -> Caller:
        """The caller.

        Raises:
            AuthError: nobody can tell who that is, and the farm needs to know.
            Forbidden: they may not do this.
        """
        found = authenticated_caller(request) or await _caller(request, farm)
        if not is_permitted(found.role, self.needed) and not (self.or_agent and found.role is Role.AGENT):
            refusal = _refusal(found, self.needed)
            await farm.refused.tell(
                farm.database,
                _actor(found),
                f"{request.method} {request.url.path[:_MAX_PATH_CHARS]}: {refusal.message}",
                now=farm.clock.now(),
            )
            raise refusal
        return found


Viewer = Annotated[Caller, Depends(AtLeast(Role.VIEWER))]
ViewerOrAgent = Annotated[Caller, Depends(AtLeast(Role.VIEWER, or_agent=True))]
Submitter = Annotated[Caller, Depends(AtLeast(Role.SUBMITTER))]
Operator = Annotated[Caller, Depends(AtLeast(Role.OPERATOR))]
Admin = Annotated[Caller, Depends(AtLeast(Role.ADMIN))]


def as_caller(caller: Caller, asked: A) -> A:
    """A request as its caller's: who has proven a name asks under no other."""
    return asked.model_copy(update={"by": name_of(caller, asked.by)})


def name_of(caller: Caller, said: str) -> str:
    """The caller's name: the proven one, else the one they say."""
    return caller.name if caller.is_authenticated else said


async def identify_caller(headers: Headers, farm: Context) -> Caller:
    """Who shows a token, or a host's credential.

    Raises:
        AuthError: nobody does.
    """
    now = farm.clock.now()
    async with farm.refused.telling(farm.database, ANONYMOUS, now=now):
        token = bearer(headers)
        if token is None:
            raise AuthError("this farm answers nobody without an access token", hint=ASK_AN_ADMIN)
        return await farm.database.peek_async(authenticate_caller, token, now=now)


async def identify_host(headers: Headers, farm: Context) -> Caller:
    """Who shows a host's credential, which is all that lets anybody in where agents call.

    Raises:
        AuthError: nobody does.
    """
    return Caller(name=await authenticate_agent(headers, farm), role=Role.AGENT, is_authenticated=True)


async def _caller(request: Request, farm: Farm) -> Caller:
    if farm.config.needs_tokens or bearer(request.headers) is not None:
        return await identify_caller(request.headers, farm)
    # Whoever can log in on the farm's machine runs it.
    said = unquote(request.headers.get(CALLER_HEADER, _UNNAMED))
    if not re.fullmatch(PERSON, said) or len(said) > 64:
        raise InvalidInput(f"{CALLER_HEADER} is no name", hint="up to 64 characters without blanks")
    return Caller(name=said, role=Role.ADMIN, is_authenticated=False)


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
