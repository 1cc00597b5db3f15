"""What agents on other machines are served, and all that leaves loopback: no route of people's is here."""

from fastapi import APIRouter, FastAPI

from farm.api.agents.heartbeat_fast_path import HeartbeatFastPath
from farm.api.context import Context
from farm.api.http.auth_middleware import AuthMiddleware
from farm.api.http.authorization import identify_host
from farm.api.http.openapi import DescribedApp
from farm.api.http.problems import install_problem_handlers
from farm.api.http.request_bodies import RequestBodyGuard
from farm.api.routes import agents as agent_routes
from farm.api.routes import farm as farm_routes
from farm.api.routes import files as file_routes


def create_agents_app(context: Context) -> FastAPI:
    """The application for a second listener of the farm that has these resources."""
    routers = agent_routes.router, _shared_with_people()
    app = DescribedApp(routers, title="benchfarm agents", openapi_url=None)
    app.state.context = context
    app.add_middleware(RequestBodyGuard)
    app.add_middleware(AuthMiddleware, state=app.state, let_in=identify_host)
    app.add_outermost(HeartbeatFastPath, state=app.state)
    install_problem_handlers(app)
    return app


def _shared_with_people() -> APIRouter:
    router = APIRouter(prefix="/api/v1")
    router.add_api_route("/health", farm_routes.get_health, methods=["GET"])
    router.add_api_route("/blobs/{digest}", file_routes.get_blob, methods=["GET"])
    router.add_api_route("/blobs/{digest}", file_routes.head_blob, methods=["HEAD"])
    return router
