"""Outputs cut anywhere, or with something before, between and behind: only numbers printed whole."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.registry import get_harness
from tests.support.session.tiers import quick_first

OURS = Path(__file__).parents[2] / "support" / "harness" / "outputs"
CAPTURES = Path(__file__).parents[4] / "shared" / "captures"
#: Which of our outputs each tool prints.
OUTPUTS = {
    "benchmark_model": [
        "benchmark_model_2019",
        "benchmark_model_2020",
        "benchmark_model_newest",
        "litert_native",
    ],
    "litert-benchmark": ["litert_benchmark"],
    "tvm_benchmark": ["tvm_benchmark"],
    "executor_runner": ["executor_runner", "executor_runner_2026", "qnn_runner"],
    "onnxruntime_perf_test": ["ort_newer", "ort_older"],
    "benchncnn": ["ncnn_vulkan"],
    "mnn_benchmark": ["mnn_interleaved"],
    "llama-bench": ["llama_bench", "llama_bench_vulkan"],
    "model_benchmark": ["model_benchmark_2024"],
    "llm_bench": ["llm_bench_2025"],
    "speed_benchmark_torch": ["speed_benchmark_torch"],
}
PAIRS = [(name, output) for name, outputs in OUTPUTS.items() for output in outputs]
FOLDERS = {
    "benchmark_model": "benchmark_model/*",
    "speed_benchmark_torch": "speed_benchmark_torch/*.txt",
    "executor_runner": "other-tools/executorch_*",
    "onnxruntime_perf_test": "other-tools/ort_*",
    "benchncnn": "other-tools/benchncnn_*",
    "mnn_benchmark": "other-tools/mnn_*",
}
NOISE = st.sampled_from(
    [
        "phone:/data/local/tmp $ ./tool --model=net\n",
        "WARNING: linker: Warning: unsupported flags DT_FLAGS_1=0x8000001 (ignoring unsupported flags)\n",
        "06-02 10:00:01.500   811   811 W Adreno-GSL: <gsl_ldd_control:549>: ioctl code 0xc00c092f failed\n",
        "\x1b[0;93m2026-05-15 18:38:37.6 [W:onnxruntime:, x.cc:1] something else\x1b[m\n",
        "12,5 ms of something, 1.234,5 of another\n",
        "\n",
    ]
)


def read(name: str, text: str, dropped_bytes: int = 0) -> Reading | RunFailure:
    harness = get_harness(name)
    plan = RunPlan(harness=name, backend=harness.backends[0], files=(), argv=("tool",), timeout_s=60.0)
    ended = ExitRecord(code=0, duration_s=1.0)
    evidence = Evidence(fence=1, exit=ended, stdout=text, stdout_dropped_bytes=dropped_bytes)
    return harness.parse(plan, evidence)


def numbers(found: Reading | RunFailure) -> object:
    """What was measured, without where it ran; None where nothing was."""
    return replace(found, proof="", placement=None) if isinstance(found, Reading) else None


def cut_and_whole(name: str, data: bytes, at: int) -> None:
    """A cut text says what its whole lines say; torch's last line has its number before its end."""
    text = data.decode(errors="replace")
    cut = data[:at].decode(errors="replace")
    lines = cut[: max(cut.rfind(end) for end in "\r\n") + 1]
    allowed = [numbers(read(name, lines))]
    if name == "speed_benchmark_torch":
        allowed.append(numbers(read(name, text)))
    assert numbers(read(name, cut, len(data) - at)) in allowed, cut[-80:]


@pytest.mark.parametrize(("name", "output"), quick_first(PAIRS, 4))
def test_an_output_of_ours_that_is_cut_says_what_its_whole_lines_say(name: str, output: str) -> None:
    data = next(OURS.rglob(f"{output}.*")).read_bytes()
    assert numbers(read(name, data.decode())) is not None
    for at in range(len(data)):
        cut_and_whole(name, data, at)


@pytest.mark.parametrize("name", quick_first(list(FOLDERS), 2))
def test_a_capture_that_is_cut_says_what_its_whole_lines_say(name: str) -> None:
    files = sorted(CAPTURES.glob(FOLDERS[name]))
    if not files:
        pytest.skip("no captures here")
    for file in files:
        data = file.read_bytes()
        for at in range(0, len(data), 7):
            cut_and_whole(name, data, at)


@pytest.mark.parametrize(("name", "output"), PAIRS)
@given(noise=st.lists(NOISE, min_size=3, max_size=3), end=st.sampled_from(["\n", "\r\n"]), at=st.integers(0))
def test_what_stands_around_and_between_the_lines_changes_no_number(
    name: str, output: str, noise: list[str], end: str, at: int
) -> None:
    lines = next(OURS.rglob(f"{output}.*")).read_text().splitlines(keepends=True)
    place = at % (len(lines) + 1)
    text = "".join([noise[0], *lines[:place], noise[1], *lines[place:], noise[2]])
    assert numbers(read(name, text.replace("\n", end))) == numbers(read(name, "".join(lines)))


@given(mean=st.floats(0.01, 1e9), cut=st.integers(1, 8))
def test_decimal_commas_are_no_points(mean: float, cut: int) -> None:
    said = f"{mean:.2f}".replace(".", ",")
    timings = (
        f"Inference timings in us: Init: 4100, First inference: 9, Warmup (avg): 9, Inference (avg): {said}\n"
    )
    assert numbers(read("benchmark_model", timings)) is None
    assert numbers(read("onnxruntime_perf_test", f"Average inference time cost: {said} ms\n")) is None
    assert (
        numbers(read("mnn_benchmark", f"[ - ] a  max = {said} ms  min = {said} ms  avg = {said} ms\n"))
        is None
    )
    assert numbers(read("benchncnn", f"  net  min = {said}  max = {said}  avg = {said}\n")) is None
    last = f"Main run finished. Microseconds per iter: {said}. Iters per second: 1{'0' * cut}\n"
    assert numbers(read("speed_benchmark_torch", last)) is None
