"""Libraries that TVM tuned: schedules really compiled and timed, and built again from their records."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file, completed_manifest
from farm.core.base.ids import digest_of
from farm.core.models.builders import is_unoptimized
from farm.core.models.variant import Format, Recipe
from farm.variants.build import BuiltVariant, TuningRequest, build_variants
from farm.variants.model_zoo import recipes_of
from farm.variants.recipe import host_abi
from farm.variants.sources.source import Source, parse_source
from farm.variants.sources.tuning_records import read_records
from tests.support.farm.processes import FarmProcess, running_farm_with_agent

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(find_spec("tvm") is None, reason="apache-tvm is not installed"),
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed"),
    pytest.mark.skipif(find_spec("xgboost") is None, reason="xgboost-cpu is not installed"),
]

#: Each has TVM compile once more, or tune: CI has time for one tuning, with what the farm keeps of it.
not_in_ci = pytest.mark.skipif("CI" in os.environ, reason="CI has time for one tuning only")

NETS = """
from torch import nn

def one():
    return nn.Conv2d(3, 8, 3)
"""
INPUT = "1x3x16x16:float32"
TRIALS = 4
OTHER_ABI, OTHER_TRIPLE = "arm64-v8a", "aarch64-linux-gnu"


@contextmanager
def installed_here(_runtime: str, _say: Callable[[str], None]) -> Iterator[Path]:
    """The packages that an environment would have are those of the tests."""
    yield Path(sys.executable)


def tuned_recipe(abi: str) -> Recipe:
    [recipe] = recipes_of(["float32"], runtimes=["tvm"], targets=[f"{abi}-tuned"], tuned=True)
    return recipe


def built(
    source: Source, folder: Path, tuning: TuningRequest, steps: list[str], *, abi: str = host_abi()
) -> BuiltVariant:
    [variant] = build_variants(
        source,
        [tuned_recipe(abi)],
        folder,
        tuning=tuning,
        on_progress=lambda progress: steps.append(progress.step),
        interpreter=installed_here,
    )
    return variant


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = tmp_path_factory.mktemp("nets")
    (folder / "nets.py").write_text(NETS)
    return parse_source("nets:one", inputs=[INPUT], folder=folder)


@pytest.fixture(scope="module")
def tuned(source: Source, tmp_path_factory: pytest.TempPathFactory) -> tuple[BuiltVariant, Sequence[str]]:
    steps: list[str] = []
    folder = tmp_path_factory.mktemp("tuned")
    variant = built(source, folder, TuningRequest(trials=TRIALS), steps)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [variant.path.name, f"{variant.path.name}.json", f"{variant.path.stem}.records.json"]
    )
    return variant, steps


def test_trials_give_records_and_a_library_that_computes_what_torch_does(
    tuned: tuple[BuiltVariant, Sequence[str]],
) -> None:
    variant, steps = tuned
    manifest, tuning = variant.manifest, variant.manifest.tuning
    assert tuning is not None
    assert variant.records is not None
    assert tuning.records == digest_of(variant.records.read_bytes())
    assert tuning.size_bytes == variant.records.stat().st_size
    records = read_records(variant.records)
    assert 0 < records.trials == tuning.trials <= 2 * TRIALS
    assert records.abis == {host_abi()}
    assert any(max(record[1][1]) < 1 for record in records.records), "each trial failed or took a second"
    assert any(step.startswith("tuning, ") for step in steps)
    assert check_model_file(variant.path) is Format.TVM
    assert completed_manifest(variant.path, manifest).abi == host_abi()
    assert not is_unoptimized(manifest)
    assert manifest.fidelity is not None
    assert manifest.fidelity.max_difference < 1e-4


@not_in_ci
def test_the_same_records_give_the_same_library_without_a_trial(
    source: Source, tuned: tuple[BuiltVariant, Sequence[str]], tmp_path: Path
) -> None:
    variant, _ = tuned
    assert variant.records is not None
    request = TuningRequest(records=read_records(variant.records))
    steps: list[str] = []
    again = built(source, tmp_path, request, steps)
    assert not [step for step in steps if step.startswith("tuning")]
    assert again.manifest == variant.manifest
    assert again.records is not None
    assert again.records.read_bytes() == variant.records.read_bytes()


@not_in_ci
def test_trials_are_added_to_the_records_that_are_given(
    source: Source, tuned: tuple[BuiltVariant, Sequence[str]], tmp_path: Path
) -> None:
    variant, _ = tuned
    assert variant.records is not None
    earlier = read_records(variant.records)
    more = built(source, tmp_path, TuningRequest(trials=1, records=earlier), [])
    assert more.records is not None
    found = read_records(more.records)
    assert found.records[: earlier.trials] == earlier.records
    assert found.trials > earlier.trials


@not_in_ci
def test_records_measured_elsewhere_build_a_library_for_there(
    source: Source, tuned: tuple[BuiltVariant, Sequence[str]], tmp_path: Path
) -> None:
    if host_abi() == OTHER_ABI:
        pytest.skip("this machine is of that ABI")
    variant, _ = tuned
    assert variant.records is not None
    here = read_records(variant.records)
    # As the tuner of TVM leaves them that measured over RPC.
    text = json.dumps(here.records).replace(here.records[0][1][2]["mtriple"], OTHER_TRIPLE)
    folder = tmp_path / "tuner"
    folder.mkdir()
    replace(here, records=tuple(json.loads(text))).write_folder(folder)
    other = built(source, tmp_path, TuningRequest(records=read_records(folder)), [], abi=OTHER_ABI)
    assert completed_manifest(other.path, other.manifest).abi == OTHER_ABI
    assert other.manifest.fidelity is None
    assert other.manifest.tuning is not None
    assert other.manifest.tuning.trials == here.trials


def test_the_farm_keeps_the_records_and_gives_them_back(
    tuned: tuple[BuiltVariant, Sequence[str]], tmp_path: Path
) -> None:
    variant, _ = tuned
    tuning = variant.manifest.tuning
    assert tuning is not None
    assert variant.records is not None
    farm, out = FarmProcess(tmp_path / "farm"), tmp_path / "saved.json"
    with running_farm_with_agent(farm):
        with farm.client() as client:
            client.upload(variant.path, variant.manifest.digest)
            client.upload(variant.records, tuning.records)
            name = client.register_variant(variant.manifest).name
        farm.text("variant", "records", name, "--out", str(out))
        shown = farm.text("variant", "show", name)
    assert out.read_bytes() == variant.records.read_bytes()
    assert f"{tuning.trials} trials" in shown
    assert tuning.records in shown
