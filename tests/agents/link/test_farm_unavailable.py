"""The agent and a farm that vanishes, comes back, or does not want it."""

import asyncio
from pathlib import Path

import pytest
from fastapi import Response
from pydantic import SecretStr
from structlog.testing import capture_logs

from agents.daemon import run_agent
from agents.host.atomic_file import unsealed
from agents.host.config import AgentConfig
from agents.host.data_dir import AgentRunningError
from agents.virtual.pool import VirtualDeviceHandle
from farm.clock import SystemClock
from farm.core.errors import AuthError
from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import Exchange
from tests.support.agents.fake_farm import FakeFarm, comes_true, living, serving
from tests.support.faults.stream_server import read_adb_request, stream_server

pytestmark = pytest.mark.anyio


@pytest.mark.invariant("I12")
@pytest.mark.fault(36)
async def test_evidence_waits_for_a_farm_that_went_away(
    config: AgentConfig, phone: VirtualDeviceHandle, port: int, tmp_path: Path
) -> None:
    farm, gone = FakeFarm(), tmp_path / "gone"
    farm.assign(1, phone.serial, f"until test -e {gone}; do sleep 0.05; done; echo done")
    async with living(config):
        async with serving(farm.app, port):
            await farm.until(lambda: bool(farm.exchanges) and farm.phase(1) is AttemptState.MEASURING)
        gone.touch()
        spooled = config.data_dir / "spool" / "1.json"
        await comes_true(spooled.exists, "the report is spooled")
        body = unsealed(spooled.read_bytes())
        async with serving(farm.app, port):
            evidence = await farm.reported(1)
            await farm.until(lambda: farm.cleaned(phone.serial) == 1)
    assert evidence.stdout == "done\n"
    assert farm.reports[1][0] == body


class LooseHub:
    """An adb server whose only phone is seen in two states by turns, for ever."""

    def __init__(self) -> None:
        self.changes = 0
        self.changed = asyncio.Condition()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_adb_request(reader)
        writer.write(b"OKAY")
        if request == b"host:version":
            writer.write(b"00040029")
        while request == b"host:track-devices":
            for row in (b"phone-1\toffline\n", b"phone-1\tunauthorized\n"):
                writer.write(b"%04x" % len(row) + row)
                await writer.drain()
                async with self.changed:
                    self.changes += 1
                    self.changed.notify_all()
                # The pace of the hub: without it, the agent would get nothing else done.
                await asyncio.sleep(0.05)


class SlowFarm(FakeFarm):
    """Takes longer for an answer than phones on a loose hub for coming and going."""

    def __init__(self, hub: LooseHub) -> None:
        super().__init__()
        self._hub = hub

    async def _exchange(self, session_id: int, said: Exchange) -> Response:
        async with self._hub.changed:
            seen = self._hub.changes
            await self._hub.changed.wait_for(lambda: self._hub.changes >= seen + 10)
        return await super()._exchange(session_id, said)


async def test_a_farm_is_heard_while_phones_come_and_go_faster_than_it_answers(
    config: AgentConfig, port: int
) -> None:
    """It was not: each change dropped the call in which the last one was told, and no lease was renewed."""
    heard, loose_hub = asyncio.Event(), LooseHub()
    async with serving(SlowFarm(loose_hub).app, port), stream_server(loose_hub.serve) as hub_port:
        loose = config.model_copy(update={"adb_server": f"127.0.0.1:{hub_port}", "adb_connect": ()})
        agent = asyncio.create_task(run_agent(loose, SystemClock(), ready=heard.set))
        try:
            async with asyncio.timeout(120):
                await heard.wait()
        finally:
            agent.cancel()
            await asyncio.gather(agent, return_exceptions=True)


async def test_an_agent_waits_for_a_farm_that_is_not_there_yet(config: AgentConfig, port: int) -> None:
    farm = FakeFarm()
    with capture_logs() as logged:
        async with living(config) as agent:
            await comes_true(
                lambda: any(entry["event"] == "enrollment_delayed" for entry in logged), "it misses the farm"
            )
            assert not agent.done()
            async with serving(farm.app, port):
                await farm.until(lambda: bool(farm.exchanges))


async def test_a_fenced_session_is_followed_by_a_new_one(config: AgentConfig, played: FakeFarm) -> None:
    async with living(config):
        await played.until(lambda: bool(played.exchanges))
        played.fenced = True
        await played.until(lambda: len(played.openings) == 2)
        heard = len(played.exchanges)
        await played.until(lambda: len(played.exchanges) > heard)
    assert played.exchanges[-1].seq < heard + 10


async def test_a_wrong_join_token_ends_the_agent_with_a_hint(config: AgentConfig, played: FakeFarm) -> None:
    wrong = config.model_copy(update={"join_token": SecretStr("wrong")})
    with pytest.raises(AuthError, match="join token") as caught:
        await run_agent(wrong, SystemClock())
    assert "join token" in caught.value.hint


async def test_a_credential_is_kept_private_and_used_again(config: AgentConfig, played: FakeFarm) -> None:
    async with living(config):
        await played.until(lambda: bool(played.exchanges))
    kept = config.data_dir / "credential.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    without_token = config.model_copy(update={"join_token": None})
    async with living(without_token):
        await played.until(lambda: len(played.openings) == 2)


@pytest.mark.fault(26)
async def test_a_second_agent_on_the_same_folder_ends_at_once(config: AgentConfig, played: FakeFarm) -> None:
    async with living(config):
        await played.until(lambda: bool(played.openings))
        with pytest.raises(AgentRunningError):
            await run_agent(config, SystemClock())


async def test_nothing_of_a_secret_is_logged(config: AgentConfig, played: FakeFarm) -> None:
    with capture_logs() as logs:
        async with living(config):
            await played.until(lambda: bool(played.exchanges))
    assert logs
    assert "a-credential" not in str(logs)
    assert "the-right-token" not in str(logs)
