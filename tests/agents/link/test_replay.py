"""The agent and a farm whose database was put back: what it had is sent again, and only then."""

from pathlib import Path

import pytest

from agents.host.config import AgentConfig
from agents.link.exchange_loop import EPOCH_FILE
from agents.virtual.pool import VirtualDeviceHandle
from tests.support.agents.fake_farm import FakeFarm, comes_true, living

pytestmark = pytest.mark.anyio


def shelf(config: AgentConfig) -> Path:
    return config.data_dir / "spool" / "acknowledged"


async def ran_once(farm: FakeFarm, config: AgentConfig, phone: VirtualDeviceHandle) -> None:
    """One attempt is run, reported and answered."""
    farm.assign(1, phone.serial, "echo done")
    await farm.reported(1)
    await farm.until(lambda: farm.cleaned(phone.serial) == 1)
    await comes_true(lambda: (shelf(config) / "1.json").exists(), "the report is kept")


@pytest.mark.invariant("I12")
@pytest.mark.fault(44)
async def test_a_report_is_sent_again_to_a_database_that_began_another_history(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    async with living(config):
        await ran_once(played, config, phone)
        played.database_epoch, played.fenced = "second", True
        await played.until(lambda: len(played.reports[1]) == 2)
        await played.until(lambda: played.exchanges[-1].database_epoch == "second")
    assert played.reports[1][0] == played.reports[1][1]
    assert (config.data_dir / EPOCH_FILE).read_text() == "second"
    assert played.exchanges[0].database_epoch == "first"


@pytest.mark.invariant("I12")
@pytest.mark.fault(44)
async def test_an_agent_that_was_away_in_between_sends_again_too(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    async with living(config):
        await ran_once(played, config, phone)
    played.database_epoch = "second"
    async with living(config):
        await played.until(lambda: len(played.reports[1]) == 2)


async def test_a_session_of_the_same_history_has_nothing_sent_again(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    async with living(config):
        await ran_once(played, config, phone)
        played.fenced = True
        await played.until(lambda: len(played.openings) == 2)
        heard = len(played.exchanges)
        await played.until(lambda: len(played.exchanges) > heard)
    assert len(played.reports[1]) == 1


@pytest.mark.fault(42, 44)
async def test_reports_that_the_farm_asks_for_go_before_anything_else_is_said(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    async with living(config):
        await ran_once(played, config, phone)
    exchanged = len(played.exchanges)
    played.reports_wanted = (1, 99)
    async with living(config):
        await played.until(lambda: len(played.exchanges) > exchanged)
        assert len(played.reports[1]) == 2


@pytest.mark.invariant("I3")
@pytest.mark.fault(42)
async def test_the_farm_is_told_the_highest_token_that_agent_and_phone_know(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    async with living(config):
        await ran_once(played, config, phone)
    async with living(config):
        # The phone alone knows it now.
        await played.until(lambda: bool(played.devices()) and played.devices()[phone.serial].known_fence == 1)
