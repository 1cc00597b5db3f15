"""Backups that were interrupted or damaged: refused, or restored but for what is broken."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from farm.core.base.ids import digest_of
from farm.core.errors import BackupDamaged, FarmFault, InvalidInput
from farm.database.engine import sqlite_url
from farm.services.files.backup.backup import find_backup, make_backup
from farm.services.files.backup.restore import restore_backup
from tests.services.files.test_backup import backed_up
from tests.support.fake_clock import FakeClock
from tests.support.farm.service_fixture import FarmRig, checked_rig


def test_a_backup_that_was_interrupted_is_not_taken_for_one(farm: FarmRig, tmp_path: Path) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(what: str, count: int) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        make_backup(farm.database, farm.blobs.folder, tmp_path / "b", farm.clock, progress=interrupt)
    with pytest.raises(InvalidInput, match="is no backup"):
        find_backup(tmp_path / "b")
    # Nor is what a machine left that lost its power meanwhile.
    left = tmp_path / "b" / ".2026-01-01T00-00-00Z"
    left.mkdir()
    with pytest.raises(InvalidInput) as refused:
        find_backup(tmp_path / "b")
    assert "interrupted" in refused.value.hint
    made = backed_up(farm, tmp_path / "b")
    assert not left.exists()
    assert find_backup(tmp_path / "b") == made.folder


def damaged_database(backup: Path) -> None:
    path = backup / "farm.sqlite3"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def short_database(backup: Path) -> None:
    path = backup / "farm.sqlite3"
    path.write_bytes(path.read_bytes()[:-4096])


def damaged_artifact(backup: Path) -> None:
    path = next((backup.parent / "artifacts").glob("??/*"))
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(b"x" + content[1:])


def missing_rows(backup: Path) -> None:
    path = backup / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["rows"]["events"] += 1
    path.write_text(json.dumps(manifest))


def damaged_manifest(backup: Path) -> None:
    (backup / "manifest.json").write_text("{")


@pytest.mark.parametrize("damage", [damaged_database, short_database, missing_rows, damaged_manifest])
def test_a_backup_that_is_not_what_was_written_is_refused_and_leaves_no_database(
    sqlite_farm: FarmRig, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    made = backed_up(sqlite_farm, tmp_path / "backups")
    damage(made.folder)
    place, blobs = tmp_path / "restored" / "farm.sqlite3", tmp_path / "restored" / "blobs"
    with pytest.raises(BackupDamaged):
        restore_backup(made.folder, sqlite_url(place), blobs, FakeClock(), actor="user:ann")
    assert not place.exists()
    assert list(place.parent.glob(".restoring*")) == []


def test_a_digest_of_a_backup_that_is_a_path_leads_nowhere(sqlite_farm: FarmRig, tmp_path: Path) -> None:
    made = backed_up(sqlite_farm, tmp_path / "backups")
    blobs = tmp_path / "restored" / "blobs"
    victim = tmp_path / "victim"
    victim.write_text("of somebody else")
    digest = "../" + "./" * 27 + "/victim"
    assert len(digest) == 64
    assert (blobs / digest[:2] / digest).resolve() == victim
    blobs.mkdir(parents=True)
    path = made.folder / "farm.sqlite3"
    with closing(sqlite3.connect(path)) as crafted, crafted:
        crafted.execute("PRAGMA foreign_keys = off")
        # Of no program, whose digests change with its bytes: rows without theirs are refused before.
        lowest = "SELECT min(digest) FROM artifacts WHERE digest NOT IN (SELECT digest FROM program_files)"
        crafted.execute(f"UPDATE artifacts SET digest = ? WHERE digest = ({lowest})", [digest])
        crafted.execute("PRAGMA journal_mode = delete")
    manifest = json.loads((made.folder / "manifest.json").read_text())
    manifest |= {"database_digest": digest_of(path.read_bytes()), "database_bytes": path.stat().st_size}
    (made.folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FarmFault, match="no digest"):
        restore_backup(
            made.folder,
            sqlite_url(tmp_path / "restored" / "farm.sqlite3"),
            blobs,
            FakeClock(),
            actor="user:ann",
        )
    assert victim.read_text() == "of somebody else"


@pytest.mark.parametrize("is_in_place_before", [False, True])
def test_a_damaged_artifact_of_a_backup_counts_as_missing_and_the_rest_is_restored(
    sqlite_farm: FarmRig, tmp_path: Path, is_in_place_before: bool
) -> None:
    made = backed_up(sqlite_farm, tmp_path / "backups")
    damaged_artifact(made.folder)
    url, blobs = sqlite_url(tmp_path / "restored" / "farm.sqlite3"), tmp_path / "restored" / "blobs"
    if is_in_place_before:
        shutil.copytree(made.folder.parent / "artifacts", blobs)
    restored = restore_backup(made.folder, url, blobs, FakeClock(), actor="user:ann")
    assert (restored.missing, restored.artifacts) == (1, made.manifest.artifacts - 1)
    with checked_rig(tmp_path / "restored", url) as again:
        (event,) = again.rows("SELECT cause FROM events WHERE kind = 'artifact_expired'")
        assert event["cause"] == "the backup has no intact file of it"


def test_a_damaged_file_of_the_farm_that_the_backup_has_is_replaced_by_a_restore(
    sqlite_farm: FarmRig, tmp_path: Path
) -> None:
    made = backed_up(sqlite_farm, tmp_path / "backups")
    url, blobs = sqlite_url(tmp_path / "restored" / "farm.sqlite3"), tmp_path / "restored" / "blobs"
    shutil.copytree(made.folder.parent / "artifacts", blobs)
    next(blobs.glob("??/*")).write_bytes(b"damaged")
    restored = restore_backup(made.folder, url, blobs, FakeClock(), actor="user:ann")
    assert (restored.missing, restored.artifacts) == (0, made.manifest.artifacts)


def test_a_damaged_file_of_the_farm_is_left_out_of_a_backup_and_named(farm: FarmRig, tmp_path: Path) -> None:
    variant = farm.variant("int8-full")
    path = farm.blobs.path(variant.manifest.digest)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    made = backed_up(farm, tmp_path / "backups")
    assert made.manifest.damaged == (variant.manifest.digest,)
    assert not list((tmp_path / "backups" / "artifacts").glob(f"*/{variant.manifest.digest}"))
