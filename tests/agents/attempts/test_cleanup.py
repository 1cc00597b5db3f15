"""What the farm wants cleaned up on a phone whose runs its agent never heard of."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
from fastapi import Response

from agents.host.config import AgentConfig
from agents.virtual.pool import VirtualDeviceHandle
from agents.virtual.processes import JOURNAL_FILE, open_runs
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import CleanupOrder, Exchange, ExchangeAnswer
from tests.support.agents.fake_farm import FakeFarm, comes_true, living, serving

pytestmark = pytest.mark.anyio


class FarmThatWantsOrder(FakeFarm):
    """Lists a phone until it is clean up to a fence."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: CleanupOrder | None = None

    async def _exchange(self, session_id: int, said: Exchange) -> Response:
        answer = await super()._exchange(session_id, said)
        if answer.status_code != 200 or self.wanted is None:
            return answer
        document = ExchangeAnswer.model_validate_json(bytes(answer.body))
        listed = document.model_copy(update={"clean_ups": (self.wanted,)})
        return Response(listed.model_dump_json(), media_type="application/json")


@pytest.fixture
async def played(port: int) -> AsyncIterator[FarmThatWantsOrder]:
    farm = FarmThatWantsOrder()
    async with serving(farm.app, port):
        yield farm


@pytest.mark.invariant("I7")
async def test_a_phone_is_cleaned_up_to_a_fence_that_it_never_saw(
    played: FarmThatWantsOrder, config: AgentConfig, phone: VirtualDeviceHandle
) -> None:
    async with living(config):
        await played.until(lambda: played.cleaned(phone.serial) == 0)
        played.wanted = CleanupOrder(device_id=DeviceId(phone.serial), fence=41)
        await played.until(lambda: played.cleaned(phone.serial) == 41)
        played.wanted = None
        played.assign(42, phone.serial, "echo fine")
        assert (await played.reported(42)).stdout == "fine\n"


@pytest.mark.invariant("I8")
@pytest.mark.fault(22)
async def test_a_run_of_another_host_goes_on_until_the_farm_wants_its_end(
    played: FarmThatWantsOrder, config: AgentConfig, phone: VirtualDeviceHandle
) -> None:
    """A phone on TCP that two agents are told to connect: the second must not end the first one's run."""
    alive = partial(open_runs, phone.state / JOURNAL_FILE)
    screen = phone.state / "settings/global/stay_on_while_plugged_in"
    screen.parent.mkdir(parents=True, exist_ok=True)
    screen.write_text("3\n")
    async with living(config):
        played.assign(7, phone.serial, "sleep 100")
        await comes_true(lambda: bool(alive()), "the run has begun")
    other = config.model_copy(update={"data_dir": config.data_dir.with_name("other")})
    played.assignments.clear()
    async with living(other):
        await played.until(lambda: played.cleaned(phone.serial) == 6)
        assert alive()
        assert screen.read_text() == "15\n", "what the run was promised"
        played.wanted = CleanupOrder(device_id=DeviceId(phone.serial), fence=7)
        await played.until(lambda: played.cleaned(phone.serial) == 7)
        await comes_true(lambda: not alive(), "the run has ended")
        assert screen.read_text() == "3\n"


async def test_an_active_run_is_not_cleaned_away(
    played: FarmThatWantsOrder, config: AgentConfig, phone: VirtualDeviceHandle
) -> None:
    """An answer that was on its way when the run was granted."""
    async with living(config):
        played.assign(7, phone.serial, "sleep 1; echo fine")
        await played.until(lambda: bool(played.exchanges) and played.phase(7) is AttemptState.MEASURING)
        played.wanted = CleanupOrder(device_id=DeviceId(phone.serial), fence=7)
        assert (await played.reported(7)).stdout == "fine\n"


@pytest.mark.long
@pytest.mark.fault(14)
async def test_a_phone_that_cannot_be_cleaned_says_why_until_it_is_clean(
    played: FarmThatWantsOrder, config: AgentConfig, phone: VirtualDeviceHandle
) -> None:
    def said() -> str | None:
        report = played.devices().get(phone.serial)
        return report.detail if report and report.presence is Presence.ONLINE else None

    remover = phone.state / "bin" / "rm"
    async with living(config):
        await played.until(lambda: played.cleaned(phone.serial) == 0)
        # A folder that stays withstands as a process does that nothing ends.
        remover.write_text('#!/bin/sh\ncase "$*" in *runs/7) exit 1 ;; esac\nexec /bin/rm "$@"\n')
        remover.chmod(0o755)
        played.assign(7, phone.serial, "echo fine")
        await played.reported(7)
        await played.until(lambda: said() is not None)
        assert "it cannot be cleaned up" in str(said())
        assert played.cleaned(phone.serial) < 7
        remover.unlink()
        await played.until(lambda: played.cleaned(phone.serial) == 7)
        await played.until(lambda: said() is None)
