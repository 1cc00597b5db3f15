"""What agents on other machines are served, and all that leaves loopback: no route of people's is here."""

from fastapi import APIRouter, FastAPI

from farm.api.agents.heartbeat_fast_path import QuietLine
from farm.api.context import Context
from farm.api.http.auth_middleware import Gate
from farm.api.http.authorization import known_host
from farm.api.http.openapi import DescribedApp
from farm.api.http.problems import install_problem_handlers
from farm.api.http.request_bodies import SoundBodies
from farm.api.routes import agents, blobs, farm, reports


def create_agents_app(context: Context) -> FastAPI:
    """The application for a second listener of the farm that has these resources."""
    routers = agents.router, reports.router, _shared_with_people()
    app = DescribedApp(routers, title="benchfarm agents", openapi_url=None)
    app.state.context = context
    app.add_middleware(SoundBodies)
    app.add_middleware(Gate, state=app.state, let_in=known_host)
    app.put_in_front(QuietLine, state=app.state)
    install_problem_handlers(app)
    return app


def _shared_with_people() -> APIRouter:
    router = APIRouter(prefix="/api/v1")
    router.add_api_route("/health", farm.get_health, methods=["GET"])
    router.add_api_route("/blobs/{digest}", blobs.get_blob, methods=["GET"])
    router.add_api_route("/blobs/{digest}", blobs.head_blob, methods=["HEAD"])
    return router
