"""Uncounted passes on a phone behind a real adb server: after the run, bounded, and never at its cost."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agents.attempts.diagnostic_pass import RunPart
from agents.attempts.runner import DeferredRun
from agents.device.paths import work_folder
from agents.outbox.attempt_journal import AttemptPhase, JournalRecord
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import DiagnosticPass
from tests.support.agents.runner_fixture import Bench, unheard

pytestmark = pytest.mark.anyio

VLOG = "debug.nn.vlog"
#: Stands for a program: it says where it is, and logs what a driver would only while it is asked to.
PROGRAM = f'pwd; echo $$WORD; [ "$$(getprop {VLOG})" = all ] && log -t ExecutionPlan "told with $$WORD"; true'


def plan_pass(script: str = PROGRAM, *, timeout_s: float = 20.0, name: str = "placement") -> DiagnosticPass:
    return DiagnosticPass(
        name=name,
        argv=("sh", "-c", script),
        env={"WORD": "${work}"},
        properties={VLOG: "all"},
        log_filters=("ExecutionPlan:I", "*:S"),
        timeout_s=timeout_s,
    )


def explained(bench: Bench, script: str, passes: Sequence[DiagnosticPass], fence: int = 1) -> JournalRecord:
    entry = bench.entry(fence, script)
    return replace(entry, plan=replace(entry.plan, passes=tuple(passes)))


async def run(bench: Bench, entry: JournalRecord) -> Evidence:
    await bench.phone()
    found = await bench.runner.run(entry, unheard, adopt=False)
    assert not isinstance(found, DeferredRun)
    return found


async def said(bench: Bench, command: str) -> str:
    phone = await bench.phone()
    return (await phone.adb.shell(command, deadline_s=60)).stdout.decode()


async def until_said(bench: Bench, command: str) -> None:
    async with asyncio.timeout(120):
        while True:
            if (await said(bench, command)).strip():
                return
            await asyncio.sleep(0.05)


async def test_a_pass_comes_after_the_run_with_its_properties_and_brings_back_its_log(bench: Bench) -> None:
    await said(bench, f"setprop {VLOG} before; log -t ExecutionPlan 'told long ago'; sleep 1.1")
    evidence = await run(bench, explained(bench, f"echo measured; getprop {VLOG}", [plan_pass()]))
    assert evidence.error is None
    assert evidence.stdout == "measured\nbefore\n"
    (found,) = evidence.passes
    assert found.error is None
    assert found.exit is not None
    assert found.exit.code == 0
    folder, word = found.stdout.split()
    assert folder == word
    assert folder.endswith("/runs/1")
    assert f"ExecutionPlan: told with {word}" in found.log
    assert "told long ago" not in found.log
    assert [line.split()[2] for line in found.log.splitlines()] == [str(found.pid)]
    assert await said(bench, f"getprop {VLOG}") == "before\n"


async def test_a_run_that_failed_has_no_pass(bench: Bench) -> None:
    evidence = await run(bench, explained(bench, "exit 3", [plan_pass()]))
    assert evidence.exit is not None
    assert evidence.exit.code == 3
    assert evidence.passes == ()


async def test_a_pass_that_hangs_is_ended_and_the_run_is_whole(bench: Bench) -> None:
    evidence = await run(bench, explained(bench, "echo measured", [plan_pass("sleep 60", timeout_s=0.5)]))
    assert (evidence.stdout, evidence.error) == ("measured\n", None)
    assert evidence.passes[0].exit is not None
    assert evidence.passes[0].exit.timed_out
    assert await said(bench, f"getprop {VLOG}") == "\n"


async def test_a_phone_that_goes_away_in_a_pass_costs_the_pass_only(bench: Bench, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    running = asyncio.create_task(
        run(bench, explained(bench, "echo measured", [plan_pass(f"touch {begun}; sleep 60"), plan_pass()]))
    )
    await until_said(bench, f"ls {begun} 2>/dev/null")
    await bench.detach()
    evidence = await running
    assert (evidence.stdout, evidence.error) == ("measured\n", None)
    assert [each.error is not None for each in evidence.passes] == [True]


async def test_the_evidence_is_on_disk_before_a_pass_begins(bench: Bench) -> None:
    noted: list[tuple[AttemptPhase, Evidence]] = []

    async def note(phase: AttemptPhase, draft: Evidence) -> None:
        noted.append((phase, draft))

    await bench.phone()
    entry = explained(bench, "echo measured", [plan_pass()])
    await bench.runner.run(entry, note, adopt=False)
    phase, draft = noted[-1]
    assert phase is AttemptState.MEASURING
    assert draft.exit is not None
    assert draft.stdout == "measured\n"


async def test_an_agent_that_is_killed_in_a_pass_brings_the_run_home_and_cleans_up(bench: Bench) -> None:
    phone = await bench.phone()
    work_root = phone.facts.work_root
    entry = explained(bench, "echo measured", [plan_pass("sleep 60 & sleep 60")])
    noted: list[Evidence] = []

    async def note(phase: AttemptPhase, draft: Evidence) -> None:
        noted.append(draft)

    running = asyncio.create_task(bench.runner.run(entry, note, adopt=False))
    record = f"{work_folder(work_root)}/properties"
    await until_said(bench, f"getprop {VLOG}")
    running.cancel()
    await asyncio.wait({running})
    evidence = await bench.runner.run(replace(entry, draft=noted[-1]), note, adopt=True)
    assert isinstance(evidence, Evidence)
    assert (evidence.stdout, evidence.error, evidence.adopted) == ("measured\n", None, True)
    assert [each.error is not None for each in evidence.passes] == [True]
    assert (await said(bench, f"cat {record}")).strip() == f"{VLOG}="
    await bench.runner.clean_up(bench.device_id, 1)
    assert await said(bench, f"getprop {VLOG}") == "\n"
    assert await said(bench, f"cat {record} 2>/dev/null") == ""
    mark = (await said(bench, f"cat {work_folder(work_root)}/id")).strip()
    left = f"grep -l -F 'BENCHFARM_MARK={mark}:1:' /proc/[0-9]*/environ 2>/dev/null | wc -l"
    assert (await said(bench, left)).strip() == "0"


async def test_a_part_of_a_run_that_was_cleaned_up_is_not_started(bench: Bench) -> None:
    phone = await bench.phone()
    await bench.runner.clean_up(bench.device_id, 7)
    late = RunPart(device=phone.adb, fence=7, name="pass.late")
    with pytest.raises(Exception, match="cleaned up"):
        await late.start(("sh", "-c", "echo late"), {}, {VLOG: "all"}, timeout_s=5.0)
    assert await said(bench, f"ls {late.folder}/exit 2>/dev/null") == ""
    assert await said(bench, f"getprop {VLOG}") == "\n"
