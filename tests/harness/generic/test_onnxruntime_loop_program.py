"""The example of a generic harness around ONNX Runtime's Python binding, really run."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="the extra `onnxruntime` is not installed")

from farm.core.models.variant import Format
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Outcome, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.generic.adapter import GenericHarness
from farm.wire.documents.files.harness_definition import definition_from_text
from tests.support.harness.tool_runs import evidence_of, plan_of
from tests.support.models.onnx_network import convolutions

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[3] / "examples"
HARNESS = GenericHarness(
    definition_from_text((EXAMPLES / "harness-onnxruntime.yaml").read_text()).definition()
)


def ran(folder: Path, backend: str = "cpu", content: bytes | None = None) -> tuple[RunPlan, Evidence]:
    python = folder / "bin" / "benchfarm-python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    model = folder / "net.onnx"
    model.write_bytes(convolutions() if content is None else content)
    plan = plan_of(HARNESS, model.read_bytes(), Format.ONNX, backend, {"runs": 20})
    environment = {"PATH": f"{python.parent}:{os.defpath}", "HOME": str(folder / "home")}
    return plan, evidence_of(
        plan, EXAMPLES / "onnxruntime_loop", model, folder=folder, environment=environment
    )


def test_each_inference_is_a_sample_and_nothing_is_left_in_the_home_folder(tmp_path: Path) -> None:
    plan, evidence = ran(tmp_path)
    reading = HARNESS.parse(plan, evidence)
    assert isinstance(reading, Reading), evidence.stderr
    assert (len(reading.samples_ns), reading.accelerator) == (20, "cpu")
    assert evidence.exit is not None
    assert sum(reading.samples_ns) < evidence.exit.duration_s * 1e9
    [load_time] = reading.metrics
    assert (load_time.name, load_time.unit) == ("load_time", "ms")
    assert 0 < load_time.value < evidence.exit.duration_s * 1e3
    assert not (tmp_path / "home").exists()


def test_a_provider_that_the_wheel_lacks_is_a_fall_back_and_no_success(tmp_path: Path) -> None:
    plan, evidence = ran(tmp_path, "nnapi")
    reading = HARNESS.parse(plan, evidence)
    assert isinstance(reading, Reading), evidence.stderr
    assert (reading.actual_backend, reading.accelerator) == ("something else", "unknown")
    assert "providers: CPUExecutionProvider" in reading.proof


def test_what_is_no_model_fails_with_what_the_runtime_says(tmp_path: Path) -> None:
    failure = HARNESS.parse(*ran(tmp_path, content=b"no model at all"))
    assert isinstance(failure, RunFailure)
    assert failure.outcome is Outcome.FAILED
    assert "net.onnx" in (failure.line or "")
