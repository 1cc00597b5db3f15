"""Variants as they are really built, with torch, each in a process of its own."""

import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file
from farm.core.base.ids import digest_of
from farm.core.errors import VariantInvalid
from farm.core.models.variant import Format, Precision, Recipe
from farm.variants.build import BuildProgress, BuiltVariant, build_variants
from farm.variants.sources.source import zoo_source

#: Who comes first builds variants, which takes minutes where others want the cores too.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MOBILENET = zoo_source("mobilenet_v2")
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
