"""Whatever a program prints, the adapter answers; and what the tool prints is read back."""

from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.torch.speed_benchmark_torch import SpeedBenchmarkTorch

HARNESS = SpeedBenchmarkTorch()
FRAGMENTS = st.sampled_from(
    [
        'PyTorchObserver {"type": "NET", "unit": "us", "metric": "latency", "value": "73590"}',
        'PyTorchObserver {"type": "NET", "unit": "us", "metric": "latency", "value": "9e99"}',
        "Main run finished. Microseconds per iter: 1e99. Iters per second: 13.5",
        "Main run finished. Milliseconds per iter: 73.6. Iters per second: 13.5",
        "Main run finished. Microseconds per iter: ",
        "CANNOT LINK EXECUTABLE",
        "what():",
        "\r\n",
        "\n",
    ]
)
NOISE = st.lists(FRAGMENTS | st.text(max_size=40), max_size=12).map("".join)


def plan(iterations: int) -> RunPlan:
    return RunPlan(
        harness=HARNESS.name, backend="cpu", settings={"iter": iterations}, files=(), argv=(), timeout_s=60.0
    )


@given(
    stdout=NOISE,
    stderr=NOISE,
    code=st.integers(-300, 300),
    timed_out=st.booleans(),
    iterations=st.integers(1, 500),
    argv=st.lists(st.text(max_size=20), max_size=3).map(tuple),
)
def test_parse_answers_whatever_was_printed(
    stdout: str, stderr: str, code: int, timed_out: bool, iterations: int, argv: tuple[str, ...]
) -> None:
    ended = ExitRecord(code=code, timed_out=timed_out, duration_s=1.0)
    evidence = Evidence(fence=1, argv=argv, exit=ended, stdout=stdout, stderr=stderr)
    answer = HARNESS.parse(plan(iterations), evidence)
    assert isinstance(answer, Reading | RunFailure)
    if isinstance(answer, Reading):
        assert bool(answer.samples_ns) != (answer.mean_ns is not None)
        assert all(0 < sample < 2**63 for sample in answer.samples_ns)


@given(st.lists(st.integers(1, 50_000_000), min_size=1, max_size=300))
def test_what_the_tool_prints_is_read_back_to_six_digits(times_us: list[int]) -> None:
    lines = [
        f'PyTorchObserver {{"type": "NET", "unit": "us", "metric": "latency", "value": "{value:.6g}"}}'
        for value in times_us
    ]
    mean_us = sum(times_us) / len(times_us)
    last = f"Main run finished. Microseconds per iter: {mean_us:.6g}. Iters per second: {1e6 / mean_us:.6g}"
    stdout = "\n".join(["Main runs.", *lines, last])
    ended = ExitRecord(code=0, duration_s=1.0)
    reading = HARNESS.parse(plan(len(times_us)), Evidence(fence=1, exit=ended, stdout=stdout))
    assert isinstance(reading, Reading)
    assert reading.samples_ns == tuple(round(float(f"{value:.6g}") * 1000) for value in times_us)
