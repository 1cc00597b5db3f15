"""Reports of active attempts: never more than the journal has, never late for a slow disk."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import httpx
import pytest

from agents.attempts.attempts import AttemptController
from agents.attempts.reconcile import AttemptDecision
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.inventory import device_reports
from agents.farm_api import FarmApi
from agents.host.atomic_file import DiskThread
from agents.host.config import AgentConfig
from agents.link.lease import LeaseEndedError
from agents.outbox.attempt_journal import AttemptJournal, JournalRecord
from agents.outbox.sender import ReportDelivery
from agents.outbox.spool import Spool
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.base.bounds import MAX_FENCE
from farm.core.base.ids import AttemptId
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.wire.agents.protocol import Assignment, Report
from tests.support.agents.fake_farm import FakeFarm, comes_true, living
from tests.support.agents.runner_fixture import Bench, unheard

pytestmark = pytest.mark.anyio
NOBODY = 1
ONE = AttemptId(1)


class JournalThatListens(AttemptJournal):
    """Writes down what the farm would be told of an attempt by the time that its phase is on disk."""

    def __init__(self, folder: Path, active: ActiveAttempts) -> None:
        super().__init__(folder)
        self._active = active
        self.heard: list[tuple[AttemptState, AttemptState]] = []

    def write(self, entry: JournalRecord) -> None:
        super().write(entry)
        (told,) = self._active.reports()
        self.heard.append((entry.phase, told.phase))


@asynccontextmanager
async def attempting(
    bench: Bench, folder: Path
) -> AsyncIterator[tuple[AttemptController, JournalThatListens, Spool]]:
    """Attempts on the bench's phone, for a farm that is not there."""
    journal, spool, disk = JournalThatListens(folder / "a", bench.active), Spool(folder / "s"), DiskThread()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{NOBODY}") as http:
        delivery = ReportDelivery(FarmApi(http), spool, disk, Random(1))
        async with asyncio.TaskGroup() as tasks:
            attempts = AttemptController(
                active=bench.active,
                runner=bench.runner,
                delivery=delivery,
                journal=journal,
                spool=spool,
                disk=disk,
                random=Random(1),
                tasks=tasks,
            )
            yield attempts, journal, spool
            for task in asyncio.all_tasks():
                if task.get_name().startswith(("attempt", "deliver", "let go")):
                    task.cancel()
    disk.close()


def begin(bench: Bench, attempts: AttemptController, script: str) -> None:
    entry = bench.entry(ONE, script)
    attempts.apply(
        AttemptDecision(
            start=(
                Assignment(
                    attempt_id=ONE,
                    job_id=entry.job_id,
                    device_id=entry.device_id,
                    fence=ONE,
                    plan=entry.plan,
                ),
            )
        )
    )


@pytest.mark.fault(23, 24)
@pytest.mark.invariant("I17")
async def test_the_farm_hears_of_no_phase_before_the_journal_has_it_on_disk(
    bench: Bench, tmp_path: Path
) -> None:
    """What the farm is told of an attempt, the next life of the agent knows too."""
    await bench.phone()
    async with attempting(bench, tmp_path) as (attempts, journal, spool):
        begin(bench, attempts, "true")
        await comes_true(lambda: spool.pending() == [ONE], "the run is over")
        assert journal.heard == [
            (AttemptState.PREPARING, AttemptState.CLAIMED),
            (AttemptState.MEASURING, AttemptState.PREPARING),
        ]


@pytest.mark.fault(37)
@pytest.mark.invariant("I8", "I12")
async def test_an_interrupted_run_is_ended_on_its_phone_and_reported_when_the_farm_is_back(
    bench: Bench, tmp_path: Path
) -> None:
    await bench.phone()
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    async with attempting(bench, tmp_path) as (attempts, _, spool):
        begin(bench, attempts, f"trap 'touch {ended}; exit' TERM; touch {begun}; sleep 60 & wait")
        await comes_true(begun.exists, "the run begins")
        for _ in range(2):
            attempts.interrupt(ONE, LeaseEndedError("the farm has not answered for 240 s"))
        await comes_true(ended.exists, "the run is ended")
        await comes_true(lambda: bench.active.attempt_by_id[ONE].cleaned, "the phone is clean")
        body = spool.find(ONE)
        assert body is not None
        error = Report.model_validate_json(body).evidence.error
        assert error is not None
        assert (error.code, error.blame) == ("host.lease_ended", "host")
        assert [each.phase for each in bench.active.reports()] == [AttemptState.REPORTING]


@pytest.mark.fault(28)
@pytest.mark.invariant("I9")
async def test_beats_wait_for_no_disk(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    """The journal's next write blocks for as long as nobody reads the pipe that is in its way."""
    async with living(config):
        await played.until(lambda: phone.serial in played.devices())
        in_the_way = config.data_dir / "attempts" / "1.json.tmp"
        os.mkfifo(in_the_way)
        played.assign(1, phone.serial, "true")
        await played.until(lambda: played.phase(1) is AttemptState.CLAIMED)
        beats = len(played.exchanges)
        await played.until(lambda: len(played.exchanges) >= beats + 3)
        assert played.phase(1) is AttemptState.CLAIMED
        # Whoever opens a pipe for reading lets its writer go on.
        os.close(os.open(in_the_way, os.O_RDONLY | os.O_NONBLOCK))


@pytest.mark.fault(29)
async def test_an_agent_without_room_for_evidence_says_so_with_its_beats(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    async with living(config.model_copy(update={"reserve_bytes": 2**50})):
        await played.until(lambda: any(said.pressure for said in played.exchanges))
    assert "the agent's disk has less than" in (played.exchanges[-1].pressure or "")
    assert not (config.data_dir / "spool" / "reserve").exists()
    async with living(config):
        await played.until(lambda: played.exchanges[-1].pressure is None)
        await comes_true((config.data_dir / "spool" / "reserve").exists, "the reserve is there")


@pytest.mark.long
@pytest.mark.invariant("I3", "I8")
async def test_a_device_with_a_token_that_cannot_be_gets_the_farms_and_runs_again(bench: Bench) -> None:
    phone = await bench.phone()
    await phone.adb.shell(f"echo 9007199254740990 >{phone.facts.work_root}/benchfarm/fence", deadline_s=60)
    await bench.come_back()
    assert bench.active.fence_by_device[bench.device_id] == MAX_FENCE
    assert bench.active.request_cleanup(bench.device_id, 7, resets=True)
    bench.monitor.reprobe(bench.device_id)
    await comes_true(lambda: bench.active.cleaned_fence_by_device.get(bench.device_id) == 7, "it is reset")
    (report,) = device_reports(
        bench.monitor.observations(),
        bench.active.cleaned_fence_by_device,
        {},
        known_fence_by_id=bench.active.fence_by_device,
    )
    assert (report.known_fence, report.cleaned_fence) == (7, 7)
    assert bench.active.fence_to_reset_by_device == {}
    evidence = await bench.runner.run(bench.entry(8, "echo done"), unheard, adopt=False)
    assert isinstance(evidence, Evidence)
    assert (evidence.error, evidence.stdout) == (None, "done\n")
