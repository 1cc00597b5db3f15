"""Registering a file again: the same variant, with what is newly known of it, or a contradiction."""

from dataclasses import replace

import pytest

from farm.core.base.ids import digest_of
from farm.core.errors import Conflict, Forbidden, VariantInvalid
from farm.core.models.declared_inputs import declared_input
from farm.core.models.variant import (
    NOT_READ,
    Fidelity,
    Format,
    Manifest,
    Precision,
    Recipe,
    TensorSpec,
    Variant,
)
from farm.core.operations.role import Caller, Role
from farm.database.transaction import bind_tx
from farm.services.files.registration import check_variant_file, register_variant
from farm.store.files.artifacts import put_artifact
from farm.store.files.variants import get_variant, list_variants, newest_variants, put_variant
from farm.store.newest_first import ListFilter
from tests.support.farm.service_fixture import ANN, FarmRig, model_file
from tests.support.models.flatbuffer_samples import tflite_model

AGREEMENT = Fidelity(inputs=6, correlation=0.97, max_difference=1.5, top1_share=0.5)
MADE_WITH = {"torch": "2.13.0"}


@pytest.fixture
def known(farm: FarmRig) -> Variant:
    return farm.variant("int8-core")


def registered(farm: FarmRig, manifest: Manifest, caller: Caller = ANN) -> Variant:
    read = check_variant_file(manifest, farm.blobs)
    return farm.write(bind_tx(register_variant, now=farm.clock.now()), read, caller)


def test_the_same_manifest_again_is_the_same_variant(farm: FarmRig, known: Variant) -> None:
    assert registered(farm, known.manifest) == known


def test_a_newer_builder_of_the_same_bytes_is_believed(farm: FarmRig, known: Variant) -> None:
    newer = replace(
        known.manifest, fidelity=AGREEMENT, built_with=MADE_WITH, recipe_digest=digest_of(b"newer")
    )
    again = registered(farm, newer)
    assert (again.variant_id, again.manifest) == (known.variant_id, newer)
    assert registered(farm, newer) == again


def test_a_file_added_by_hand_takes_nothing_from_what_its_builder_said(farm: FarmRig, known: Variant) -> None:
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
    farm: FarmRig, known: Variant, said: dict[str, tuple[object, ...]]
) -> None:
    with pytest.raises(Conflict, match="with other backends or inputs"):
        registered(farm, replace(known.manifest, **said))  # type: ignore[arg-type]
    assert registered(farm, known.manifest) == known


def test_a_file_that_was_converted_for_nnapi_is_no_file_for_the_cpu(farm: FarmRig, known: Variant) -> None:
    content = model_file("torchscript", marker="__torch__.torch.classes._nnapi.Compilation")
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(put_artifact, now=farm.clock.now()), digest, len(content))
    said = replace(known.manifest, model="net", digest=digest, size_bytes=len(content))
    with pytest.raises(VariantInvalid, match="was converted for NNAPI, its manifest says cpu"):
        registered(farm, said)
    for_nnapi = replace(said, backends=("nnapi",), recipe=replace(said.recipe, target="nnapi"))
    assert registered(farm, for_nnapi).manifest.backends == ("nnapi",)


BEN, CLEO = (Caller(name=name, role=Role.SUBMITTER, is_authenticated=True) for name in ("ben", "cleo"))


def other_file(farm: FarmRig, manifest: Manifest, edition: str) -> Manifest:
    """The manifest of another file of the same name, which is uploaded."""
    content = model_file("torchscript", marker=edition)
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(put_artifact, now=farm.clock.now()), digest, len(content))
    return replace(
        manifest, digest=digest, size_bytes=len(content), recipe_digest=digest_of(edition.encode())
    )


def test_a_name_stays_with_the_submitter_who_registered_its_newest_file(
    farm: FarmRig, known: Variant
) -> None:
    first = registered(farm, replace(known.manifest, model="net"), BEN)
    assert first.registered_by == "ben"
    with pytest.raises(Forbidden, match="net/int8-core/torchscript is a file of someone else") as refusal:
        registered(farm, other_file(farm, first.manifest, "cleo's"), CLEO)
    assert "--model" in refusal.value.hint
    newer = registered(farm, other_file(farm, first.manifest, "ben's"), BEN)
    assert newer.name == first.name
    # An operator replaces it, and keeps the name from then on.
    assert registered(farm, other_file(farm, first.manifest, "ann's")).registered_by == "ann"
    with pytest.raises(Forbidden):
        registered(farm, other_file(farm, first.manifest, "ben's third"), BEN)


def test_a_file_of_someone_else_again_is_no_error_and_changes_nothing(farm: FarmRig, known: Variant) -> None:
    first = registered(farm, replace(known.manifest, model="net"), BEN)
    claimed = replace(
        first.manifest, fidelity=AGREEMENT, built_with=MADE_WITH, recipe_digest=digest_of(b"claimed")
    )
    assert registered(farm, claimed, CLEO) == first
    assert registered(farm, claimed, BEN).manifest == claimed


def test_a_name_whose_registrant_is_unknown_is_open(farm: FarmRig, known: Variant) -> None:
    earlier = replace(known.manifest, model="net")
    farm.write(bind_tx(put_variant, now=farm.clock.now()), earlier)
    taken = registered(farm, other_file(farm, earlier, "cleo's"), CLEO)
    assert taken.registered_by == "cleo"


def uploaded(farm: FarmRig, content: bytes, manifest: Manifest) -> Manifest:
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(put_artifact, now=farm.clock.now()), digest, len(content))
    return replace(manifest, digest=digest, size_bytes=len(content), recipe_digest=digest)


@pytest.fixture
def tflite(farm: FarmRig, known: Variant) -> Manifest:
    """The manifest of an uploaded file whose batch is free, which says nothing of its inputs."""
    content = tflite_model(("image", (1, 8, 8, 3), 0, (-1, 8, 8, 3)))
    recipe = Recipe(precision=Precision.FLOAT32, format=Format.TFLITE)
    return uploaded(farm, content, replace(known.manifest, model="net", recipe=recipe, inputs=()))


def test_what_a_file_states_is_stored_with_what_was_declared(farm: FarmRig, tflite: Manifest) -> None:
    declared = replace(tflite, inputs=(declared_input("4x8x8x3:float32"),))
    stored = registered(farm, declared).manifest
    assert stored.inputs == (
        TensorSpec(name="image", shape=(4, 8, 8, 3), dtype="float32", free=("?", "", "", "")),
    )
    assert (stored.inputs_unread, stored.bundled_inputs) == (None, None)
    # Registered again without a word on its inputs, it keeps them.
    assert registered(farm, tflite).manifest == stored
    with pytest.raises(Conflict, match="with other backends or inputs"):
        registered(farm, replace(tflite, inputs=(declared_input("2x8x8x3:float32"),)))


def test_a_declaration_that_the_file_contradicts_is_refused(farm: FarmRig, tflite: Manifest) -> None:
    with pytest.raises(VariantInvalid, match=r"takes image=.x8x8x3:float32, not 1x3x8x8:float32"):
        registered(farm, replace(tflite, inputs=(declared_input("1x3x8x8:float32"),)))


def test_torch_files_say_whether_they_bring_an_input_and_nothing_of_its_shape(
    farm: FarmRig, known: Variant
) -> None:
    assert known.manifest.bundled_inputs is True
    content = model_file("torchscript", marker="own", bundled=False)
    manifest = registered(farm, uploaded(farm, content, replace(known.manifest, inputs=()))).manifest
    assert (manifest.bundled_inputs, manifest.inputs) == (False, ())
    assert manifest.inputs_unread == "torchscript files do not state their inputs"
    declared = replace(manifest, inputs=(declared_input("1x3x8x8:float32"),))
    assert registered(farm, declared).manifest.inputs == declared.inputs


def test_a_variant_of_an_older_farm_is_completed_when_its_file_is_registered_again(
    farm: FarmRig, tflite: Manifest
) -> None:
    unread = replace(tflite, inputs_unread=NOT_READ, bundled_inputs=None, macs_uncounted=NOT_READ)
    older = farm.write(bind_tx(put_variant, now=farm.clock.now()), unread)
    assert older.manifest.inputs_unread == NOT_READ
    again = registered(farm, tflite)
    assert (again.variant_id, again.manifest.inputs[0].name) == (older.variant_id, "image")
    assert older.manifest.macs_uncounted == NOT_READ
    assert (again.manifest.macs, again.manifest.macs_uncounted) == (0, None)


def test_a_second_file_of_a_name_says_which_it_replaces(farm: FarmRig, known: Variant) -> None:
    assert known.replaces is None
    second = registered(farm, other_file(farm, known.manifest, "second"))
    third = registered(farm, other_file(farm, known.manifest, "third"))
    assert (second.replaces, third.replaces) == (known.manifest.digest, second.manifest.digest)
    assert [each.replaced_by for each in farm.read(list_variants)[-3:]] == [third.manifest.digest] * 2 + [
        None
    ]


def test_a_file_that_is_registered_again_has_its_name_again(farm: FarmRig, known: Variant) -> None:
    other = registered(farm, other_file(farm, known.manifest, "other"))
    back = registered(farm, known.manifest)
    digests = known.manifest.digest, other.manifest.digest
    assert (back.variant_id, back.replaces, back.replaced_by) == (known.variant_id, digests[1], None)
    # Once more changes nothing, and is no event.
    assert registered(farm, known.manifest) == back
    assert farm.read(get_variant, other.variant_id).replaced_by == digests[0]
    for every, expected in ((False, [back]), (True, [farm.read(get_variant, other.variant_id), back])):
        assert farm.read(newest_variants, ListFilter(), replaced=every, limit=9) == expected
    query = "SELECT from_state, to_state FROM events WHERE kind = 'variant_named' ORDER BY event_id"
    first, second = (digest[:8] for digest in digests)
    assert [(row["from_state"], row["to_state"]) for row in farm.rows(query)] == [
        (None, first),
        (first, second),
        (second, first),
    ]


def test_a_name_is_given_back_to_a_file_by_who_may_give_it_another(farm: FarmRig, known: Variant) -> None:
    first = registered(farm, replace(known.manifest, model="net"), BEN)
    newer = registered(farm, other_file(farm, first.manifest, "ann's"))
    with pytest.raises(Forbidden, match="is a file of someone else"):
        registered(farm, first.manifest, BEN)
    assert registered(farm, newer.manifest) == newer
    assert registered(farm, first.manifest).replaces == newer.manifest.digest
