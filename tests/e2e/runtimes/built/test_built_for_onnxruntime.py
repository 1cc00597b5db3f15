"""A network built for ONNX Runtime: really exported, quantized, compared, and run on a virtual phone."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file
from farm.core.errors import VariantInvalid
from farm.core.models.variant import Format, Precision
from farm.variants.build import BuiltVariant, build_variants
from farm.variants.model_zoo import recipes_of
from farm.variants.sources.source import zoo_source
from tests.support.farm.processes import CHECKOUT, FarmProcess, eventually, running_farm_with_agent

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("onnx") is None, reason="onnx is not installed"),
]

MODEL = "shufflenet_v2_x0_5"
_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1")


@contextmanager
def installed_here(_runtime: str, _say: Callable[[str], None]) -> Iterator[Path]:
    """The packages that an environment would have are those of the tests."""
    yield Path(sys.executable)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sequence[BuiltVariant]:
    recipes = [*recipes_of(["float32", "int8-core"], ["onnx"]), *recipes_of(["float32"], ["ort"])]
    folder = tmp_path_factory.mktemp("built")
    return list(build_variants(zoo_source(MODEL), recipes, folder, interpreter=installed_here))


def test_each_file_is_of_its_format_and_compared_by_its_own_runtime(built: Sequence[BuiltVariant]) -> None:
    assert [each.path.name for each in built] == [
        f"{MODEL}-float32.onnx",
        f"{MODEL}-int8-core.onnx",
        f"{MODEL}-float32.ort",
    ]
    for each in built:
        recipe, fidelity = each.manifest.recipe, each.manifest.fidelity
        assert check_model_file(each.path) is recipe.format
        assert fidelity is not None
        assert fidelity.inputs == 6
        is_exact = recipe.precision == Precision.FLOAT32
        assert (fidelity.max_difference < 1e-3) is is_exact
        assert fidelity.correlation > (0.9999 if is_exact else 0.9)
        assert each.manifest.built_with["onnxruntime"]


def test_int8_takes_a_third_of_the_bytes(built: Sequence[BuiltVariant]) -> None:
    size_by_precision = {
        each.manifest.recipe.precision: each.manifest.size_bytes
        for each in built
        if each.manifest.recipe.format is Format.ONNX
    }
    assert size_by_precision["int8-core"] < 0.35 * size_by_precision["float32"]


def test_the_same_recipe_gives_the_same_bytes(built: Sequence[BuiltVariant], tmp_path: Path) -> None:
    again = build_variants(
        zoo_source(MODEL), recipes_of(["int8-core"], ["onnx"]), tmp_path, interpreter=installed_here
    )
    assert [each.manifest for each in again] == [built[1].manifest]
    assert not (tmp_path / "facts.json").exists()


def test_an_exporter_that_is_not_installed_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    if find_spec("litert_torch") is not None:
        pytest.skip("litert_torch is installed")
    with pytest.raises(VariantInvalid, match="No module named 'litert_torch'") as caught:
        list(
            build_variants(
                zoo_source(MODEL), recipes_of(["float32"], ["tflite"]), tmp_path, interpreter=installed_here
            )
        )
    assert "farm env remove" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="the extra `onnxruntime` is not installed")
def test_built_files_run_on_a_virtual_phone(built: Sequence[BuiltVariant], tmp_path: Path) -> None:
    farm = FarmProcess(tmp_path / "farm", command=_UP)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"], "it is checked")
            for each in built:
                client.upload(each.path, each.manifest.digest)
                registered = client.register_variant(each.manifest)
                assert [spec.name for spec in registered.manifest.inputs] == ["input"]
        examples = CHECKOUT / "examples"
        definition = ("--definition", str(examples / "harness-onnxruntime.yaml"))
        program = str(examples / "onnxruntime_loop")
        farm.cli("harness", "add", "onnxruntime_loop", program, "--abi", "x86_64", *definition)
        matrix_id = farm.submit(
            {
                "name": "built",
                "harness": "onnxruntime_loop",
                "axes": {
                    "model": MODEL,
                    "precision": ["float32", "int8-core"],
                    "format": "onnx",
                    "backend": "cpu",
                },
                "settings": {"runs": 20},
                "devices": {"virtual": True},
                "rounds": 1,
                "baseline": {"precision": "float32"},
            }
        )
        assert farm.await_matrix(matrix_id, within_s=200).jobs_by_outcome == {"succeeded": 2}
