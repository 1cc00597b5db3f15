"""What a phone does during a run comes back with the evidence, and shows in no look around it."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from agents.virtual.course import Course, CourseStep, battery_files, policy_files, policy_limit, set_course
from farm.core.devices.condition import limited_clocks
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import DiagnosticPass, RunPlan
from farm.core.runs.trace import RunTrace
from farm.phone.condition.run_trace import run_trace
from tests.support.agents.runner_fixture import Bench, unheard

pytestmark = pytest.mark.anyio

FILES: Mapping[str, str] = {
    **policy_files(0, cores=(0,), khz=1_800_000),
    **policy_files(1, cores=(1,), khz=2_367_000),
    **battery_files(current=-435),
}


async def run(bench: Bench, script: str, **changes: object) -> Evidence:
    entry = bench.entry(1, script)
    plan: RunPlan = replace(entry.plan, **changes)  # type: ignore[arg-type]
    await bench.phone()
    evidence = await bench.runner.run(replace(entry, plan=plan), unheard, adopt=False)
    assert isinstance(evidence, Evidence)
    assert evidence.error is None
    return evidence


def trace_of(evidence: Evidence) -> RunTrace:
    trace = run_trace(evidence.trace)
    assert trace is not None
    assert (trace.is_cut, trace.skipped_lines) == (False, 0)
    return trace


async def sampled_limit(bench: Bench, hz: int) -> Path:
    """Wait until the last sample of the run has this ceiling; return its trace. A busy machine is late."""
    while True:
        for path in bench.handle.state.rglob("run.trace"):
            trace = run_trace(path.read_text())
            if trace is not None and trace.samples and trace.samples[-1].clocks[1].limit_hz == hz:
                return path
        await asyncio.sleep(0.05)


async def test_a_ceiling_that_falls_and_recovers_within_a_run_is_in_its_evidence(bench: Bench) -> None:
    limited = CourseStep(at_s=0.0, files=policy_limit(1, khz=1_418_000))

    async def play() -> None:
        await sampled_limit(bench, 2_367_000_000)
        set_course(bench.handle.state, Course(files=FILES, steps=(limited,)))
        await sampled_limit(bench, 1_418_000_000)
        set_course(bench.handle.state, Course(files=FILES))
        path = await sampled_limit(bench, 2_367_000_000)
        path.with_name("recovered").touch()

    set_course(bench.handle.state, Course(files=FILES))
    played = asyncio.create_task(play())
    evidence = await run(bench, "until [ -e recovered ]; do sleep 0.1; done")
    await played
    assert evidence.before is not None
    assert evidence.after is not None
    assert limited_clocks(evidence.before) == limited_clocks(evidence.after) == []
    samples = trace_of(evidence).samples
    limits = [[sample.clocks[cluster].limit_hz for sample in samples] for cluster in (0, 1)]
    assert set(limits[0]) == {1_800_000_000}
    assert [limit for limit, _ in groupby(limits[1])] == [2_367_000_000, 1_418_000_000, 2_367_000_000]
    # Milliamperes, as Samsung's driver reports them.
    assert {sample.battery_a for sample in samples} == {-0.435}


async def test_memory_that_is_swapped_out_during_a_run_is_in_its_evidence(bench: Bench) -> None:
    set_course(bench.handle.state, Course(steps=(CourseStep(at_s=0.8, swap_kb=20_480),)))
    # Until a whole sample has it: a busy machine takes them late.
    seen = r"grep -q ' 20480 .*\.$$' run.trace"
    samples = trace_of(await run(bench, f"until {seen}; do sleep 0.1; done")).samples
    swapped = [sample for sample in samples if sample.swap_bytes]
    assert swapped
    # Of each process of the run: the shell, and what it starts.
    assert {sample.swap_bytes % (20_480 * 1024) for sample in swapped if sample.swap_bytes} == {0}
    assert swapped[0].rss_bytes
    set_course(bench.handle.state, Course())
    assert not (bench.handle.state / "proc").exists()


async def test_a_run_that_is_not_to_be_sampled_has_no_trace(bench: Bench) -> None:
    assert (await run(bench, "sleep 0.7", sampling=False)).trace == ""


async def test_the_passes_after_a_run_are_not_sampled(bench: Bench) -> None:
    note = DiagnosticPass(name="op_profile", argv=("sh", "-c", "ls"), timeout_s=10.0)
    evidence = await run(bench, "sleep 0.7", passes=(note,))
    files = [result.stdout.split() for result in evidence.passes]
    assert files[0].count("run.trace") == 1
    ended_s = trace_of(evidence).ended_uptime_s
    assert ended_s is not None
    assert all(sample.uptime_s <= ended_s for sample in trace_of(evidence).samples)


async def test_a_trace_that_is_too_long_comes_back_in_part(bench: Bench) -> None:
    # What the program writes there stands for a run of days.
    line = "s 1.00 - ."
    write = f"printf 'trace 1\\ncolumns utime\\n' >run.trace; yes '{line}' | head -c 600000 >>run.trace"
    evidence = await run(bench, write, sampling=False)
    assert len(evidence.trace) == 512 * 1024
    trace = run_trace(evidence.trace)
    assert trace is not None
    assert trace.is_cut
