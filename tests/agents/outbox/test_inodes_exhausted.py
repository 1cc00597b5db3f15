"""A disk that takes no further name: nothing of a report is lost, and the agent goes on."""

import asyncio
import errno
from pathlib import Path, PosixPath
from random import Random
from typing import Any

import httpx
import pytest

from agents.farm_api import FarmApi
from agents.host.atomic_file import DiskThread
from agents.outbox.attempt_journal import AttemptJournal
from agents.outbox.sender import ReportDelivery
from agents.outbox.spool import Spool
from farm.core.base.ids import AttemptId
from farm.core.errors import HostDiskFull
from tests.support.agents.factories import entry
from tests.support.fake_clock import FakeClock

pytestmark = pytest.mark.anyio
ONE = AttemptId(1)
NOW = FakeClock().now()


class Disk:
    """What the next renames meet; nothing where there is no room for a name."""

    def __init__(self) -> None:
        self.refusals = 0


def on_a_disk(folder: Path) -> tuple[PosixPath, Disk]:
    """A folder whose renames fail as the kernel has them fail, so often as `refusals` says."""
    disk = Disk()

    class Folder(PosixPath):
        def replace(self, target: Any) -> Any:
            if disk.refusals:
                disk.refusals -= 1
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().replace(target)

    return Folder(folder), disk


@pytest.mark.fault(29)
@pytest.mark.invariant("I12")
def test_a_report_that_cannot_be_put_aside_waits_and_the_host_takes_no_work(tmp_path: Path) -> None:
    folder, disk = on_a_disk(tmp_path)
    spool = Spool(folder, reserve_bytes=4096)
    spool.put(ONE, b"evidence")
    for move in (spool.acknowledge, spool.refuse):
        disk.refusals = 2
        with pytest.raises(HostDiskFull):
            move(ONE)
        assert (spool.pending(), spool.find(ONE)) == ([ONE], b"evidence")
        assert spool.shortage() is not None
        disk.refusals = 0
    spool.acknowledge(ONE)
    assert (spool.pending(), spool.acknowledged(), spool.shortage()) == ([], [ONE], None)


@pytest.mark.fault(29)
def test_a_report_that_cannot_be_taken_back_is_kept(tmp_path: Path) -> None:
    folder, disk = on_a_disk(tmp_path)
    spool = Spool(folder, reserve_bytes=0)
    spool.put(ONE, b"evidence")
    spool.acknowledge(ONE)
    disk.refusals = 2
    with pytest.raises(HostDiskFull):
        spool.resend(ONE)
    assert spool.acknowledged() == [ONE]
    disk.refusals = 0
    assert spool.resend(ONE)
    assert spool.find(ONE) == b"evidence"


@pytest.mark.fault(29)
def test_the_reserve_makes_room_for_a_name(tmp_path: Path) -> None:
    folder, disk = on_a_disk(tmp_path)
    spool = Spool(folder, reserve_bytes=4096)
    assert spool.shortage() is None
    spool.put(ONE, b"evidence")
    disk.refusals = 1
    spool.acknowledge(ONE)
    assert spool.acknowledged() == [ONE]
    assert not (tmp_path / "reserve").exists()


@pytest.mark.fault(29)
@pytest.mark.parametrize("status", [200, 409])
async def test_a_report_is_delivered_again_until_it_can_be_put_aside(tmp_path: Path, status: int) -> None:
    folder, disk_full = on_a_disk(tmp_path)
    spool, disk, calls = Spool(folder, reserve_bytes=0), DiskThread(), list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        calls.append(request.url.path)
        refusal = {
            "title": "t",
            "status": 409,
            "detail": "d",
            "code": "report.conflict",
            "blame": "user",
            "transient": False,
            "hint": "h",
        }
        return httpx.Response(status, json={"attempt_id": 1, "counted": True} if status == 200 else refusal)

    spool.put(ONE, b"evidence")
    disk_full.refusals = 2
    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://farm") as http:
        delivery = ReportDelivery(FarmApi(http), spool, disk, Random(1))
        async with asyncio.timeout(120):
            await delivery.deliver(ONE)
    disk.close()
    assert len(calls) > 1
    assert spool.pending() == []
    assert (spool.acknowledged() == [ONE]) is (status == 200)


def test_a_journal_that_cannot_put_an_entry_aside_leaves_it_out(tmp_path: Path) -> None:
    folder, disk = on_a_disk(tmp_path)
    journal = AttemptJournal(folder)
    journal.write(entry(2))
    (tmp_path / "1.json").write_text("nonsense")
    disk.refusals = 1
    assert [each.attempt_id for each in journal.records()] == [2]
