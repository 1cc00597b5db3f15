"""LiteRT and ExecuTorch on a virtual phone, from `farm harness add` to the table, with the real runtimes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support.farm.processes import CHECKOUT, FarmProcess, eventually, running_farm_with_agent
from tests.support.harness.built_programs import built_program

pytestmark = pytest.mark.long

PROGRAMS = CHECKOUT / "tests" / "support" / "models" / "executorch"
_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1")


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    farm = FarmProcess(tmp_path_factory.mktemp("runtimes") / "farm", command=_UP)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"], "it is checked")
        yield farm


def measured(farm: FarmProcess, file: Path, *words: str) -> dict[str, Any]:
    """What `farm run` prints of a file."""
    done = subprocess.run(
        [sys.executable, "-m", "farm.cli.shell.main", "run", str(file), "--json", *words],
        env={**os.environ, "FARM_URL": farm.url},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def placements(farm: FarmProcess, harness: str) -> dict[str, dict[str, Any]]:
    """By the backend that was asked for."""
    rows = farm.cli("placement")
    return {row["backend"]: row for row in rows if row["harness"] == harness}


@pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="the extra `litert` is not installed")
def test_litert_is_measured_on_the_cpu_and_an_npu_that_is_not_there_enters_no_speedup(
    farm: FarmProcess, tmp_path: Path
) -> None:
    from tests.support.models.tflite_samples import conv_relu

    program = CHECKOUT / "harnesses" / "litert_benchmark"
    farm.cli("harness", "add", "litert-benchmark", str(program), "--abi", "x86_64")
    model = tmp_path / "conv_relu.tflite"
    model.write_bytes(conv_relu(8))
    words = ["--harness", "litert-benchmark", "--precision", "float32", "--quick", "--backend", "cpu,npu"]
    found = measured(farm, model, *words, "--", "--num_runs", "30")
    by_backend = {result["backend"]: result for result in found["results"]}
    assert by_backend["cpu"]["time"]["median"] > 0
    shown = placements(farm, "litert-benchmark")
    assert (shown["cpu"]["actual_backend"], shown["cpu"]["accelerator"]) == ("cpu", "cpu")
    assert "XNNPACK delegate for CPU" in shown["cpu"]["proof"]
    assert (shown["npu"]["actual_backend"], shown["npu"]["quality"]) == ("cpu", "fallback")


@pytest.fixture
def runner(farm: FarmProcess, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Build executor_runner and make it known, as its source says."""
    program = built_program("executor_runner", "executorch", tmp_path_factory, worker_id)
    library_path = ("--env", "LD_LIBRARY_PATH=${work}/lib")
    added = farm.cli("harness", "add", "executor_runner", str(program), *library_path)
    assert added["program"]["abi"] == "x86_64"


@pytest.mark.usefixtures("runner")
def test_executorch_is_measured_with_xnnpack_and_without(farm: FarmProcess) -> None:
    for name, backend in (("xnnpack", "xnnpack"), ("portable", "cpu")):
        told = ("--model", "two_convolutions", "--precision", "float32", "--target", backend)
        farm.cli("variant", "add", str(PROGRAMS / f"{name}.pte"), *told, "--backend", backend)
    matrix_id = farm.submit(
        {
            "name": "executorch",
            "harness": "executor_runner",
            "axes": {
                "model": "two_convolutions",
                "precision": "float32",
                "format": "executorch",
                "target": ["cpu", "xnnpack"],
                "backend": ["cpu", "xnnpack"],
            },
            "settings": {"num_executions": 30},
            "devices": {"virtual": True},
            "rounds": 5,
            "baseline": {"target": "cpu", "backend": "cpu"},
        }
    )
    assert farm.await_matrix(matrix_id, within_s=200).jobs_by_outcome == {"succeeded": 10}
    shown = placements(farm, "executor_runner")
    assert (shown["xnnpack"]["actual_backend"], shown["xnnpack"]["accelerator"]) == ("xnnpack", "cpu")
    assert "Method uses backend XnnpackBackend" in shown["xnnpack"]["proof"]
    assert "delegate calls: 0" in shown["cpu"]["proof"]
    [speedup] = [row for row in farm.cli("speedups", "--matrix", str(matrix_id)) if row["speedup"] != 1]
    # 50 to 200 times where it was tried.
    assert speedup["speedup"] > 3
