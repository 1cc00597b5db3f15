"""A phone whose storage is full: a file system of a few megabytes, written to until nothing more fits."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.device.run.run_control import SUPERVISOR_FILE, DeviceNotClean, clean_run, start_run
from agents.outbox.attempt_journal import JournalRecord
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices
from agents.virtual.sandbox import find_mount_error
from farm.core.base.ids import digest_of
from farm.core.errors import Blame, DeviceError
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import PlanFile
from tests.support.agents.runner_fixture import Bench, benched, unheard

pytestmark = pytest.mark.anyio

STORAGE_MIB = 12


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[VirtualDeviceHandle]:
    if (obstacle := find_mount_error(tmp_path)) is not None:
        pytest.skip(f"this machine gives a phone no storage of its own: {obstacle}")
    yield start_devices(1, tmp_path / "phones", storage_mib=STORAGE_MIB)[0]
    stop_devices(tmp_path / "phones")


@pytest.fixture
async def bench(tmp_path: Path, phone: VirtualDeviceHandle) -> AsyncIterator[Bench]:
    async with benched(tmp_path, phone) as bench:
        await bench.phone()
        yield bench


def unguarded(entry: JournalRecord) -> JournalRecord:
    """Without the gate that has a phone short of room wait."""
    gates = replace(entry.plan.gates, min_storage_bytes=0)
    return replace(entry, plan=replace(entry.plan, gates=gates))


async def evidence(bench: Bench, entry: JournalRecord) -> Evidence:
    ending = await bench.runner.run(unguarded(entry), unheard, adopt=False)
    assert isinstance(ending, Evidence), ending
    return ending


async def filled(bench: Bench, fence: int) -> Evidence:
    """A run that writes until nothing more fits."""
    return await evidence(bench, bench.entry(fence, "dd if=/dev/zero of=filler bs=1M 2>/dev/null; echo told"))


async def said(bench: Bench, command: str) -> str:
    phone = await bench.phone()
    result = await phone.adb.shell(f"cd {phone.facts.work_root} && {command}", deadline_s=30)
    return result.stdout.decode()


async def test_df_shows_how_much_there_is_and_the_facts_say_so(bench: Bench) -> None:
    phone = await bench.phone()
    assert phone.facts.storage_bytes == STORAGE_MIB * 2**20
    await said(bench, "dd if=/dev/zero of=filler bs=1M 2>/dev/null")
    assert (await said(bench, "df -k . | tail -n 1")).split()[3:5] == ["0", "100%"]


@pytest.mark.fault(10)
async def test_a_file_that_does_not_fit_is_refused_in_the_phones_words_and_nothing_of_it_stays(
    bench: Bench, tmp_path: Path
) -> None:
    content = bytes((STORAGE_MIB + 1) * 2**20)
    file = PlanFile(name="data", digest=digest_of(content), size_bytes=len(content))
    (tmp_path / "cache" / file.digest).write_bytes(content)
    entry = bench.entry(1, "echo done")
    ending = await evidence(bench, replace(entry, plan=replace(entry.plan, files=(file,))))
    assert ending.error is not None
    assert (ending.error.code, ending.error.blame) == ("device.push_failed", Blame.DEVICE)
    assert "write failed: No space left on device" in ending.error.message
    listed = await said(bench, "ls benchfarm/cache benchfarm/incoming")
    assert file.digest not in listed
    assert SUPERVISOR_FILE.digest in listed
    assert (await evidence(bench, bench.entry(2, "echo done"))).stdout == "done\n"


@pytest.mark.invariant("I5")
async def test_a_run_that_fills_the_phone_gives_no_result_and_the_next_one_does(bench: Bench) -> None:
    ending = await filled(bench, 1)
    assert ending.error is not None
    assert (ending.exit, ending.error.blame, ending.stdout) == (None, Blame.DEVICE, "")
    await bench.runner.clean_up(bench.device_id, 1)
    assert (await evidence(bench, bench.entry(2, "echo done"))).stdout == "done\n"


@pytest.mark.invariant("I3", "I7")
async def test_a_run_that_was_cleaned_from_a_full_phone_can_no_more_start_than_any_other(
    bench: Bench,
) -> None:
    """It could: there was no room to write down that it was over."""
    await filled(bench, 1)
    phone = await bench.phone()
    await clean_run(phone.adb, 1)
    assert await said(bench, "cat benchfarm/cleaned") == "1\n"
    again = await bench.runner.run(unguarded(bench.entry(1, "touch ../../ran")), unheard, adopt=False)
    assert await said(bench, "ls benchfarm") == await said(bench, "ls benchfarm | grep -v ran")
    assert not isinstance(again, Evidence) or again.exit is None


@pytest.mark.invariant("I3", "I7")
async def test_a_phone_that_others_filled_is_not_called_clean_and_starts_nothing(bench: Bench) -> None:
    assert (await evidence(bench, bench.entry(1, "echo done"))).stdout == "done\n"
    await bench.runner.clean_up(bench.device_id, 1)
    phone = await bench.phone()
    await said(bench, "dd if=/dev/zero of=filler bs=1k 2>/dev/null")
    with pytest.raises(DeviceNotClean, match="no room to write down that run 2 is over"):
        await clean_run(phone.adb, 2)
    with pytest.raises(DeviceError):
        await start_run(phone.adb, 3, ["touch", "../../ran"], {}, 5.0)
    assert "ran" not in (await said(bench, "ls benchfarm")).split()
    await said(bench, "rm filler")
    await clean_run(phone.adb, 3)
    assert (await evidence(bench, bench.entry(4, "echo done"))).stdout == "done\n"
