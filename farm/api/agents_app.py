"""What agents on other machines are served, and all that leaves loopback: no route of people's is here."""

from fastapi import APIRouter, FastAPI

from farm.api import agent_routes, blob_routes, report_routes, routes
from farm.api.bodies import SoundBodies
from farm.api.callers import known_host
from farm.api.context import Context
from farm.api.description import DescribedApp
from farm.api.gate import Gate
from farm.api.problems import install_problem_handlers
from farm.api.quiet_line import QuietLine


def create_agents_app(context: Context) -> FastAPI:
    """The application for a second listener of the farm that has these resources."""
    routers = agent_routes.router, report_routes.router, _shared_with_people()
    app = DescribedApp(routers, title="benchfarm agents", openapi_url=None)
    app.state.context = context
    app.add_middleware(SoundBodies)
    app.add_middleware(Gate, state=app.state, let_in=known_host)
    app.put_in_front(QuietLine, state=app.state)
    install_problem_handlers(app)
    return app


def _shared_with_people() -> APIRouter:
    router = APIRouter(prefix="/api/v1")
    router.add_api_route("/health", routes.get_health, methods=["GET"])
    router.add_api_route("/blobs/{digest}", blob_routes.get_blob, methods=["GET"])
    router.add_api_route("/blobs/{digest}", blob_routes.head_blob, methods=["HEAD"])
    return router
