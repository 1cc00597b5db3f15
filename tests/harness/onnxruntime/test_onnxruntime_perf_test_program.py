"""ONNX Runtime, really run: our runner is compiled with the wheel's library, and read by the adapter."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Format
from farm.core.runs.evidence import Evidence, PassEvidence
from farm.core.runs.measurement import Outcome, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.onnxruntime.onnxruntime_perf_test import OnnxruntimePerfTest
from tests.support.harness.built_programs import built_program
from tests.support.harness.tool_runs import evidence_of, plan_of
from tests.support.models.onnx_network import convolutions

pytestmark = pytest.mark.long

HARNESS = OnnxruntimePerfTest()
Run = Callable[..., tuple[RunPlan, Evidence]]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    return built_program("onnxruntime_perf_test", "onnxruntime", tmp_path_factory, worker_id)


@pytest.fixture
def environment(bundle: Path, tmp_path: Path) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(bundle / "lib"), "HOME": str(tmp_path / "home")}


@pytest.fixture
def run(bundle: Path, environment: dict[str, str], tmp_path: Path) -> Run:
    def go(
        content: bytes, backend: str = "cpu", *further: str, **settings: SettingValue
    ) -> tuple[RunPlan, Evidence]:
        model = tmp_path / "net.onnx"
        model.write_bytes(content)
        plan = plan_of(HARNESS, content, Format.ONNX, backend, settings)
        program = bundle / "onnxruntime_perf_test"
        return plan, evidence_of(
            plan, program, model, folder=tmp_path, environment=environment, further=further
        )

    return go


def test_each_inference_is_a_sample_and_nothing_is_left_in_the_home_folder(run: Run, tmp_path: Path) -> None:
    plan, evidence = run(convolutions(), repeated_times=20)
    reading = HARNESS.parse(plan, evidence)
    assert isinstance(reading, Reading), evidence.stderr
    assert (len(reading.samples_ns), reading.expected_samples) == (20, 20)
    assert (reading.actual_backend, reading.accelerator) == ("cpu", "cpu")
    assert evidence.exit is not None
    assert 0 < sum(reading.samples_ns) < evidence.exit.duration_s * 1e9
    value_by_name = {metric.name: metric.value for metric in reading.metrics}
    assert 0 < value_by_name["load_time"] < evidence.exit.duration_s * 1e3
    assert value_by_name["memory_peak"] > 1
    assert not (tmp_path / "home").exists()


def test_work_for_a_time_ends_after_it(run: Run) -> None:
    reading = HARNESS.parse(*run(convolutions(), seconds=1))
    assert isinstance(reading, Reading)
    assert sum(reading.samples_ns) > 0.5e9


def test_more_layers_take_more_time(run: Run) -> None:
    few, many = (HARNESS.parse(*run(convolutions(layers))) for layers in (1, 16))
    assert isinstance(few, Reading)
    assert isinstance(many, Reading)
    assert min(many.samples_ns) > min(few.samples_ns)


def test_a_verbose_run_proves_where_its_nodes_were(run: Run) -> None:
    reading = HARNESS.parse(*run(convolutions(), verbose=True))
    assert isinstance(reading, Reading)
    assert reading.placement is not None
    [share] = reading.placement.shares
    assert share.by == "CPUExecutionProvider"


def test_a_pass_of_its_own_shows_the_time_of_each_operator(
    run: Run, bundle: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    plan, evidence = run(convolutions(), profile=True, optimization_level=0)
    [profiled] = plan.passes
    ran = evidence_of(
        replace(plan, argv=profiled.argv),
        bundle / "onnxruntime_perf_test",
        tmp_path / "net.onnx",
        folder=tmp_path,
        environment=environment,
    )
    further = PassEvidence(name=profiled.name, exit=ran.exit, stdout=ran.stdout, stderr=ran.stderr)
    reading = HARNESS.parse(plan, replace(evidence, passes=(further,)))
    assert isinstance(reading, Reading), ran.stderr
    assert {"op Conv x2", "op Relu x2"} <= {metric.name for metric in reading.metrics}


@pytest.mark.parametrize(
    ("backend", "code"), [("xnnpack", "run.backend_missing"), ("nnapi", "run.backend_missing")]
)
def test_a_provider_that_the_wheel_lacks_is_told(run: Run, backend: str, code: str) -> None:
    failure = HARNESS.parse(*run(convolutions(), backend))
    assert isinstance(failure, RunFailure)
    assert (failure.code, failure.outcome) == (code, Outcome.UNSUPPORTED)


def test_what_is_no_model_fails_with_what_the_runtime_says(run: Run) -> None:
    failure = HARNESS.parse(*run(b"no model at all"))
    assert isinstance(failure, RunFailure)
    assert failure.outcome is Outcome.FAILED
    assert "net.onnx" in (failure.line or "")


def test_an_unknown_flag_is_refused(run: Run) -> None:
    _, evidence = run(convolutions(), "cpu", "-Z")
    assert evidence.exit is not None
    assert evidence.exit.code == 1
    assert re.search("invalid option", evidence.stderr)


def test_the_program_states_the_version_of_the_library(bundle: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [str(bundle / "onnxruntime_perf_test"), "--version"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "onnxruntime_perf_test on ONNX Runtime 1.31.1\n"
