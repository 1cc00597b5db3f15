"""The agent and a farm of another release, or one that takes it for somebody else."""

import pytest

from agents.daemon import run_agent
from agents.host.config import AgentConfig
from agents.link import exchange_loop
from agents.link.exchange_loop import CredentialRefused
from agents.outbox.spool import Spool
from farm.clock import SystemClock
from farm.core.base.ids import AttemptId
from farm.core.errors import WireVersionUnsupported
from tests.support.agents.fake_farm import FakeFarm, living

pytestmark = pytest.mark.anyio

#: `RestartPreventExitStatus` of the agent's unit.
ENDS_FOR_GOOD = 2


@pytest.mark.fault(30)
@pytest.mark.parametrize("has_joined", [False, True])
async def test_an_agent_of_another_release_ends_and_says_which_the_farm_serves(
    config: AgentConfig, played: FakeFarm, has_joined: bool
) -> None:
    if has_joined:
        async with living(config):
            await played.until(lambda: bool(played.exchanges))
    played.wire_version += 1
    with pytest.raises(WireVersionUnsupported, match=f"serves {played.wire_version}") as refused:
        await run_agent(config, SystemClock())
    assert refused.value.hint
    assert refused.value.blame.exit_code == ENDS_FOR_GOOD


@pytest.mark.fault(30)
async def test_a_report_waits_for_a_release_that_the_farm_serves(
    config: AgentConfig, played: FakeFarm
) -> None:
    async with living(config):
        await played.until(lambda: bool(played.exchanges))
    Spool(config.data_dir / "spool").put(AttemptId(7), b"{}")
    served, played.wire_version = played.wire_version, played.wire_version + 1
    with pytest.raises(WireVersionUnsupported):
        await run_agent(config, SystemClock())
    assert Spool(config.data_dir / "spool").pending() == [7]
    played.wire_version = served
    async with living(config):
        await played.until(lambda: 7 in played.reports)


async def test_a_credential_that_is_refused_for_a_while_opens_the_next_session(
    config: AgentConfig, played: FakeFarm
) -> None:
    async with living(config):
        await played.until(lambda: bool(played.exchanges))
        played.refusals = 4
        await played.until(lambda: len(played.openings) == 2)
    assert played.enrollments == 1


async def test_an_agent_whose_credential_stays_refused_ends_so_that_its_unit_starts_it_again(
    config: AgentConfig, played: FakeFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with living(config):
        await played.until(lambda: bool(played.exchanges))
    played.refusals = 10**9
    monkeypatch.setattr(exchange_loop, "REFUSED_CREDENTIAL_S", 0.5)
    with pytest.raises(CredentialRefused) as refused:
        await run_agent(config.model_copy(update={"join_token": None}), SystemClock())
    assert "farm agent join" in refused.value.hint
    assert refused.value.blame.exit_code != ENDS_FOR_GOOD


@pytest.mark.invariant("I19")
async def test_a_session_that_is_said_to_be_anothers_is_followed_by_a_new_one(
    config: AgentConfig, played: FakeFarm
) -> None:
    async with living(config):
        await played.until(lambda: bool(played.exchanges))
        played.foreign = True
        await played.until(lambda: len(played.openings) == 2)
        heard = len(played.exchanges)
        await played.until(lambda: len(played.exchanges) > heard)
