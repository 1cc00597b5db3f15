"""A cancelled run is stopped on its phone, and the phone goes to the next one: with a real agent and adb."""

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from agents.host.config import AgentConfig
from agents.virtual.pool import VirtualDeviceHandle
from farm.api.app import create_app
from farm.api.context import Context
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.ids import digest_of
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from tests.agents.link.test_real_farm import LOOKS, healthy
from tests.support.agents.fake_farm import living, serving
from tests.support.invariants.invariants import check_invariants

pytestmark = pytest.mark.anyio

# What it measures is how long it ran: at least as long as a phone's clock can tell, which counts in 10 ms.
NAPPER = b"#!/bin/sh\nsleep 0.05\nexec sleep $1\n"
#: Nobody else on this machine sleeps as long.
LONG_S = 10_000 + os.getpid() % 60_000
MATRIX: dict[str, Any] = {
    "name": "naps",
    "harness": "napper",
    "axes": {"backend": "cpu"},
    "devices": "all",
    "timeout_s": 80_000,
}


async def register(http: httpx.AsyncClient) -> None:
    digest = digest_of(NAPPER)
    (await http.put(f"/blobs/{digest}", content=NAPPER)).raise_for_status()
    program = {
        "name": "napper",
        "files": [{"path": "napper", "digest": digest, "executable": True}],
        "entry": "napper",
        "definition": {"name": "napper", "arguments": "${seconds}", "flags": {"seconds": {"default": 1}}},
    }
    (await http.post("/harnesses", json=program)).raise_for_status()


async def submitted(http: httpx.AsyncClient, **changes: Any) -> int:
    answer = await http.post("/matrices", json={"spec": {**MATRIX, **changes}})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["matrix_id"])


async def until(http: httpx.AsyncClient, path: str, **wanted: str) -> dict[str, Any]:
    """Look until the document has the wanted values."""
    document: Any = None
    for _ in range(LOOKS):
        document = (await http.get(path)).json()
        if isinstance(document, dict) and all(document.get(key) == value for key, value in wanted.items()):
            return document
        await asyncio.sleep(0.05)
    raise AssertionError(f"{path} never was {wanted}: {document}")


@pytest.mark.invariant("I7", "I16")
async def test_a_cancelled_run_is_stopped_on_its_phone_which_then_runs_the_next(
    config: AgentConfig, phone: VirtualDeviceHandle, port: int, tmp_path: Path
) -> None:
    app = create_app(FarmConfig(data_dir=tmp_path / "farm"), SystemClock())
    async with serving(app, port, lifespan="on"):
        context: Context = app.state.context
        token = context.database.write(bind_tx(create_join_token, now=context.clock.now()), auto_admit=True)
        joined = config.model_copy(update={"join_token": SecretStr(token)})
        url = f"{config.farm_url}/api/v1"
        async with living(joined), httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as http:
            await healthy(config, phone.serial)
            await register(http)
            await _cancel_and_go_on(http)
            assert not sleepers()
        check_invariants(tmp_path / "farm" / "farm.sqlite3")


async def _cancel_and_go_on(http: httpx.AsyncClient) -> None:
    long = await submitted(http, settings={"seconds": LONG_S}, rounds=2)
    jobs = (await http.get("/jobs", params={"matrix_id": long})).json()
    running = await until(http, f"/jobs/{jobs[0]['job_id']}", state="active")
    attempt = f"/attempts/{running['attempts'][-1]}"
    await until(http, attempt, state="measuring")
    for _ in range(LOOKS):
        if sleepers():
            break
        await asyncio.sleep(0.05)
    assert sleepers()
    cancelled = (await http.post(f"/matrices/{long}/cancel", json={})).json()
    assert (cancelled["queued"], cancelled["active"]) == (1, 1)
    short = await submitted(http, settings={"seconds": 0}, rounds=1)
    done = await until(http, f"/matrices/{short}", state="finished")
    assert done["jobs_by_outcome"] == {"succeeded": 1}
    await until(http, attempt, state="finished", outcome="cancelled")
    assert (await http.get(f"/matrices/{long}")).json()["jobs_by_outcome"] == {"cancelled": 2}


def sleepers() -> list[str]:
    """Processes that sleep as long as only this test does."""
    found: list[str] = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:
            # It ended while we looked.
            continue
        if words[:2] == [b"sleep", str(LONG_S).encode()]:
            found.append(file.parent.name)
    return found
