"""The farm as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial

from fastapi import FastAPI

from farm.api import (
    access_routes,
    agent_routes,
    alarm_routes,
    blob_routes,
    device_routes,
    event_routes,
    harness_routes,
    host_routes,
    matrix_routes,
    placement_routes,
    reparse_routes,
    report_routes,
    result_routes,
    routes,
    storage_routes,
    token_routes,
    waiting_routes,
)
from farm.api.bodies import SoundBodies
from farm.api.callers import known
from farm.api.context import Context
from farm.api.description import DescribedApp
from farm.api.gate import Gate
from farm.api.origins import LoopbackOnly, SameOriginOnly
from farm.api.problems import install_problem_handlers
from farm.api.quiet_line import QuietLine
from farm.api.unfolding import unfolding
from farm.api.waking import waking
from farm.blobs.disk import DiskBlobs
from farm.clock import Clock
from farm.config import FarmConfig
from farm.services.bootstrap import register_own_programs
from farm.store.migrate import upgrade
from farm.store.opening import open_database, process_name
from farm.store.outlasting import outlasting_busy

#: Every call there is. An architecture test sees to it that each names who may make it.
ROUTERS = (
    routes.router,
    matrix_routes.router,
    result_routes.router,
    placement_routes.router,
    blob_routes.router,
    reparse_routes.router,
    storage_routes.router,
    harness_routes.router,
    device_routes.router,
    alarm_routes.router,
    host_routes.router,
    event_routes.router,
    agent_routes.router,
    report_routes.router,
    token_routes.router,
    waiting_routes.router,
    access_routes.router,
)


def create_app(config: FarmConfig, clock: Clock) -> FastAPI:
    """Build the application; its database and folders are opened when it starts, closed when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        config.data_dir.mkdir(parents=True, exist_ok=True)
        database = open_database(config, process=process_name())
        try:
            outlasting_busy(partial(upgrade, database.engine))
            context = Context(
                config=config,
                database=database,
                blobs=DiskBlobs(config.blobs_dir, reserve_bytes=config.disk_reserve_bytes),
                clock=clock,
                started_at=clock.now(),
            )
            outlasting_busy(partial(register_own_programs, database, context.blobs, now=clock.now()))
            outlasting_busy(partial(database.read, context.clock_check.look, clock))
            app.state.context = context
            async with (
                waking(database, context.waiters),
                unfolding(database, clock, context.to_unfold),
                aclosing(context.roll_call),
            ):
                yield
        finally:
            database.close()

    # The interactive pages would load their scripts from elsewhere; /openapi.json needs nothing.
    app = DescribedApp(ROUTERS, title="benchfarm", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(SoundBodies)
    if config.needs_tokens:
        app.add_middleware(Gate, state=app.state, let_in=known)
    app.put_in_front(QuietLine, state=app.state)
    app.put_in_front(SameOriginOnly if config.needs_tokens else LoopbackOnly)
    install_problem_handlers(app)
    return app
