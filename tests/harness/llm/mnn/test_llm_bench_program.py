"""MNN's engine, really run by our `llm_bench`: what goes wrong ends with its reason, before any measuring."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(find_spec, ("onnx", "_mnncengine"))),
        reason="onnx or MNN is not installed (make installs them)",
    ),
]
ROOT = Path(__file__).parents[4]
SHORT = ("-kv", "true", "-p", "64", "-rep", "2", "-t", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    example = ROOT / "examples" / "llm" / "mnn_file.py"
    subprocess.run([sys.executable, str(example), str(folder), "--tiny", "int4"], check=True, timeout=120)
    (folder / "random-int4.mnn").rename(folder / "llm.mnn")
    (folder / "random-int4.mnn.weight").rename(folder / "llm.mnn.weight")
    return folder


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


def ran(model: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    script = ROOT / "harnesses" / "llm" / "llm_bench"
    command = [sys.executable, str(script), "-m", str(model / "config.json"), *SHORT, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_generation_is_a_row(model: Path) -> None:
    done = ran(model, "-n", "8", "-load", "true")
    assert done.returncode == 0, done.stderr
    assert "| model | 0.08 MiB | CPU | 1 |" in done.stdout


def test_missing_weights_are_named_before_they_are_loaded(model: Path) -> None:
    (model / "llm.mnn.weight").unlink()
    done = ran(model, "-n", "8")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "error: the weights of" in done.stderr
    assert "llm.mnn.weight" in done.stderr


def test_a_model_that_is_none_cannot_be_loaded(model: Path) -> None:
    (model / "llm.mnn").write_bytes(bytes(100))
    done = ran(model, "-n", "8")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "error: the engine could not load the model" in done.stderr


def test_a_repetition_without_a_time_has_no_rate(model: Path) -> None:
    done = ran(model, "-n", "0")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "error: a repetition took no time" in done.stderr
