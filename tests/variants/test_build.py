"""Variants as they are really built, with torch, each in a process of its own."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file
from farm.core.base.ids import digest_of
from farm.core.errors import InvalidInput, VariantInvalid
from farm.core.models.variant import Format, Precision, Recipe
from farm.variants.build import BuildProgress, BuiltVariant, build_variants
from farm.variants.model_zoo import MODEL_ZOO, recipes_of
from farm.variants.recipe import recipe_digest
from farm.variants.sources.source import zoo_source

#: Who comes first builds variants, which takes minutes where others want the cores too.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MOBILENET, RESNET = zoo_source("mobilenet_v2"), zoo_source("resnet18")
FLOAT32_LITE = Recipe(precision=Precision.FLOAT32, format=Format.LITE)


def test_every_recipe_makes_a_file_of_its_own(variants: Sequence[BuiltVariant]) -> None:
    assert len({variant.manifest.digest for variant in variants}) == 4
    assert len({variant.manifest.recipe_digest for variant in variants}) == 4


def test_a_manifest_says_what_the_file_is(variants: Sequence[BuiltVariant]) -> None:
    for variant in variants:
        content = variant.path.read_bytes()
        assert variant.manifest.digest == digest_of(content)
        assert variant.manifest.size_bytes == len(content)
        assert check_model_file(variant.path) is variant.manifest.recipe.format


def test_parameters_and_operations_are_those_of_the_float32_network(variants: Sequence[BuiltVariant]) -> None:
    assert {variant.manifest.parameters for variant in variants} == {3_504_872}
    assert {variant.manifest.flops for variant in variants} == {601_548_544}


def test_int8_files_are_about_a_quarter_of_the_size(variants: Sequence[BuiltVariant]) -> None:
    sizes: dict[Precision, list[int]] = {precision: [] for precision in Precision}
    for variant in variants:
        sizes[variant.manifest.recipe.precision].append(variant.manifest.size_bytes)
    assert max(sizes[Precision.INT8_CORE]) < 0.35 * min(sizes[Precision.FLOAT32])


def test_files_that_are_there_are_not_built_again(variants: Sequence[BuiltVariant]) -> None:
    steps: list[BuildProgress] = []
    folder = variants[0].path.parent
    recipes = [variant.manifest.recipe for variant in variants]
    again = list(build_variants(MOBILENET, recipes, folder, on_progress=steps.append))
    assert all(variant.reused for variant in again)
    assert [variant.manifest for variant in again] == [variant.manifest for variant in variants]
    assert {step.step for step in steps} == {"there already"}


def test_building_again_gives_the_same_bytes_and_replaces_a_damaged_file(
    variants: Sequence[BuiltVariant], tmp_path: Path
) -> None:
    first = next(variant for variant in variants if variant.manifest.recipe == FLOAT32_LITE)
    damaged = tmp_path / first.path.name
    damaged.write_bytes(b"damaged")
    (tmp_path / f"{first.path.name}.json").write_bytes(Path(f"{first.path}.json").read_bytes())
    (second,) = build_variants(MOBILENET, [FLOAT32_LITE], tmp_path)
    assert not second.reused
    assert second.path == damaged
    assert second.manifest == first.manifest
    assert sorted(path.name for path in tmp_path.iterdir()) == [damaged.name, f"{damaged.name}.json"]


def test_a_file_cut_short_is_refused(variants: Sequence[BuiltVariant], tmp_path: Path) -> None:
    cut = tmp_path / "cut.ptl"
    cut.write_bytes(variants[0].path.read_bytes()[:100_000])
    with pytest.raises(VariantInvalid, match="cut short"):
        check_model_file(cut)


def test_no_file_tells_where_it_was_built(variants: Sequence[BuiltVariant]) -> None:
    for variant in variants:
        with zipfile.ZipFile(variant.path) as archive:
            told = [name for name in archive.namelist() if sys.prefix.encode() in archive.read(name)]
        assert told == []


def test_a_build_that_breaks_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    def pull_the_rug(progress: BuildProgress) -> None:
        if progress.step == "making weights":
            for folder in tmp_path.iterdir():
                shutil.rmtree(folder)

    with pytest.raises(
        VariantInvalid, match=r"building mobilenet_v2/float32/lite failed \(exit code 1\): .+"
    ):
        list(build_variants(MOBILENET, [FLOAT32_LITE], tmp_path, on_progress=pull_the_rug))


def test_a_build_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupt(progress: BuildProgress) -> None:
        raise KeyboardInterrupt(progress.step)

    with pytest.raises(KeyboardInterrupt, match="importing torch"):
        list(build_variants(MOBILENET, [FLOAT32_LITE], tmp_path, on_progress=interrupt))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "precisions", "formats", "hint"),
    [
        ("mobilnet_v2", ["float32"], ["lite"], "mobilenet_v2"),
        ("mobilenet_v2", ["int8-cor"], ["lite"], "int8-core"),
        ("mobilenet_v2", ["float32"], ["light"], "lite"),
        ("mobilenet_v2", ["float16"], ["lite"], "float32"),
        ("mobilenet_v2", ["float32"], ["nccn"], "ncnn"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_right_one(
    model: str, precisions: list[str], formats: list[str], hint: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as caught:
        build_variants(zoo_source(model), recipes_of(precisions, formats), tmp_path)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe(precision=Precision.FLOAT32, format=Format.LITE, memory_format="nhwc"), "memory format"),
        (Recipe(precision=Precision.FLOAT32, format=Format.LITE, target="vulkan"), "target"),
        (Recipe(precision=Precision.FLOAT16, format=Format.LITE), "precision"),
        (Recipe(precision=Precision.FLOAT32, format=Format.GGUF), "format"),
    ],
)
def test_what_the_builder_does_not_make_is_refused(recipe: Recipe, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=f"no {message} .* can be built"):
        build_variants(MOBILENET, [recipe], tmp_path)


def test_all_stands_for_every_word() -> None:
    recipes = recipes_of(["all"], ["all"], memory_formats=["all"], targets=["all"])
    # Precisions, formats and layouts for two targets; float32 alone for XNNPACK.
    assert len({recipe_digest(RESNET, recipe) for recipe in recipes}) == len(recipes) == 3 * 3 * 2 * 2 + 3 * 2


def test_files_for_nnapi_take_channels_last_unless_someone_says_otherwise() -> None:
    [plain] = recipes_of(["float32"], ["lite"], targets=["nnapi"])
    [said] = recipes_of(["float32"], ["lite"], targets=["nnapi"], memory_formats=["contiguous"])
    assert (plain.memory_format, said.memory_format) == ("channels_last", "contiguous")


def test_nothing_to_build_is_said() -> None:
    with pytest.raises(InvalidInput, match="nothing to build"):
        recipes_of([], ["lite"])


def test_recipes_are_told_apart_without_torch() -> None:
    code = (
        "import sys\n"
        "from farm.variants import build, model_zoo, recipe\n"
        "from farm.variants.sources.source import zoo_source\n"
        "recipes = model_zoo.recipes_of(['float32', 'int8-core'], ['lite'])\n"
        "models = [entry.model for entry in model_zoo.MODEL_ZOO]\n"
        "digests = {recipe.recipe_digest(zoo_source(model), made) for model in models for made in recipes}\n"
        "print(len(digests), 'torch' in sys.modules)\n"
    )
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(2 * len(MODEL_ZOO)), "False"]


def test_without_torch_the_way_to_get_it_is_said() -> None:
    code = (
        "from farm.core.errors import InvalidInput\n"
        "from farm.core.models.variant import Format, Precision, Recipe\n"
        "from farm.variants.recipe import recipe_digest\n"
        "from farm.variants.sources.source import zoo_source\n"
        "try:\n"
        "    recipe_digest(zoo_source('resnet18'), Recipe(precision=Precision.FLOAT32, format=Format.LITE))\n"
        "except InvalidInput as error:\n"
        "    print(error, '|', error.hint)\n"
    )
    root = Path(__file__).parents[2]
    words = [sys.executable, "-S", "-c", code]  # -S: no site-packages, so nothing is installed
    ran = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True)
    assert "torch is not installed" in ran.stdout
    assert "make install" in ran.stdout


def test_a_recipe_has_the_same_digest_every_time() -> None:
    assert recipe_digest(RESNET, FLOAT32_LITE) == recipe_digest(RESNET, FLOAT32_LITE)
