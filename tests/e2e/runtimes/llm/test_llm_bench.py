"""MNN's engine of language models on a virtual phone, on a tiny model of random weights in six files."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.core.runs.measurement import Quality
from tests.support.farm.processes import CHECKOUT, FarmProcess

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not all(map(find_spec, ("onnx", "_mnncengine"))),
        reason="onnx or MNN is not installed (make installs them)",
    ),
]

EXAMPLE = CHECKOUT / "examples" / "llm"
NAME = "llm_bench"
BESIDE = ("config.json", "embeddings_bf16.bin", "llm_config.json", "tokenizer.txt")
WEIGHTS = "llm.mnn.weight"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    command = [sys.executable, str(EXAMPLE / "mnn_file.py"), str(folder), "--tiny", "int4"]
    subprocess.run(command, check=True, timeout=120)
    return folder


def test_a_model_with_its_weights_and_configuration_is_measured(farm: FarmProcess, models: Path) -> None:
    path = models / "random-int4.mnn"
    told = [word for name in BESIDE for word in ("--file", str(models / name))]
    told += ["--file", f"{WEIGHTS}={path}.weight"]
    added = farm.cli("variant", "add", str(path), "--model", "random", "--precision", "int4", *told)
    assert [file["path"] for file in added["manifest"]["files"]] == ["", *sorted((*BESIDE, WEIGHTS))]
    spec = {
        "name": "llm",
        "harness": NAME,
        "axes": {"model": "random", "precision": "int4", "format": "mnn", "backend": "cpu"},
        "settings": {"n_prompt": 200, "n_gen": 48, "n_repeat": 4},
        "metrics": ["prefill_rate", "decode_rate"],
        "devices": {"virtual": True},
        "rounds": 1,
        # Virtual phones share this machine.
        "noise_limit": 10.0,
    }
    matrix_id = farm.submit(spec)
    assert farm.await_matrix(matrix_id, within_s=200).jobs_by_outcome.keys() == {"succeeded"}
    with farm.client() as client:
        [job] = client.jobs(matrix_id)
        attempt = client.attempt(job.attempts[-1])
    assert attempt.reading is not None
    values = {metric.name: metric.value for metric in attempt.reading.metrics}
    assert {"prefill_rate", "decode_rate"} <= values.keys()
    assert attempt.reading.value_ns == pytest.approx(48e9 / values["decode_rate"])
    assert attempt.reading.accelerator == "cpu"
    assert attempt.quality is not Quality.WRONG_OUTPUT
