"""Whatever a program prints, a generic harness answers; and what it prints well is read back."""

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.json_path import json_path
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.generic.adapter import GenericHarness
from farm.wire.documents.files.harness_definition import harness_definition

_PLACES = [
    {"pattern": r"took\s*(\S*)", "unit": "ms"},
    {"pattern": "([0-9]*)", "unit": "img/s"},
    {"json": "$.runs[*].ms", "unit": "us"},
    {"json": "$.*", "unit": "s"},
]
_SCATTERS: list[dict[str, Any]] = [
    {},
    {"deviation": {"pattern": r"std\s*(\S*)", "unit": "%"}},
    {"deviation": {"json": "$.std", "unit": "us"}},
    {"minimum": {"json": "$.*", "unit": "fps"}, "maximum": {"pattern": "took (.*) ms", "unit": "min"}},
]
_FRAGMENTS = st.sampled_from(
    [
        "std 1e99\n",
        "std 1e-99\n",
        '{"std": 5, "took": 1e300}\n',
        "took 12.5 ms\n",
        "took 1,5 ms\r\n",
        "took 1e99 ms\n",
        '{"runs": [{"ms": 1}, {"ms": 2.5}]}\n',
        '{"runs": [{"ms": NaN}]}',
        '{"runs": [',
        "[" * 2000,
        "\n{\n",
        "Using GPU\r",
        "falling back\n",
        "\x00",
    ]
)
_NOISE = st.lists(_FRAGMENTS | st.text(max_size=40), max_size=12).map("".join)
_TIMES = st.sampled_from(
    [*({"samples": place} for place in _PLACES), *({"value": place} for place in _PLACES), {}]
)


def harness(**changes: Any) -> GenericHarness:
    data = {
        "name": "x",
        "arguments": "${runs} ${backend_arguments}",
        "flags": {"runs": {"default": 3}},
        "backends": {"cpu": {}, "gpu": {"proof": "Using (.*)", "fallback": "falling"}},
        "unsupported": ["no such device"],
        **changes,
    }
    return GenericHarness(harness_definition(data).definition())


def plan(backend: str) -> RunPlan:
    return RunPlan(harness="x", backend=backend, settings={"runs": 3}, files=(), argv=(), timeout_s=60.0)


@given(
    times=_TIMES,
    scatter=st.sampled_from(_SCATTERS),
    counted=st.booleans(),
    stream=st.sampled_from(["stdout", "stderr", "both"]),
    backend=st.sampled_from(["cpu", "gpu"]),
    stdout=_NOISE,
    stderr=_NOISE,
    dropped=st.integers(0, 5),
    code=st.integers(-300, 300),
    timed_out=st.booleans(),
    duration_s=st.floats(0, 1e6),
)
def test_parse_answers_whatever_was_printed(
    times: dict[str, Any],
    scatter: dict[str, Any],
    counted: bool,
    stream: str,
    backend: str,
    stdout: str,
    stderr: str,
    dropped: int,
    code: int,
    timed_out: bool,
    duration_s: float,
) -> None:
    metric = {"m": {"pattern": "ms(.?)", "unit": "MB", "better": "lower"}}
    scatter = scatter if "value" in times else {}
    is_counted = "minimum" in scatter or (counted and times)
    flag = {"iterations_flag": "runs"} if is_counted else {}
    found = harness(**times, **scatter, **flag, stream=stream, metrics=metric).parse(
        plan(backend),
        Evidence(
            fence=1,
            exit=ExitRecord(code=code, timed_out=timed_out, duration_s=duration_s),
            stdout=stdout,
            stderr=stderr,
            stdout_dropped_bytes=dropped,
        ),
    )
    assert isinstance(found, Reading | RunFailure)
    if isinstance(found, Reading):
        assert bool(found.samples_ns) != (found.mean_ns is not None)
        assert all(0 < sample < 2**63 for sample in found.samples_ns)
        assert found.mean_ns is None or 0 < found.mean_ns < 2**63
        assert found.deviation_ns is None or 0 <= found.deviation_ns < 2**63


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50), st.text("ab {}[]\n:", max_size=20))
def test_what_is_printed_as_json_is_read_back(times_ms: list[float], before: str) -> None:
    infer = harness(samples={"json": "$.ms", "unit": "ms"})
    out = f"{before}\n{json.dumps({'ms': times_ms})}\nbye\n"
    ended = ExitRecord(code=0, duration_s=1.0)
    found = infer.parse(plan("cpu"), Evidence(fence=1, exit=ended, stdout=out))
    assert isinstance(found, Reading)
    assert found.samples_ns == tuple(round(ms * 1e6) for ms in times_ms)


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_is_refused(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(json_path(text), tuple)
