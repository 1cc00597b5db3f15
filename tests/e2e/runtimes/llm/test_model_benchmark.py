"""ONNX Runtime GenAI on a virtual phone, on a tiny model of random weights: a folder of four files."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from farm.core.runs.measurement import Quality
from farm.wire.documents.matrices.jobs import AttemptView
from tests.support.farm.processes import CHECKOUT, FarmProcess

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not all(map(find_spec, ("onnx", "onnxruntime_genai"))),
        reason="onnx or onnxruntime-genai is not installed (make installs them)",
    ),
]

EXAMPLE = CHECKOUT / "examples" / "llm"
NAME = "model_benchmark"
BESIDE = ("genai_config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    command = [sys.executable, str(EXAMPLE / "genai_file.py"), str(folder), "--tiny", "f32", "int4"]
    subprocess.run(command, check=True, timeout=120)
    return folder


def run(farm: FarmProcess, models: Path, precision: str, **settings: Any) -> dict[str, AttemptView]:
    """Run the regimes of a matrix of one round; return the only attempt of each."""
    told = [word for name in BESIDE for word in ("--file", str(models / name))]
    model = str(models / f"random-{precision}.onnx")
    added = farm.cli("variant", "add", model, "--model", "random", "--precision", precision, *told)
    assert [file["path"] for file in added["manifest"]["files"]] == ["", *BESIDE]
    axes = {"model": "random", "precision": precision, "format": "onnx", "backend": "cpu"}
    spec = {
        "name": "llm",
        "harness": NAME,
        "axes": axes | {"regime": settings.pop("regimes")},
        "settings": settings,
        "metrics": ["prefill_rate", "decode_rate", "time_to_first_token"],
        "devices": {"virtual": True},
        "rounds": 1,
        # Virtual phones share this machine.
        "noise_limit": 10.0,
    }
    matrix_id = farm.submit(spec)
    assert farm.await_matrix(matrix_id, within_s=200).jobs_by_outcome.keys() == {"succeeded"}
    with farm.client() as client:
        attempts = {job.label: client.attempt(job.attempts[-1]) for job in client.jobs(matrix_id)}
        return {str(cell.settings["regime"]): attempts[cell.label] for cell in client.cells(matrix_id)}


def test_a_model_with_its_configuration_and_tokenizer_is_measured_in_each_regime(
    farm: FarmProcess, models: Path
) -> None:
    found = run(
        farm,
        models,
        "f32",
        regimes=["first", "cold", "warm"],
        prompt="w5 w6 w77",
        generation_length=65,
        repetitions=3,
    )
    for regime, attempt in found.items():
        reading = attempt.reading
        assert reading is not None
        values = {metric.name: metric.value for metric in reading.metrics}
        assert {"prefill_rate", "decode_rate", "time_to_first_token", "memory_peak"} <= values.keys()
        assert values["decode_rate"] == pytest.approx(1e9 / reading.mean_ns)
        # The log of a further start says so: the command does not.
        assert "placed on [CPUExecutionProvider]" in reading.proof
        assert reading.generation is not None
        assert reading.generation.prompt_sha256 is not None
        # Only what warms up is printed.
        assert (reading.generation.text_sha256 is not None) is (regime == "warm")
        assert not reading.generation.caches_after
        assert attempt.quality is not Quality.WRONG_OUTPUT
    assert {*found} == {"first", "cold", "warm"}


def test_random_tokens_are_as_many_as_were_asked_for_and_give_no_text(
    farm: FarmProcess, models: Path
) -> None:
    found = run(farm, models, "int4", regimes=["warm"], prompt_length=200, generation_length=33)
    reading = found["warm"].reading
    assert reading is not None
    assert reading.generation is not None
    assert (reading.generation.prompt_sha256, reading.generation.text_sha256) == (None, None)
    assert found["warm"].quality in (Quality.VALID, Quality.NOISY)
