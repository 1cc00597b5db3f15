"""A network built for TVM: really compiled, for two ABIs, compared, and run on a virtual phone."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file, completed_manifest
from farm.bundles.build import build_bundle
from farm.bundles.commands import Say
from farm.bundles.emulator import started_command, write_system_files
from farm.bundles.recipes.wheels import TVM
from farm.core.models.variant import Format, Recipe
from farm.variants.build import BuiltVariant, build_variants
from farm.variants.environments.runtime_environments import run_command
from farm.variants.model_zoo import recipes_of
from farm.variants.recipe import host_abi
from farm.variants.sources.source import Source, parse_source
from tests.support.farm.processes import FarmProcess, eventually, running_farm_with_agent
from tests.support.harness import tool_samples as sample
from tests.support.harness.built_programs import built_program
from tests.support.session.shared_folder import one_at_a_time, shared_folder

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("tvm") is None, reason="apache-tvm is not installed"),
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed"),
]

NETS = """
from torch import nn

def small():
    ends = nn.Conv2d(3, 16, 3), nn.Linear(256, 10)
    return nn.Sequential(ends[0], nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), ends[1])
"""
INPUT = "1x3x32x32:float32"
TARGETS = ["x86_64-untuned", "arm64-v8a-untuned"]
_FARM = (sys.executable, "-m", "farm.cli.shell.main")
_UP = (*_FARM, "up", "--virtual", "1")


@contextmanager
def installed_here(_runtime: str, _say: Callable[[str], None]) -> Iterator[Path]:
    """The packages that an environment would have are those of the tests."""
    yield Path(sys.executable)


def recipes_for(targets: Sequence[str]) -> list[Recipe]:
    return recipes_of(["float32"], runtimes=["tvm"], targets=targets)


def small_network(factory: pytest.TempPathFactory, worker_id: str) -> tuple[Source, Sequence[BuiltVariant]]:
    """Return the network, and what is built of it once in a test run."""
    folder = shared_folder(factory, worker_id, "tvm")
    with one_at_a_time(folder):
        if not (kept := folder / "built").exists():
            (folder / "nets.py").write_text(NETS)
            source = parse_source("nets:small", inputs=[INPUT], folder=folder)
            libraries = build_variants(
                source, recipes_for(TARGETS), folder / "out", interpreter=installed_here
            )
            kept.write_bytes(pickle.dumps((source, list(libraries))))
    found: tuple[Source, Sequence[BuiltVariant]] = pickle.loads(kept.read_bytes())
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Source:
    return small_network(tmp_path_factory, worker_id)[0]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Sequence[BuiltVariant]:
    return small_network(tmp_path_factory, worker_id)[1]


@contextmanager
def this_compiler(say: Say) -> Iterator[Path]:
    """The environment of the compiler: the packages of the tests have it."""
    yield Path(sys.executable)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    return built_program("tvm_benchmark", "apache-tvm", tmp_path_factory, worker_id)


def ran(program: Path, model: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(program / "tvm_benchmark"), f"--model={model}", "--num_runs=3", *words],
        env={"LD_LIBRARY_PATH": str(program / "lib")},
        capture_output=True,
        text=True,
        check=False,
    )


def outputs_of(stdout: str) -> list[float]:
    [line] = [line for line in stdout.splitlines() if line.startswith("Output 0: ")]
    return [float(word) for word in line.split()[2:]]


def of_this_machine(built: Sequence[BuiltVariant]) -> BuiltVariant:
    return next(each for each in built if host_abi() in each.manifest.recipe.target)


def test_each_library_is_of_one_abi_and_only_that_of_this_machine_is_compared(
    built: Sequence[BuiltVariant],
) -> None:
    assert [each.path.name for each in built] == [f"small-float32-{target}.so" for target in TARGETS]
    for each, abi in zip(built, ("x86_64", "arm64-v8a"), strict=True):
        assert check_model_file(each.path) is Format.TVM
        assert completed_manifest(each.path, each.manifest).abi == abi
        assert each.manifest.built_with["apache-tvm"]
        fidelity = each.manifest.fidelity
        assert (fidelity is not None) is (abi == host_abi())
        if fidelity is not None:
            assert fidelity.inputs == 6
            assert fidelity.max_difference < 1e-4


def test_the_same_network_gives_the_same_bytes(
    source: Source, built: Sequence[BuiltVariant], tmp_path: Path
) -> None:
    [again] = build_variants(source, recipes_for(TARGETS[:1]), tmp_path, interpreter=installed_here)
    assert again.manifest.digest == built[0].manifest.digest
    # Neither objects nor other libraries are left.
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".so"]


def test_the_program_computes_what_torch_does(
    source: Source, built: Sequence[BuiltVariant], program: Path, tmp_path: Path
) -> None:
    import torch

    from farm.variants.sources.user_network import load_network

    # Files on phones have no suffix.
    model = tmp_path / "model"
    shutil.copy(of_this_machine(built).path, model)
    done = ran(program, model, f"--inputs={INPUT}")
    assert done.returncode == 0, done.stderr
    network, _ = load_network(source)
    with torch.no_grad():
        expected = network(torch.ones(1, 3, 32, 32))[0].tolist()
    assert outputs_of(done.stdout) == pytest.approx(expected, abs=1e-4)


@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    "BENCHFARM_BUILDS" not in os.environ, reason="downloads and builds a minute and more: BENCHFARM_BUILDS=1"
)
def test_the_program_for_phones_computes_what_that_of_this_machine_does(
    built: Sequence[BuiltVariant], program: Path, tmp_path: Path
) -> None:
    bundle = build_bundle(TVM, tmp_path, lambda _: None, interpreter=this_compiler)
    [library] = [each.path for each in built if each.manifest.recipe.target == "arm64-v8a-untuned"]
    words = [f"--model={library}", f"--inputs={INPUT}", "--num_runs=1"]
    write_system_files(tmp_path / "system")
    done = run_command(started_command(TVM, bundle.folder, tmp_path / "system", words))
    assert done.returncode == 0, done.stderr
    here = ran(program, of_this_machine(built).path, f"--inputs={INPUT}")
    computed, expected = (outputs_of(each.stdout) for each in (done, here))
    assert computed == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--inputs=1x3x32x31:float32"], "variant.no_input"),
        ([f"--inputs={INPUT};1x1:int64"], "variant.no_input"),
        (["--inputs=1x3x32x32:complex64"], "run.bad_flags"),
        ([f"--inputs={INPUT}", "--bogus=1"], "run.unknown_flag"),
    ],
)
def test_what_it_cannot_run_is_named(
    built: Sequence[BuiltVariant], program: Path, words: list[str], code: str
) -> None:
    done = ran(program, of_this_machine(built).path, *words)
    assert sample.failure("tvm_benchmark", stderr=done.stderr, code=done.returncode).code == code


def test_a_library_of_another_abi_is_unreadable(built: Sequence[BuiltVariant], program: Path) -> None:
    other = next(each for each in built if each is not of_this_machine(built))
    done = ran(program, other.path, f"--inputs={INPUT}")
    found = sample.failure("tvm_benchmark", stderr=done.stderr, code=done.returncode)
    assert found.code == "variant.unreadable"


def test_a_phone_measures_the_library_of_its_abi_and_refuses_the_other(
    built: Sequence[BuiltVariant], program: Path, tmp_path: Path
) -> None:
    farm = FarmProcess(tmp_path / "farm", command=_UP)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"], "it is checked")
            for each in built:
                client.upload(each.path, each.manifest.digest)
                client.register_variant(each.manifest)
        library_path = ("--env", "LD_LIBRARY_PATH=${work}/lib")
        added = farm.cli("harness", "add", "tvm_benchmark", str(program), *library_path)
        assert added["program"]["abi"] == host_abi()
        axes = {
            "model": "small",
            "precision": "float32",
            "format": "tvm",
            "backend": "cpu",
            "target": TARGETS,
        }
        matrix_id = farm.submit(
            {
                "name": "tvm",
                "harness": "tvm_benchmark",
                "axes": axes,
                "settings": {"num_runs": 20},
                "devices": {"virtual": True},
                "rounds": 2,
            }
        )
        assert farm.await_matrix(matrix_id, within_s=200).jobs_by_outcome == {"succeeded": 2}
        with farm.client() as client:
            [rejected] = client.rejected(matrix_id)
            [result] = client.results(matrix_id)
        assert result.unoptimized
        assert "the file is compiled for" in rejected.reason
        [row] = farm.cli("placement")
        assert (row["actual_backend"], row["accelerator"], row["quality"]) == ("cpu", "cpu", "valid")
        done = subprocess.run(
            [*_FARM, "run", str(of_this_machine(built).path), "--input", INPUT, "--quick", "--json"],
            env={**os.environ, "FARM_URL": farm.url},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        [own] = json.loads(done.stdout)["results"]
        assert own["time"]["median"] > 0
