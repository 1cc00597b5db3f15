"""A variant of several files: registered and needed whole, expired without one, planned side by side."""

from dataclasses import replace

import pytest

from farm.core.base.ids import Digest, digest_of
from farm.core.errors import ArtifactMissing, DigestMismatch, MatrixInvalid, VariantInvalid
from farm.core.models.variant import Format, Manifest, Recipe, Variant, VariantFile, files_digest
from farm.core.operations.retention import StorageRules
from farm.database.transaction import bind_tx
from farm.services.files.registration import check_variant_file, register_variant
from farm.services.files.retention import sweep_storage
from farm.services.files.stored_files import remove_file
from farm.store.files.artifacts import expired_at_by_digest, needed_digests, put_artifact, stored_bytes
from farm.store.files.variants import list_variants, variants_of_file
from tests.support.farm.service_fixture import ANN, FarmRig, model_file
from tests.support.models.flatbuffer_samples import executorch_program

TOKENIZER = b"a tokenizer"


def stored(farm: FarmRig, path: str, content: bytes) -> VariantFile:
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(put_artifact, now=farm.clock.now(), actor=ANN.actor), digest, len(content))
    return VariantFile(path=path, digest=digest, size_bytes=len(content))


def manifest_of(*files: VariantFile, format: Format = Format.LITE) -> Manifest:
    digest = files_digest(files)
    return Manifest(
        model="net",
        recipe=Recipe(precision="float32", format=format),
        digest=digest,
        size_bytes=sum(file.size_bytes for file in files),
        files=files,
        backends=("cpu",),
        inputs=(),
        recipe_digest=digest,
    )


def registered(farm: FarmRig, manifest: Manifest) -> Variant:
    read = check_variant_file(manifest, farm.blobs)
    return farm.write(bind_tx(register_variant, now=farm.clock.now()), read, ANN)


@pytest.fixture
def files(farm: FarmRig) -> tuple[VariantFile, VariantFile]:
    return stored(farm, "", model_file("lite", marker="net")), stored(farm, "words/tokenizer.bin", TOKENIZER)


def test_the_same_files_are_one_variant_and_another_tokenizer_makes_another(
    farm: FarmRig, files: tuple[VariantFile, VariantFile]
) -> None:
    first = registered(farm, manifest_of(*files))
    assert registered(farm, manifest_of(*files)).variant_id == first.variant_id
    other = registered(farm, manifest_of(files[0], stored(farm, "words/tokenizer.bin", b"another")))
    assert other.variant_id != first.variant_id
    assert other.replaces == first.manifest.digest
    assert [each.variant_id for each in farm.read(variants_of_file, files[0].digest)] == [
        first.variant_id,
        other.variant_id,
    ]


def test_each_file_has_to_be_there_in_its_size(farm: FarmRig, files: tuple[VariantFile, VariantFile]) -> None:
    model, tokenizer = files
    missing = replace(tokenizer, digest=Digest("e" * 64))
    with pytest.raises(ArtifactMissing, match=r"words/tokenizer\.bin of net/float32/lite"):
        registered(farm, manifest_of(model, missing))
    with pytest.raises(DigestMismatch, match=r"words/tokenizer\.bin of net/float32/lite has 11 bytes"):
        registered(farm, manifest_of(model, replace(tokenizer, size_bytes=12)))
    with pytest.raises(VariantInvalid, match="its digest is not that of its files"):
        registered(farm, replace(manifest_of(*files), digest=model.digest))
    assert [view for view in farm.read(list_variants) if view.manifest.model == "net"] == []


def test_the_farm_itself_refuses_a_language_model_without_its_tokenizer(farm: FarmRig) -> None:
    model = stored(farm, "", executorch_program(method="get_max_seq_len"))
    alone = replace(manifest_of(model, format=Format.EXECUTORCH), files=())
    with pytest.raises(VariantInvalid, match="no tokenizer was given"):
        registered(farm, alone)
    with_tokenizer = manifest_of(model, stored(farm, "tokenizer.bin", TOKENIZER), format=Format.EXECUTORCH)
    assert registered(farm, with_tokenizer).manifest.files[1].path == "tokenizer.bin"


def submitted(farm: FarmRig) -> None:
    axes = {"model": "net", "precision": "float32", "format": "lite", "backend": "cpu"}
    settings = {"use_bundled_input": 0}
    farm.submit(axes=axes, settings=settings, baseline=None, rounds=1)


def test_a_matrix_needs_all_files_and_plans_them_side_by_side(
    farm: FarmRig, files: tuple[VariantFile, VariantFile]
) -> None:
    host = farm.healthy_host("phone-1")
    registered(farm, manifest_of(*files))
    submitted(farm)
    assert {file.digest for file in files} <= farm.read(needed_digests)
    [assignment] = host.exchange().assignments
    model, tokenizer = assignment.plan.files[-2:]
    assert (model.path, model.digest) == ("model/model.lite", files[0].digest)
    assert (tokenizer.path, tokenizer.digest) == ("model/words/tokenizer.bin", files[1].digest)
    assert "--model=${work}/model/model.lite" in assignment.plan.argv


def test_a_variant_without_one_of_its_files_is_expired(
    farm: FarmRig, files: tuple[VariantFile, VariantFile]
) -> None:
    farm.healthy_host("phone-1")
    registered(farm, manifest_of(*files))
    removed = farm.write(bind_tx(remove_file, now=farm.clock.now(), actor=ANN.actor), files[1].digest, ANN)
    assert removed.names == ("net/float32/lite",)
    [variant] = [view for view in farm.read(list_variants) if view.manifest.model == "net"]
    assert variant.expired_at == farm.clock.now()
    with pytest.raises(MatrixInvalid, match="expired"):
        submitted(farm)
    stored(farm, "words/tokenizer.bin", TOKENIZER)
    submitted(farm)


def test_files_of_a_variant_expire_together_but_those_that_something_else_has(
    farm: FarmRig, files: tuple[VariantFile, VariantFile]
) -> None:
    shared = stored(farm, "words.txt", b"of two variants")
    own = stored(farm, "more.txt", b"of one")
    registered(farm, manifest_of(*files, own, shared))
    farm.clock.advance(60)
    other = manifest_of(stored(farm, "", model_file("lite", marker="other")), shared)
    registered(farm, replace(other, model="other"))
    farm.clock.advance(7200)
    limit = farm.read(stored_bytes) - 1
    swept = sweep_storage(farm.database, farm.blobs, StorageRules(blobs_limit_bytes=limit), farm.clock)
    # One of them was enough.
    assert swept.artifacts == 3
    gone = farm.read(expired_at_by_digest).keys()
    assert gone == {files[0].digest, files[1].digest, own.digest}
