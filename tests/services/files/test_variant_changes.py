"""Another name or declared inputs for a registered file, and when it keeps those that it has."""

from dataclasses import replace

import pytest

from farm.core.base.ids import digest_of
from farm.core.errors import Conflict, Forbidden, InvalidInput, VariantInvalid
from farm.core.models.declared_inputs import declared_input, input_text
from farm.core.models.variant import NOT_READ, Format, Manifest, Precision, Recipe, Variant
from farm.core.operations.role import Caller, Role
from farm.database.transaction import bind_tx
from farm.services.files.registration import (
    change_variant,
    changed_manifest,
    check_variant_file,
    register_variant,
)
from farm.store.files.artifacts import put_artifact
from farm.store.files.variants import is_in_matrices, list_variants
from tests.support.farm.service_fixture import ANN, FarmRig
from tests.support.models.flatbuffer_samples import tflite_model

BEN, CLEO = (Caller(name=name, role=Role.SUBMITTER, is_authenticated=True) for name in ("ben", "cleo"))


def changed(
    farm: FarmRig, variant: Variant, *inputs: str, model: str | None = None, caller: Caller = ANN
) -> Variant:
    declared = [declared_input(text) for text in inputs]
    manifest = changed_manifest(variant.manifest, farm.blobs, model=model, inputs=declared)
    return farm.write(bind_tx(change_variant, now=farm.clock.now()), variant, manifest, caller)


def tflite(farm: FarmRig, *, caller: Caller = ANN, model: str = "net") -> Variant:
    content = tflite_model(("image", (1, 8, 8, 3), 0, (-1, 8, 8, 3)), ("n", (1,), 4, ()))
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(put_artifact, now=farm.clock.now()), digest, len(content))
    manifest = Manifest(
        model=model,
        recipe=Recipe(precision=Precision.FLOAT32, format=Format.TFLITE),
        digest=digest,
        size_bytes=len(content),
        backends=("cpu",),
        inputs=(),
        recipe_digest=digest,
    )
    read = check_variant_file(manifest, farm.blobs)
    return farm.write(bind_tx(register_variant, now=farm.clock.now()), read, caller)


def texts(variant: Variant) -> list[str]:
    return [input_text(spec) for spec in variant.manifest.inputs]


def test_declared_sizes_complete_those_of_the_file_and_can_be_declared_again(farm: FarmRig) -> None:
    first = tflite(farm)
    assert texts(first) == ["image=?x8x8x3:float32", "n=1:int64"]
    four = changed(farm, first, "image=4x8x8x3:float32")
    assert texts(four) == ["image=4x8x8x3:float32", "n=1:int64"]
    assert texts(changed(farm, four, "2x8x8x3:float32", "1:int64")) == ["image=2x8x8x3:float32", "n=1:int64"]
    assert farm.read(list_variants)[-1].variant_id == first.variant_id


def test_a_declaration_that_the_file_contradicts_changes_nothing(farm: FarmRig) -> None:
    first = tflite(farm)
    with pytest.raises(VariantInvalid, match="not image=4x9x9x3:float32"):
        changed(farm, first, "image=4x9x9x3:float32")
    assert farm.read(list_variants)[-1] == first


def test_what_a_file_does_not_state_is_declared_in_place_of_what_was(farm: FarmRig) -> None:
    torch = farm.variant("float32")
    assert texts(changed(farm, torch, "1x3x8x8:float32", "4:int64")) == ["1x3x8x8:float32", "4:int64"]


def test_the_file_is_read_again_where_nothing_is_declared(farm: FarmRig) -> None:
    first = tflite(farm)
    older = replace(first, manifest=replace(first.manifest, inputs=(), inputs_unread=NOT_READ))
    manifest = changed_manifest(older.manifest, farm.blobs, model=None, inputs=())
    assert manifest == first.manifest


def test_a_variant_that_no_matrix_runs_gets_another_name(farm: FarmRig) -> None:
    renamed = changed(farm, tflite(farm), model="other")
    assert (renamed.name, renamed.manifest.model) == ("other/float32/tflite", "other")
    assert [variant.name for variant in farm.read(list_variants)] == [renamed.name]
    with pytest.raises(InvalidInput, match="is not a name"):
        changed(farm, renamed, model="no name")


def test_a_variant_that_a_matrix_runs_keeps_its_name_and_can_be_completed(farm: FarmRig) -> None:
    farm.healthy_host("phone-1")
    variants = [farm.variant(precision) for precision in ("float32", "int8-core")]
    farm.submit()
    for variant in variants:
        assert farm.read(is_in_matrices, variant.variant_id)
        with pytest.raises(Conflict, match="matrices run mobilenet_v2/") as refusal:
            changed(farm, variant, model="other")
        assert "farm variant add FILE --model NAME" in refusal.value.hint
    assert texts(changed(farm, variants[0], "1x3x9x9:float32")) == ["1x3x9x9:float32"]


def test_no_variant_gets_the_name_of_another_file(farm: FarmRig) -> None:
    farm.variant("float32")
    other = farm.variant("float32", model="other")
    with pytest.raises(Conflict, match="mobilenet_v2/float32/torchscript is the name of another file"):
        changed(farm, other, model="mobilenet_v2")


def test_a_variant_is_changed_by_who_registered_it_and_by_operators(farm: FarmRig) -> None:
    bens = tflite(farm, caller=BEN)
    with pytest.raises(Forbidden, match="a file of someone else"):
        changed(farm, bens, model="mine", caller=CLEO)
    assert changed(farm, changed(farm, bens, model="bens", caller=BEN), model="anns").name.startswith("anns/")


def test_of_two_changes_at_the_same_time_one_is_refused(farm: FarmRig) -> None:
    first = tflite(farm)
    changed(farm, first, "image=4x8x8x3:float32")
    with pytest.raises(Conflict, match="was changed at the same time"):
        changed(farm, first, "image=2x8x8x3:float32")
