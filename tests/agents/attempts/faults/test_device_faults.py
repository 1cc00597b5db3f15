"""What becomes of a run whose phone goes away, reboots, loses its adb daemon, or answers nonsense once."""

import asyncio
import socket
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.attempts.runner import AttemptRunner, DeferredRun
from agents.device.conditions import read_condition
from agents.device.run.run_control import SUPERVISOR_FILE
from agents.outbox.attempt_journal import AttemptPhase, JournalRecord
from agents.virtual.faults import CountedFault, Faults, FaultState, set_faults
from agents.virtual.processes import JOURNAL_FILE, open_runs
from farm.clock import SystemClock
from farm.core.base.ids import digest_of
from farm.core.errors import Blame, HostDiskFull
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence, RunError
from farm.core.runs.plan import PlanFile
from tests.support.agents.fake_farm import comes_true
from tests.support.agents.run_spans import run_spans
from tests.support.agents.runner_fixture import Bench, is_waited_for, unheard

pytestmark = pytest.mark.anyio


@pytest.mark.fault(1, 3)
async def test_a_blip_costs_no_run_and_is_noted(bench: Bench, tmp_path: Path) -> None:
    run, begun, go = await running(bench, tmp_path)
    set_faults(bench.handle.state, Faults(vanish=True))
    await comes_true(lambda: not listens(bench), "the phone is away")
    set_faults(bench.handle.state, Faults())
    go.touch()
    evidence = await run
    assert (evidence.error, evidence.stdout) == (None, "done\n")
    assert evidence.away_s >= 1.0
    assert begun.exists()


@pytest.mark.fault(4)
async def test_a_reboot_during_a_run_is_the_phones_doing(bench: Bench, tmp_path: Path) -> None:
    run, _, _ = await running(bench, tmp_path)
    set_faults(bench.handle.state, Faults(reboots=1, reboot_s=0.2))
    error = error_of(await run)
    assert (error.code, error.blame, error.transient) == ("device.rebooted", Blame.DEVICE, True)


@pytest.mark.fault(2)
async def test_a_phone_that_stays_away_loses_its_run(bench: Bench, tmp_path: Path) -> None:
    run, _, _ = await running(bench, tmp_path, bench.runner_with(away_s=1.5))
    set_faults(bench.handle.state, Faults(vanish=True))
    error = error_of(await run)
    assert (error.code, error.blame) == ("device.lost", Blame.DEVICE)


@pytest.mark.fault(6)
async def test_a_phone_that_forgets_our_key_during_a_run_loses_it(bench: Bench, tmp_path: Path) -> None:
    run, _, _ = await running(bench, tmp_path, bench.runner_with(away_s=1.5))
    set_faults(bench.handle.state, Faults(unauthorized=True))
    error = error_of(await run)
    assert (error.code, error.blame) == ("device.lost", Blame.DEVICE)


@pytest.mark.fault(13)
@pytest.mark.parametrize(("takes_runs", "code"), [(True, "device.adbd_restarted"), (False, None)])
async def test_a_restart_of_adbd_costs_a_run_only_where_it_takes_it_along(
    bench: Bench, tmp_path: Path, takes_runs: bool, code: str | None
) -> None:
    run, _, go = await running(bench, tmp_path)
    set_faults(bench.handle.state, Faults(adbd_restarts=1, adbd_takes_runs=takes_runs))
    await comes_true(lambda: counted_down(bench, "adbd_restarts"), "adbd restarted")
    if not takes_runs:
        # A run that is taken along must not end by itself first.
        go.touch()
    evidence = await run
    assert (evidence.error.code if evidence.error else None) == code


@pytest.mark.fault(7)
async def test_a_phone_that_hangs_during_a_run_costs_it_a_bounded_time(bench: Bench, tmp_path: Path) -> None:
    # In this time the agent begins to wait for the run.
    run, _, _ = await running(bench, tmp_path, timeout_s=5.0)
    set_faults(bench.handle.state, Faults(hang=True))
    journal = bench.handle.state / JOURNAL_FILE
    await comes_true(lambda: bool(run_spans(journal)) and not open_runs(journal), "the phone ends the run")
    assert not run.done()
    set_faults(bench.handle.state, Faults())
    evidence = await run
    assert evidence.exit is not None, evidence.error
    assert evidence.exit.timed_out


@pytest.mark.long
@pytest.mark.fault(9)
async def test_one_connection_that_ends_early_costs_nothing(bench: Bench) -> None:
    """Wherever it happens: each question on the way, and the silent wait, is cut once."""
    await bench.phone()
    for fence in range(1, 6):
        set_faults(bench.handle.state, Faults(eofs=1))
        evidence = await bench.runner.run(bench.entry(fence, "echo done"), unheard, adopt=False)
        assert isinstance(evidence, Evidence)
        assert (evidence.error, evidence.stdout) == (None, "done\n")
        set_faults(bench.handle.state, Faults(eofs=1))
        await bench.runner.clean_up(bench.device_id, fence)


@pytest.mark.fault(9)
async def test_an_answer_that_was_cut_off_is_never_taken_for_an_empty_one(bench: Bench) -> None:
    phone = await bench.phone()
    set_faults(bench.handle.state, Faults(eofs=1))
    condition = await read_condition(phone.adb, SystemClock().now())
    assert condition.boot_id == phone.boot_id
    assert counted_down(bench, "eofs")


@pytest.mark.fault(10, 11)
@pytest.mark.parametrize("faults", [Faults(truncate_pushes=2), Faults(power_cut_pushes=2)])
async def test_a_file_that_did_not_arrive_is_pushed_again_before_it_has_a_name(
    bench: Bench, tmp_path: Path, faults: Faults
) -> None:
    await bench.phone()
    entry, content = with_file(bench, tmp_path, 1)
    set_faults(bench.handle.state, faults)
    evidence = await bench.runner.run(entry, unheard, adopt=False)
    assert isinstance(evidence, Evidence)
    assert (evidence.error, evidence.stdout) == (None, content)


@pytest.mark.fault(10)
async def test_a_phone_that_never_takes_a_file_whole_is_to_blame_and_names_no_such_file(
    bench: Bench, tmp_path: Path
) -> None:
    await bench.phone()
    await bench.runner.run(bench.entry(1, "true"), unheard, adopt=False)
    entry, _ = with_file(bench, tmp_path, 2)
    set_faults(bench.handle.state, Faults(truncate_pushes=3))
    error = error_of(await bench.runner.run(entry, unheard, adopt=False))
    assert (error.code, error.blame) == ("device.push_corrupted", Blame.DEVICE)
    assert [path.name for path in cached(bench)] == [SUPERVISOR_FILE.digest]


@pytest.mark.long
@pytest.mark.fault(11)
async def test_a_file_that_a_power_cut_emptied_later_is_found_out_before_it_is_used(
    bench: Bench, tmp_path: Path
) -> None:
    await bench.phone()
    entry, content = with_file(bench, tmp_path, 1)
    await bench.runner.run(entry, unheard, adopt=False)
    (path,) = [path for path in cached(bench) if path.name == entry.plan.files[0].digest]
    path.write_bytes(bytes(path.stat().st_size))
    set_faults(bench.handle.state, Faults(reboots=1, reboot_s=0.1))
    await comes_true(lambda: counted_down(bench, "reboots"), "the phone rebooted")
    await bench.come_back()
    again = await bench.runner.run(with_file(bench, tmp_path, 2)[0], unheard, adopt=False)
    assert isinstance(again, Evidence)
    assert (again.error, again.stdout) == (None, content)


@pytest.mark.fault(23, 24)
@pytest.mark.invariant("I3")
async def test_nothing_runs_before_the_journal_has_it_on_disk(bench: Bench, tmp_path: Path) -> None:
    """The journal first, then the phone: an earlier phase in the journal means that nothing ran."""
    await bench.phone()
    witness, known = tmp_path / "ran", list[tuple[AttemptPhase, bool]]()

    async def note(phase: AttemptPhase, draft: Evidence) -> None:
        # Real time, because the phone is real: what runs too early has to have a chance to show.
        await asyncio.sleep(0.3)
        known.append((phase, witness.exists()))

    await bench.runner.run(bench.entry(1, f"touch {witness}"), note, adopt=False)
    assert known == [(AttemptState.PREPARING, False), (AttemptState.MEASURING, False)]
    assert witness.exists()


@pytest.mark.fault(29)
async def test_a_run_that_the_journal_has_no_room_for_is_deferred(bench: Bench, tmp_path: Path) -> None:
    await bench.phone()
    witness = tmp_path / "ran"

    async def full(phase: AttemptPhase, draft: Evidence) -> None:
        if phase is AttemptState.MEASURING:
            raise HostDiskFull("no space left")

    ending = await bench.runner.run(bench.entry(1, f"touch {witness}"), full, adopt=False)
    assert ending == DeferredRun(reason="no space left")
    assert not witness.exists()


async def running(
    bench: Bench, folder: Path, runner: AttemptRunner | None = None, *, timeout_s: float = 60.0
) -> tuple[asyncio.Task[Evidence], Path, Path]:
    """A run that its agent waits for, the file that shows that it began, and the one that lets it end."""
    await bench.phone()
    begun, go = folder / "begun", folder / "go"
    entry = bench.entry(1, f"touch {begun}; until [ -e {go} ]; do sleep 0.05; done; echo done")
    entry = replace(entry, plan=replace(entry.plan, timeout_s=timeout_s))
    run = asyncio.create_task(evidence_of((runner or bench.runner).run(entry, unheard, adopt=False)))
    await comes_true(begun.exists, "the run begins")
    # Before that, the call that starts the run may fail, and a restart is one that the agent cannot know of.
    await comes_true(lambda: is_waited_for(bench), "the agent waits for the run")
    return run, begun, go


async def evidence_of(run: Coroutine[Any, Any, Evidence | DeferredRun]) -> Evidence:
    ending = await run
    assert isinstance(ending, Evidence), ending
    return ending


def error_of(ending: Evidence | DeferredRun) -> RunError:
    assert isinstance(ending, Evidence), ending
    assert ending.exit is None
    assert ending.error is not None
    return ending.error


def with_file(bench: Bench, folder: Path, fence: int) -> tuple[JournalRecord, str]:
    """An attempt that prints a file of its plan, and what that holds; the host has it already."""
    content = "some weights\n" * 1000
    file = PlanFile(name="data", digest=digest_of(content.encode()), size_bytes=len(content))
    (folder / "cache" / file.digest).write_text(content)
    entry = bench.entry(fence, "")
    plan = replace(entry.plan, files=(file,), argv=("cat", "${file_data}"))
    return replace(entry, plan=plan), content


def cached(bench: Bench) -> list[Path]:
    """The files of the phone's cache that have their names."""
    return [path for path in bench.handle.state.glob("**/benchfarm/cache/*") if path.is_file()]


def counted_down(bench: Bench, kind: CountedFault) -> bool:
    return FaultState(bench.handle.state).left(kind) == 0


def listens(bench: Bench) -> bool:
    host, _, port = bench.handle.address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True
