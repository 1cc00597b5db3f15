"""The OpenAPI description: each call with the role it needs, and the problem documents it may refuse with."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from farm import __version__
from farm.api.http.authentication import get_calling_host
from farm.api.http.authorization import AtLeast
from farm.core.operations.role import Role
from farm.wire.base import Problem

_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
#: The errors that any call may return. All codes: farm/core/errors.
_REFUSALS = {
    "4XX": {"description": "Refused: `code` says why, `hint` what to do.", "content": _PROBLEM},
    "5XX": {"description": "The farm failed, or is busy: try again.", "content": _PROBLEM},
}
_BEARER = {"bearer": {"type": "http", "scheme": "bearer"}}


class DescribedApp(FastAPI):
    """An application of some routers, whose description names the roles of each call."""

    def __init__(self, routers: Sequence[APIRouter], **settings: Any) -> None:
        # Their routes as they are: `include_router` would build each once more, in the first request.
        routes = [route for router in routers for route in router.routes]
        super().__init__(version=__version__, routes=routes, **settings)
        self._front: ASGIApp = super().__call__
        self._routers = routers
        self._is_building = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._front(scope, receive, send)

    def add_outermost(self, kind: Callable[..., ASGIApp], **settings: Any) -> None:
        """Add the outermost layer, ahead of all middleware: errors that it raises are not answered."""
        self._front = kind(self._front, **settings)

    def setup(self) -> None:
        """Serve the description, and no pages of FastAPI's own; called by the parent's constructor."""
        if self.openapi_url is not None:
            self.add_route(self.openapi_url, self._get_description, include_in_schema=False)

    async def _get_description(self, _: Request) -> JSONResponse:
        # It takes seconds of CPU to build: on a thread, so that other requests are answered, and on one at a
        # time, however many ask for it.
        async with self._is_building:
            return await asyncio.to_thread(lambda: JSONResponse(self.openapi()))

    def openapi(self) -> dict[str, Any]:
        """Return the description, built once; building it takes seconds of CPU."""
        if self.openapi_schema is None:
            self.openapi_schema = _describe(self, self._routers)
        return self.openapi_schema


def roles_by_route(routers: Sequence[APIRouter]) -> dict[tuple[str, str], tuple[Role, ...]]:
    """Return the least roles that may call, by method and path; no role where anyone may."""
    return {
        (method, route.path_format): tuple(_roles(route.dependant))
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in sorted(route.methods or ())
    }


def _roles(dependant: Dependant) -> Iterator[Role]:
    for dependency in dependant.dependencies:
        if isinstance(dependency.call, AtLeast):
            yield dependency.call.needed
            yield from (Role.AGENT,) if dependency.call.or_agent else ()
        elif dependency.call is get_calling_host:
            yield Role.AGENT


def _describe(app: FastAPI, routers: Sequence[APIRouter]) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, routes=app.routes)
    components = document.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
    components["securitySchemes"] = _BEARER
    for (method, path), roles in roles_by_route(routers).items():
        call = document["paths"][path][method.lower()]
        call["responses"] = {
            status: response for status, response in call["responses"].items() if status.startswith("2")
        } | _REFUSALS
        if roles:
            call["security"] = [{"bearer": []}]
            call["x-roles"] = [role.value for role in roles]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    return document
