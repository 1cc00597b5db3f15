"""What an agent tells the farm of its own files that were damaged and set aside."""

import asyncio
from pathlib import Path

import pytest

from agents.host.atomic_file import DiskThread
from agents.host.config import AgentConfig
from agents.outbox.attempt_journal import AttemptJournal
from agents.outbox.damaged_files import DamagedFiles, damage_notice
from agents.outbox.spool import Spool
from farm.core.base.ids import AttemptId
from farm.wire.agents.protocol import Exchange
from tests.support.agents.factories import entry
from tests.support.agents.fake_farm import FakeFarm, living

pytestmark = pytest.mark.anyio


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def journal_and_spool(folder: Path) -> tuple[AttemptJournal, Spool]:
    return AttemptJournal(folder / "attempts"), Spool(folder / "spool", reserve_bytes=4096)


def test_a_damaged_report_and_a_damaged_record_are_named_with_what_is_lost(tmp_path: Path) -> None:
    journal, spool = journal_and_spool(tmp_path)
    journal.write(entry(12))
    journal.write(entry(13))
    spool.put(AttemptId(41), b"report")
    assert damage_notice(tmp_path) is None
    damage(tmp_path / "attempts" / "12.json")
    damage(tmp_path / "spool" / "41.json")
    assert [record.attempt_id for record in journal.records()] == [13]
    assert spool.find(AttemptId(41)) is None
    notice = damage_notice(tmp_path)
    assert notice is not None
    assert f"in {tmp_path}: attempts/12.unreadable (the journal record of attempt 12)" in notice
    assert "spool/41.unreadable (the report of attempt 41)" in notice
    assert "13" not in notice.replace(str(tmp_path), "")
    (tmp_path / "attempts" / "12.unreadable").unlink()
    (tmp_path / "spool" / "41.unreadable").unlink()
    assert damage_notice(tmp_path) is None


def test_a_disk_that_damaged_thousands_of_files_makes_no_endless_message(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    for number in range(2000):
        (tmp_path / "spool" / f"{number}.unreadable").touch()
    notice = damage_notice(tmp_path)
    assert notice is not None
    assert "and 1990 more" in notice
    assert Exchange(seq=1, damaged_files=notice).damaged_files == notice


async def test_the_farm_is_called_at_once_when_files_are_set_aside_or_removed(tmp_path: Path) -> None:
    changed, disk = asyncio.Event(), DiskThread()
    (tmp_path / "recovery.unreadable").touch()
    files = DamagedFiles(tmp_path, changed)
    watch = asyncio.create_task(files.watch(disk))
    async with asyncio.timeout(120):
        await changed.wait()
    assert "recovery.unreadable (the agent's state)" in str(files.notice)
    watch.cancel()
    disk.close()


@pytest.mark.long
async def test_a_farm_hears_of_a_report_that_was_damaged_while_its_agent_was_down(
    config: AgentConfig, played: FakeFarm
) -> None:
    async with living(config):
        await played.until(lambda: bool(played.exchanges))
    _, spool = journal_and_spool(config.data_dir)
    spool.put(AttemptId(7), b"report")
    damage(config.data_dir / "spool" / "7.json")
    async with living(config):
        await played.until(lambda: played.exchanges[-1].damaged_files is not None)
    assert "spool/7.unreadable (the report of attempt 7)" in str(played.exchanges[-1].damaged_files)
