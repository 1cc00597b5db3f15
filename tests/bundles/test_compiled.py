"""Programs for arm64 that are really compiled by zig, and started under qemu."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.blobs.inspection import inspect_program_file
from farm.bundles.build import build_bundle
from farm.bundles.commands import Say
from farm.bundles.emulator import EMULATOR, started_command, write_system_files
from farm.bundles.local_bundle import LocalBundle
from farm.bundles.recipes.llama_cpp import LLAMA_CPP
from farm.bundles.recipes.ncnn import NCNN
from farm.bundles.recipes.wheels import EXECUTORCH, LITERT, LITERT_LM, MNN, ONNXRUNTIME
from farm.bundles.workshop import BundleRecipe, Start, Workshop
from farm.core.base.setting_values import SettingValue
from farm.core.errors import InvalidInput
from farm.core.programs.abi import program_abi
from farm.core.programs.built_with import ProgramPart
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Reading
from farm.core.runs.plan import RunPlan
from farm.harness.base.output_lines import plain_lines
from farm.harness.llm.litert_lm.benchmark_info import benchmark_infos
from farm.harness.registry import get_harness
from farm.variants.environments.runtime_environments import run_command
from harnesses.compiled.benchmark_model.build import RUNNER as BENCHMARK_MODEL
from harnesses.compiled.wheel_runner import build
from tests.support.models.onnx_network import convolutions

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed (pip install ziglang)"),
    pytest.mark.skipif(shutil.which(EMULATOR) is None, reason="there is no qemu-user-static"),
]

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parents[1] / "support" / "models"
MODELS = SAMPLES / "executorch"
#: Of ncnn: a convolution of 3x3 and its activation.
PARAM = """7767517
3 3
Input data 0 1 data
Convolution conv 1 1 data conv 0=8 1=3 4=1 5=1 6=576
ReLU relu 1 1 conv out
"""
#: Writes a line and ends with exit code 3, by system calls: nothing of a C library has to be compiled.
SOURCE = """
static long call(long number, long a, long b, long c) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}
void _start(void) {
  call(64, 1, (long)"it runs\\n", 8);
  call(93, 3, 0, 0);
}
"""


@contextmanager
def this_python(say: Say) -> Iterator[Path]:
    """Stand for the compiler's environment, which takes a minute to create: this one has the compiler."""
    yield Path(sys.executable)


def tiny_recipe(source: str = SOURCE, *, harness: str = "tiny") -> BundleRecipe:
    """A program whose build takes a second."""

    def build(workshop: Workshop) -> Sequence[ProgramPart]:
        (workshop.scratch / "tiny.c").write_text(source)
        linked = ("-target", "aarch64-linux-musl", "-nostdlib", "-static", "-O2", "-s")
        workshop.compile("cc", *linked, str(workshop.scratch / "tiny.c"), "-o", str(workshop.out / "tiny"))
        return [workshop.compiler_part()]

    return BundleRecipe(
        name="tiny",
        harness=harness,
        abi="arm64-v8a",
        ingredients=(source,),
        build=build,
        entry="tiny",
        start=Start(arguments=(), exit_code=3, text="it runs"),
    )


def compiled(source: str, root: Path) -> LocalBundle:
    return build_bundle(tiny_recipe(source), root, lambda _: None, interpreter=this_python)


def test_a_compiled_program_is_for_arm64_and_starts(tmp_path: Path) -> None:
    built = compiled(SOURCE, tmp_path)
    inspection = {"tiny": inspect_program_file(built.folder / "tiny")}
    assert program_abi(inspection, "tiny", None) == "arm64-v8a"
    assert [part.name for part in built.parts] == ["zig"]


def test_an_error_of_the_compiler_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"the compiler failed: .*error: .*nothing_of_that_name"):
        compiled(SOURCE.replace("call(93", "nothing_of_that_name(93"), tmp_path)


def test_a_program_that_crashes_is_no_bundle(tmp_path: Path) -> None:
    crash = SOURCE.replace('call(64, 1, (long)"it runs\\n", 8);', "*(volatile int *)8 = 1;")
    assert crash != SOURCE
    with pytest.raises(InvalidInput, match="does not start under"):
        compiled(crash, tmp_path)


#: Downloads, and builds for minutes.
is_asked_for = pytest.mark.skipif(
    "BENCHFARM_BUILDS" not in os.environ, reason="downloads and builds for minutes: BENCHFARM_BUILDS=1"
)


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of bundles, and of what the compiler made of its C library."""
    return tmp_path_factory.mktemp("bundles")


def printed_by(recipe: BundleRecipe, root: Path, system: Path, *arguments: str) -> str:
    """What a program prints under the emulator, once it is built."""
    built = build_bundle(recipe, root, lambda _: None)
    write_system_files(system)
    done = run_command(started_command(recipe, built.folder, system, arguments))
    assert done.returncode == 0, done.stderr
    return f"{done.stdout}{done.stderr}"


def reading(adapter: str, backend: str, printed: str, **settings: SettingValue) -> Reading:
    plan = RunPlan(
        harness=adapter, backend=backend, files=(), argv=("tool",), timeout_s=60.0, settings=settings
    )
    ended = ExitRecord(code=0, duration_s=60.0)
    found = get_harness(adapter).parse(plan, Evidence(fence=1, exit=ended, stdout=printed, stderr=""))
    assert isinstance(found, Reading), printed
    return found


@is_asked_for
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("model", ["xnnpack", "portable"])
def test_the_runner_of_executorch_computes_what_torch_does(model: str, root: Path, tmp_path: Path) -> None:
    told = printed_by(EXECUTORCH, root, tmp_path / "system", f"--model_path={MODELS / f'{model}.pte'}")
    assert "[-0.273721, -0.324802, -0.320519" in told


@is_asked_for
@pytest.mark.timeout(7200)
def test_the_runner_of_onnx_runtime_times_each_inference(root: Path, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(convolutions())
    words = ("-e", "cpu", "-m", "times", "-r", "3", "-I", str(tmp_path / "net.onnx"), "/proc/self/fd/1")
    told = printed_by(ONNXRUNTIME, root, tmp_path / "system", *words)
    assert len(reading("onnxruntime_perf_test", "cpu", told).samples_ns) == 3


def values(printed: str) -> list[float]:
    """The first values of the first output, which a runner prints behind its times."""
    found = re.search(r"Output(?: 0)? begins with \[(.*)\]", printed)
    assert found is not None, printed
    return [float(value) for value in found[1].split(", ")]


@is_asked_for
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("backend", ["cpu", "xnnpack"])
@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_the_runner_of_litert_computes_what_it_does_on_a_pc(
    kind: str, backend: str, root: Path, tmp_path: Path
) -> None:
    samples = pytest.importorskip("tests.support.models.tflite_samples")
    (tmp_path / "net.tflite").write_bytes(samples.conv_int8() if kind == "int8" else samples.conv_relu())
    words = [f"--graph={tmp_path / 'net.tflite'}", f"--use_xnnpack={str(backend == 'xnnpack').lower()}"]
    words += ["--num_runs=3", "--min_secs=0.001", "--warmup_min_secs=0.001"]
    told = printed_by(LITERT, root, tmp_path / "system", *words)
    found = reading("benchmark_model", backend, told, num_runs=3)
    assert (len(found.samples_ns) >= 3, found.actual_backend) == (True, backend)
    build(BENCHMARK_MODEL, Path(str(distribution("ai-edge-litert").locate_file(""))), tmp_path / "here")
    environment = {"LD_LIBRARY_PATH": str(tmp_path / "here" / "lib")}
    here = subprocess.run(
        [str(tmp_path / "here" / "benchmark_model"), *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(set(values(told))) > 2
    # A step of int8 is 1: CPUs round differently.
    assert values(told) == pytest.approx(values(here.stdout), abs=1 if kind == "int8" else 1e-5)


@is_asked_for
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("kind", "expected"),
    # What MNN's module for Python makes of ones on a PC.
    [
        ("float32", [0.190737, 0.40611, 0.267338, 0.323743, -0.0457615]),
        ("int8-weight-only", [0.190749, 0.406194, 0.267084, 0.323742, -0.0456796]),
    ],
)
def test_the_runner_of_mnn_computes_what_it_does_on_a_pc(
    kind: str, expected: list[float], root: Path, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    shutil.copy(SAMPLES / "mnn" / f"{kind}.mnn", tmp_path / "models")
    told = printed_by(MNN, root, tmp_path / "system", str(tmp_path / "models"), "3", "1", "0", "2", "0")
    found = reading("mnn_benchmark", "cpu", told, loop=3)
    assert (len(found.samples_ns), found.accelerator) == (3, "cpu")
    assert values(told) == pytest.approx(expected, abs=1e-4)


@is_asked_for
@pytest.mark.timeout(7200)
def test_the_runner_of_litert_lm_writes_what_it_does_on_a_pc(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("litert_lm_builder")
    example = ROOT / "examples" / "llm" / "litertlm_file.py"
    subprocess.run([sys.executable, str(example), str(tmp_path), "--tiny"], check=True, timeout=600)
    words = [
        "--benchmark",
        "--backend=cpu",
        f"--model_path={tmp_path / 'random-f32.litertlm'}",
        "--async=false",
    ]
    words += ["--input_prompt=What is it?", "--benchmark_decode_tokens=16", "--num_cpu_threads=1"]
    told = printed_by(LITERT_LM, root, tmp_path / "system", *words, "--num_iterations=2")
    infos = benchmark_infos(plain_lines(told))
    assert [info.decode.tokens for info in infos] == [16, 16]
    assert all(info.load_ms for info in infos)
    script = [sys.executable, str(ROOT / "harnesses" / "llm" / "litert_lm_advanced_main"), *words]
    here = subprocess.run(script, capture_output=True, text=True, check=True)
    assert len(here.stdout.split()) > 8
    assert told.splitlines()[:2] == here.stdout.splitlines() * 2


@is_asked_for
@pytest.mark.timeout(7200)
def test_the_runner_of_ncnn_times_each_inference(root: Path, tmp_path: Path) -> None:
    (tmp_path / "net.param").write_text(PARAM)
    words = ("3", "2", "0", "-1", "0", f"param={tmp_path / 'net.param'}", "shape=[32,32,8]")
    told = printed_by(NCNN, root, tmp_path / "system", *words)
    assert len(reading("benchncnn", "cpu", told).samples_ns) == 3


@is_asked_for
@pytest.mark.timeout(7200)
def test_llama_bench_times_each_repetition(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    example = ROOT / "examples" / "llm" / "gguf_file.py"
    subprocess.run([sys.executable, str(example), str(tmp_path)], check=True, timeout=600)
    model = str(tmp_path / "random-q4_0.gguf")
    words = (
        "-m",
        model,
        "-o",
        "jsonl",
        "-r",
        "2",
        "-p",
        "8",
        "-n",
        "2",
        "-t",
        "1",
        "-ngl",
        "0",
        "-dev",
        "none",
    )
    told = printed_by(LLAMA_CPP, root, tmp_path / "system", *words)
    # An output of other work than was asked for gives no number.
    found = reading("llama-bench", "cpu", told, n_prompt=8, n_gen=2, repetitions=2, threads=1)
    assert len(found.samples_ns) == 2
