"""A farm served over HTTP on a loopback port of its own, for tests that talk to it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from farm.api.context import Context
from farm.api.http.server import bind_socket, url_of
from farm.client.certificates import trusted_certificates
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from farm.services.access.tokens import issue_access_token
from farm.web.app import create_app_with_pages
from farm.wire.agents.protocol import Exchange
from farm.wire.documents.access import AccessRequest
from tests.support.database.migrated_database import put_migrated


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFarm:
    """A running farm, and a client of it."""

    url: str
    app: FastAPI
    http: httpx.Client
    #: Where the farm runs.
    loop: asyncio.AbstractEventLoop

    @property
    def context(self) -> Context:
        context: Context = self.app.state.context
        return context

    def stop_holding(self) -> None:
        """Let held exchanges go, as the daemon does before it stops."""
        self.loop.call_soon_threadsafe(self.context.held_exchanges.close)

    def access_token(self, role: Role, name: str) -> str:
        """The secret of a new access token of a person."""
        request = AccessRequest(name=name, role=role)
        now = self.context.clock.now()
        return self.context.database.write(
            bind_tx(issue_access_token, now=now, actor="user:root"), request
        ).token

    def enroll(self, host: str = "bench-1") -> "HttpAgent":
        """A new host with an open session."""
        token = self.context.database.write(
            bind_tx(create_join_token, now=self.context.clock.now()), auto_admit=True
        )
        answer = self.http.post("/api/v1/agent/enroll", json={"host": host, "join_token": token})
        assert answer.status_code == 200, answer.text
        return HttpAgent(self, answer.json()["credential"])


class HttpAgent:
    """What an agent says over HTTP, said by a test."""

    def __init__(self, farm: HttpFarm, credential: str) -> None:
        self.farm = farm
        self.headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
        opening = {"boot_id": "boot", "agent_version": "test"}
        self.session_id: int = self.post("/sessions", json=opening).json()["session_id"]
        self.seq = 0

    def post(self, path: str, **request: Any) -> httpx.Response:
        return self.farm.http.post(f"/api/v1/agent{path}", headers=self.headers, **request)

    def exchange(self, **said: Any) -> httpx.Response:
        """The next exchange of the session."""
        self.seq += 1
        body = Exchange(seq=self.seq, **said).model_dump_json()
        return self.post(f"/sessions/{self.session_id}/exchange", content=body)


class _Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()
        self.loop: asyncio.AbstractEventLoop

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        self.loop = asyncio.get_running_loop()
        self.listening.set()


@contextmanager
def http_farm(data_dir: Path, **config: Any) -> Iterator[HttpFarm]:
    """A farm without agents, on an address of its own."""
    settings = FarmConfig(data_dir=data_dir, **config)
    if settings.database_url is None:
        put_migrated(settings.database_path)
    app = create_app_with_pages(settings, SystemClock())
    with (
        served(app) as (url, loop),
        httpx.Client(base_url=url, verify=trusted_certificates(url), trust_env=False, timeout=120) as http,
    ):
        yield HttpFarm(url=url, app=app, http=http, loop=loop)


@contextmanager
def either_database(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What `http_farm` has to know for the database that a fixture's parameter names."""
    if request.param == "sqlite":
        yield {}
        return
    server = request.getfixturevalue("postgres")
    with server.database("migrated") as name:
        yield {"database_url": server.url(name)}


@contextmanager
def served(
    app: ASGIApp, *, lifespan: Literal["on", "off"] = "on"
) -> Iterator[tuple[str, asyncio.AbstractEventLoop]]:
    """Any application on a loopback port of its own: its address, and where it runs."""
    with bind_socket("127.0.0.1", 0, hint="") as listener:
        server = _Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1, lifespan=lifespan))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            assert server.listening.wait(30)
            yield url_of(listener), server.loop
        finally:
            server.should_exit = True
            thread.join()
