"""What agents on other machines are served, and all that leaves loopback: no route of people's is here."""

from fastapi import APIRouter, FastAPI
from starlette.datastructures import Headers, State
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api import agent_routes, blob_routes, routes
from farm.api.bodies import SoundBodies, announced_bytes
from farm.api.context import Context, authenticated
from farm.api.description import DescribedApp
from farm.api.problems import install_problem_handlers, problem_document, problem_response
from farm.core.errors import FarmError, TooLarge

_ENROLL, _HEALTH = "/api/v1/agent/enroll", "/api/v1/health"
#: A name and a token; nobody else may send anything before the farm knows who it is.
MAX_ENROLLMENT_BYTES = 4096


def create_agents_app(context: Context) -> FastAPI:
    """The application for a second listener of the farm that has these resources."""
    routers = agent_routes.router, _shared_with_people()
    app = DescribedApp(routers, title="benchfarm agents", openapi_url=None)
    app.state.context = context
    app.add_middleware(SoundBodies)
    app.add_middleware(HostsOnly, state=app.state)
    install_problem_handlers(app)
    return app


def _shared_with_people() -> APIRouter:
    router = APIRouter(prefix="/api/v1")
    router.add_api_route("/health", routes.get_health, methods=["GET"])
    router.add_api_route("/blobs/{digest}", blob_routes.get_blob, methods=["GET"])
    router.add_api_route("/blobs/{digest}", blob_routes.head_blob, methods=["HEAD"])
    return router


class HostsOnly:
    """Lets nobody in without a host's credential but to enroll, and to ask whether the farm is well.

    Before any byte of a body is read, and for every path: who has no credential does not learn what there is.
    """

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            await self._admit(scope, headers)
        except FarmError as error:
            await problem_response(problem_document(error))(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        call = scope["method"], scope["path"]
        if call == ("POST", _ENROLL):
            _check_length(headers)
        elif call != ("GET", _HEALTH):
            await authenticated(headers, self._state.context)


def _check_length(headers: Headers) -> None:
    """The server holds a body to the length it announces, unless that comes in chunks."""
    length_bytes = announced_bytes(headers)
    if "transfer-encoding" in headers or length_bytes is None or length_bytes > MAX_ENROLLMENT_BYTES:
        raise TooLarge(f"an enrolment says how long it is, and has at most {MAX_ENROLLMENT_BYTES} bytes")
