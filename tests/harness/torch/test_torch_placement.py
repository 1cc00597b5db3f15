"""Where speed_benchmark_torch ran: what its pass shows, what an earlier one did, and when neither counts."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from farm.core.base.ids import AttemptId
from farm.core.devices.condition import Gates
from farm.core.errors import Blame
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence, RunError
from farm.core.runs.measurement import Quality, Reading
from farm.core.runs.placement import Accelerator, Placement, Share
from farm.core.runs.plan import EarlierPlacement, RunPlan
from farm.core.runs.quality import assess_quality
from farm.core.runs.stats import summarize_samples
from farm.harness.torch.speed_benchmark_torch import SpeedBenchmarkTorch
from tests.support.harness import run_samples as sample

HARNESS = SpeedBenchmarkTorch()
PID = 21034
RESULT = sample.printed([900, 904], sample.in_microseconds(902.5))


def logged(*drivers: str, pid: int = PID) -> str:
    """What the NNAPI runtime logs of its partitioner, an operation a line."""
    return "".join(
        f"03-02 11:20:31.{at:03} {pid} {pid} I ExecutionPlan: "
        f"ModelBuilder::findBestDeviceForEachOperation(CONV_2D:{at}) = 0 ({name})\n"
        for at, name in enumerate(drivers)
    )


def passed(log: str, *, code: int = 0, stdout: str = RESULT, pid: int | None = PID) -> PassEvidence:
    ended = ExitRecord(code=code, duration_s=2.0)
    return PassEvidence(name="placement", exit=ended, stdout=stdout, log=log, pid=pid)


def read(plan: RunPlan, passes: Sequence[PassEvidence]) -> Reading:
    evidence: Evidence = replace(sample.evidence(RESULT), argv=plan.argv, passes=tuple(passes))
    found = HARNESS.parse(plan, evidence)
    assert isinstance(found, Reading)
    return found


def quality(reading: Reading, backend: str = "nnapi") -> Quality:
    return assess_quality(
        reading,
        summarize_samples(reading),
        requested_backend=backend,
        evidence=Evidence(fence=1),
        gates=Gates(),
        noise_limit=0.25,
    ).quality


def test_a_plan_for_nnapi_asks_the_driver_afterwards_with_one_iteration() -> None:
    plan = sample.plan("nnapi", iter=200)
    (asked,) = plan.passes
    assert asked.properties == {"debug.nn.vlog": "all"}
    assert {"--iter=1", "--warmup=0"} <= set(asked.argv)
    assert "--iter=200" in plan.argv
    assert len(asked.argv) == len(plan.argv)
    assert asked.timeout_s <= plan.timeout_s


def test_a_plan_for_the_cpu_has_no_pass() -> None:
    assert sample.plan("cpu").passes == ()


@pytest.mark.parametrize(
    ("drivers", "accelerator", "backend", "kept"),
    [
        (["google-edgetpu"] * 4, "npu", "nnapi", Quality.VALID),
        (["qti-dsp"] * 3 + ["nnapi-reference"], "dsp", "nnapi", Quality.VALID),
        (["qti-dsp"] + ["nnapi-reference"] * 3, "cpu", "cpu", Quality.FALLBACK),
        (["nnapi-reference"] * 4, "cpu", "cpu", Quality.FALLBACK),
        (["qti-default"] * 4, "unknown", "nnapi", Quality.UNPROVEN),
    ],
)
def test_the_log_of_the_pass_decides(
    drivers: list[str], accelerator: str, backend: str, kept: Quality
) -> None:
    reading = read(sample.plan("nnapi", iter=2), [passed(logged(*drivers))])
    assert (reading.actual_backend, reading.accelerator) == (backend, accelerator)
    assert "findBestDeviceForEachOperation" in reading.proof
    assert quality(reading) is kept


def test_only_the_lines_of_its_own_process_count() -> None:
    log = logged("qti-dsp", "qti-dsp") + logged("nnapi-reference", "nnapi-reference", pid=612)
    assert read(sample.plan("nnapi", iter=2), [passed(log)]).accelerator == "dsp"
    reading = read(sample.plan("nnapi", iter=2), [passed(log, pid=None)])
    assert reading.accelerator == "unknown"
    assert "2 processes" in reading.proof


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (passed(logged("qti-dsp"), code=134), "ended with 134"),
        (passed(logged("qti-dsp"), stdout="Starting benchmark.\n"), "no result"),
        (passed(""), "names no driver"),
        (replace(passed(logged("qti-dsp")), exit=None), "did not end"),
        (
            PassEvidence(
                name="placement",
                error=RunError(
                    code="device.offline", blame=Blame.DEVICE, transient=True, message="it is away", hint=""
                ),
            ),
            "it is away",
        ),
    ],
)
def test_a_pass_that_did_not_come_to_the_same_end_proves_nothing(found: PassEvidence, why: str) -> None:
    reading = read(sample.plan("nnapi", iter=2), [found])
    assert reading.accelerator == "unknown"
    assert why in reading.proof
    assert quality(reading) is Quality.UNPROVEN


def test_what_an_earlier_run_showed_serves_a_run_without_a_pass() -> None:
    share = Share(accelerator=Accelerator.NPU, by="google-edgetpu", nodes=71, line="all 71 of it")
    shown = EarlierPlacement(attempt_id=AttemptId(12), placement=Placement(shares=(share,), total_nodes=71))
    plan = replace(sample.plan("nnapi", iter=2), passes=(), shown=shown)
    reading = read(plan, [])
    assert (reading.accelerator, reading.placement) == ("npu", shown.placement)
    assert "attempt 12" in reading.proof
    # Its own pass goes before.
    own = read(plan, [passed(logged("nnapi-reference"))])
    assert own.actual_backend == "cpu"


def test_vulkan_is_proven_by_the_driver_that_its_process_loaded() -> None:
    line = f"03-02 11:20:31.101 {PID} {PID} I AdrenoVK-0: QUALCOMM build          : 5a3bd2, Ib0c1\n"
    reading = read(sample.plan("vulkan", iter=2), [passed(line)])
    assert (reading.actual_backend, reading.accelerator) == ("vulkan", "gpu")
    software = line.replace("AdrenoVK-0: QUALCOMM build", "vulkan: device SwiftShader")
    reading = read(sample.plan("vulkan", iter=2), [passed(software)])
    assert quality(reading, "vulkan") is Quality.FALLBACK
