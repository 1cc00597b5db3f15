"""The farm as an ASGI application."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial

import structlog
from fastapi import APIRouter, FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from farm.api.agents.background_work import run_on_request
from farm.api.agents.expansion_worker import ExpansionWorker
from farm.api.agents.growth_worker import GROW_EVERY_S, grow_matrices
from farm.api.agents.heartbeat_fast_path import HeartbeatFastPath
from farm.api.agents.point_worker import MARK_EVERY_S, compute_points
from farm.api.context import Context
from farm.api.http.authentication import (
    SIGN_IN_CALLS,
    AuthMiddleware,
    bearer,
    identify_caller,
    identify_host,
    refuse_program,
)
from farm.api.http.call_limits import CallLimits
from farm.api.http.openapi import DescribedApp
from farm.api.http.origin_check import OriginCheck, refuse_beyond_loopback, refuse_other_origin
from farm.api.http.problems import install_problem_handlers
from farm.api.http.request_bodies import RequestBodyGuard
from farm.api.routes import access as access_routes
from farm.api.routes import agents as agent_routes
from farm.api.routes import changes as change_routes
from farm.api.routes import devices as device_routes
from farm.api.routes import farm as farm_routes
from farm.api.routes import files as file_routes
from farm.api.routes import hosts as host_routes
from farm.api.routes import interchange as interchange_routes
from farm.api.routes import matrices as matrix_routes
from farm.api.routes import operations as operation_routes
from farm.api.routes import results as result_routes
from farm.api.routes import standing as standing_routes
from farm.api.state.held_exchanges import forward_notifications
from farm.blobs.disk import DiskBlobs
from farm.clock import Clock
from farm.config import FarmConfig
from farm.core.errors import FarmBusy, FarmDiskFull
from farm.core.operations.role import Caller
from farm.database.connect import open_database, process_name, retry_while_busy
from farm.database.migrate import upgrade
from farm.services.files.builtin_programs import register_builtin_programs
from farm.services.files.folder_owner import claim_folder
from farm.wire.base import Problem

_log = structlog.get_logger(__name__)

#: All calls. An architecture test checks that each names the role it needs.
ROUTERS = (
    # First: they are called most, and a call is compared with one route after the other.
    agent_routes.router,
    farm_routes.router,
    matrix_routes.router,
    standing_routes.router,
    result_routes.router,
    change_routes.router,
    interchange_routes.router,
    file_routes.router,
    device_routes.router,
    host_routes.router,
    operation_routes.router,
    access_routes.router,
)


def create_app(
    config: FarmConfig,
    clock: Clock,
    *,
    let_in: Callable[[Headers, Context], Awaitable[Caller]] = identify_caller,
    is_open: Callable[[str, str], bool] = lambda _method, _path: False,
    secret_of: Callable[[Headers], str | None] = bearer,
    refuse: Callable[[Request, Problem], Response] = refuse_program,
) -> DescribedApp:
    """Build the application; its database and folders are opened when it starts, closed when it ends.

    Args:
        config: of the farm.
        clock: of the farm.
        let_in: who a request is from, on a farm that wants tokens; raises AuthError for an unknown caller.
        is_open: whether anyone may make a call, by its method and path.
        secret_of: what `let_in` looks at, without a look into the database; None without one.
        refuse: the response to a caller who is not let in.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        config.data_dir.mkdir(parents=True, exist_ok=True)
        database = open_database(config, process=process_name())
        try:
            retry_while_busy(partial(upgrade, database.engine))
            retry_while_busy(partial(database.read, claim_folder, config.blobs_dir))
            context = Context(
                config=config,
                database=database,
                blobs=DiskBlobs(config.blobs_dir, reserve_bytes=config.disk_reserve_bytes),
                clock=clock,
                started_at=clock.now(),
            )
            _register_programs(context)
            retry_while_busy(partial(database.read, context.clock_check.look))
            database.before_write = context.clock_check.compare
            app.state.context = context
            async with (
                forward_notifications(database, context.held_exchanges),
                run_on_request("expansion", ExpansionWorker(database, clock), context.to_expand),
                run_on_request(
                    "growth", partial(grow_matrices, database, clock), context.to_grow, every_s=GROW_EVERY_S
                ),
                run_on_request(
                    "points",
                    partial(compute_points, database, clock),
                    context.to_compute_points,
                    every_s=MARK_EVERY_S,
                ),
                aclosing(context.heartbeats),
                aclosing(context.report_parser),
            ):
                yield
        finally:
            database.close()

    # The interactive pages would load their scripts from elsewhere; /openapi.json needs nothing.
    app = DescribedApp(ROUTERS, title="benchfarm", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(RequestBodyGuard)
    if config.needs_tokens:
        app.add_middleware(
            AuthMiddleware,
            state=app.state,
            let_in=let_in,
            is_open=lambda method, path: (method, path) in SIGN_IN_CALLS or is_open(method, path),
            refuse=refuse,
        )
    app.add_outermost(HeartbeatFastPath, state=app.state)
    app.add_outermost(CallLimits, state=app.state, limits_calls=config.needs_tokens, secret_of=secret_of)
    refusal = refuse_other_origin if config.needs_tokens else refuse_beyond_loopback
    app.add_outermost(OriginCheck, refusal=refusal)
    install_problem_handlers(app)
    return app


def create_agents_app(context: Context) -> FastAPI:
    """Build the application for a second listener of the farm that has these resources."""
    routers = agent_routes.router, _shared_with_people()
    app = DescribedApp(routers, title="benchfarm agents", openapi_url=None)
    app.state.context = context
    app.add_middleware(RequestBodyGuard)
    app.add_middleware(AuthMiddleware, state=app.state, let_in=identify_host)
    app.add_outermost(HeartbeatFastPath, state=app.state)
    app.add_outermost(CallLimits, state=app.state, limits_calls=True)
    install_problem_handlers(app)
    return app


def _shared_with_people() -> APIRouter:
    router = APIRouter(prefix="/api/v1")
    router.add_api_route("/health", farm_routes.get_health, methods=["GET"])
    router.add_api_route("/blobs/{digest}", file_routes.get_blob, methods=["GET"])
    router.add_api_route("/blobs/{digest}", file_routes.head_blob, methods=["HEAD"])
    return router


def _register_programs(context: Context) -> None:
    """Register the farm's own programs; a farm that cannot write starts, too, in order to be able to tell."""
    database, blobs, now = context.database, context.blobs, context.clock.now()
    try:
        retry_while_busy(partial(register_builtin_programs, database, blobs, now=now))
    except (FarmBusy, FarmDiskFull) as error:
        _log.error("programs_not_registered", code=error.code, message=error.message, hint=error.hint)
