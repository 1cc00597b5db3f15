"""Describe the farm's storage: files by kind and use, raw output by age, and what the next sweep would do."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs, StoredFile
from farm.core.base.ids import Digest
from farm.core.models.variant import kept_files
from farm.core.operations.retention import StorageRules
from farm.database.transaction import Tx
from farm.services.files.builtin_programs import builtin_digests
from farm.services.files.retention import (
    age_rule,
    artifacts_to_expire,
    missing_artifacts,
    reports_to_expire,
    size_rule,
    unreferenced_files,
)
from farm.services.operations.history_retention import HistoryKind
from farm.store.devices import devices
from farm.store.files import artifacts, programs
from farm.store.files import variants as variant_store
from farm.store.files.disk_use import free_bytes_inside, size_bytes
from farm.store.operations.history_retention import last_removal, oldest_event_at
from farm.store.results import evidence as evidence_store
from farm.wire.documents.files.storage import (
    ArtifactEviction,
    ArtifactUse,
    DeviceStorage,
    EvidenceAge,
    LimitsView,
    StorageView,
    SweepPreview,
)

_AGES = (("last day", 1), ("last week", 7), ("last month", 30), ("last year", 365))


def storage_view(
    tx: Tx,
    *,
    rules: StorageRules,
    data_dir: Path,
    blobs: DiskBlobs,
    on_disk: Set[Digest],
    trash: Sequence[StoredFile],
    old_history: Mapping[HistoryKind, int],
) -> StorageView:
    """Return what the farm keeps and its size. The caller has read the disk before: that takes its time."""
    removal = last_removal(tx.connection)
    return StorageView(
        data_dir=str(data_dir),
        disk_free_bytes=blobs.free_bytes(),
        database_bytes=size_bytes(tx.connection),
        database_free_bytes=free_bytes_inside(tx.connection),
        artifacts=_artifact_uses(tx.connection),
        expired_artifacts=len(artifacts.expired_at_by_digest(tx.connection)),
        trash=len(trash),
        trash_bytes=sum(file.size_bytes for file in trash),
        trash_keep_days=rules.trash_keep_days or 0,
        evidence=_evidence_ages(tx),
        expired_reports=evidence_store.count_expired(tx.connection),
        oldest_event_at=oldest_event_at(tx.connection),
        history_expired_at=None if removal is None else removal.at,
        history_expired=None if removal is None else removal.cause,
        devices=_device_storage(tx.connection),
        limits=_limits(rules),
        next_sweep=sweep_preview(tx, rules, blobs, on_disk, old_history),
    )


def sweep_preview(
    tx: Tx,
    rules: StorageRules,
    blobs: DiskBlobs,
    on_disk: Set[Digest],
    old_history: Mapping[HistoryKind, int],
) -> SweepPreview:
    """Return what a sweep would do now; nothing changes."""
    going = artifacts_to_expire(tx, rules)
    names = _names_by_digest(tx.connection) if going else {}
    reports, report_bytes = _reports_going(tx, rules)
    unkept = unreferenced_files(tx, blobs, on_disk)
    return SweepPreview(
        artifacts=tuple(
            ArtifactEviction.of(artifact, names=tuple(names.get(artifact.digest, ()))) for artifact in going
        ),
        artifact_bytes=sum(artifact.size_bytes for artifact in going),
        reports=reports,
        report_bytes=report_bytes,
        files=len(unkept),
        file_bytes=sum(file.size_bytes for file in unkept),
        lost=tuple(missing_artifacts(tx.connection, on_disk)),
        events=old_history.get(HistoryKind.EVENTS, 0),
        sessions=old_history.get(HistoryKind.SESSIONS, 0),
        plans=old_history.get(HistoryKind.PLANS, 0),
    )


def _reports_going(tx: Tx, rules: StorageRules) -> tuple[int, int]:
    by_age, by_size = age_rule(tx, rules), size_rule(tx, rules)
    going = reports_to_expire(tx.connection, by_age) if by_age else []
    if by_size is not None:
        # The rule of days leaves what was received since.
        since = by_age.before if by_age else None
        going += reports_to_expire(tx.connection, replace(by_size.after(going), since=since))
    return len(going), sum(report.size_bytes for report in going)


def _names_by_digest(connection: Connection) -> dict[Digest, list[str]]:
    names: defaultdict[Digest, list[str]] = defaultdict(list)
    for variant in variant_store.list_variants(connection):
        for part in kept_files(variant.manifest):
            names[part.digest].append(variant.name)
    for program in programs.list_programs(connection):
        for file in program.bundle.files:
            names[file.digest].append(f"{program.harness} for {program.abi}")
    return dict(names)


def _artifact_uses(connection: Connection) -> tuple[ArtifactUse, ...]:
    kinds = _kinds(connection)
    needed = artifacts.needed_digests(connection) | builtin_digests()
    measured = artifacts.measured_digests(connection)
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for digest, of_file_bytes in artifacts.stored_sizes(connection).items():
        use = "needed" if digest in needed else "measured" if digest in measured else "unused"
        groups[kinds.get(digest, "unregistered"), use].append(of_file_bytes)
    return tuple(
        ArtifactUse(kind=kind, use=use, files=len(sizes_bytes), size_bytes=sum(sizes_bytes))
        for (kind, use), sizes_bytes in sorted(groups.items())
    )


def _kinds(connection: Connection) -> dict[Digest, str]:
    kinds = {
        file.digest: "model"
        for variant in variant_store.list_variants(connection)
        for file in kept_files(variant.manifest)
    }
    for program in programs.list_programs(connection):
        kinds |= {file.digest: "program" for file in program.bundle.files}
    return kinds | dict.fromkeys(builtin_digests(), "own")


def _evidence_ages(tx: Tx) -> tuple[EvidenceAge, ...]:
    ages: list[EvidenceAge] = []
    # A clock that was put back must not hide what came later than now.
    until = tx.now + timedelta(days=3650)
    for age, days in _AGES:
        since = tx.now - timedelta(days=days)
        ages.append(_evidence_age(tx.connection, age, since, until))
        until = since
    return (*ages, _evidence_age(tx.connection, "older", None, until))


def _evidence_age(connection: Connection, age: str, since: datetime | None, until: datetime) -> EvidenceAge:
    reports, size_bytes = evidence_store.retained_between(connection, since, until)
    return EvidenceAge(age=age, reports=reports, size_bytes=size_bytes)


def _device_storage(connection: Connection) -> tuple[DeviceStorage, ...]:
    return tuple(
        DeviceStorage(
            device_id=device.device_id,
            device_label=device.label,
            free_bytes=device.condition.storage_free_bytes,
        )
        for device in devices.list_devices(connection)
        if device.condition is not None and device.condition.storage_free_bytes is not None
    )


def _limits(rules: StorageRules) -> LimitsView:
    return LimitsView.of(rules, disk_reserve_bytes=rules.reserve_bytes)
