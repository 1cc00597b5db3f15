"""The example that compares runtimes: each one that is installed computes what torch does, and is read."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from farm.blobs.inspection import check_model_file
from farm.core.models.contents.counted import file_contents
from farm.core.models.variant import SlowPath
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Reading
from farm.core.runs.plan import RunPlan
from farm.harness.generic.adapter import GenericHarness
from farm.wire.documents.files.harness_definition import definition_from_text
from farm.wire.documents.matrices.matrix import matrix_spec
from tests.support.farm.processes import CHECKOUT
from tests.support.harness.built_programs import built_program

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

EXAMPLE = CHECKOUT / "examples" / "runtimes"
HARNESS = GenericHarness(definition_from_text((EXAMPLE / "definition.yaml").read_text()).definition())
#: What must be installed for a writer, and for what runs its files.
PACKAGES = {
    "torch": ("torch",),
    "onnx": ("onnx", "onnxruntime"),
    "tflite": ("ai_edge_litert", "ai_edge_quantizer"),
    "executorch": ("executorch", "torchao"),
    "ncnn": ("ncnn", "pnnx"),
    "mnn": ("_mnncengine", "onnx"),
    "tvm": ("tvm", "ziglang"),
}
PLACEMENT = {
    ("onnxruntime", "float32"): "CPUExecutionProvider",
    ("litert", "float32"): "XNNPACK",
    ("litert-builtin", "float32"): "its own kernels",
    ("executorch-xnnpack", "float32"): "XnnpackBackend",
    ("executorch-portable", "float32"): "portable kernels",
    ("ncnn", "float32"): "ncnn's CPU layers",
    ("mnn", "float32"): "MNN's CPU kernels",
    ("tvm", "float32"): "LLVM's code, untuned",
    ("torchscript", "float32"): "ATen",
    ("torch-lite", "float32"): "ATen",
    ("onnxruntime", "int8"): "CPUExecutionProvider",
    ("litert", "int8"): "XNNPACK",
    ("executorch-xnnpack", "int8"): "XnnpackBackend",
    ("torch-lite", "int8"): "ATen, x86",
    ("onnxruntime", "int8-signed"): "CPUExecutionProvider",
    ("litert", "int8-dynamic"): "XNNPACK",
    ("torch-lite", "int8-qnnpack"): "ATen, qnnpack",
}
#: Files that the farm knows to be computed in a slow way.
SLOW_PATH = {
    "net-portable.pte": SlowPath.PORTABLE_KERNELS,
    "net-int8-dynamic.tflite": SlowPath.DYNAMIC_RANGE,
    "net-int8-signed.onnx": SlowPath.SIGNED_ACTIVATIONS,
}


@pytest.fixture(scope="module")
def demo() -> Iterator[Any]:
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield import_module("demo")
    finally:
        sys.path.remove(str(EXAMPLE))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    shutil.copy(EXAMPLE / "loop", folder / "loop")
    return folder


@pytest.fixture
def runner(writer: str, bundle: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Add the program that runs files of ExecuTorch, for those."""
    if writer == "executorch":
        built = built_program("executor_runner", "executorch", tmp_path_factory, worker_id)
        shutil.copytree(built, bundle, dirs_exist_ok=True)


def write_files(writer: str, bundle: Path) -> None:
    if missing := [name for name in PACKAGES[writer] if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    command = [sys.executable, "-W", "ignore", str(EXAMPLE / "files.py"), writer, str(bundle)]
    done = subprocess.run(
        command, env={**os.environ, "ORT_DISABLE_TELEMETRY": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def as_on_a_phone(bundle: Path, folder: Path) -> Path:
    """Show the files of a bundle as a run does, as links to files without suffixes; return the program."""
    cache = folder / "cache"
    cache.mkdir()
    for number, path in enumerate(path for path in bundle.rglob("*") if path.is_file()):
        shutil.copy(path, cache / str(number))
        link = folder / "run" / path.relative_to(bundle)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(cache / str(number))
    return folder / "run" / "loop"


@pytest.mark.usefixtures("runner")
@pytest.mark.parametrize("writer", PACKAGES)
def test_each_runtime_computes_what_torch_does_and_is_read(
    demo: Any, bundle: Path, tmp_path: Path, writer: str
) -> None:
    write_files(writer, bundle)
    expected = demo.network()(demo.ones()).flatten().tolist()
    # Its outputs are of another size than a difference of rounding, and of quantization.
    assert max(map(abs, expected)) > 0.1
    its = [key for key, (by, _) in demo.FILES.items() if by == writer]
    assert its
    program = as_on_a_phone(bundle, tmp_path)
    for runtime, numbers in its:
        assert (runtime, numbers) in demo.written(bundle)
        words = [str(program), "--runtime", runtime, "--numbers", numbers, "--seconds", "0.2"]
        done = subprocess.run(
            [sys.executable, *words], cwd=program.parent, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        evidence = Evidence(
            fence=1, exit=ExitRecord(code=0, duration_s=60.0), stdout=done.stdout, stderr=done.stderr
        )
        plan = RunPlan(harness="runtimes_loop", backend="cpu", files=(), argv=("loop",), timeout_s=60.0)
        reading = HARNESS.parse(plan, evidence)
        assert isinstance(reading, Reading), reading
        assert reading.samples_ns
        [load_time] = reading.metrics
        assert (load_time.name, load_time.value > 0) == ("load_time", True)
        text = f"{done.stdout}\n{done.stderr}"
        assert demo.placement(text) == PLACEMENT[runtime, numbers]
        difference = float(demo.fidelity(text, expected))
        # int8 is not float32 under another name.
        assert difference < 1e-4 if numbers == "float32" else 1e-4 < difference < 0.1, (runtime, numbers)
        assert demo.fidelity(text, expected[:-1]) == "unknown"
        file = bundle / demo.FILES[runtime, numbers][1][0]
        contents = file_contents(memoryview(file.read_bytes()), check_model_file(file))
        assert contents.slow_path is SLOW_PATH.get(file.name)


def test_every_cell_of_both_matrices_has_a_file_and_every_file_a_cell(demo: Any) -> None:
    shown = set()
    for name in ("matrix.yaml", "int8.yaml"):
        spec = yaml.safe_load((EXAMPLE / name).read_text())
        matrix_spec(spec)
        axes = spec["axes"]
        shown |= {
            (runtime, numbers) for runtime in axes["runtime"] for numbers in axes.get("numbers", ["float32"])
        }
        shown |= {(cell["runtime"], cell["numbers"]) for cell in spec.get("include", ())}
    assert shown == set(demo.FILES) == set(PLACEMENT)
    assert set(demo.SLOW_PATHS) < shown


def test_runtimes_that_are_not_installed_are_left_out_of_both_matrices(demo: Any) -> None:
    there = [
        key
        for key in demo.FILES
        if key[0] not in ("onnxruntime", "mnn") and key != ("litert", "int8-dynamic")
    ]
    side_by_side, quantized = (
        demo.reduced(yaml.safe_load((EXAMPLE / name).read_text()), there)
        for name in ("matrix.yaml", "int8.yaml")
    )
    assert side_by_side["baseline"] == {"runtime": "litert"}
    assert "onnxruntime" not in side_by_side["axes"]["runtime"]
    assert quantized["axes"]["runtime"] == ["litert", "executorch-xnnpack", "torch-lite"]
    assert [cell["numbers"] for cell in quantized["include"]] == ["int8-qnnpack"]
    assert quantized["baseline"] == {"numbers": "float32"}
    for spec in (side_by_side, quantized):
        matrix_spec(spec)
