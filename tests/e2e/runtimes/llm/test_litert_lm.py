"""LiteRT-LM itself on a virtual phone: a tiny model of random weights, and one that repeats itself."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from farm.core.runs.derived.generation import Generation
from farm.core.runs.measurement import Quality
from farm.wire.documents.matrices.jobs import AttemptView
from farm.wire.documents.matrices.matrices import CellView
from tests.support.farm.processes import CHECKOUT, FarmProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

EXAMPLE = CHECKOUT / "examples" / "llm"
NAME = "litert_lm_advanced_main"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    command = [sys.executable, str(EXAMPLE / "litertlm_file.py"), str(folder), "--tiny"]
    subprocess.run(command, check=True, timeout=120)
    return folder


def run(farm: FarmProcess, path: Path, **settings: Any) -> list[tuple[CellView, AttemptView]]:
    """Run the cells of a matrix of one round, with these axes; return each with its only attempt."""
    precision = path.stem.rpartition("-")[2]
    farm.cli("variant", "add", str(path), "--model", path.stem, "--precision", precision)
    axes = {"model": path.stem, "precision": precision, "format": "litertlm", "backend": "cpu"}
    spec = {
        "name": "llm",
        "harness": NAME,
        "axes": axes | settings,
        "metrics": ["prefill_rate", "decode_rate", "time_to_first_token", "load_time"],
        "devices": {"virtual": True},
        "rounds": 1,
        # Virtual phones share this machine.
        "noise_limit": 10.0,
    }
    matrix_id = farm.submit(spec)
    assert farm.await_matrix(matrix_id, within_s=200).jobs_by_outcome.keys() == {"succeeded"}
    with farm.client() as client:
        [*jobs] = client.jobs(matrix_id)
        attempt_by_label = {job.label: client.attempt(job.attempts[-1]) for job in jobs}
        return [(cell, attempt_by_label[cell.label]) for cell in client.cells(matrix_id)]


def generation_of(attempt: AttemptView) -> Generation:
    assert attempt.reading is not None
    assert attempt.reading.generation is not None
    return attempt.reading.generation


def test_each_regime_is_a_series_of_its_own_with_the_caches_that_it_says(
    farm: FarmProcess, models: Path
) -> None:
    settings = {
        "benchmark_decode_tokens": 32,
        "num_iterations": 3,
        "input_prompt": "w5 w6 w77",
        "metric_proto_file_path": True,
    }
    regimes = ["first", "cold", "warm"]
    found = run(farm, models / "random-f32.litertlm", regime=regimes, **settings)
    assert {str(cell.settings["regime"]) for cell, _ in found} == {*regimes}
    generations: dict[str, Generation] = {}
    for cell, attempt in found:
        regime = str(cell.settings["regime"])
        generations[regime] = generation_of(attempt)
        names = {metric.name for metric in cell.metrics}
        assert {"prefill_rate", "decode_rate", "time_to_first_token"} <= names
        assert ("load_time" in names) is (regime != "warm")
    assert [bool(generations[regime].caches_before) for regime in regimes] == [False, True, False]
    assert all(generations[regime].caches_after for regime in regimes)
    assert [generations[regime].regime for regime in regimes] == regimes
    # Without randomness the text is the same, however often it is made.
    assert generations["first"].text_sha256 == generations["cold"].text_sha256 is not None
    assert len({generation.prompt_sha256 for generation in generations.values()}) == 1


def test_a_model_that_repeats_itself_is_shown_as_wrong_output_and_compared_with_nothing(
    farm: FarmProcess, models: Path, tmp_path: Path
) -> None:
    network = runpy.run_path(str(EXAMPLE / "network.py"))
    sizes = network["TINY"]
    weights = network["drawn"]("output", (sizes.vocabulary, sizes.width)).tobytes()
    content = (models / "random-f32.litertlm").read_bytes()
    assert content.count(weights) == 1
    # All tokens are alike then, and the first is taken.
    broken = tmp_path / "broken-f32.litertlm"
    broken.write_bytes(content.replace(weights, bytes(len(weights))))
    settings = {"benchmark_decode_tokens": 16, "num_iterations": 2, "input_prompt": "w5 w6 w77"}
    [(cell, attempt)] = run(farm, broken, **settings)
    assert attempt.quality is Quality.WRONG_OUTPUT
    assert "again and again" in attempt.quality_reasons[0]
    assert cell.value_ns is None
    assert cell.measurements_by_quality == {"wrong_output": 1}
