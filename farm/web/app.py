"""The farm's application with its pages beside the API."""

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from farm.api.app import create_app
from farm.clock import Clock
from farm.config import FarmConfig
from farm.web.http import live
from farm.web.http.page_route import on_unknown_page, refuse_visitor
from farm.web.http.rendering import STATIC_FOLDER
from farm.web.http.sign_in import SignInRedirect, identify_visitor, is_open, secret_of
from farm.web.pages import (
    actions,
    devices,
    files,
    history,
    hosts,
    matrices,
    numbers,
    operations,
    overview,
    reports,
    sign_in,
    speedups,
)

#: All pages. An architecture test checks that each names the role it needs.
PAGE_ROUTERS: tuple[APIRouter, ...] = (
    overview.router,
    devices.router,
    matrices.router,
    speedups.router,
    history.router,
    numbers.router,
    hosts.router,
    files.router,
    operations.router,
    sign_in.router,
    actions.router,
    reports.router,
    live.router,
)


def create_app_with_pages(config: FarmConfig, clock: Clock) -> FastAPI:
    """Build the application of a farm that people open in a browser, too."""
    app = create_app(
        config, clock, let_in=identify_visitor, is_open=is_open, secret_of=secret_of, refuse=refuse_visitor
    )
    for router in PAGE_ROUTERS:
        app.router.routes.extend(router.routes)
    app.add_exception_handler(HTTPException, on_unknown_page)
    app.mount("/static", StaticFiles(directory=STATIC_FOLDER))
    if config.needs_tokens:
        app.add_outermost(SignInRedirect)
    return app
