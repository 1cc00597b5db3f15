"""The program on virtual phones and the adapter on the farm, speaking to each other for real."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from farm.core.base.ids import digest_of
from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Gates
from farm.core.models.variant import Format, Precision
from farm.core.programs.bundle import single_file
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Outcome, Reading, RunFailure
from farm.core.runs.plan import RunPlan, fill_argv
from farm.harness.base.adapter import RunRequest
from farm.harness.torch.speed_benchmark_torch import FLAGS, SpeedBenchmarkTorch
from farm.variants.build import BuiltVariant

#: Who comes first builds variants, which takes minutes where others want the cores too.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).parents[3] / "harnesses" / "speed_benchmark_torch"
HARNESS = SpeedBenchmarkTorch()

Run = Callable[..., Evidence]
#: Imports torch as the program does, and forks for each line to run it: words, folder, both outputs.
FORKS = """
import json, os, runpy, sys, warnings
warnings.simplefilter("ignore")
os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
import torch
for line in sys.stdin:
    words, folder, *outputs = json.loads(line)
    if not (child := os.fork()):
        for number, path in enumerate(outputs, start=1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
        os.chdir(folder)
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
        sys.exit()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code if code >= 0 else 128 - code, flush=True)
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the program as a phone's shell would, with its Python on PATH and nothing else of this process."""
    python = tmp_path / "bin" / "benchfarm-python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)

    def go(*words: str | Path) -> Evidence:
        argv = (str(PROGRAM), *map(str, words))
        started = time.monotonic()
        ran = subprocess.run(
            argv,
            env={"PATH": f"{python.parent}:{os.defpath}"},
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        code = ran.returncode if ran.returncode >= 0 else 128 - ran.returncode
        return Evidence(
            fence=1,
            argv=argv,
            exit=ExitRecord(code=code, duration_s=time.monotonic() - started),
            stdout=ran.stdout.decode(),
            stderr=ran.stderr.decode(),
        )

    return go


@pytest.fixture(scope="module")
def forks() -> Iterator["subprocess.Popen[str]"]:
    words = [sys.executable, "-c", FORKS]
    environment = {"PATH": os.defpath}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        yield process


@pytest.fixture
def fork(forks: "subprocess.Popen[str]", tmp_path: Path) -> Run:
    """Run the program where torch is imported already, which takes longer than to refuse something."""

    def go(*words: str | Path) -> Evidence:
        argv = (str(PROGRAM), *map(str, words))
        outputs = [tmp_path / "stdout", tmp_path / "stderr"]
        started = time.monotonic()
        assert forks.stdin is not None
        assert forks.stdout is not None
        print(json.dumps([argv, *map(str, (tmp_path, *outputs))]), file=forks.stdin, flush=True)
        code = int(forks.stdout.readline())
        duration_s = time.monotonic() - started
        stdout, stderr = (path.read_text() for path in outputs)
        return Evidence(
            fence=1,
            argv=argv,
            exit=ExitRecord(code=code, duration_s=duration_s),
            stdout=stdout,
            stderr=stderr,
        )

    return go


def plan_of(variant: BuiltVariant, **settings: SettingValue) -> RunPlan:
    program = PROGRAM.read_bytes()
    request = RunRequest(
        variant=variant.manifest,
        bundle=single_file("speed_benchmark_torch", digest_of(program), len(program)),
        backend=variant.manifest.recipe.target,
        settings={**{name: flag.default for name, flag in FLAGS.items()}, **settings},
        timeout_s=60.0,
        gates=Gates(),
    )
    return HARNESS.plan(request)


def words_of(plan: RunPlan, variant: BuiltVariant) -> list[str]:
    paths = {"program": str(PROGRAM), "model": str(variant.path)}
    return fill_argv(plan, work="/nowhere", path_by_name=paths)[1:]


def pick(variants: Sequence[BuiltVariant], precision: Precision, format: Format) -> BuiltVariant:
    (found,) = [
        variant
        for variant in variants
        if (variant.manifest.recipe.precision, variant.manifest.recipe.format) == (precision, format)
    ]
    return found


@pytest.fixture
def lite(variants: Sequence[BuiltVariant]) -> BuiltVariant:
    return pick(variants, Precision.FLOAT32, Format.LITE)


@pytest.mark.parametrize("format", [Format.TORCHSCRIPT, Format.LITE])
@pytest.mark.parametrize("precision", [Precision.FLOAT32, Precision.INT8_CORE])
def test_a_planned_run_comes_back_as_one_sample_an_iteration(
    run: Run, variants: Sequence[BuiltVariant], precision: Precision, format: Format
) -> None:
    check_samples(run, pick(variants, precision, format))


def test_a_flatbuffer_with_a_quantized_channels_last_interface_is_run_too(
    run: Run, further_variants: Sequence[BuiltVariant]
) -> None:
    [variant] = [each for each in further_variants if each.manifest.recipe.target == "cpu"]
    check_samples(run, variant)


def check_samples(run: Run, variant: BuiltVariant) -> None:
    plan = plan_of(variant, iter=12, warmup=2)
    evidence = run(*words_of(plan, variant))
    reading = HARNESS.parse(plan, evidence)
    assert isinstance(reading, Reading), reading
    assert evidence.exit is not None
    assert len(reading.samples_ns) == 12
    assert 100_000 < statistics.median(reading.samples_ns) < evidence.exit.duration_s * 1e9 / 12
    assert evidence.stderr.startswith("quantized engine: ")
    engine, _ = evidence.stderr.splitlines()
    assert engine in reading.proof
    [load_time] = reading.metrics
    assert (load_time.name, load_time.unit) == ("load_time", "ms")
    assert 0 < load_time.value < evidence.exit.duration_s * 1e3


@pytest.mark.parametrize("number", [0, 1])
def test_a_file_for_nnapi_is_unsupported_where_there_is_none(
    run: Run, further_variants: Sequence[BuiltVariant], number: int
) -> None:
    variant = [each for each in further_variants if each.manifest.recipe.target == "nnapi"][number]
    assert HARNESS.unsupported(variant.manifest, "nnapi") is None
    plan = plan_of(variant, iter=2)
    failure = HARNESS.parse(plan, run(*words_of(plan, variant)))
    assert isinstance(failure, RunFailure)
    assert (failure.code, failure.outcome) == ("run.nnapi_missing", Outcome.UNSUPPORTED)
    assert "libneuralnetworks.so" in (failure.line or "")


def test_stdout_has_the_tools_own_lines_and_no_others(run: Run, lite: BuiltVariant) -> None:
    lines = run(*words_of(plan_of(lite, iter=2), lite)).stdout.splitlines()
    assert lines[:3] == ["Starting benchmark.", "Running warmup runs.", "Main runs."]
    assert [line.split(" {")[0] for line in lines[3:5]] == ["PyTorchObserver"] * 2
    assert lines[5].startswith("Main run finished. Microseconds per iter: ")
    assert len(lines) == 6


def test_inputs_can_come_from_the_command_line(run: Run, lite: BuiltVariant) -> None:
    words = ("--model", lite.path, "--input_dims=1,3,224,224", "--input_type", "float", "--iter=2")
    evidence = run(*words)
    reading = HARNESS.parse(plan_of(lite, iter=2), evidence)
    assert isinstance(reading, Reading)
    assert reading.mean_ns is not None


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (["--use_bundled_input=4"], 1, "variant.no_bundled_input"),
        (["--use_bundled_input=0", "--bogus=1"], 1, "run.unknown_flag"),
        (["--use_bundled_input=0", "--use_caching_allocator=true"], 1, "run.unknown_flag"),
        (["--use_bundled_input=0", "--report_pep=maybe"], 1, "run.bad_flags"),
        (["--use_bundled_input=0", "--warmup"], 1, "run.bad_flags"),
        (["--use_bundled_input=0", "--vulkan=true"], 134, "run.backend_missing"),
        (["--use_bundled_input=0", "--iter=-1"], 134, "run.crashed"),
        (["--input_dims=1,3,224,224", "--input_type=int8"], 134, "run.crashed"),
        (["--input_dims=1,3,8", "--input_type=float"], 134, "run.crashed"),
    ],
)
def test_what_cannot_be_run_ends_as_the_real_tool_does(
    fork: Run, lite: BuiltVariant, words: list[str], exit_code: int, code: str
) -> None:
    evidence = fork(f"--model={lite.path}", *words)
    failure = HARNESS.parse(plan_of(lite), evidence)
    assert isinstance(failure, RunFailure)
    assert evidence.exit is not None
    assert (evidence.exit.code, failure.code) == (exit_code, code)


@pytest.mark.parametrize("content", [b"", b"no model at all", None])
def test_a_model_file_that_is_none_aborts_the_program(
    fork: Run, lite: BuiltVariant, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "broken.ptl"
    path.write_bytes(lite.path.read_bytes()[:1_000_000] if content is None else content)
    failure = HARNESS.parse(plan_of(lite), fork(f"--model={path}", "--use_bundled_input=0"))
    assert isinstance(failure, RunFailure)
    assert failure.code == "variant.unreadable"
    assert not list(tmp_path.glob("core*"))


def test_a_missing_model_file_is_named(fork: Run, lite: BuiltVariant) -> None:
    failure = HARNESS.parse(plan_of(lite), fork("--model=/nowhere/m.pt", "--use_bundled_input=0"))
    assert isinstance(failure, RunFailure)
    assert "/nowhere/m.pt" in (failure.line or "")


def test_help_ends_well(run: Run) -> None:
    evidence = run("--help")
    assert evidence.exit is not None
    assert evidence.exit.code == 0
    assert "--use_bundled_input=0" in evidence.stdout
