"""Device actions of operators on a virtual phone, between attempts and across lives of the agent."""

import json
from collections.abc import AsyncIterator

import pytest
from fastapi import Response

from agents.host.config import AgentConfig
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.base.ids import DeviceId, Digest
from farm.core.devices.device import Presence
from farm.core.upkeep.device_action import DeviceActionKind
from farm.wire.agents.protocol import DeviceActionOrder, DeviceActionReport, Exchange
from tests.support.agents.fake_farm import FakeFarm, living, serving

pytestmark = pytest.mark.anyio


class FarmWithDeviceActions(FakeFarm):
    """A fake farm that lists device actions until the test removes them."""

    def __init__(self) -> None:
        super().__init__()
        self.device_actions: dict[int, DeviceActionOrder] = {}
        #: What later jobs need; while there is any, phones are kept ready for the next one.
        self.upcoming: list[Digest] = []

    def ask(
        self, number: int, phone: VirtualDeviceHandle, kind: DeviceActionKind = DeviceActionKind.CLEAN
    ) -> None:
        self.device_actions[number] = DeviceActionOrder(
            device_action_id=number, device_id=DeviceId(phone.serial), kind=kind, label="bench-a"
        )

    def ended(self, number: int) -> list[DeviceActionReport]:
        """The results of device actions in every exchange so far."""
        return [
            report
            for each in self.exchanges
            for report in each.device_actions
            if report.device_action_id == number
        ]

    def is_in_progress(self, number: int) -> bool:
        return any(number in each.device_actions_in_progress for each in self.exchanges[-1:])

    async def _exchange(self, session_id: int, said: Exchange) -> Response:
        answer = await super()._exchange(session_id, said)
        if answer.status_code != 200:
            return answer
        online = {report.device_id for report in said.devices if report.presence is Presence.ONLINE}
        listed = [each for each in self.device_actions.values() if each.device_id in online]
        document = json.loads(bytes(answer.body))
        document["device_actions"] = [each.model_dump(mode="json") for each in listed]
        document["prefetch"] = self.upcoming
        return Response(json.dumps(document), media_type="application/json")


@pytest.fixture
async def played(port: int) -> AsyncIterator[FarmWithDeviceActions]:
    farm = FarmWithDeviceActions()
    async with serving(farm.app, port):
        yield farm


def slow_cleaning(phone: VirtualDeviceHandle) -> None:
    """Each clean-up looks twice at the cache, and notes it."""
    (phone.state / "data" / "local" / "tmp" / "benchfarm" / "cache").mkdir(parents=True)
    slow = phone.state / "bin" / "stat"
    slow.write_text('#!/bin/sh\necho look >>"$HOME/looks"\nsleep 0.5\n')
    slow.chmod(0o755)


def looks(phone: VirtualDeviceHandle) -> int:
    path = phone.state / "data" / "looks"
    return len(path.read_text().splitlines()) if path.exists() else 0


async def test_a_device_action_runs_once_and_is_reported_until_it_is_listed_no_longer(
    played: FarmWithDeviceActions, config: AgentConfig, phone: VirtualDeviceHandle
) -> None:
    slow_cleaning(phone)
    played.ask(7, phone)
    async with living(config):
        await played.until(lambda: len(played.ended(7)) >= 3)
        played.device_actions.clear()
        await played.until(lambda: not played.exchanges[-1].device_actions)
    assert looks(phone) == 2
    (report,) = set(played.ended(7))
    assert (report.error, report.freed_bytes) == (None, 0)


async def test_a_device_action_waits_until_the_active_attempt_is_over(
    played: FarmWithDeviceActions, config: AgentConfig, phone: VirtualDeviceHandle
) -> None:
    async with living(config):
        played.assign(1, phone.serial, "sleep 1")
        await played.until(lambda: bool(played.exchanges) and played.phase(1) is not None)
        played.ask(7, phone)
        await played.until(lambda: bool(played.ended(7)))
    assert 1 in played.reports
    assert not any(each.attempts and each.device_actions_in_progress for each in played.exchanges)


async def test_an_attempt_waits_until_the_running_device_action_is_over(
    played: FarmWithDeviceActions, config: AgentConfig, phone: VirtualDeviceHandle
) -> None:
    slow_cleaning(phone)
    played.ask(7, phone)
    async with living(config):
        await played.until(lambda: played.is_in_progress(7))
        played.assign(1, phone.serial, "true")
        await played.until(lambda: bool(played.ended(7)))
        played.device_actions.clear()
        await played.reported(1)
    assert not any(each.attempts and each.device_actions_in_progress for each in played.exchanges)


async def test_a_device_action_that_was_not_reported_runs_again_after_a_restart(
    played: FarmWithDeviceActions, config: AgentConfig, phone: VirtualDeviceHandle
) -> None:
    slow_cleaning(phone)
    played.ask(7, phone)
    async with living(config):
        await played.until(lambda: played.is_in_progress(7))
    assert played.ended(7) == []
    async with living(config):
        await played.until(lambda: bool(played.ended(7)))
    assert played.ended(7)[0].error is None


async def test_a_run_right_after_a_device_action_that_freed_the_cache_finds_its_file(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FarmWithDeviceActions
) -> None:
    file = played.add_file(b"weights " * 100)
    played.upcoming = [file.digest]
    async with living(config):
        for number in (1, 2):
            played.assign(number, phone.serial, "", files=(file,), argv=("cat", "${file_data}"))
            assert (await played.reported(number)).stdout == "weights " * 100
            await played.until(lambda done=number: played.cleaned(phone.serial) == done)
        played.ask(1, phone)
        await played.until(lambda: bool(played.ended(1)))
        played.device_actions.clear()
        played.assign(3, phone.serial, "", files=(file,), argv=("cat", "${file_data}"))
        evidence = await played.reported(3)
    assert evidence.stdout == "weights " * 100
    assert evidence.pushed_bytes == file.size_bytes


async def test_a_phone_that_cannot_do_it_is_reported_with_the_reason(
    played: FarmWithDeviceActions, config: AgentConfig, phone: VirtualDeviceHandle
) -> None:
    for name in ("cmd", "input"):
        (phone.state / "bin" / name).write_text("#!/bin/sh\necho 'no such service' >&2\nexit 1\n")
    played.ask(7, phone, DeviceActionKind.IDENTIFY)
    async with living(config):
        await played.until(lambda: bool(played.ended(7)))
    assert "no such service" in str(played.ended(7)[0].error)
