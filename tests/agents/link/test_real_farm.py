"""The agent and the farm itself, over HTTP, with a virtual phone behind a real adb server."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from pydantic import SecretStr

from agents.host.config import AgentConfig
from agents.virtual.pool import VirtualDeviceHandle
from farm.api.app import create_app
from farm.api.context import Context
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from tests.support.agents.fake_farm import comes_true, living, serving

pytestmark = pytest.mark.anyio

LOOKS = 600


class Calls:
    """What a farm was asked, and whether a report is on its way."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.reporting = asyncio.Event()


def farm_app(folder: Path, calls: Calls) -> FastAPI:
    """A farm that counts what it is asked."""
    app = create_app(FarmConfig(data_dir=folder), SystemClock())

    @app.middleware("http")
    async def count(request: Request, call_next: Callable[[Request], asyncio.Future[Response]]) -> Response:
        name = request.url.path.rpartition("/")[2]
        calls.count[name] += 1
        if name == "report":
            calls.reporting.set()
        return await call_next(request)

    return app


def with_token(config: AgentConfig, app: FastAPI) -> AgentConfig:
    context: Context = app.state.context
    token = context.database.write(bind_tx(create_join_token, now=context.clock.now()), auto_admit=True)
    return config.model_copy(update={"join_token": SecretStr(token)})


async def healthy(config: AgentConfig, serial: str) -> None:
    """Wait until the farm says that the phone has earned its health."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        for _ in range(LOOKS):
            if await health(http, config.farm_url, serial) == "good":
                return
            await asyncio.sleep(0.05)
    pytest.fail("the phone never became healthy")


async def health(http: httpx.AsyncClient, url: str, serial: str) -> str | None:
    devices = (await http.get(f"{url}/api/v1/devices")).json()
    return next((each["health"] for each in devices if each["device_id"] == serial), None)


async def test_a_new_phone_earns_its_health_in_few_calls(
    config: AgentConfig, phone: VirtualDeviceHandle, port: int, tmp_path: Path
) -> None:
    calls = Calls()
    app = farm_app(tmp_path / "farm", calls)
    async with serving(app, port, lifespan="on"), living(with_token(config, app)):
        await healthy(config, phone.serial)
    assert calls.count["enroll"] == calls.count["sessions"] == calls.count["report"] == 1
    assert 3 <= calls.count["exchange"] <= 12


@pytest.mark.long
async def test_a_farm_that_is_cut_off_and_comes_back_finds_its_agent_again(
    config: AgentConfig, phone: VirtualDeviceHandle, port: int, tmp_path: Path
) -> None:
    calls = Calls()
    app = farm_app(tmp_path / "farm", calls)
    async with serving(app, port, lifespan="on"):
        token = with_token(config, app)
    async with living(token):
        async with serving(farm_app(tmp_path / "farm", calls), port, lifespan="on"):
            await calls.reporting.wait()
        async with serving(farm_app(tmp_path / "farm", calls), port, lifespan="on"):
            await healthy(config, phone.serial)
            # The farm knows before the agent hears that it does.
            spool = config.data_dir / "spool"
            await comes_true(lambda: not list(spool.glob("*.json")), "no report waits")
    assert calls.count["enroll"] == calls.count["sessions"] == 1
