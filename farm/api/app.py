"""The farm as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial

from fastapi import FastAPI

from farm.api.agents.expansion_worker import unfolding
from farm.api.agents.heartbeat_fast_path import QuietLine
from farm.api.agents.notifications import waking
from farm.api.context import Context
from farm.api.http.auth_middleware import Gate
from farm.api.http.authorization import known
from farm.api.http.openapi import DescribedApp
from farm.api.http.origin_check import LoopbackOnly, SameOriginOnly
from farm.api.http.problems import install_problem_handlers
from farm.api.http.request_bodies import SoundBodies
from farm.api.routes import (
    access,
    agents,
    alarms,
    blobs,
    devices,
    events,
    farm,
    hosts,
    join_tokens,
    matrices,
    pending,
    placements,
    programs,
    reparse,
    reports,
    results,
    storage,
)
from farm.blobs.disk import DiskBlobs
from farm.clock import Clock
from farm.config import FarmConfig
from farm.database.connect import open_database, process_name
from farm.database.migrate import upgrade
from farm.database.startup_retry import outlasting_busy
from farm.services.files.builtin_programs import register_own_programs

#: Every call there is. An architecture test sees to it that each names who may make it.
ROUTERS = (
    farm.router,
    matrices.router,
    results.router,
    placements.router,
    blobs.router,
    reparse.router,
    storage.router,
    programs.router,
    devices.router,
    alarms.router,
    hosts.router,
    events.router,
    agents.router,
    reports.router,
    join_tokens.router,
    pending.router,
    access.router,
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
