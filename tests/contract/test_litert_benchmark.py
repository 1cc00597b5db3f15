"""LiteRT's own benchmark, really run: what its adapter makes of what it prints on this machine's CPU."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("ai_edge_litert", reason="the extra `litert` is not installed")

from tflite_samples import conv_relu  # noqa: E402

from farm.core.bundle import single_file  # noqa: E402
from farm.core.condition import Gates  # noqa: E402
from farm.core.evidence import Evidence, ExitRecord  # noqa: E402
from farm.core.ids import digest_of  # noqa: E402
from farm.core.measurement import Outcome, Reading, RunFailure  # noqa: E402
from farm.core.plan import RunPlan, SettingValue, filled_argv  # noqa: E402
from farm.core.variant import Format, Manifest, Precision, Recipe  # noqa: E402
from farm.harness.adapter import RunRequest, flag_defaults  # noqa: E402
from farm.harness.litert_benchmark import LitertBenchmark  # noqa: E402

PROGRAM = Path(__file__).parents[2] / "harnesses" / "litert_benchmark"
HARNESS = LitertBenchmark()
Run = Callable[..., tuple[RunPlan, Evidence]]


def plan_of(content: bytes, backend: str, **settings: SettingValue) -> RunPlan:
    manifest = Manifest(
        model="conv_relu",
        recipe=Recipe(precision=Precision.FLOAT32, format=Format.TFLITE),
        digest=digest_of(content),
        size_bytes=len(content),
        backends=("cpu", "gpu", "npu"),
        inputs=(),
        recipe_digest=digest_of(content),
    )
    program = PROGRAM.read_bytes()
    return HARNESS.plan(
        RunRequest(
            variant=manifest,
            bundle=single_file("litert_benchmark", digest_of(program), len(program)),
            backend=backend,
            settings={**flag_defaults(HARNESS), **settings},
            timeout_s=60.0,
            gates=Gates(),
        )
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the program as a phone's shell would, with its Python on PATH and nothing else of this process."""
    python = tmp_path / "bin" / "benchfarm-python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)

    def go(
        content: bytes, backend: str = "cpu", *further: str, **settings: SettingValue
    ) -> tuple[RunPlan, Evidence]:
        model = tmp_path / "model.tflite"
        model.write_bytes(content)
        plan = plan_of(content, backend, **settings)
        argv = filled_argv(
            plan, work=str(tmp_path), path_by_name={"program": str(PROGRAM), "model": str(model)}
        )
        started = time.monotonic()
        ran = subprocess.run(
            [*argv, *further],
            env={"PATH": f"{python.parent}:{os.defpath}"},
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        code = ran.returncode if ran.returncode >= 0 else 128 - ran.returncode
        return plan, Evidence(
            fence=1,
            argv=tuple(argv),
            exit=ExitRecord(code=code, duration_s=time.monotonic() - started),
            stdout=ran.stdout.decode(),
            stderr=ran.stderr.decode(),
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
    assert {"init", "median", "p95"} <= {metric.name for metric in reading.metrics}


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
