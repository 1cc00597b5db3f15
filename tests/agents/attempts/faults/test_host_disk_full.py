"""An agent whose disk is full keeps going, and its attempts come to their ends."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import httpx
import pytest

from agents.adb.client import AdbClient
from agents.adb.smartsocket import tcp_address
from agents.attempts.artifact_cache import ArtifactCache
from agents.attempts.attempts import AttemptController
from agents.attempts.reconcile import AttemptDecision
from agents.attempts.runner import AttemptRunner
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.monitor import DeviceMonitor
from agents.farm_api import FarmApi
from agents.host.atomic_file import DiskThread
from agents.outbox.attempt_journal import AttemptJournal
from agents.outbox.sender import ReportDelivery
from agents.outbox.spool import Spool
from farm.core.base.ids import AttemptId
from farm.core.errors import Blame
from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import Report
from tests.support.agents.factories import assignment, entry
from tests.support.fake_clock import FakeClock

pytestmark = pytest.mark.anyio
NOBODY = 1


@dataclass(frozen=True)
class Stage:
    """An agent's attempts without a phone or a farm."""

    attempts: AttemptController
    active: ActiveAttempts
    journal: AttemptJournal
    folder: Path

    def fill_disk_for(self, attempt_id: int) -> None:
        """Have the journal's next writes of this attempt find no space: the kernel says so itself."""
        (self.folder / f"{attempt_id}.json.tmp").symlink_to("/dev/full")

    def break_disk_for(self, attempt_id: int) -> None:
        """Have the journal's next writes of this attempt fail with EIO: the kernel says so itself."""
        (self.folder / f"{attempt_id}.json.tmp").symlink_to("/proc/self/mem")

    async def given_back(self, attempt_id: int) -> str | None:
        """Wait until the farm would be told that an attempt is given back, and for the disk after that."""
        held = self.active.attempt_by_id[AttemptId(attempt_id)]
        async with asyncio.timeout(120):
            while held.record.phase is not AttemptState.RETURNED:
                await self.active.changed.wait()
                self.active.changed.clear()
        return held.record.reason


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    active, clock, random, disk = ActiveAttempts(), FakeClock(), Random(1), DiskThread()
    journal, spool = AttemptJournal(tmp_path / "attempts"), Spool(tmp_path / "spool")
    api = FarmApi(httpx.AsyncClient(base_url=f"http://127.0.0.1:{NOBODY}"))
    async with asyncio.TaskGroup() as tasks:
        monitor = DeviceMonitor(
            adb=AdbClient(tcp_address(NOBODY)), active=active, clock=clock, random=random, tasks=tasks
        )
        blobs = ArtifactCache(tmp_path / "cache", api, clock, limit_bytes=0)
        attempts = AttemptController(
            active=active,
            runner=AttemptRunner(
                monitor=monitor, artifacts=blobs, clock=clock, random=random, device_cache_limit_bytes=2**30
            ),
            delivery=ReportDelivery(api, spool, disk, random),
            journal=journal,
            spool=spool,
            disk=disk,
            random=random,
            tasks=tasks,
        )
        yield Stage(attempts, active, journal, tmp_path / "attempts")
        await disk.call(lambda: None)
        for held in active.attempt_by_id.values():
            # Nobody cleans a phone that is not there; a task that failed has failed the group already.
            assert held.task is not None
            assert not held.task.done()
            held.task.cancel()
        for task in asyncio.all_tasks():
            if task.get_name().startswith("deliver "):
                task.cancel()
    disk.close()


async def test_an_attempt_is_returned_by_an_agent_that_starts_on_a_full_disk(stage: Stage) -> None:
    stage.journal.write(entry(1, phase=AttemptState.PREPARING))
    stage.fill_disk_for(1)
    await stage.attempts.recover()
    assert await stage.given_back(1) == "the agent was restarted"
    assert [each.phase for each in stage.journal.records()] == [AttemptState.PREPARING]


@pytest.mark.fault(29)
async def test_an_attempt_is_deferred_on_a_full_disk(stage: Stage) -> None:
    stage.fill_disk_for(1)
    stage.attempts.apply(AttemptDecision(start=(assignment(1),)))
    reason = await stage.given_back(1)
    assert reason is not None
    assert "device went away" in reason


async def test_a_disk_with_a_broken_block_defers_an_attempt_and_ends_no_agent(stage: Stage) -> None:
    stage.break_disk_for(1)
    stage.attempts.apply(AttemptDecision(start=(assignment(1),)))
    assert await stage.given_back(1) is not None


@pytest.mark.parametrize("damage", ["a digit", "a folder", "a broken block"])
async def test_the_farm_is_told_of_a_report_that_cannot_be_read_and_the_others_go_on(
    stage: Stage, tmp_path: Path, damage: str
) -> None:
    spool, path = stage.attempts.spool, tmp_path / "spool" / "1.json"
    for attempt_id in (1, 2):
        stage.journal.write(entry(attempt_id, phase=AttemptState.MEASURING))
        spool.put(AttemptId(attempt_id), b"report")
    if damage == "a digit":
        path.write_bytes(path.read_bytes().replace(b"report", b"repost"))
    else:
        path.unlink()
        path.mkdir() if damage == "a folder" else path.symlink_to("/proc/self/mem")
    await stage.attempts.recover()
    told = Report.model_validate_json(spool.find(AttemptId(1)) or b"").evidence
    assert told.error is not None
    assert told.error.blame is Blame.HOST
    assert "damaged on the host's disk" in told.error.message
    assert spool.find(AttemptId(2)) == b"report"
    assert stage.active.attempt_by_id.keys() == {1, 2}
