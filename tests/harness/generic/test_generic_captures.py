"""A definition for a tool that the farm has no adapter for, tried on what that tool printed on phones."""

from pathlib import Path

import pytest

from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Reading, RunFailure
from tests.harness.generic import generic_samples as sample

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"
BENCHMARK_MODEL = {
    "arguments": "${backend_arguments}",
    "backends": {
        "cpu": {},
        "gpu": {
            "arguments": "--use_gpu=true",
            "proof": "GPU delegate, and the model graph will be completely",
        },
        "hexagon": {"accelerator": "dsp", "fallback": "Could not create Hexagon delegate"},
    },
    "value": {"pattern": r"Inference \(avg\): ([0-9.e+]+)", "unit": "us"},
    "metrics": {"initialization": {"pattern": r"Init: (\d+)", "unit": "us", "better": "lower"}},
    "stream": "both",
}


def captured(name: str) -> str:
    path = CAPTURES / "benchmark_model" / name
    if not path.is_file():
        pytest.skip("no captures here")
    return path.read_text(errors="replace")


@pytest.mark.parametrize(
    ("name", "backend", "mean_ns", "accelerator"),
    [
        ("litert_benchmark_model_xnnpack_1000_runs_termux.txt", "cpu", 63743.2e3, "cpu"),
        ("benchmark_model_2020_gpu_opencl_full_delegation.txt", "gpu", 119375e3, "gpu"),
        ("litert_benchmark_model_xnnpack_1000_runs_termux.txt", "gpu", 63743.2e3, UNKNOWN_ACCELERATOR),
    ],
)
def test_the_summary_and_the_proof_are_read(
    name: str, backend: str, mean_ns: float, accelerator: str
) -> None:
    found = sample.reading(sample.harness(**BENCHMARK_MODEL), captured(name), backend=backend)
    assert found.mean_ns == pytest.approx(mean_ns)
    assert found.accelerator == accelerator
    assert [metric.name for metric in found.metrics] == ["initialization"]


def test_a_delegate_that_was_not_made_is_no_such_backend() -> None:
    text = captured("benchmark_model_hexagon_not_created_cpu_fallback.txt")
    infer = sample.harness(
        **{**BENCHMARK_MODEL, "value": {"pattern": r"avg=([0-9.e+]+)", "unit": "us"}, "metrics": {}}
    )
    found = sample.reading(infer, text, backend="hexagon")
    assert (found.actual_backend, found.accelerator) == ("something else", UNKNOWN_ACCELERATOR)
    assert found.proof.startswith("Could not create Hexagon delegate")


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("**/*.txt")), ids=lambda path: path.name)
def test_every_capture_is_answered(path: Path) -> None:
    text = path.read_text(errors="replace")
    for definition in (BENCHMARK_MODEL, {"samples": {"json": "$[*]", "unit": "ms"}}):
        assert isinstance(sample.read(sample.harness(**definition), text), Reading | RunFailure)
