"""Scripted phones play what happens during runs, and each run is called what it is."""

import re
from collections.abc import Sequence

import pytest

from agents.virtual.course import Course, CourseStep, gpu_files, policy_files, policy_limit, set_course
from farm.cli.jobs.trace_strip import trace_fields
from farm.core.devices.condition import Gates
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading
from farm.core.runs.placement import Accelerator
from farm.core.runs.throttling import throttling_reasons
from farm.core.runs.trace_findings import trace_findings
from farm.phone.condition.run_trace import run_trace
from tests.support.agents.runner_fixture import Bench, unheard

pytestmark = pytest.mark.anyio

#: Whatever core the virtual phone has.
_CORES = tuple(range(63))
#: So low that a run counts as capped whose process gets a tenth of a core, beside others on a busy machine.
_FULL, _LOW = 2_367_000, 473_000
_OTHER = policy_files(9, cores=(63,), khz=1_700_000)
_SPIN = "for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4 5 6 7 8 9; do :; done; done"
#: Starts no process, which would have to wait for the CPU, too: the shell itself reads the time and is busy.
_NOW = "read -r now rest </proc/uptime; now=$${now%.*}"
_WORKS = f"{_NOW}; end=$$((now + 5)); while [ $$now -lt $$end ]; do {_SPIN}; {_NOW}; done"
_WAITS = "sleep 4"

CASES: dict[str, tuple[list[str], str, Sequence[CourseStep], Accelerator]] = {
    "a ceiling falls and recovers before the end": (
        ["capped"],
        _WORKS,
        (
            CourseStep(at_s=0.8, files=policy_limit(0, khz=_LOW)),
            CourseStep(at_s=3.0, files=policy_limit(0, khz=_FULL)),
        ),
        Accelerator.CPU,
    ),
    "so does that of a run that waits": (
        [],
        _WAITS,
        (
            CourseStep(at_s=0.8, files=policy_limit(0, khz=_LOW, current_khz=300_000)),
            CourseStep(at_s=3.0, files=policy_limit(0, khz=_FULL)),
        ),
        Accelerator.CPU,
    ),
    "so does that of another cluster": (
        [],
        _WORKS,
        (
            CourseStep(at_s=0.8, files=policy_limit(9, khz=900_000)),
            CourseStep(at_s=3.0, files=policy_limit(9, khz=1_700_000)),
        ),
        Accelerator.CPU,
    ),
    "the GPU's does": (
        ["capped"],
        _WAITS,
        (CourseStep(at_s=0.8, files=gpu_files(hz=400_000_000, most_hz=800_000_000)),),
        Accelerator.GPU,
    ),
    "memory is swapped out": (["swapped"], _WAITS, (CourseStep(at_s=1.5, swap_kb=40_000),), Accelerator.CPU),
}


@pytest.mark.long
@pytest.mark.parametrize(("expected", "script", "steps", "accelerator"), CASES.values(), ids=CASES.keys())
async def test_what_happens_during_a_run_is_called_what_it_is(
    bench: Bench, expected: list[str], script: str, steps: Sequence[CourseStep], accelerator: Accelerator
) -> None:
    await bench.phone()
    files = {**policy_files(0, cores=_CORES, khz=_FULL), **_OTHER, **gpu_files(hz=800_000_000)}
    set_course(bench.handle.state, Course(files=files, steps=steps))
    evidence = await bench.runner.run(bench.entry(1, script), unheard, adopt=False)
    assert isinstance(evidence, Evidence)
    assert evidence.error is None, evidence.error
    assert evidence.exit is not None
    assert list(throttling_reasons(evidence, Gates())) == []
    reading = Reading(
        samples_ns=(round(evidence.exit.duration_s * 0.95e9),),
        expected_samples=1,
        actual_backend="cpu",
        accelerator=accelerator,
        proof="ran",
    )
    trace = run_trace(evidence.trace)
    assert trace is not None
    found = trace_findings(trace, reading, evidence, Gates())
    kinds = [name for name in ("throttled", "capped", "swapped") if getattr(found, name)]
    assert kinds == expected, (found, list(trace_fields(trace)))
    strip = "\n".join(text or "" for _, text in trace_fields(trace))
    assert re.search(r"^policy0 limit +[▁-█·]{31} ", strip, re.MULTILINE)
