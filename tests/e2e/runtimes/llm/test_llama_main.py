"""ExecuTorch's runner of language models on a virtual phone, on a tiny model of random weights."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.core.runs.derived.generation import Generation
from farm.wire.documents.matrices.jobs import AttemptView
from tests.support.farm.processes import CHECKOUT, FarmProcess

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not all(map(find_spec, ("executorch", "torchao", "tabulate"))),
        reason="executorch, torchao or tabulate is not installed (make installs them)",
    ),
]

EXAMPLE = CHECKOUT / "examples" / "llm"
NAME = "llama_main"
#: With this, the times of a tiny model are longer than some steps of the runner's clock.
TOKENS = 401


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    command = [sys.executable, str(EXAMPLE / "executorch_file.py"), str(folder), "--tiny", "f32"]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    return folder


def generation_of(attempt: AttemptView) -> Generation:
    assert attempt.reading is not None
    assert attempt.reading.generation is not None
    return attempt.reading.generation


def test_a_model_with_its_tokenizer_is_measured_in_each_regime(farm: FarmProcess, models: Path) -> None:
    model, tokenizer = models / "random-f32.pte", models / "tokenizer.bin"
    refused = subprocess.run(
        [sys.executable, "-m", "farm.cli.shell.main", "variant", "add", str(model)],
        env={**os.environ, "FARM_URL": farm.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 2
    assert "no tokenizer was given" in refused.stderr
    assert "--file tokenizer.bin" in refused.stderr

    told = ("--model", "random", "--precision", "f32", "--file", str(tokenizer))
    added = farm.cli("variant", "add", str(model), *told)
    assert [file["path"] for file in added["manifest"]["files"]] == ["", "tokenizer.bin"]
    regimes = ["first", "cold", "warm"]
    spec = {
        "name": "llm",
        "harness": NAME,
        "axes": {
            "model": "random",
            "precision": "f32",
            "format": "executorch",
            "backend": "cpu",
            "regime": regimes,
        },
        "settings": {"prompt": "w5 w6 w77", "max_new_tokens": TOKENS},
        "metrics": ["decode_rate", "time_to_first_token", "load_time"],
        "devices": {"virtual": True},
        "rounds": 1,
        # Virtual phones share this machine.
        "noise_limit": 10.0,
    }
    matrix_id = farm.submit(spec)
    assert farm.await_matrix(matrix_id, within_s=200).jobs_by_outcome.keys() == {"succeeded"}
    generations: dict[str, Generation] = {}
    with farm.client() as client:
        attempts = {job.label: client.attempt(job.attempts[-1]) for job in client.jobs(matrix_id)}
        for cell in client.cells(matrix_id):
            regime = str(cell.settings["regime"])
            generations[regime] = generation_of(attempts[cell.label])
            # Of the reading: on a quick machine the steps of the clock are too much of the times to be valid.
            reading = attempts[cell.label].reading
            assert reading is not None
            names = {metric.name for metric in reading.metrics}
            assert {"decode_rate", "time_to_first_token"} <= names
            assert ("load_time" in names) is (regime != "warm")
    assert {*generations} == {*regimes}
    # The likeliest token is always the same, and the runtime writes no caches on a CPU.
    assert len({generation.text_sha256 for generation in generations.values()} - {None}) == 1
    assert not any(generation.caches_before or generation.caches_after for generation in generations.values())
