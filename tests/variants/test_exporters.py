"""One small network through the exporters: LiteRT's in its environment, others in that of the tests.

ONNX Runtime's and TVM's have tests of their own in `tests/e2e/runtimes`.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file, completed_manifest
from farm.core.errors import VariantInvalid
from farm.core.models.builders import INT8_DYNAMIC, INT8_WEIGHT_ONLY
from farm.core.models.variant import Format, SlowPath
from farm.variants.build import BuiltVariant, build_variants
from farm.variants.model_zoo import recipes_of
from farm.variants.sources.source import Source, parse_source
from tests.support.farm.processes import CHECKOUT

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]

NETS = """
from torch import nn

def small():
    layers = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU()
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
"""
INPUT = "1x3x32x32:float32"
#: By runtime: what must be installed, the precisions, and the format.
HERE = {
    "executorch": (("executorch", "torchao"), ("float32", "int8-core"), Format.EXECUTORCH),
    "ncnn": (("ncnn", "pnnx"), ("float32",), Format.NCNN),
    "mnn": (("_mnncengine", "onnx"), ("float32", INT8_WEIGHT_ONLY), Format.MNN),
}
LITERT_PRECISIONS = ("float32", "int8-full", "int8-dynamic")
#: Of 2.2 GB, so it is kept: not where temporary files are, which may be memory.
KEPT = CHECKOUT / "build" / "test-environments"
#: Of errors for which the machine is to blame. The index of torch's CPU build may be no setting of pip.
NOT_HERE = (
    *("pip reached no package index", "No matching distribution found for torch=="),
    "`farm env list` lists what could be removed",
)


@contextmanager
def installed_here(_runtime: str, _say: Callable[[str], None]) -> Iterator[Path]:
    """The packages that an environment would have are those of the tests."""
    yield Path(sys.executable)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "nets.py").write_text(NETS)
    return parse_source("nets:small", inputs=[INPUT], folder=tmp_path)


def check_files(built: Sequence[BuiltVariant], format: Format, precisions: Sequence[str]) -> None:
    """Check that each file is what its manifest says, and computes what the network does."""
    assert [each.manifest.recipe.precision for each in built] == list(precisions)
    for each in built:
        assert check_model_file(each.path) is format
        read = completed_manifest(each.path, each.manifest)
        assert (read.slow_path is SlowPath.DYNAMIC_RANGE) is (each.manifest.recipe.precision == INT8_DYNAMIC)
        fidelity = each.manifest.fidelity
        assert fidelity is not None
        assert fidelity.inputs == 6
        is_exact = each.manifest.recipe.precision == "float32"
        assert (fidelity.max_difference < 1e-5) is is_exact
        assert fidelity.correlation > (0.99999 if is_exact else 0.99)


@pytest.mark.parametrize("runtime", HERE)
def test_a_network_is_exported_and_computes_what_torch_does(
    runtime: str, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, precisions, format = HERE[runtime]
    if missing := [name for name in packages if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    monkeypatch.chdir(tmp_path)
    recipes = recipes_of(precisions, runtimes=[runtime])
    # A converter has another working directory: relative paths are none of its own.
    built = list(build_variants(source, recipes, Path("out"), interpreter=installed_here))
    check_files(built, format, precisions)
    left = {path.suffix for path in Path("out").iterdir()}
    assert left == {built[0].path.suffix, ".json"}


@pytest.mark.timeout(1800)
@pytest.mark.skipif("CI" not in os.environ, reason="downloads and installs 2.2 GB: CI=1")
def test_an_environment_for_litert_is_created_and_exports(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(KEPT))
    # pip unpacks there.
    monkeypatch.setenv("TMPDIR", str(KEPT))
    # Most of what it installs is never imported here.
    monkeypatch.setenv("PIP_COMPILE", "0")
    KEPT.mkdir(parents=True, exist_ok=True)
    recipes = recipes_of(LITERT_PRECISIONS, runtimes=["litert"])
    try:
        built = list(build_variants(source, recipes, tmp_path / "out"))
    except VariantInvalid as error:
        if any(words in f"{error.message} {error.hint}" for words in NOT_HERE):
            pytest.skip(f"no package index, or no room for 2.2 GB: {error.message}")
        raise
    check_files(built, Format.TFLITE, LITERT_PRECISIONS)
