"""The ladder of recovery from end to end: an agent, the farm itself, and a phone that must be restarted."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from agents.host.config import AgentConfig
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.api.app import create_app
from farm.api.context import Context
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from tests.support.agents.fake_farm import comes_true, living, serving

pytestmark = [pytest.mark.long, pytest.mark.anyio]


async def until(url: str, serial: str, **wanted: Any) -> dict[str, Any]:
    """The phone's view once it is so."""
    found: dict[str, Any] = {}
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http, asyncio.timeout(120):
        while not found or {name: found[name] for name in wanted} != wanted:
            answer = await http.get(f"{url}/api/v1/devices/{serial}")
            found = answer.json() if answer.status_code == 200 else {}
            await asyncio.sleep(0.1)
    return found


@pytest.mark.fault(14, 15)
@pytest.mark.invariant("I14")
@pytest.mark.timeout(240)
async def test_a_phone_in_recovery_is_restarted_with_its_farms_permission_and_works_again(
    config: AgentConfig, phone: VirtualDeviceHandle, port: int, tmp_path: Path
) -> None:
    app = create_app(FarmConfig(data_dir=tmp_path / "farm"), SystemClock())
    async with serving(app, port, lifespan="on"):
        context: Context = app.state.context
        token = context.database.write(bind_tx(create_join_token, now=context.clock.now()), auto_admit=True)
        given = {"join_token": SecretStr(token), "reboot": True, "recovery_timeout_factor": 0.02}
        async with living(config.model_copy(update=given)):
            await until(config.farm_url, phone.serial, presence="online", health="good")
            set_faults(phone.state, Faults(mode="recovery", ends_with_reboot=1, reboot_s=0.5))
            await until(config.farm_url, phone.serial, presence="wrong_mode")
            found = await until(config.farm_url, phone.serial, presence="online", recovery=None)
    kinds = [each["kind"] for each in found["events"]]
    assert "device_recovery_tried" in kinds
    assert "device_recovery_ended" in kinds
    assert (phone.state / "boots").read_text() == "1"


@pytest.mark.fault(15)
@pytest.mark.invariant("I18")
@pytest.mark.timeout(240)
async def test_an_agent_that_is_killed_right_after_a_restart_restarts_nothing_again_when_it_is_back(
    config: AgentConfig, phone: VirtualDeviceHandle, port: int, tmp_path: Path
) -> None:
    app, boots = create_app(FarmConfig(data_dir=tmp_path / "farm"), SystemClock()), phone.state / "boots"
    async with serving(app, port, lifespan="on"):
        context: Context = app.state.context
        token = context.database.write(bind_tx(create_join_token, now=context.clock.now()), auto_admit=True)
        given = {"join_token": SecretStr(token), "reboot": True, "recovery_timeout_factor": 0.02}
        async with living(config.model_copy(update=given)):
            await until(config.farm_url, phone.serial, presence="online", health="good")
            set_faults(phone.state, Faults(mode="recovery", reboot_s=0.2))
            await comes_true(lambda: boots.read_text() == "1", "the order")
        async with living(config.model_copy(update=given)):
            found = await until(config.farm_url, phone.serial, health="bad")
    taken = [each["step"] for each in found["recovery"]["tries"]]
    assert (taken.count("reboot"), taken[-1]) == (1, "human")
    assert boots.read_text() == "1"
