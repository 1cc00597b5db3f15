"""The farm as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial

from fastapi import FastAPI

from farm.api.agents.expansion_worker import run_expansion_worker
from farm.api.agents.heartbeat_fast_path import HeartbeatFastPath
from farm.api.agents.notifications import forward_notifications
from farm.api.context import Context
from farm.api.http.auth_middleware import AuthMiddleware
from farm.api.http.authorization import identify_caller
from farm.api.http.openapi import DescribedApp
from farm.api.http.origin_check import LoopbackOnly, SameOriginOnly
from farm.api.http.problems import install_problem_handlers
from farm.api.http.request_bodies import RequestBodyGuard
from farm.api.routes import access as access_routes
from farm.api.routes import agents as agent_routes
from farm.api.routes import devices as device_routes
from farm.api.routes import farm as farm_routes
from farm.api.routes import files as file_routes
from farm.api.routes import hosts as host_routes
from farm.api.routes import matrices as matrix_routes
from farm.api.routes import operations as operation_routes
from farm.api.routes import results as result_routes
from farm.blobs.disk import DiskBlobs
from farm.clock import Clock
from farm.config import FarmConfig
from farm.database.connect import open_database, process_name
from farm.database.migrate import upgrade
from farm.database.startup_retry import retry_while_busy
from farm.services.files.builtin_programs import register_builtin_programs

#: Every call there is. An architecture test sees to it that each names who may make it.
ROUTERS = (
    farm_routes.router,
    matrix_routes.router,
    result_routes.router,
    file_routes.router,
    device_routes.router,
    host_routes.router,
    operation_routes.router,
    agent_routes.router,
    access_routes.router,
)


def create_app(config: FarmConfig, clock: Clock) -> FastAPI:
    """Build the application; its database and folders are opened when it starts, closed when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        config.data_dir.mkdir(parents=True, exist_ok=True)
        database = open_database(config, process=process_name())
        try:
            retry_while_busy(partial(upgrade, database.engine))
            context = Context(
                config=config,
                database=database,
                blobs=DiskBlobs(config.blobs_dir, reserve_bytes=config.disk_reserve_bytes),
                clock=clock,
                started_at=clock.now(),
            )
            retry_while_busy(partial(register_builtin_programs, database, context.blobs, now=clock.now()))
            retry_while_busy(partial(database.read, context.clock_check.look, clock))
            app.state.context = context
            async with (
                forward_notifications(database, context.held_exchanges),
                run_expansion_worker(database, clock, context.to_expand),
                aclosing(context.heartbeats),
            ):
                yield
        finally:
            database.close()

    # The interactive pages would load their scripts from elsewhere; /openapi.json needs nothing.
    app = DescribedApp(ROUTERS, title="benchfarm", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(RequestBodyGuard)
    if config.needs_tokens:
        app.add_middleware(AuthMiddleware, state=app.state, let_in=identify_caller)
    app.add_outermost(HeartbeatFastPath, state=app.state)
    app.add_outermost(SameOriginOnly if config.needs_tokens else LoopbackOnly)
    install_problem_handlers(app)
    return app
