"""MNN, really run: our program is compiled with the library of the wheel's module; the adapter reads it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Reading, RunFailure
from farm.harness.registry import get_harness
from tests.support.harness import tool_samples as sample
from tests.support.harness.built_programs import built_program

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "tests" / "support" / "models" / "mnn"
NAME = "mnn_benchmark"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    return built_program(NAME, "mnn", tmp_path_factory, worker_id)


def evidence(bundle: Path, folder: Path, *words: str) -> Evidence:
    environment = {"PATH": os.defpath, "LD_LIBRARY_PATH": str(bundle / "lib")}
    command = [str(bundle / NAME), str(folder), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    ended = ExitRecord(code=done.returncode, duration_s=60.0)
    return Evidence(fence=1, exit=ended, stdout=done.stdout, stderr=done.stderr)


@pytest.mark.parametrize(
    ("kind", "expected"),
    # What MNN's module for Python makes of ones.
    [
        ("float32", "[0.190737, 0.40611, 0.267338, 0.323743, -0.0457615]"),
        ("int8-weight-only", "[0.190749, 0.406194, 0.267084, 0.323742, -0.0456796]"),
    ],
)
def test_each_inference_is_a_sample_of_what_mnn_computes(
    bundle: Path, tmp_path: Path, kind: str, expected: str
) -> None:
    shutil.copy(MODELS / f"{kind}.mnn", tmp_path)
    found = evidence(bundle, tmp_path, "8", "2", "0", "1", "0")
    assert f"Output begins with {expected}" in found.stdout
    reading = get_harness(NAME).parse(sample.plan(NAME, "cpu", loop=8), found)
    assert isinstance(reading, Reading), found
    assert (len(reading.samples_ns), reading.accelerator) == (8, "cpu")
    assert sample.metrics(reading)["load_time"] > 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("1", "1", "3"), "Can't Find type=3 backend"),
        (("0",), "loop_count is at least 1"),
        (("some",), "invalid number 'some'"),
    ],
)
def test_what_it_cannot_do_is_an_error(
    bundle: Path, tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    found = evidence(bundle, tmp_path, *words)
    assert found.exit is not None
    assert found.exit.code == 1
    assert expected in found.stderr


#: Run by a Python of its own: MNN reports on its start.
NETWORKS = """
import sys
import MNN.expr as F
made = [F.placeholder(shape, F.NCHW, F.float) for shape in {shapes}]
for number, each in enumerate(made):
    each.name = f"in{{number}}"
F.save([F.relu(made[0] + made[-1])], sys.argv[1])
"""


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([[1, 3, -1, 4]], "leaves the size of its input free"),
        ([[1, 3, -1, -1]], "leaves the size of its input free"),
        ([[1, 3, 4, 4], [1, 3, 4, 4]], "has 2 inputs"),
    ],
)
def test_inputs_that_it_cannot_fill_are_an_error(
    bundle: Path, tmp_path: Path, shapes: list[list[int]], expected: str
) -> None:
    script = NETWORKS.format(shapes=shapes)
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "net.mnn")], check=True, timeout=120)
    found = evidence(bundle, tmp_path, "2")
    assert found.exit is not None
    assert found.exit.code == 1
    assert expected in found.stderr


def test_what_is_no_network_gives_no_number(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "net.mnn").write_bytes(b"no network at all" * 9)
    found = evidence(bundle, tmp_path, "2")
    assert isinstance(get_harness(NAME).parse(sample.plan(NAME, "cpu", loop=2), found), RunFailure)
