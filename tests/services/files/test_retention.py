"""The farm within its limits: what goes first, what never does, and what is written down of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from farm.blobs.disk import DiskBlobs
from farm.core.base.ids import Digest, digest_of
from farm.core.errors import (
    ArtifactExpired,
    ArtifactMissing,
    Conflict,
    FarmBusy,
    FarmDiskFull,
    FarmFault,
    MatrixInvalid,
)
from farm.core.operations.retention import StorageRules
from farm.core.programs.bundle import single_file
from farm.database.transaction import bind_tx
from farm.services.files.artifacts import get_artifact, record_upload
from farm.services.files.backup.restore import begin_epoch
from farm.services.files.builtin_programs import builtin_digests
from farm.services.files.folder_owner import claim_folder
from farm.services.files.programs import list_program_views
from farm.services.files.registration import register_variant
from farm.services.files.retention import BATCH, sweep_storage
from farm.store.files.artifacts import mark_used
from farm.store.files.programs import put_program
from farm.store.files.variants import list_variants
from farm.wire.documents.files.storage import SweepResult
from tests.support.farm.service_fixture import ANN, FarmRig, HostRig, checked_rig, good_evidence

NOTHING = StorageRules(blobs_limit_bytes=0)
#: The result of a sweep that finds nothing to do.
NOTHING_SWEPT = SweepResult(
    artifacts=0,
    artifact_bytes=0,
    reports=0,
    report_bytes=0,
    files=0,
    file_bytes=0,
    deleted=0,
    deleted_bytes=0,
    lost=0,
    events=0,
    sessions=0,
    plans=0,
)
_LATER_S = 2 * 3600.0
_DAYS_S = timedelta(days=1).total_seconds()


def sweep(farm: FarmRig, rules: StorageRules = NOTHING) -> SweepResult:
    return sweep_storage(farm.database, farm.blobs, rules, farm.clock)


def upload(farm: FarmRig, content: bytes) -> Digest:
    """A file that was sent, as the route does it."""
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(record_upload, now=farm.clock.now()), farm.blobs, digest, len(content))
    return digest


def expired(farm: FarmRig) -> set[str]:
    return {row["digest"] for row in farm.rows("SELECT digest FROM artifacts WHERE expired_at IS NOT NULL")}


def events(farm: FarmRig, kind: str) -> list[dict[str, Any]]:
    return farm.rows("SELECT * FROM events WHERE kind = :kind ORDER BY event_id", kind=kind)


def digest_of_variant(farm: FarmRig, precision: str) -> Digest:
    views = farm.read(list_variants)
    return next(v.manifest.digest for v in views if v.manifest.recipe.precision == precision)


def test_what_was_not_used_for_longest_goes_first_and_no_more_than_must(farm: FarmRig) -> None:
    files = []
    for name in (b"a", b"b", b"c"):
        files.append(upload(farm, name * 100))
        farm.clock.advance(60)
    farm.write(bind_tx(mark_used, now=farm.clock.now()), [files[0]])
    farm.clock.advance(_LATER_S)
    own = int(farm.rows("SELECT sum(size_bytes) AS size FROM artifacts")[0]["size"]) - 300
    swept = sweep(farm, StorageRules(blobs_limit_bytes=own + 150))
    assert (swept.artifacts, swept.artifact_bytes) == (2, 200)
    assert (swept.files, swept.file_bytes) == (2, 200)
    assert expired(farm) == {files[1], files[2]}
    assert farm.blobs.size_bytes(files[0]) == 100
    assert farm.blobs.size_bytes(files[1]) is None
    assert [event["subject_id"] for event in events(farm, "artifact_expired")] == files[1:]
    assert sweep(farm, StorageRules(blobs_limit_bytes=own + 150)) == NOTHING_SWEPT


def test_without_a_limit_nothing_goes(farm: FarmRig) -> None:
    upload(farm, b"a")
    farm.clock.advance(10**9)
    assert sweep(farm, StorageRules()) == NOTHING_SWEPT


def test_a_file_that_was_just_sent_waits_for_its_registration(farm: FarmRig) -> None:
    digest = upload(farm, b"a")
    farm.clock.advance(60)
    assert sweep(farm) == NOTHING_SWEPT
    farm.clock.advance(_LATER_S)
    assert sweep(farm).artifacts == 1
    assert expired(farm) == {digest}


def test_the_farms_own_files_stay(farm: FarmRig) -> None:
    farm.clock.advance(_LATER_S)
    assert sweep(farm) == NOTHING_SWEPT
    assert all(farm.blobs.size_bytes(digest) for digest in builtin_digests())


@pytest.mark.invariant("I5")
def test_files_that_an_unfinished_matrix_needs_stay_until_it_ends(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=2)
    farm.clock.advance(_LATER_S)
    assert sweep(farm).artifacts == 0
    host.run()
    assert sweep(farm).artifacts == 0, "they were used just now"
    farm.clock.advance(_LATER_S)
    assert sweep(farm).artifacts == 2
    assert len(expired(farm)) == 2


def test_a_cell_whose_job_ended_may_be_repeated_and_keeps_its_file(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=1, devices={"device": "phone-1"}, baseline=None)
    (assignment,) = host.exchange().assignments
    host.report(assignment.attempt_id, good_evidence(assignment))
    farm.clock.advance(_LATER_S)
    assert sweep(farm).artifacts == 0


def test_a_claim_counts_as_use(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=2, axes=axes("float32"), baseline=None)
    farm.clock.advance(_LATER_S)
    claimed_at = farm.clock.now()
    host.exchange()
    rows = farm.rows("SELECT used_at FROM artifacts WHERE digest = :d", d=digest_of_variant(farm, "float32"))
    assert rows[0]["used_at"] == int(claimed_at.timestamp() * 1e6)


def axes(precision: str) -> dict[str, str]:
    return {"model": "mobilenet_v2", "precision": precision, "format": "torchscript", "backend": "cpu"}


def test_a_matrix_that_needs_an_expired_file_is_refused_with_what_to_do(farm: FarmRig, host: HostRig) -> None:
    farm.clock.advance(_LATER_S)
    assert sweep(farm).artifacts == 2
    with pytest.raises(MatrixInvalid) as refused:
        farm.submit(axes=axes("float32"), baseline=None)
    assert "mobilenet_v2/float32/torchscript expired" in refused.value.message
    assert "farm variant build mobilenet_v2" in refused.value.hint
    assert all(view.expired_at is not None for view in farm.read(list_variants))


def test_cells_whose_files_are_there_run_beside_those_whose_expired(farm: FarmRig, host: HostRig) -> None:
    farm.clock.advance(_LATER_S)
    farm.write(bind_tx(mark_used, now=farm.clock.now()), [digest_of_variant(farm, "float32")])
    assert sweep(farm).artifacts == 1
    matrix = farm.matrix(farm.submit(baseline=None))
    assert {cell.variant for cell in matrix.cell_list} == {"mobilenet_v2/float32/torchscript"}
    (rejected,) = matrix.rejected_list
    assert "expired" in rejected.reason


def test_a_matrix_whose_program_expired_is_refused_with_what_to_do(farm: FarmRig, host: HostRig) -> None:
    program = upload(farm, b"#!/bin/sh")
    bundle = single_file("speed_benchmark_torch", program, 9)
    known = {"harness": "speed_benchmark_torch", "abi": "arm64-v8a", "bundle": bundle}
    farm.write(bind_tx(put_program, now=farm.clock.now()), **known)
    host.plug_in("arm", abis=("arm64-v8a",))
    host.earn_health()
    farm.clock.advance(_LATER_S)
    farm.write(bind_tx(mark_used, now=farm.clock.now()), [digest_of_variant(farm, "float32")])
    sweep(farm)
    with pytest.raises(MatrixInvalid) as refused:
        farm.submit(axes=axes("float32"), baseline=None, devices={"device": "arm"})
    assert "a file of the arm64-v8a program of speed_benchmark_torch expired" in refused.value.message
    assert "farm harness add speed_benchmark_torch" in refused.value.hint
    assert {view.abi: view.expired for view in farm.read(list_program_views)} == {
        "x86_64": False,
        "arm64-v8a": True,
    }
    farm.submit(axes=axes("float32"), baseline=None, devices={"device": "phone-1"})


def test_a_file_that_is_sent_again_is_there_again(farm: FarmRig, host: HostRig) -> None:
    farm.clock.advance(_LATER_S)
    sweep(farm)
    farm.variant("float32")
    assert digest_of_variant(farm, "float32") not in expired(farm)
    assert len(events(farm, "artifact_restored")) == 1
    assert sweep(farm) == NOTHING_SWEPT
    farm.submit(axes=axes("float32"), baseline=None)


def test_an_expired_file_cannot_be_registered_until_it_is_sent_again(farm: FarmRig, host: HostRig) -> None:
    manifest = farm.read(list_variants)[0].manifest
    farm.clock.advance(_LATER_S)
    sweep(farm)
    with pytest.raises(ArtifactMissing, match="uploaded again"):
        farm.write(bind_tx(register_variant, now=farm.clock.now()), manifest, ANN)
    with pytest.raises(ArtifactExpired):
        farm.read(get_artifact, manifest.digest)


def test_a_farm_that_died_between_mark_and_removal_removes_at_the_next_sweep(farm: FarmRig) -> None:
    digest = upload(farm, b"left behind")
    farm.clock.advance(_LATER_S)
    sweep(farm)
    farm.blobs.put([b"left behind"], digest)
    assert sweep(farm, StorageRules()).files == 1
    assert farm.blobs.size_bytes(digest) is None


def test_a_file_no_one_knows_goes_once_it_is_old(farm: FarmRig) -> None:
    digest = digest_of(b"stray")
    farm.blobs.put([b"stray"], digest)
    put_at_s = farm.blobs.path(digest).stat().st_mtime
    farm.clock.advance(put_at_s - farm.clock.now().timestamp() + 60)
    assert sweep(farm) == NOTHING_SWEPT
    farm.clock.advance(_LATER_S)
    assert sweep(farm).files == 1
    assert farm.blobs.size_bytes(digest) is None


def test_an_artifact_whose_file_someone_removed_is_marked_and_said(farm: FarmRig) -> None:
    digest = upload(farm, b"a")
    farm.blobs.path(digest).unlink()
    assert sweep(farm, StorageRules()).lost == 1
    assert expired(farm) == {digest}
    (event,) = events(farm, "artifact_expired")
    assert event["cause"] == "its file is gone from the disk"


def test_an_upload_whose_file_a_sweep_set_aside_takes_it_back_or_is_asked_for_again(farm: FarmRig) -> None:
    digest = upload(farm, b"twice")
    farm.clock.advance(_LATER_S)
    sweep(farm)
    farm.blobs.put([b"twice"], digest)
    assert farm.blobs.set_aside(digest, farm.clock.now())
    farm.write(bind_tx(record_upload, now=farm.clock.now()), farm.blobs, digest, 5)
    assert farm.blobs.size_bytes(digest) == 5
    assert farm.blobs.set_aside(digest, farm.clock.now())
    farm.blobs.empty_trash(float("inf"))
    with pytest.raises(FarmBusy):
        farm.write(bind_tx(record_upload, now=farm.clock.now()), farm.blobs, digest, 5)


def test_a_removed_file_lies_in_the_trash_for_days_and_is_deleted_then(farm: FarmRig) -> None:
    digest = upload(farm, b"a" * 100)
    farm.clock.advance(_LATER_S)
    swept = sweep(farm)
    assert (swept.files, swept.file_bytes, swept.deleted) == (1, 100, 0)
    farm.blobs = type(farm.blobs)(farm.blobs.folder)
    farm.clock.advance(6.9 * _DAYS_S)
    assert sweep(farm) == NOTHING_SWEPT
    assert [file.digest for file in farm.blobs.trash()] == [digest]
    farm.clock.advance(0.2 * _DAYS_S)
    swept = sweep(farm)
    assert (swept.files, swept.deleted, swept.deleted_bytes) == (0, 1, 100)
    assert farm.blobs.trash() == []


def test_the_trash_gives_way_to_an_upload_that_has_no_space_the_oldest_first(farm: FarmRig) -> None:
    older, newer = upload(farm, b"a" * 100), upload(farm, b"b" * 100)
    farm.blobs.set_aside(older, farm.clock.now())
    farm.clock.advance(1)
    farm.blobs.set_aside(newer, farm.clock.now())
    farm.blobs.check_space(100)
    assert len(farm.blobs.trash()) == 2
    with pytest.raises(FarmDiskFull):
        farm.blobs.check_space(1 << 62)
    assert farm.blobs.trash() == []


def test_a_sweep_removes_nothing_from_the_folder_of_another_database(farm: FarmRig, tmp_path: Path) -> None:
    digest = upload(farm, b"a")
    # As after a move to another database, whose folder this is now.
    now = farm.clock.now()
    farm.write(bind_tx(begin_epoch, now=now, actor="user:ann"), cause="moved", forgot_since=now)
    farm.read(claim_folder, farm.blobs.folder)
    with checked_rig(tmp_path / "left_behind") as other:
        stranger = DiskBlobs(farm.blobs.folder)
        other.clock.advance(30 * _DAYS_S)
        with pytest.raises(Conflict, match="belong to another database") as refused:
            sweep_storage(other.database, stranger, StorageRules(), other.clock)
        assert "FARM_DATABASE_URL" in refused.value.hint
        with pytest.raises(Conflict):
            other.read(claim_folder, farm.blobs.folder)
    assert farm.blobs.size_bytes(digest) == 1
    # Nor from one that is not mounted.
    (farm.blobs.folder / "database-epoch").unlink()
    with pytest.raises(FarmFault, match="does not belong"):
        sweep(farm)
    assert expired(farm) == set()


@pytest.mark.long
def test_more_artifacts_than_one_transaction_takes_all_go(farm: FarmRig) -> None:
    for number in range(BATCH + 5):
        upload(farm, b"%d" % number)
    farm.clock.advance(_LATER_S)
    assert sweep(farm).artifacts == BATCH + 5
