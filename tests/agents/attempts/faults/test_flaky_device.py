"""A phone that comes and goes during a run, that talks for ever, or whose adbd is an old one."""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from agents.device.device_cache import ensure_cached
from agents.devices.monitor import OnlineDevice
from agents.virtual.faults import Faults, set_faults
from agents.virtual.processes import JOURNAL_FILE, open_runs
from farm.core.base.ids import digest_of
from farm.core.devices.device import Presence
from farm.core.errors import Blame, DeviceUnfit
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import PlanFile
from tests.support.agents.fake_farm import comes_true
from tests.support.agents.run_spans import run_spans
from tests.support.agents.runner_fixture import Bench, is_waited_for, unheard

pytestmark = pytest.mark.anyio

FOUR_GIB = 2**32


@pytest.mark.fault(1, 3)
@pytest.mark.invariant("I8")
async def test_a_phone_that_comes_and_goes_during_a_run_keeps_it_and_it_is_started_once(
    bench: Bench, tmp_path: Path
) -> None:
    phone = await bench.phone()
    begun, go = tmp_path / "begun", tmp_path / "go"
    entry = bench.entry(1, f"echo begun >>{begun}; until [ -e {go} ]; do sleep 0.05; done; echo done")
    entry = replace(entry, plan=replace(entry.plan, timeout_s=90.0))
    bench.active.add(entry)
    async with bench.kept():
        run = asyncio.create_task(bench.runner.run(entry, unheard, adopt=False))
        await comes_true(begun.exists, "the run begins")
        # Not while the call that starts the run is answered, which is then made again.
        await comes_true(lambda: is_waited_for(bench), "the agent waits for the run")
        set_faults(bench.handle.state, Faults(flap_s=1.5))
        for is_there in (False, True) * 4:
            await comes_true(lambda is_there=is_there: listens(bench) is is_there, "it comes and goes")
        set_faults(bench.handle.state, Faults())
        go.touch()
        evidence = await run
    assert isinstance(evidence, Evidence)
    assert (evidence.error, evidence.stdout) == (None, "done\n")
    assert evidence.away_s > 0
    assert begun.read_text() == "begun\n"
    assert {span.boot_id for span in run_spans(bench.handle.state / JOURNAL_FILE)} == {phone.boot_id}


@pytest.mark.fault(7)
@pytest.mark.invariant("I8")
async def test_a_run_that_prints_a_byte_now_and_then_for_ever_is_ended_with_all_it_started(
    bench: Bench,
) -> None:
    await bench.phone()
    drip = "while :; do printf .; sleep 0.1; done"
    entry = bench.entry(1, f"({drip}) & setsid sh -c '{drip}' & {drip}")
    entry = replace(entry, plan=replace(entry.plan, timeout_s=1.0))
    evidence = await bench.runner.run(entry, unheard, adopt=False)
    assert isinstance(evidence, Evidence)
    assert evidence.exit is not None
    assert evidence.exit.timed_out
    await bench.runner.clean_up(bench.device_id, 1)
    journal = bench.handle.state / JOURNAL_FILE
    await comes_true(lambda: bool(run_spans(journal)) and not open_runs(journal), "nothing of it is alive")


@pytest.mark.long
@pytest.mark.fault(7)
async def test_a_phone_whose_commands_drip_for_ever_costs_a_run_a_bounded_time_and_is_not_online(
    bench: Bench,
) -> None:
    await bench.phone()
    runner = bench.runner_with(away_s=2.0)
    entry = bench.entry(1, "sleep 600")
    run = asyncio.create_task(
        runner.run(replace(entry, plan=replace(entry.plan, timeout_s=0.5)), unheard, adopt=False)
    )
    await comes_true(lambda: bool(run_spans(bench.handle.state / JOURNAL_FILE)), "the run begins")
    set_faults(bench.handle.state, Faults(drips=True))
    bench.monitor.reprobe(bench.device_id)
    await comes_true(lambda: presence_of(bench) is not Presence.ONLINE, "its probe has no end")
    set_faults(bench.handle.state, Faults())
    async with asyncio.timeout(120):
        await run


@pytest.mark.fault(12)
async def test_a_file_of_4_gib_is_not_begun_on_a_phone_that_cannot_tell_its_size(
    bench: Bench, tmp_path: Path
) -> None:
    await bench.phone()
    phone = await without_stat_v2(bench)
    file = PlanFile(name="data", digest=digest_of(b"never read"), size_bytes=FOUR_GIB)
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as content:
        content.truncate(file.size_bytes)

    async def local_path(_: object) -> Path:
        return sparse

    with pytest.raises(DeviceUnfit, match="supports no sizes from 4 GiB on") as refused:
        await ensure_cached(phone.adb, [file], local_path)
    assert (refused.value.blame, refused.value.transient) == (Blame.DEVICE, False)
    assert list(bench.handle.state.glob(f"**/benchfarm/*/{file.digest}")) == []


async def without_stat_v2(bench: Bench) -> OnlineDevice:
    set_faults(bench.handle.state, Faults(no_stat_v2=True))
    return await bench.come_back()


def listens(bench: Bench) -> bool:
    host, _, port = bench.handle.address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def presence_of(bench: Bench) -> Presence:
    found = bench.monitor.observations().get(bench.device_id)
    return found.presence if found else Presence.ABSENT
