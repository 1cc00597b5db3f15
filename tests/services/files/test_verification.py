"""Damaged artifacts: whoever reads them notices, they are expired, and replaced by sending them again."""

import os
from pathlib import Path

from farm.core.base.ids import Digest, digest_of
from farm.core.jobs.attempt import AttemptState
from farm.core.operations.retention import StorageRules
from farm.database.transaction import bind_tx
from farm.services.files.artifacts import FILE_IS_DAMAGED, record_upload
from farm.services.files.builtin_programs import builtin_digests
from farm.services.files.retention import sweep_storage
from farm.services.files.verification import Scrubber, expire_if_damaged
from farm.store.files.artifacts import expire_artifacts
from tests.support.farm.service_fixture import FarmRig, HostRig, phase


def upload(farm: FarmRig, content: bytes) -> Digest:
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(record_upload, now=farm.clock.now()), farm.blobs, digest, len(content))
    return digest


def flip_a_bit(path: Path) -> None:
    """As a disk does: without a trace in its metadata."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def causes(farm: FarmRig) -> dict[str, str]:
    rows = farm.rows("SELECT subject_id, cause FROM events WHERE kind = 'artifact_expired'")
    return {row["subject_id"]: row["cause"] for row in rows}


def scrub(farm: FarmRig, *, bytes_per_call: int, calls: int) -> None:
    scrubber = Scrubber(farm.database, farm.blobs, farm.clock, bytes_per_call=bytes_per_call)
    for _ in range(calls):
        scrubber()


def test_a_scrub_finds_a_flipped_bit_and_expires_the_file_with_an_event(farm: FarmRig) -> None:
    good, bad = upload(farm, b"good" * 1000), upload(farm, b"bad" * 1000)
    flip_a_bit(farm.blobs.path(bad))
    scrub(farm, bytes_per_call=1 << 30, calls=2)
    assert causes(farm) == {bad: FILE_IS_DAMAGED}
    assert farm.blobs.size_bytes(bad) is None
    assert farm.blobs.size_bytes(good) == 4000
    # It lies aside as evidence, and is no source for a later upload.
    assert [file.digest for file in farm.blobs.trash()] == [bad]
    assert not farm.blobs.restore(bad)


def test_a_scrub_reads_a_bounded_number_of_bytes_in_a_call_and_goes_on_there(farm: FarmRig) -> None:
    digests = [upload(farm, str(number).encode()) for number in range(5)]
    for digest in digests:
        flip_a_bit(farm.blobs.path(digest))
    files = len(farm.rows("SELECT digest FROM artifacts"))
    scrubber = Scrubber(farm.database, farm.blobs, farm.clock, bytes_per_call=1)
    for call in range(files + 1):
        before = len(causes(farm))
        scrubber()
        assert len(causes(farm)) <= before + 1, call
    scrubber()
    assert causes(farm).keys() == set(digests)


def test_a_file_that_was_sent_again_since_it_was_read_is_not_expired(farm: FarmRig) -> None:
    digest = upload(farm, b"mended")
    flip_a_bit(farm.blobs.path(digest))
    assert farm.blobs.is_damaged(digest)
    farm.blobs.put([b"mended"], digest)
    assert not farm.blobs.set_damaged_aside(digest, farm.clock.now())
    assert not expire_if_damaged(farm.database, farm.blobs, farm.clock, digest)
    assert causes(farm) == {}


def test_a_damaged_file_of_the_farms_own_is_replaced_at_once(farm: FarmRig) -> None:
    for digest in builtin_digests():
        flip_a_bit(farm.blobs.path(digest))
        assert expire_if_damaged(farm.database, farm.blobs, farm.clock, digest)
        assert not farm.blobs.is_damaged(digest)
    rows = farm.rows("SELECT count(*) AS n FROM artifacts WHERE expired_at IS NOT NULL")
    assert rows[0]["n"] == 0


def test_a_damaged_file_in_the_trash_is_deleted_in_time(farm: FarmRig) -> None:
    digest = upload(farm, b"bad")
    flip_a_bit(farm.blobs.path(digest))
    expire_if_damaged(farm.database, farm.blobs, farm.clock, digest)
    farm.clock.advance(8 * 24 * 3600)
    assert sweep_storage(farm.database, farm.blobs, StorageRules(), farm.clock).deleted == 1
    assert farm.blobs.trash() == []


def test_a_job_whose_file_the_farm_lost_ends_and_does_not_hold_its_device(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(rounds=1)
    first, _ = host.exchange().assignments
    model = next(file.digest for file in first.plan.files if file.name == "model")
    farm.write(bind_tx(expire_artifacts, now=farm.clock.now()), [model], cause=FILE_IS_DAMAGED)
    host.exchange([phase(first, AttemptState.RETURNED, reason="the farm has lost its model")])
    (job,) = farm.rows("SELECT * FROM jobs WHERE job_id = :job", job=first.job_id)
    assert (job["state"], job["outcome"], job["code"]) == ("finished", "inconclusive", "artifact.expired")
    assert model in job["message"]
    host.clean(first)
    after = host.exchange().assignments
    assert any(assignment.device_id == first.device_id for assignment in after)
