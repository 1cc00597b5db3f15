"""LiteRT-LM, really run: our C++ program, compiled with the wheel's library, writes what our script does."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.harness.base.output_lines import plain_lines
from farm.harness.llm.litert_lm.benchmark_info import benchmark_infos
from farm.harness.llm.litert_lm.metrics_proto import metrics_infos
from tests.support.harness.built_programs import built_program

ROOT = Path(__file__).parents[4]
PROGRAM = "litert_lm_advanced_main"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        find_spec("litert_lm") is None or find_spec("litert_lm_builder") is None,
        reason="litert-lm-api is not installed (pip install 'benchfarm[litert-lm]')",
    ),
]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    return built_program(PROGRAM, "litert-lm-api", tmp_path_factory, worker_id)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    example = ROOT / "examples" / "llm" / "litertlm_file.py"
    subprocess.run([sys.executable, str(example), str(folder), "--tiny"], check=True, timeout=600)
    return folder / "random-f32.litertlm"


def ran(bundle: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.defpath, "LD_LIBRARY_PATH": str(bundle / "lib")}
    command = [str(bundle / PROGRAM), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_it_writes_what_the_script_of_virtual_phones_writes(bundle: Path, model: Path) -> None:
    words = ["--benchmark", "--backend=cpu", f"--model_path={model}", "--async=false"]
    words += ["--input_prompt=What is it?", "--benchmark_decode_tokens=16", "--num_cpu_threads=1"]
    done = ran(bundle, *words, "--num_iterations=3")
    assert done.returncode == 0, done.stderr
    infos = benchmark_infos(plain_lines(done.stderr))
    assert [info.decode.tokens for info in infos] == [16, 16, 16]
    assert all(info.load_ms and info.decode.duration_ns > 0 for info in infos)
    script = [sys.executable, str(ROOT / "harnesses" / "llm" / PROGRAM), *words]
    expected = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert len(expected.split()) > 8
    assert done.stdout == expected * 3


def test_its_file_of_metrics_has_what_it_prints(bundle: Path, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "metrics.pb"
    words = ["--benchmark", f"--model_path={model}", "--benchmark_prefill_tokens=200", "--num_iterations=2"]
    done = ran(bundle, *words, "--benchmark_decode_tokens=4", f"--metric_proto_file_path={file}")
    assert done.returncode == 0, done.stderr
    printed, written = benchmark_infos(plain_lines(done.stderr)), metrics_infos(file.read_bytes())
    assert len(printed) == len(written) == 2
    for text, found in zip(printed, written, strict=True):
        assert (found.prefill.tokens, found.decode.tokens) == (200, 4)
        # The text has the durations in nanoseconds and the load time in hundredths of a millisecond.
        assert found.prefill.duration_ns == pytest.approx(text.prefill.duration_ns, abs=600)
        assert found.decode.duration_ns == pytest.approx(text.decode.duration_ns, abs=600)
        assert found.load_ms == pytest.approx(text.load_ms, abs=0.006)
    done = ran(bundle, *words, "--benchmark_decode_tokens=4", f"--metric_proto_file_path={tmp_path}")
    assert (done.returncode, f"cannot write {tmp_path}" in done.stderr) == (1, True)


def test_tokens_that_are_made_up_have_no_text(bundle: Path, model: Path) -> None:
    words = ["--benchmark", f"--model_path={model}", "--benchmark_prefill_tokens=20"]
    done = ran(bundle, *words, "--benchmark_decode_tokens=4", "--num_iterations=1")
    assert (done.returncode, done.stdout) == (0, "")
    [info] = benchmark_infos(plain_lines(done.stderr))
    assert (info.prefill.tokens, info.decode.tokens) == (20, 4)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--frobnicate=1"], "Unknown command line flag 'frobnicate'"),
        (["--num_iterations=few"], "Illegal value 'few'"),
        (["--backend=gpu"], "the backend gpu is not in this build"),
        ([], "cannot create an engine"),
    ],
)
def test_what_it_cannot_do_is_an_error(bundle: Path, tmp_path: Path, words: list[str], expected: str) -> None:
    done = ran(bundle, "--benchmark", f"--model_path={tmp_path / 'missing.litertlm'}", *words)
    assert done.returncode == 1
    assert expected in done.stderr
