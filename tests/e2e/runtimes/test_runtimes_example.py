"""The example that compares runtimes: each one that is installed computes what torch does, and is read."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Reading
from farm.core.runs.plan import RunPlan
from farm.harness.generic.adapter import GenericHarness
from farm.wire.documents.files.harness_definition import definition_from_text
from tests.support.farm.processes import CHECKOUT

pytestmark = pytest.mark.long

EXAMPLE = CHECKOUT / "examples" / "runtimes"
HARNESS = GenericHarness(definition_from_text((EXAMPLE / "definition.yaml").read_text()).definition())
#: By runtime: what writes its file, and what must be installed.
RUNTIMES = {
    "torchscript": ("torch", "torch"),
    "torch-lite": ("torch", "torch"),
    "onnxruntime": ("onnx", "onnx"),
    "litert": ("tflite", "ai_edge_litert"),
    "litert-builtin": ("tflite", "ai_edge_litert"),
    "executorch-xnnpack": ("executorch", "torchao"),
    "executorch-portable": ("executorch", "torchao"),
}
PLACEMENT = {
    "torchscript": "ATen",
    "torch-lite": "ATen",
    "onnxruntime": "CPUExecutionProvider",
    "litert": "XNNPACK",
    "litert-builtin": "own kernels",
    "executorch-xnnpack": "XnnpackBackend",
    "executorch-portable": "portable kernels",
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


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_each_runtime_computes_what_torch_does_and_is_read(
    demo: Any, bundle: Path, tmp_path: Path, runtime: str
) -> None:
    writer, package = RUNTIMES[runtime]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    subprocess.run(
        [sys.executable, str(EXAMPLE / "network.py"), writer, str(bundle)], check=True, timeout=120
    )
    if writer == "executorch":
        build = CHECKOUT / "harnesses" / "executor_runner" / "build.py"
        subprocess.run([sys.executable, str(build), str(bundle)], check=True, timeout=120)
    words = [str(bundle / "loop"), "--runtime", runtime, "--seconds", "0.2"]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    evidence = Evidence(
        fence=1, exit=ExitRecord(code=0, duration_s=60.0), stdout=done.stdout, stderr=done.stderr
    )
    plan = RunPlan(harness="runtimes_loop", backend="cpu", files=(), argv=("loop",), timeout_s=60.0)
    reading = HARNESS.parse(plan, evidence)
    assert isinstance(reading, Reading), reading
    assert len(reading.samples_ns) >= 5
    [load_time] = reading.metrics
    assert (load_time.name, load_time.value > 0) == ("load_time", True)
    text = f"{done.stdout}\n{done.stderr}"
    assert PLACEMENT[runtime] in demo.placement(text)
    expected = demo.network()(demo.ones()).flatten().tolist()
    # Its outputs are of another size than a difference of rounding.
    assert max(map(abs, expected)) > 0.1
    assert float(demo.fidelity(text, expected)) < 1e-4
    assert demo.fidelity(text, expected[:-1]) == "unknown"
