"""Where llama.cpp's layers are, by the log of loading; lines of GPUs are in the form of its source."""

from dataclasses import replace

import pytest

from farm.core.runs.evidence import ExitRecord, PassEvidence
from farm.core.runs.measurement import Reading
from farm.core.runs.plan import PLACEMENT_PROBE
from farm.harness.registry import get_harness
from tests.support.harness import tool_samples as sample

NAME = "llama-bench"
CPU, VULKAN = sample.output("llama_bench"), sample.output("llama_bench_vulkan")
LAYER = "load_tensors: layer {number:3d} assigned to device {device}, is_swa = 0\n"


def loaded(*devices: str) -> str:
    return "".join(LAYER.format(number=number, device=device) for number, device in enumerate(devices))


def read(stdout: str, log: str, *, backend: str = "vulkan", code: int = 0, **settings: str) -> Reading:
    planned = sample.plan(NAME, backend, **settings)
    ended = ExitRecord(code=code, duration_s=1.0)
    probe = PassEvidence(name=PLACEMENT_PROBE, exit=ended, stdout=stdout, stderr=log)
    evidence = replace(sample.evidence_of(planned, stdout), passes=(probe,))
    found = get_harness(NAME).parse(planned, evidence)
    assert isinstance(found, Reading), found
    return found


@pytest.mark.parametrize(
    ("backend", "device", "accelerator"),
    [
        ("vulkan", "Vulkan0", "gpu"),
        ("opencl", "GPUOpenCL", "gpu"),
        ("hexagon", "HTP0", "npu"),
        ("hexagon", "HTP0:1", "npu"),
    ],
)
def test_layers_on_a_device_are_its_accelerators(backend: str, device: str, accelerator: str) -> None:
    found = read(VULKAN, loaded(*[device] * 6, "CPU"), backend=backend)
    assert (found.actual_backend, found.accelerator) == (backend, accelerator)
    assert found.proof.startswith(f"{accelerator} 6/7, cpu 1: 6 of 7 layers assigned to device {device}")


def test_more_than_half_of_the_layers_on_the_cpu_are_a_fallback() -> None:
    found = read(VULKAN, loaded("CPU", "CPU", "Vulkan0"))
    assert (found.actual_backend, found.accelerator) == ("cpu", "cpu")


def test_a_gpu_of_software_is_the_cpu() -> None:
    software = VULKAN.replace("Adreno (TM) 999", "llvmpipe (LLVM 15.0.6, 256 bits)")
    found = read(software, loaded("Vulkan0", "Vulkan0"))
    assert (found.actual_backend, found.accelerator) == ("cpu", "cpu")


def test_a_build_without_the_backend_is_a_fallback_whatever_was_asked_for() -> None:
    assert read(CPU, "").actual_backend == "cpu"


@pytest.mark.parametrize(("log", "code"), [("", 0), (loaded("Vulkan0"), 1)])
def test_without_a_log_of_layers_nothing_is_proven(log: str, code: int) -> None:
    assert read(VULKAN, log, code=code).accelerator == "unknown"


def test_the_fields_of_a_record_alone_prove_no_accelerator() -> None:
    assert sample.reading(NAME, VULKAN, backend="vulkan").accelerator == "unknown"


def test_a_build_with_other_backends_is_on_the_cpu_where_no_device_was_allowed() -> None:
    found = sample.reading(NAME, VULKAN)
    assert (found.accelerator, found.proof) == ("cpu", "cpu by construction: -ngl 0 -dev none")
    assert sample.reading(NAME, VULKAN, device="Vulkan0").accelerator == "unknown"
