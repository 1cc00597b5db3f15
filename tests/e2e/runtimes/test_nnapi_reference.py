"""NNAPI on a virtual phone: from a file of torch's converter to a placement in the phone's log."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farm.core.models.variant import Format, Precision, Recipe
from farm.variants.export import save
from tests.support.farm.processes import CHECKOUT, FarmProcess, eventually, running_farm_with_agent
from tests.support.harness.nnapi_reference import shared_nnapi_library

# It compiles the library and starts a farm.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1", "--virtual-nnapi")
#: CONV_2D, RELU, DEPTHWISE_CONV_2D, AVERAGE_POOL_2D, RESHAPE and FULLY_CONNECTED.
OPERATIONS = 6


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[FarmProcess]:
    farm = FarmProcess(tmp_path_factory.mktemp("nnapi") / "farm", command=_UP)
    # It builds the library where this is not there yet.
    built = farm.folder / "virtual" / "nnapi"
    shutil.copytree(shared_nnapi_library(tmp_path_factory, worker_id).parent, built)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"], "it is checked")
        yield farm


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    # Here: a worker that runs none of these tests does not load it.
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(16, 10),
    ).eval()
    image = torch.rand(1, 3, 64, 64).contiguous(memory_format=torch.channels_last)
    recipe = Recipe(
        precision=Precision.FLOAT32, format=Format.LITE, target="nnapi", memory_format="channels_last"
    )
    path = tmp_path / "small-nnapi.ptl"
    with torch.inference_mode():
        save(net, (image,), recipe, path)
    return path


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_file_for_nnapi_runs_and_is_a_fall_back_to_the_cpu(farm: FarmProcess, converted: Path) -> None:
    (device,) = farm.cli("device", "list")
    shown = farm.cli("device", "show", device["device_id"])
    assert [driver["name"] for driver in shown["facts"]["nnapi"]] == ["nnapi-reference"]
    assert "/nnapi-" in shown["facts"]["build_fingerprint"]

    words = ["--harness", "speed_benchmark_torch", "--precision", "float32", "--quick", "--json"]
    ran = subprocess.run(
        [sys.executable, "-m", "farm.cli.shell.main", "run", str(converted), *words, "--", "--iter", "200"],
        env={**os.environ, "FARM_URL": farm.url},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (result,) = json.loads(ran.stdout)["results"]
    assert result["backend"] == "nnapi"
    assert result["time"]["median"] > 0

    (row,) = farm.cli("placement")
    assert (row["backend"], row["actual_backend"], row["quality"]) == ("nnapi", "cpu", "fallback")
    (share,) = row["placement"]["shares"]
    assert (share["by"], share["accelerator"], share["nodes"]) == ("nnapi-reference", "cpu", OPERATIONS)
    assert row["placement"]["total_nodes"] == OPERATIONS
    assert row["proof"].startswith(f"cpu {OPERATIONS}/{OPERATIONS}: ")
    assert "(nnapi-reference)" in row["proof"]


#: Runs where `libneuralnetworks.so` is found; prints how an NNAPI file's outputs compare with the network's.
COMPARISON = """
import json, sys, torch
from farm.core.models.variant import Format, Precision, Recipe
from farm.variants.export import save
from farm.variants.networks import prepare_network
from farm.variants.sources.samples import output_row
from farm.variants.sources.source import zoo_source
from farm.variants.verify import outputs
from pathlib import Path

precision, path = sys.argv[1:]
recipe = Recipe(
    precision=Precision(precision), format=Format.LITE, target="nnapi", memory_format="channels_last"
)
prepared = prepare_network(zoo_source("mobilenet_v2"), recipe, lambda step: None)
torch.backends.quantized.engine = "qnnpack"
with torch.inference_mode():
    expected = output_row(prepared.net(*prepared.first)).flatten()
save(prepared.net, prepared.first, recipe, Path(path))
actual = outputs(Path(path), Format.LITE, [prepared.first], engine="qnnpack").flatten()
both = torch.stack([actual, expected])
print(json.dumps([float((actual - expected).abs().max()), float(torch.corrcoef(both)[0, 1])]))
"""


@pytest.mark.parametrize("precision", [Precision.FLOAT32, Precision.INT8_CORE, Precision.INT8_FULL])
def test_mobilenet_v2_computes_what_torch_does(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, worker_id: str, precision: Precision
) -> None:
    library = shared_nnapi_library(tmp_path_factory, worker_id)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMPARISON, precision, str(tmp_path / "net.ptl")],
        env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    printed: Any = json.loads(ran.stdout)
    largest_difference, correlation = printed
    if precision == Precision.FLOAT32:
        assert largest_difference < 1e-4
    # Of int8-core the input is quantized by each of them, and roundings differ in 52 layers.
    assert correlation > (0.99999 if precision == Precision.FLOAT32 else 0.99)
