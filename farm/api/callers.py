"""Who calls, and whether they may: a route names the least role it needs by its parameter's type."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request

from farm.core.errors import Forbidden
from farm.core.role import Caller, Role, may


def _at_least(needed: Role) -> Callable[[Request], Awaitable[Caller]]:
    async def caller(request: Request) -> Caller:
        found = await _caller(request)
        if not may(found.role, needed):
            raise Forbidden(
                f"{found.name} is {found.role}, and this needs {needed}",
                hint="ask an admin of this farm for a token of that role",
            )
        return found

    return caller


async def _caller(request: Request) -> Caller:
    # Loopback alone reaches these routes: whoever can log in on the farm's machine runs it.
    return Caller(name="somebody", role=Role.ADMIN, is_proven=False)


Viewer = Annotated[Caller, Depends(_at_least(Role.VIEWER))]
Submitter = Annotated[Caller, Depends(_at_least(Role.SUBMITTER))]
Operator = Annotated[Caller, Depends(_at_least(Role.OPERATOR))]
Admin = Annotated[Caller, Depends(_at_least(Role.ADMIN))]
