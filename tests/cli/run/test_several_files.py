"""`farm run` with several files: each by the harness of its format, the first is the baseline."""

from pathlib import Path

import pytest

from farm.client.farm_client import FarmClient
from tests.cli.run.test_run import TFLITE, net, refusal, run, submitted
from tests.support.farm.http_farm import HttpFarm


@pytest.fixture(scope="module", autouse=True)
def tools(farm: HttpFarm, tmp_path_factory: pytest.TempPathFactory) -> None:
    program = tmp_path_factory.mktemp("tool") / "tool"
    program.write_text("#!/bin/sh\n# num_runs warmup_runs num_threads\n")
    for harness in ("litert-benchmark", "benchmark_model"):
        assert run("harness", "add", harness, program) == 0


def tflite(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(TFLITE + name.encode())
    return path


def test_files_of_two_formats_are_cells_of_their_harnesses_in_one_matrix(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, c = net(tmp_path, "two", "a.pt"), tflite(tmp_path, "b.tflite"), net(tmp_path, "three", "c.pt")
    words = ("--harness", "speed_benchmark_torch", "--harness", "litert-benchmark", "--device", "phone-1")
    view = submitted(farm, capsys, a, b, c, *words, "--", "--warmup-runs", "3", "--iter", "7")
    assert view["harness"] == "speed_benchmark_torch, litert-benchmark"
    cells = {cell["model"]: cell for cell in view["cell_list"]}
    assert {name: cell["harness"] for name, cell in cells.items()} == {
        "a": "speed_benchmark_torch",
        "b": "litert-benchmark",
        "c": "speed_benchmark_torch",
    }
    labels = {name: cell["label"] for name, cell in cells.items()}
    assert {name: cell["baseline"] for name, cell in cells.items()} == {
        "a": None,
        "b": labels["a"],
        "c": labels["a"],
    }
    assert (cells["b"]["settings"]["warmup_runs"], cells["a"]["settings"]["iter"]) == (3, 7)
    assert "iter" not in cells["b"]["settings"]


def test_a_file_whose_format_one_harness_runs_needs_no_name(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    view = submitted(farm, capsys, net(tmp_path, "alone", "alone.pt"), "--quick")
    assert view["harness"] == "speed_benchmark_torch"


def test_of_several_harnesses_for_a_format_one_is_to_be_named(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tflite(tmp_path, "both.tflite")
    with FarmClient(farm.url) as client:
        before = list(client.matrices())
        said = refusal(capsys, net(tmp_path, "x", "x.pt"), file)
        assert list(client.matrices()) == before
    assert f"several harnesses run {file}, a file of format tflite" in said
    assert "--harness benchmark_model or --harness litert-benchmark" in said


def test_a_flag_that_no_harness_has_is_refused_by_the_names_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (net(tmp_path, "f", "f.pt"), tflite(tmp_path, "f.tflite"))
    words = ("--harness", "speed_benchmark_torch", "--harness", "litert-benchmark")
    said = refusal(capsys, *files, *words, "--", "--itre", "3")
    assert "speed_benchmark_torch, litert-benchmark has no flag --itre" in said
