"""Caches that may hold next to nothing: runs go on, and what they no longer need is gone."""

from dataclasses import replace

import pytest

from agents.device.run.run_control import SUPERVISOR_FILE
from agents.host.config import AgentConfig
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.runs.plan import PlanFile
from tests.support.agents.fake_farm import FakeFarm, living

pytestmark = pytest.mark.anyio


@pytest.fixture
def small(config: AgentConfig) -> AgentConfig:
    return config.model_copy(update={"cache_limit_bytes": 1, "device_cache_limit_bytes": 1})


def named(file: PlanFile, name: str) -> PlanFile:
    return replace(file, name=name)


def on_phone(phone: VirtualDeviceHandle) -> set[str]:
    (folder,) = phone.state.glob("**/benchfarm/cache")
    return {path.name for path in folder.iterdir()}


def on_host(config: AgentConfig) -> set[str]:
    return {path.name for path in (config.data_dir / "cache").iterdir()}


@pytest.mark.long
async def test_a_plan_larger_than_both_caches_runs_and_the_next_one_takes_its_place(
    small: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    first = (named(played.add_file(b"a" * 1000), "a"), named(played.add_file(b"b" * 2000), "b"))
    second = named(played.add_file(b"c" * 3000), "c")
    async with living(small):
        played.assign(1, phone.serial, "", files=first, argv=("sh", "-c", "cat ${file_a} ${file_b} | wc -c"))
        evidence = await played.reported(1)
        assert evidence.error is None
        assert evidence.stdout.strip() == "3000"
        assert {file.digest for file in first} <= on_phone(phone)
        await played.until(lambda: played.cleaned(phone.serial) == 1)
        played.assign(2, phone.serial, "", files=(second,), argv=("sh", "-c", "wc -c <${file_c}"))
        evidence = await played.reported(2)
    assert evidence.stdout.strip() == "3000"
    assert on_phone(phone) == {second.digest, SUPERVISOR_FILE.digest}
    assert on_host(small) == {second.digest}
