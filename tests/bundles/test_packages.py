"""Packages of a build: what is downloaded is what was pinned, and what cannot be had is told with a hint."""

import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from examples.llm import build_llama_bench
from farm.bundles.debian import unpack_debian
from farm.bundles.packages import download_dated_source, download_package
from farm.bundles.recipes import llama_cpp
from farm.bundles.recipes.cmake import FOR_PHONES, built_target
from farm.bundles.workshop import Workshop
from farm.core.base.ids import digest_of
from farm.core.errors import DigestMismatch, InvalidInput
from farm.variants.environments.pins import pinned_versions
from harnesses.compiled.benchmark_model.build import RUNNER as BENCHMARK_MODEL
from harnesses.compiled.executor_runner.build import RUNNER as EXECUTOR_RUNNER
from harnesses.compiled.litert_lm_advanced_main.build import RUNNER as LITERT_LM_ADVANCED_MAIN
from harnesses.compiled.mnn_benchmark.build import runner as mnn_benchmark
from harnesses.compiled.mnn_benchmark.build import unsupported as without_mnn
from harnesses.compiled.onnxruntime_perf_test.build import RUNNER as ONNXRUNTIME_PERF_TEST
from harnesses.compiled.tvm_benchmark.build import RUNNER as TVM_BENCHMARK
from harnesses.compiled.wheel_runner import WheelRunner

ROOT = Path(__file__).parents[2]
Commands = Callable[[Sequence[str]], "CompletedProcess[str]"]


def workshop_of(folder: Path, run: Commands) -> Workshop:
    for name in ("out", "scratch"):
        (folder / name).mkdir()
    return Workshop(
        out=folder / "out",
        scratch=folder / "scratch",
        cache=folder / "cache",
        python=Path("/python"),
        run=run,
        say=lambda _: None,
    )


def pip_that_writes(content: bytes) -> Commands:
    def run(words: Sequence[str]) -> "CompletedProcess[str]":
        (Path(words[words.index("--dest") + 1]) / "thing-1.whl").write_bytes(content)
        return CompletedProcess(words, 0, "", "")

    return run


def failing(stderr: str) -> Commands:
    return lambda words: CompletedProcess(words, 1, "", stderr)


def test_a_package_becomes_a_part_with_the_digest_of_its_file(tmp_path: Path) -> None:
    workshop = workshop_of(tmp_path, pip_that_writes(b"wheel"))
    path, part = download_package(workshop, "thing", "1", digest_of(b"wheel"), ("--no-binary", "thing"))
    assert path.read_bytes() == b"wheel"
    assert (part.name, part.version, part.source) == ("thing", "1", "thing-1.whl")
    assert part.digest == digest_of(b"wheel")


def test_another_file_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    workshop = workshop_of(tmp_path, pip_that_writes(b"another"))
    with pytest.raises(DigestMismatch, match="is expected"):
        download_package(workshop, "thing", "1", digest_of(b"wheel"), ())


def test_a_source_whose_version_is_the_day_is_read_on_the_day_of_its_publication(tmp_path: Path) -> None:
    commands: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> "CompletedProcess[str]":
        commands.append(words)
        return pip_that_writes(b"source")(words)

    workshop = workshop_of(tmp_path, run)
    download_dated_source(workshop, "thing", "1.0.20261020", digest_of(b"source"), "20261020")
    [words] = commands
    assert words[0] == "env"
    assert "--no-build-isolation" in words
    # What pip starts has the variable, and pip itself (-I) has not.
    script = "import time; print(time.strftime('%Y%m%d', time.localtime()))"
    read = subprocess.run(
        ["env", words[1], sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert read.stdout == "20261020\n"


def test_the_compiler_gets_no_march_from_a_source_that_cmake_configures(tmp_path: Path) -> None:
    """Other words come as they are, blanks and all, in their order."""
    commands: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> "CompletedProcess[str]":
        commands.append(words)
        return CompletedProcess(words, 0, "/compiler\n", "")

    built_target(workshop_of(tmp_path, run), tmp_path / "source", ["OPTION=1"], "target")
    configured = next(words for words in commands if "-S" in words)
    assert "-DOPTION=1" in configured
    [wrapper] = [word.partition("=")[2] for word in configured if word.startswith("-DCMAKE_CXX_COMPILER=")]
    script = Path(wrapper)
    zig = tmp_path / "zig"
    zig.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    zig.chmod(0o755)
    script.write_text(script.read_text().replace("/compiler/zig", str(zig)))
    given = ["-O3", "-march=armv8.2-a+fp16+dotprod", "-DNAME=a b", "file.cpp"]
    told = subprocess.run([wrapper, *given], capture_output=True, text=True, check=True).stdout.splitlines()
    assert told == ["c++", *FOR_PHONES, "-O3", "-DNAME=a b", "file.cpp"]


@pytest.mark.parametrize(
    ("runtime", "runner"),
    [
        ("executorch", EXECUTOR_RUNNER),
        ("onnxruntime", ONNXRUNTIME_PERF_TEST),
        ("litert", BENCHMARK_MODEL),
        ("mnn", mnn_benchmark("aarch64")),
        ("tvm", TVM_BENCHMARK),
    ],
)
def test_a_runner_is_built_with_the_version_that_variants_are_built_for(
    runtime: str, runner: WheelRunner
) -> None:
    assert runner.versions.items() <= pinned_versions(runtime).items()


@pytest.mark.parametrize(
    ("machine", "python", "expected"),
    [
        ("x86_64", (3, 12), "for Python 3.11, and this is 3.12"),
        ("riscv64", (3, 11), "no wheel that is known for riscv64"),
        ("aarch64", (3, 11), ""),
    ],
)
def test_what_mnn_has_no_wheel_for_is_named(machine: str, python: tuple[int, int], expected: str) -> None:
    told = without_mnn(machine, python)
    assert (told is None) is (expected == "")
    assert expected in (told or "")


def test_the_runner_of_litert_lm_is_built_with_the_version_that_the_script_of_virtual_phones_runs_on() -> (
    None
):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert LITERT_LM_ADVANCED_MAIN.requirements[0] in extras["litert-lm"]


def test_an_index_that_cannot_be_reached_is_told_with_a_hint(tmp_path: Path) -> None:
    stderr = "WARNING: Retrying\nERROR: Could not find a version that satisfies the requirement thing==1\n"
    workshop = workshop_of(tmp_path, failing(stderr))
    with pytest.raises(InvalidInput, match="Could not find a version") as caught:
        download_package(workshop, "thing", "1", digest_of(b"wheel"), ())
    assert "check the network" in caught.value.hint


def test_apt_without_a_network_is_told_with_a_hint(tmp_path: Path) -> None:
    stderr = "W: something\nE: Failed to fetch http://deb.example  Could not resolve 'deb.example'\n"
    workshop = workshop_of(tmp_path, failing(stderr))
    with pytest.raises(InvalidInput, match="Could not resolve") as caught:
        unpack_debian(workshop, ("libc6",))
    assert "check the network" in caught.value.hint


def test_apt_without_packages_for_arm64_is_told(tmp_path: Path) -> None:
    workshop = workshop_of(tmp_path, lambda words: CompletedProcess(words, 0, "", ""))
    with pytest.raises(InvalidInput, match="have no packages for arm64"):
        unpack_debian(workshop, ("libc6",))


def test_llama_cpp_is_the_version_that_the_example_builds() -> None:
    example = (build_llama_bench.PACKAGE, build_llama_bench.VERSION, build_llama_bench.COMMIT)
    assert example == (llama_cpp.PACKAGE, llama_cpp.VERSION, llama_cpp.COMMIT)
