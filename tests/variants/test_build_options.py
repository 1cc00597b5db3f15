"""Variants with a quantized interface, as flatbuffers, channels-last or for NNAPI, really built."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file
from farm.blobs.torch_file import torch_code
from farm.core.base.ids import digest_of
from farm.core.errors import VariantInvalid
from farm.core.models.variant import Precision
from farm.variants.build import BuiltVariant, build_variants
from farm.variants.model_zoo import recipes_of
from farm.variants.sources.source import zoo_source

#: Who comes first builds variants, which takes minutes where others want the cores too.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]

#: Prints type and strides of each file's bundled input, as the lite interpreter or the full one loads it.
BUNDLED = """
import sys
import torch
from torch.jit import mobile
for path in sys.argv[1:]:
    if path.endswith(".pt"):
        [[tensor]] = torch.jit.load(path).get_all_bundled_inputs()
    else:
        [[tensor]] = mobile._load_for_lite_interpreter(path).run_method("get_all_bundled_inputs")
    print(tensor.dtype, *tensor.stride())
"""
#: Compares what has nothing to do with each other, and what hardly differs.
COMPARED = """
import torch
from farm.core.errors import VariantInvalid
from farm.core.models.variant import Precision
from farm.variants.verify import check_outputs
from farm.variants.sources.source import zoo_source
torch.manual_seed(1)
expected = torch.randn(4, 10)
print(check_outputs(expected, expected * 1.01, Precision.INT8_FULL))
for actual in (torch.randn(4, 10), expected * 0, expected / 0):
    try:
        check_outputs(expected, actual, Precision.INT8_FULL)
    except VariantInvalid as error:
        print(error.message, "|", error.hint)
"""


def printed(code: str, *words: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.splitlines()


def test_a_manifest_says_what_the_file_is(further_variants: Sequence[BuiltVariant]) -> None:
    for variant in further_variants:
        manifest = variant.manifest
        assert manifest.digest == digest_of(variant.path.read_bytes())
        assert check_model_file(variant.path) is manifest.recipe.format
        assert manifest.backends == (manifest.recipe.target,)
        assert (manifest.parameters, manifest.flops) == (3_504_872, 601_548_544)


def test_files_of_one_model_are_told_apart_by_their_names(further_variants: Sequence[BuiltVariant]) -> None:
    assert [variant.path.name for variant in further_variants] == [
        "mobilenet_v2-int8-full-channels_last.ff",
        "mobilenet_v2-float32-channels_last-nnapi.pt",
        "mobilenet_v2-int8-full-channels_last-nnapi.ptl",
    ]


def test_bundled_inputs_are_of_the_recipes_type_and_memory_format(
    variants: Sequence[BuiltVariant],
    further_variants: Sequence[BuiltVariant],
) -> None:
    dense, nhwc = "150528 50176 224 1", "150528 1 672 3"
    plain = next(each for each in variants if each.manifest.recipe.precision == Precision.INT8_CORE)
    assert printed(BUNDLED, *(str(each.path) for each in (plain, *further_variants))) == [
        f"torch.float32 {dense}",
        f"torch.quint8 {nhwc}",
        f"torch.float32 {nhwc}",
        f"torch.quint8 {nhwc}",
    ]


def test_a_bundled_input_is_seen_in_every_format(
    variants: Sequence[BuiltVariant], further_variants: Sequence[BuiltVariant]
) -> None:
    for variant in (*variants, *further_variants):
        assert torch_code(variant.path, variant.manifest.recipe.format).bundled_inputs


def test_files_for_nnapi_and_no_others_are_known_by_their_code(
    variants: Sequence[BuiltVariant], further_variants: Sequence[BuiltVariant]
) -> None:
    for variant in (*variants, *further_variants):
        recipe = variant.manifest.recipe
        assert torch_code(variant.path, recipe.format).converted_for_nnapi is (recipe.target == "nnapi")


def test_a_manifest_says_how_a_quantized_input_is_to_be_read(
    further_variants: Sequence[BuiltVariant],
) -> None:
    for variant in further_variants:
        full = variant.manifest.recipe.precision == Precision.INT8_FULL
        assert [spec.dtype for spec in variant.manifest.inputs] == ["quint8" if full else "float32"]
        assert ("zero point" in variant.manifest.built_with.get("input", "")) is full


def test_agreement_is_stored_where_int8_can_be_run_here(
    variants: Sequence[BuiltVariant], further_variants: Sequence[BuiltVariant]
) -> None:
    for variant in (*variants, *further_variants):
        recipe, fidelity = variant.manifest.recipe, variant.manifest.fidelity
        compared = recipe.precision != Precision.FLOAT32 and recipe.target == "cpu"
        assert (fidelity is not None) is compared
        if fidelity is not None:
            assert fidelity.inputs == 6
            assert 0.9 < fidelity.correlation < 1
            assert 0 < fidelity.max_difference < 10
            assert 0 <= fidelity.top1_share <= 1


def test_no_file_tells_where_it_was_built(further_variants: Sequence[BuiltVariant]) -> None:
    for variant in further_variants:
        assert sys.prefix.encode() not in variant.path.read_bytes()


def test_a_file_that_is_another_model_is_refused_with_the_figures() -> None:
    agreed, unrelated, same, infinite = printed(COMPARED)
    assert agreed.startswith("Fidelity(inputs=4, correlation=")
    assert "correlate" in unrelated
    assert "of 4 inputs | its numbers would be those of another model" in unrelated
    assert "the same for every input" in same
    assert "not finite" in infinite


def test_what_torch_cannot_convert_to_nnapi_is_named(tmp_path: Path) -> None:
    [recipe] = recipes_of(["float32"], ["lite"], targets=["nnapi"])
    with pytest.raises(VariantInvalid) as caught:
        list(build_variants(zoo_source("mobilenet_v3_large"), [recipe], tmp_path))
    assert caught.value.message == (
        "torch cannot convert this network to NNAPI: Unsupported node kind ('aten::hardswish_')"
    )
    assert "mobilenet_v2" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
