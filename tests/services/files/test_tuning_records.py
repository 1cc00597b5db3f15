"""Records by which a library was tuned: kept with the variant, and on no device."""

from dataclasses import replace

import pytest

from farm.core.base.ids import Digest, digest_of
from farm.core.errors import ArtifactMissing, Conflict
from farm.core.models.variant import Format, Manifest, Recipe, Tuning, Variant, kept_files
from farm.core.operations.role import Caller, Role
from farm.database.transaction import bind_tx
from farm.services.files.registration import check_variant_file, register_variant
from farm.services.files.stored_files import remove_file
from farm.store.files.artifacts import measured_digests, put_artifact
from farm.store.files.variants import list_variants, variants_of_file
from tests.support.farm.service_fixture import ANN, FarmRig, good_evidence, model_file

BOB = Caller(name="bob", role=Role.SUBMITTER, is_authenticated=False)
EVE = Caller(name="eve", role=Role.SUBMITTER, is_authenticated=False)
RECORDS = b'{"workloads":[],"records":[]}\n'


def stored(farm: FarmRig, content: bytes, caller: Caller = ANN) -> Digest:
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(put_artifact, now=farm.clock.now(), actor=caller.actor), digest, len(content))
    return digest


def tuned_manifest(farm: FarmRig, records: Digest, *, model: str = "net") -> Manifest:
    content = model_file("lite", marker=model)
    digest = stored(farm, content)
    return Manifest(
        model=model,
        recipe=Recipe(precision="float32", format=Format.LITE),
        digest=digest,
        size_bytes=len(content),
        backends=("cpu",),
        inputs=(),
        tuning=Tuning(trials=8, records=records, size_bytes=len(RECORDS)),
        recipe_digest=digest,
    )


def registered(farm: FarmRig, manifest: Manifest, caller: Caller = ANN) -> Variant:
    read = check_variant_file(manifest, farm.blobs)
    return farm.write(bind_tx(register_variant, now=farm.clock.now()), read, caller)


def test_a_tuned_variant_needs_its_records_to_be_registered(farm: FarmRig) -> None:
    manifest = tuned_manifest(farm, digest_of(RECORDS))
    with pytest.raises(ArtifactMissing, match=r"tuning records of net/float32/lite"):
        registered(farm, manifest)
    stored(farm, RECORDS)
    variant = registered(farm, manifest)
    assert variant.manifest.tuning == manifest.tuning
    assert [file.digest for file in kept_files(variant.manifest)] == [manifest.digest, digest_of(RECORDS)]
    assert [each.variant_id for each in farm.read(variants_of_file, digest_of(RECORDS))] == [
        variant.variant_id
    ]


def test_records_go_to_no_device(farm: FarmRig) -> None:
    host = farm.healthy_host("phone-1")
    registered(farm, tuned_manifest(farm, stored(farm, RECORDS)))
    axes = {"model": "net", "precision": "float32", "format": "lite", "backend": "cpu"}
    farm.submit(axes=axes, settings={"use_bundled_input": 0}, baseline=None, rounds=1)
    [assignment] = host.exchange().assignments
    assert digest_of(RECORDS) not in {file.digest for file in assignment.plan.files}


def test_records_are_measured_with_their_library(farm: FarmRig) -> None:
    host = farm.healthy_host("phone-1")
    records = stored(farm, RECORDS)
    registered(farm, tuned_manifest(farm, records))
    axes = {"model": "net", "precision": "float32", "format": "lite", "backend": "cpu"}
    farm.submit(axes=axes, settings={"use_bundled_input": 0}, baseline=None, rounds=1)
    assert records not in farm.read(measured_digests)
    host.run(good_evidence)
    assert records in farm.read(measured_digests)


def test_a_library_that_was_registered_without_its_records_gets_them(farm: FarmRig) -> None:
    manifest = tuned_manifest(farm, stored(farm, RECORDS))
    assert registered(farm, replace(manifest, tuning=None)).manifest.tuning is None
    assert registered(farm, manifest).manifest.tuning == manifest.tuning
    assert registered(farm, replace(manifest, tuning=None)).manifest.tuning == manifest.tuning


def test_a_library_runs_on_when_its_records_were_removed(farm: FarmRig) -> None:
    records = stored(farm, RECORDS)
    registered(farm, tuned_manifest(farm, records))
    removed = farm.write(bind_tx(remove_file, now=farm.clock.now(), actor=ANN.actor), records, ANN)
    assert removed.names == ("net/float32/lite",)
    [variant] = [view for view in farm.read(list_variants) if view.manifest.model == "net"]
    assert variant.expired_at is None


def test_records_of_someone_elses_variant_are_not_removed(farm: FarmRig) -> None:
    records = stored(farm, RECORDS, EVE)
    registered(farm, tuned_manifest(farm, records, model="other"), BOB)
    with pytest.raises(Conflict, match="also the file of other/float32/lite"):
        farm.write(bind_tx(remove_file, now=farm.clock.now(), actor=EVE.actor), records, EVE)
