"""LiteRT's own benchmark, really run: what its adapter makes of what it prints on this machine's CPU."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("ai_edge_litert", reason="the extra `litert` is not installed")

from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Format
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Outcome, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.tflite.litert_benchmark import LitertBenchmark
from tests.support.harness.tool_runs import evidence_of, plan_of
from tests.support.models.tflite_samples import conv_relu

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).parents[3] / "harnesses" / "litert_benchmark"
HARNESS = LitertBenchmark()
Run = Callable[..., tuple[RunPlan, Evidence]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the program with the Python of a virtual phone on PATH."""
    python = tmp_path / "bin" / "benchfarm-python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    environment = {"PATH": f"{python.parent}:{os.defpath}"}

    def go(
        content: bytes, backend: str = "cpu", *further: str, **settings: SettingValue
    ) -> tuple[RunPlan, Evidence]:
        model = tmp_path / "model.tflite"
        model.write_bytes(content)
        plan = plan_of(HARNESS, content, Format.TFLITE, backend, settings)
        return plan, evidence_of(
            plan, PROGRAM, model, folder=tmp_path, environment=environment, further=further
        )

    return go


def failure_of(ran: tuple[RunPlan, Evidence]) -> RunFailure:
    found = HARNESS.parse(*ran)
    assert isinstance(found, RunFailure), found
    return found


def test_a_run_on_the_cpu_is_read_and_proven_by_xnnpacks_own_line(run: Run) -> None:
    plan, evidence = run(conv_relu(), num_runs=12, warmup_runs=2)
    reading = HARNESS.parse(plan, evidence)
    assert isinstance(reading, Reading), evidence.stderr
    assert (reading.expected_samples, reading.summed_samples) == (12, 12)
    assert evidence.exit is not None
    assert reading.mean_ns is not None
    assert 10_000 <= reading.mean_ns < evidence.exit.duration_s * 1e9 / 12
    assert (reading.actual_backend, reading.accelerator) == ("cpu", "cpu")
    assert "XNNPACK delegate for CPU" in reading.proof
    assert {"load_time", "median", "p95"} <= {metric.name for metric in reading.metrics}


def test_the_clock_follows_how_much_the_network_computes(run: Run) -> None:
    """Sixteen times the work takes longer, whatever else this machine does."""
    small, large = (HARNESS.parse(*run(conv_relu(layers), num_runs=20)) for layers in (1, 16))
    assert isinstance(small, Reading)
    assert isinstance(large, Reading)
    fastest = [{each.name: each.value for each in found.metrics}["min"] for found in (small, large)]
    assert fastest[1] > 3 * fastest[0]


def test_a_gpu_that_is_not_there_makes_a_run_unsupported(run: Run) -> None:
    found = failure_of(run(conv_relu(), "gpu", num_runs=2))
    assert (found.code, found.outcome) == ("run.backend_failed", Outcome.UNSUPPORTED)


def test_an_npu_that_is_not_there_is_a_fall_back_to_the_cpu_and_no_success(run: Run) -> None:
    """The tool says `Fully accelerated: True` of such a run, by which it means XNNPACK."""
    plan, evidence = run(conv_relu(), "npu", num_runs=4)
    reading = HARNESS.parse(plan, evidence)
    assert isinstance(reading, Reading), evidence.stderr
    assert "Fully accelerated:     True" in evidence.stdout
    assert (reading.actual_backend, reading.accelerator) == ("cpu", "cpu")


def test_an_npu_that_must_take_everything_makes_a_run_unsupported_where_there_is_none(run: Run) -> None:
    found = failure_of(run(conv_relu(), "npu", num_runs=2, require_full_delegation=True))
    assert (found.code, found.outcome) == ("run.not_fully_delegated", Outcome.UNSUPPORTED)


def test_an_operator_that_it_lacks_is_named(run: Run) -> None:
    found = failure_of(run(conv_relu(custom="Frobnicate")))
    assert (found.code, found.outcome) == ("variant.missing_operator", Outcome.UNSUPPORTED)
    assert "Frobnicate" in (found.line or "")


def test_a_flag_that_it_lacks_is_named(run: Run) -> None:
    found = failure_of(run(conv_relu(), "cpu", "--bogus=1"))
    assert (found.code, found.outcome) == ("run.unknown_flag", Outcome.UNSUPPORTED)
    assert "--bogus" in found.message


def test_a_signature_that_the_model_lacks_is_named(run: Run) -> None:
    found = failure_of(run(conv_relu(), signature="no_such"))
    assert (found.code, found.outcome) == ("run.bad_flags", Outcome.FAILED)
    assert "no_such" in (found.line or "")


def test_what_is_no_model_cannot_be_read(run: Run) -> None:
    found = failure_of(run(b"no model at all" * 9))
    assert (found.code, found.outcome) == ("variant.unreadable", Outcome.FAILED)
