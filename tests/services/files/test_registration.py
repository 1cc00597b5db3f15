"""Registering a file again: the same variant, with what is newly known of it, or a contradiction."""

from dataclasses import replace

import pytest

from farm.core.base.ids import digest_of
from farm.core.errors import Conflict, VariantInvalid
from farm.core.models.variant import Fidelity, Manifest, TensorSpec
from farm.services.files.registration import register_artifact, register_variant
from farm.wire.documents.matrices.matrices import VariantView
from tests.support.farm.service_fixture import FarmRig, model_file

AGREEMENT = Fidelity(inputs=6, correlation=0.97, max_difference=1.5, top1_share=0.5)
MADE_WITH = {"torch": "2.13.0"}


@pytest.fixture
def known(farm: FarmRig) -> VariantView:
    return farm.variant("int8-core")


def registered(farm: FarmRig, manifest: Manifest) -> VariantView:
    return farm.write(register_variant, manifest, farm.blobs, now=farm.clock.now())


def test_the_same_manifest_again_is_the_same_variant(farm: FarmRig, known: VariantView) -> None:
    assert registered(farm, known.manifest) == known


def test_a_newer_builder_of_the_same_bytes_is_believed(farm: FarmRig, known: VariantView) -> None:
    newer = replace(
        known.manifest, fidelity=AGREEMENT, built_with=MADE_WITH, recipe_digest=digest_of(b"newer")
    )
    again = registered(farm, newer)
    assert (again.variant_id, again.manifest) == (known.variant_id, newer)
    assert registered(farm, newer) == again


def test_a_file_added_by_hand_takes_nothing_from_what_its_builder_said(
    farm: FarmRig, known: VariantView
) -> None:
    built = registered(
        farm, replace(known.manifest, built_with=MADE_WITH, fidelity=AGREEMENT, recipe_digest=digest_of(b"b"))
    )
    by_hand = replace(
        known.manifest, inputs=(), parameters=None, built_with={}, recipe_digest=digest_of(b"by hand")
    )
    assert registered(farm, by_hand) == built


@pytest.mark.parametrize(
    "said",
    [{"backends": ("cpu", "vulkan")}, {"inputs": (TensorSpec(shape=(1, 3, 96, 96), dtype="float32"),)}],
)
def test_other_backends_or_inputs_contradict_what_is_known(
    farm: FarmRig, known: VariantView, said: dict[str, tuple[object, ...]]
) -> None:
    with pytest.raises(Conflict, match="with other backends or inputs"):
        registered(farm, replace(known.manifest, **said))  # type: ignore[arg-type]
    assert registered(farm, known.manifest) == known


def test_a_file_that_was_converted_for_nnapi_is_no_file_for_the_cpu(
    farm: FarmRig, known: VariantView
) -> None:
    content = model_file("torchscript", marker="__torch__.torch.classes._nnapi.Compilation")
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(register_artifact, digest, len(content), now=farm.clock.now())
    said = replace(known.manifest, model="net", digest=digest, size_bytes=len(content))
    with pytest.raises(VariantInvalid, match="was converted for NNAPI, its manifest says cpu"):
        registered(farm, said)
    for_nnapi = replace(said, backends=("nnapi",), recipe=replace(said.recipe, target="nnapi"))
    assert registered(farm, for_nnapi).manifest.backends == ("nnapi",)
