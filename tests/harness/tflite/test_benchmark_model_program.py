"""LiteRT, really run: our `benchmark_model` is compiled with the wheel's library, and read by the adapter."""

from collections.abc import Callable
from pathlib import Path

import pytest

from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Format
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Outcome, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.tflite.benchmark_model import BenchmarkModel
from tests.support.harness.built_programs import built_program
from tests.support.harness.tool_runs import evidence_of, plan_of

pytest.importorskip(
    "ai_edge_litert", reason="ai-edge-litert is not installed (pip install 'benchfarm[litert]')"
)
samples = pytest.importorskip("tests.support.models.tflite_samples")
pytestmark = pytest.mark.long

HARNESS = BenchmarkModel()
Run = Callable[..., tuple[RunPlan, Evidence]]
#: So that a run takes no second.
SHORT: dict[str, SettingValue] = {"num_runs": 5, "min_secs": 0.001, "warmup_min_secs": 0.001}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    return built_program("benchmark_model", "ai-edge-litert", tmp_path_factory, worker_id)


@pytest.fixture
def run(bundle: Path, tmp_path: Path) -> Run:
    def go(
        content: bytes, backend: str = "xnnpack", *further: str, **settings: SettingValue
    ) -> tuple[RunPlan, Evidence]:
        model = tmp_path / "net.tflite"
        model.write_bytes(content)
        plan = plan_of(HARNESS, content, Format.TFLITE, backend, {**SHORT, **settings})
        environment = {"LD_LIBRARY_PATH": str(bundle / "lib")}
        program = bundle / "benchmark_model"
        return plan, evidence_of(
            plan, program, model, folder=tmp_path, environment=environment, further=further
        )

    return go


def reading_of(ran: tuple[RunPlan, Evidence]) -> Reading:
    found = HARNESS.parse(*ran)
    assert isinstance(found, Reading), ran[1].stdout + ran[1].stderr
    return found


def failure_of(ran: tuple[RunPlan, Evidence]) -> RunFailure:
    found = HARNESS.parse(*ran)
    assert isinstance(found, RunFailure), ran[1].stdout
    return found


def test_each_inference_is_a_sample(run: Run) -> None:
    ran = run(samples.conv_relu(), num_runs=20)
    found = reading_of(ran)
    assert len(found.samples_ns) >= 20
    assert found.expected_samples == 20
    assert ran[1].exit is not None
    assert 0 < sum(found.samples_ns) < ran[1].exit.duration_s * 1e9
    value_by_name = {metric.name: metric.value for metric in found.metrics}
    assert 0 < value_by_name["load_time"] < ran[1].exit.duration_s * 1e6
    assert value_by_name["memory_overall"] >= value_by_name["memory_init"] > 0


def test_of_a_long_loop_the_first_inferences_are_samples(run: Run) -> None:
    ran = run(samples.conv_relu(1), num_runs=10_001)
    assert "count=10001 " in ran[1].stdout
    found = reading_of(ran)
    assert (len(found.samples_ns), found.expected_samples, found.mean_ns) == (10_000, 10_000, None)


def test_work_for_a_time_ends_after_it(run: Run) -> None:
    assert 0.5e9 < sum(reading_of(run(samples.conv_relu(), num_runs=1, min_secs=0.6)).samples_ns) < 30e9


@pytest.mark.parametrize("content", [samples.conv_relu(), samples.conv_int8()], ids=["float32", "int8"])
def test_who_ran_the_nodes_is_proven(run: Run, content: bytes) -> None:
    found = reading_of(run(content, "xnnpack"))
    assert (found.actual_backend, found.accelerator) == ("xnnpack", "cpu")
    assert found.placement is not None
    [share] = found.placement.shares
    assert (share.by, share.nodes) == ("XNNPACK", 3)
    own = reading_of(run(content, "cpu"))
    assert (own.actual_backend, own.accelerator) == ("cpu", "cpu")
    assert own.placement is None


def test_a_node_that_xnnpack_lacks_is_counted_as_one_of_the_own_kernels(run: Run) -> None:
    _, evidence = run(samples.conv_relu(is_normalized=True))
    assert "XNNPACK delegate: 3 nodes delegated out of 4 nodes" in evidence.stdout


def test_what_xnnpack_takes_nothing_of_is_a_fall_back(run: Run) -> None:
    ran = run(samples.conv_relu(0, is_normalized=True))
    assert "XNNPACK delegate: 0 nodes delegated out of 1 nodes" in ran[1].stdout
    assert reading_of(ran).actual_backend == "cpu"


def test_both_kernels_compute_the_same(run: Run) -> None:
    lines = []
    for backend in ("xnnpack", "cpu"):
        _, evidence = run(samples.conv_relu(), backend)
        lines.append([line for line in evidence.stdout.splitlines() if "Output 0 begins with" in line])
    assert lines[0] == lines[1] != []


def test_more_layers_take_more_time(run: Run) -> None:
    few, many = (reading_of(run(samples.conv_relu(layers), num_runs=20)) for layers in (1, 16))
    assert min(many.samples_ns) > min(few.samples_ns)


def test_an_operator_that_it_lacks_is_named(run: Run) -> None:
    found = failure_of(run(samples.conv_relu(custom="Frobnicate")))
    assert (found.code, found.outcome) == ("variant.missing_operator", Outcome.UNSUPPORTED)
    assert "Frobnicate" in (found.line or "")


def test_a_flag_that_it_lacks_is_named(run: Run) -> None:
    found = failure_of(run(samples.conv_relu(), "xnnpack", "--use_gpu=true"))
    assert (found.code, found.outcome) == ("run.unknown_flag", Outcome.UNSUPPORTED)
    assert "--use_gpu" in found.message


def test_what_is_no_model_cannot_be_read(run: Run) -> None:
    found = failure_of(run(b"no model at all" * 9))
    assert (found.code, found.outcome) == ("variant.unreadable", Outcome.FAILED)
