"""ExecuTorch, really run: our runner is compiled against the wheel, and its output read by the adapter."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Format
from farm.core.runs.evidence import Evidence, PassEvidence
from farm.core.runs.measurement import Outcome, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.executorch.executor_runner import ExecutorRunner
from tests.support.harness.built_programs import built_program
from tests.support.harness.tool_runs import evidence_of, plan_of

pytestmark = pytest.mark.long

PROGRAMS = Path(__file__).parents[2] / "support" / "models" / "executorch"
HARNESS = ExecutorRunner()
#: What torch makes of ones in the network of both programs: a corner, its neighbour, what is further inside.
EXPECTED = [-0.273721, -0.324802, -0.320519]
Run = Callable[..., tuple[RunPlan, Evidence]]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    return built_program("executor_runner", "executorch", tmp_path_factory, worker_id)


@pytest.fixture
def run(bundle: Path, tmp_path: Path) -> Run:
    def go(content: bytes, backend: str, *further: str, **settings: SettingValue) -> tuple[RunPlan, Evidence]:
        model = tmp_path / "model.pte"
        model.write_bytes(content)
        plan = plan_of(HARNESS, content, Format.EXECUTORCH, backend, settings)
        environment = {"LD_LIBRARY_PATH": str(bundle / "lib")}
        program = bundle / "executor_runner"
        return plan, evidence_of(
            plan, program, model, folder=tmp_path, environment=environment, further=further
        )

    return go


def content_of(name: str) -> bytes:
    return (PROGRAMS / f"{name}.pte").read_bytes()


def failure_of(ran: tuple[RunPlan, Evidence]) -> RunFailure:
    found = HARNESS.parse(*ran)
    assert isinstance(found, RunFailure), found
    return found


@pytest.mark.parametrize(
    ("name", "backend", "line"),
    [
        ("xnnpack", "xnnpack", "Method uses backend XnnpackBackend"),
        ("portable", "cpu", "delegate calls: 0"),
    ],
)
def test_a_run_is_read_and_proven_by_the_backend_that_the_method_names(
    run: Run, name: str, backend: str, line: str
) -> None:
    plan, evidence = run(content_of(name), backend, num_executions=12)
    reading = HARNESS.parse(plan, evidence)
    assert isinstance(reading, Reading), evidence.stderr
    assert (reading.expected_samples, len(reading.samples_ns)) == (12, 12)
    assert evidence.exit is not None
    assert min(reading.samples_ns) > 1_000
    assert sum(reading.samples_ns) < evidence.exit.duration_s * 1e9
    assert (reading.actual_backend, reading.accelerator) == (backend, "cpu")
    assert line in reading.proof
    assert "Threads of the CPU: 1\n" in evidence.stderr
    [load_time] = reading.metrics
    assert (load_time.name, load_time.unit) == ("load_time", "ms")
    assert 0 < load_time.value < evidence.exit.duration_s * 1e3


@pytest.mark.parametrize(
    ("name", "backend", "counts", "operators"),
    [
        (
            *("xnnpack", "xnnpack", [("XnnpackBackend", 4, 1)]),
            {
                "op XnnpackBackend x1",
                "op Convolution (NHWC, F32) IGEMM x2",
                "op Transpose (ND, X32) x2",
            },
        ),
        ("portable", "cpu", [("portable", 3, None)], {"op convolution.out x2", "op relu.out x1"}),
    ],
)
def test_a_pass_of_its_own_shows_the_time_of_each_operator(
    run: Run,
    bundle: Path,
    tmp_path: Path,
    name: str,
    backend: str,
    counts: list[object],
    operators: set[str],
) -> None:
    plan, evidence = run(content_of(name), backend, num_executions=2, profile=True)
    assert "ETDump" not in evidence.stderr
    [traced] = plan.passes
    environment = {"LD_LIBRARY_PATH": str(bundle / "lib")}
    ran = evidence_of(
        replace(plan, argv=traced.argv),
        bundle / "executor_runner",
        tmp_path / "model.pte",
        folder=tmp_path,
        environment=environment,
    )
    further = PassEvidence(name=traced.name, exit=ran.exit, stdout=ran.stdout, stderr=ran.stderr)
    alone = HARNESS.parse(plan, evidence)
    reading = HARNESS.parse(plan, replace(evidence, passes=(further,)))
    assert isinstance(alone, Reading)
    assert isinstance(reading, Reading), ran.stderr
    ms_by_name = {metric.name: metric.value for metric in reading.metrics}
    assert ms_by_name.keys() - {"load_time"} == operators
    # Within its call, and all of them within the executions that the runner itself timed.
    printed = re.search(r"successfully 4 time\(s\) in ([0-9.]+) ms", ran.stderr)
    assert printed is not None
    inside = [ms for each, ms in ms_by_name.items() if each not in ("load_time", "op XnnpackBackend x1")]
    assert 0 < sum(inside) < float(printed[1])
    if name == "xnnpack":
        assert sum(inside) <= ms_by_name["op XnnpackBackend x1"]
    # The same as the log alone shows, counted.
    assert (reading.actual_backend, reading.accelerator) == (alone.actual_backend, alone.accelerator)
    assert alone.placement is not None
    assert reading.placement is not None
    assert [share.by for share in alone.placement.shares] == [share.by for share in reading.placement.shares]
    assert [(share.by, share.nodes, share.partitions) for share in reading.placement.shares] == counts
    assert reading.placement.warnings == alone.placement.warnings
    assert reading.samples_ns == alone.samples_ns


def test_an_etdump_that_cannot_be_written_ends_the_run(run: Run) -> None:
    _, evidence = run(content_of("xnnpack"), "xnnpack", "--etdump_path=/nowhere/model.etdp")
    assert evidence.exit is not None
    assert evidence.exit.code == 1
    assert "cannot write the ETDump" in evidence.stderr


def test_a_file_without_the_backend_that_it_was_registered_for_is_no_run_on_it(run: Run) -> None:
    reading = HARNESS.parse(*run(content_of("portable"), "xnnpack", num_executions=2))
    assert isinstance(reading, Reading)
    assert reading.actual_backend == "cpu"


@pytest.mark.parametrize("name", ["xnnpack", "portable"])
@pytest.mark.parametrize("count", [1, 5])
def test_each_execution_computes_what_torch_does(run: Run, name: str, count: int) -> None:
    """Memory planned for inputs is used for other tensors: they are given again before each execution."""
    _, evidence = run(content_of(name), "cpu", num_executions=count)
    shown = re.search(
        r"OutputX 0: tensor\(sizes=\[1, 8, 32, 32\], \[([^.]+\.[^\n]+), \.\.\.\]\)", evidence.stdout
    )
    assert shown is not None, evidence.stdout
    values = [float(word) for word in shown[1].split(", ")]
    assert values == pytest.approx([*EXPECTED, *[EXPECTED[-1]] * 7], abs=1e-4)


def test_a_backend_that_it_was_built_without_makes_a_run_unsupported(run: Run) -> None:
    foreign = content_of("xnnpack").replace(b"XnnpackBackend", b"FoobarbBackend")
    found = failure_of(run(foreign, "xnnpack"))
    assert (found.code, found.outcome) == ("run.backend_missing", Outcome.UNSUPPORTED)
    assert "FoobarbBackend" in (found.line or "")


def test_a_flag_that_it_lacks_is_named(run: Run) -> None:
    found = failure_of(run(content_of("xnnpack"), "xnnpack", "--bogus=1"))
    assert (found.code, found.outcome) == ("run.unknown_flag", Outcome.UNSUPPORTED)
    assert "bogus" in found.message


@pytest.mark.parametrize("content", [b"no program at all" * 9, None])
def test_what_is_no_whole_program_cannot_be_read(run: Run, content: bytes | None) -> None:
    found = failure_of(run(content_of("xnnpack")[:3000] if content is None else content, "xnnpack"))
    assert (found.code, found.outcome) == ("variant.unreadable", Outcome.FAILED)


def test_libraries_that_are_not_beside_it_are_missed_by_name(run: Run, bundle: Path, tmp_path: Path) -> None:
    plan, _ = run(content_of("xnnpack"), "xnnpack", num_executions=1)
    alone = evidence_of(
        plan, bundle / "executor_runner", tmp_path / "model.pte", folder=tmp_path, environment={}
    )
    found = HARNESS.parse(plan, alone)
    assert isinstance(found, RunFailure)
    assert "libexecutorch" in (found.line or "")
