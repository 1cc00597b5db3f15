"""Plans and outputs of tools that run one model file, for tests; phones and values are invented."""

from dataclasses import replace
from pathlib import Path

import pytest

from farm.core.base.ids import Digest
from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Gates
from farm.core.models.variant import Format, Manifest, VariantFile
from farm.core.programs.bundle import single_file
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Quality, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.core.runs.quality import assess_quality
from farm.core.runs.stats import summarize_samples
from farm.harness.base.adapter import Harness, RunRequest
from farm.harness.base.options import flag_defaults
from farm.harness.registry import get_harness
from tests.support.harness import run_samples as sample

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"
OUTPUTS = Path(__file__).parent / "outputs"
FORMAT_BY_HARNESS = {
    "benchmark_model": Format.TFLITE,
    "litert-benchmark": Format.TFLITE,
    "executor_runner": Format.EXECUTORCH,
    "onnxruntime_perf_test": Format.ONNX,
    "benchncnn": Format.NCNN,
    "mnn_benchmark": Format.MNN,
    "tvm_benchmark": Format.TVM,
    "llama-bench": Format.GGUF,
    "litert_lm_advanced_main": Format.LITERTLM,
    "llama_main": Format.EXECUTORCH,
    "model_benchmark": Format.ONNX,
    "llm_bench": Format.MNN,
}
#: What those need beside their model that cannot run without.
BESIDE = {
    "llama_main": ("tokenizer.bin",),
    "model_benchmark": ("genai_config.json", "tokenizer.json"),
    "llm_bench": ("config.json",),
}


def variant(harness: Harness) -> Manifest:
    found = sample.manifest(backends=tuple(harness.backends))
    beside = [
        VariantFile(path=path, digest=Digest("d" * 64), size_bytes=100_000)
        for path in BESIDE.get(harness.name, ())
    ]
    model = VariantFile(path="", digest=found.digest, size_bytes=13_900_000)
    return replace(
        found,
        recipe=replace(found.recipe, format=FORMAT_BY_HARNESS[harness.name]),
        files=(model, *beside) if beside else (),
    )


def plan(name: str, backend: str = "cpu", **settings: SettingValue) -> RunPlan:
    return plan_without(frozenset(), name, backend, **settings)


def plan_without(
    missing_flags: frozenset[str], name: str, backend: str = "cpu", **settings: SettingValue
) -> RunPlan:
    """The plan for a program that lacks these flags."""
    harness = get_harness(name)
    return harness.plan(
        RunRequest(
            variant=variant(harness),
            bundle=single_file(name, Digest("c" * 64), 9_000),
            backend=backend,
            settings={**flag_defaults(harness), **settings},
            missing_flags=missing_flags,
            timeout_s=120.0,
            gates=Gates(),
        )
    )


def words(name: str, backend: str = "cpu", **settings: SettingValue) -> list[str]:
    """The command's arguments, behind the program."""
    return list(plan(name, backend, **settings).argv[1:])


def read(
    name: str,
    stdout: str = "",
    *,
    backend: str = "cpu",
    stderr: str = "",
    code: int = 0,
    **settings: SettingValue,
) -> Reading | RunFailure:
    planned = plan(name, backend, **settings)
    return get_harness(name).parse(planned, evidence_of(planned, stdout, stderr=stderr, code=code))


def evidence_of(planned: RunPlan, stdout: str, *, stderr: str = "", code: int = 0) -> Evidence:
    return replace(sample.evidence(stdout, code=code, stderr=stderr), argv=planned.argv)


def reading(name: str, stdout: str = "", **given: object) -> Reading:
    found = read(name, stdout, **given)  # type: ignore[arg-type]
    assert isinstance(found, Reading), found
    return found


def failure(name: str, stdout: str = "", **given: object) -> RunFailure:
    found = read(name, stdout, **given)  # type: ignore[arg-type]
    assert isinstance(found, RunFailure), found
    return found


def judged(planned: RunPlan, found: Reading, evidence: Evidence) -> tuple[Quality, str]:
    """The quality of a run on the CPU, with its reasons in one text."""
    assessed = assess_quality(
        found,
        summarize_samples(found),
        requested_backend="cpu",
        evidence=evidence,
        gates=planned.gates,
        noise_limit=0.25,
    )
    return assessed.quality, " ".join(assessed.reasons)


def output(name: str) -> str:
    """An output of ours, in the form that the tool has."""
    return next(OUTPUTS.rglob(f"{name}.*")).read_text()


def metrics(found: Reading) -> dict[str, float]:
    return {metric.name: metric.value for metric in found.metrics}


def captured(path: str) -> str:
    """A capture as a shell would hand it over; the test is skipped where there are none."""
    file = CAPTURES / path
    if not file.is_file():
        pytest.skip("no captures here")
    return file.read_bytes().decode("utf-8-sig", errors="replace")
