"""What takes the farm's room: files by kind and use, raw output by age, and what the next sweep would do."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy.engine import Connection

from farm.blobs.disk import StoredFile
from farm.core.base.ids import Digest
from farm.core.operations.retention import StorageRules
from farm.services.files.builtin_programs import builtin_digests
from farm.services.files.retention import (
    age_rule,
    artifacts_to_expire,
    missing_artifacts,
    reports_to_expire,
    size_rule,
    unreferenced_files,
)
from farm.store.devices import devices
from farm.store.files import artifacts, programs
from farm.store.files import variants as variant_store
from farm.store.files.artifacts import Artifact
from farm.store.files.disk_use import free_bytes_inside, size_bytes
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
    connection: Connection,
    *,
    rules: StorageRules,
    data_dir: Path,
    disk_free_bytes: int,
    on_disk: Sequence[StoredFile],
    now: datetime,
) -> StorageView:
    """What the farm keeps and what that takes. The disk was looked at before: that takes its time."""
    return StorageView(
        data_dir=str(data_dir),
        disk_free_bytes=disk_free_bytes,
        database_bytes=size_bytes(connection),
        database_free_bytes=free_bytes_inside(connection),
        artifacts=_artifact_uses(connection),
        expired_artifacts=len(artifacts.expired_at_by_digest(connection)),
        evidence=_evidence_ages(connection, now),
        expired_reports=evidence_store.count_expired(connection),
        phones=_device_storage(connection),
        limits=_limits(rules),
        next_sweep=sweep_preview(connection, rules, on_disk, now=now),
    )


def sweep_preview(
    connection: Connection, rules: StorageRules, on_disk: Sequence[StoredFile], *, now: datetime
) -> SweepPreview:
    """What a sweep would do now; it changes nothing."""
    going = artifacts_to_expire(connection, rules, now=now)
    names = _names_by_digest(connection)
    reports, report_bytes = _reports_going(connection, rules, now)
    unkept = unreferenced_files(connection, on_disk, now=now)
    return SweepPreview(
        artifacts=tuple(_going(each, names) for each in going),
        artifact_bytes=sum(each.size_bytes for each in going),
        reports=reports,
        report_bytes=report_bytes,
        files=len(unkept),
        file_bytes=sum(file.size_bytes for file in unkept),
        lost=tuple(missing_artifacts(connection, on_disk)),
    )


def _reports_going(connection: Connection, rules: StorageRules, now: datetime) -> tuple[int, int]:
    by_age, by_size = age_rule(connection, rules, now=now), size_rule(connection, rules, now=now)
    going = reports_to_expire(connection, by_age) if by_age else []
    if by_size is not None:
        # What the rule of days leaves is what was received since.
        since = by_age.before if by_age else None
        going += reports_to_expire(connection, replace(by_size.after(going), since=since))
    return len(going), sum(report.size_bytes for report in going)


def _going(artifact: Artifact, names_by_digest: Mapping[Digest, list[str]]) -> ArtifactEviction:
    return ArtifactEviction(
        digest=artifact.digest,
        size_bytes=artifact.size_bytes,
        used_at=artifact.used_at,
        names=tuple(names_by_digest.get(artifact.digest, ())),
    )


def _names_by_digest(connection: Connection) -> dict[Digest, list[str]]:
    names: defaultdict[Digest, list[str]] = defaultdict(list)
    for variant in variant_store.list_variants(connection):
        names[variant.manifest.digest].append(variant.name)
    for program in programs.list_programs(connection):
        for file in program.bundle.files:
            names[file.digest].append(f"{program.harness} for {program.abi}")
    return dict(names)


def _artifact_uses(connection: Connection) -> tuple[ArtifactUse, ...]:
    kinds = _kinds(connection)
    needed = artifacts.needed_digests(connection) | builtin_digests()
    measured = artifacts.measured_digests(connection)
    groups: defaultdict[tuple[str, str], list[Artifact]] = defaultdict(list)
    for artifact in artifacts.stored_artifacts(connection):
        digest = artifact.digest
        use = "needed" if digest in needed else "measured" if digest in measured else "unused"
        groups[kinds.get(digest, "unregistered"), use].append(artifact)
    return tuple(
        ArtifactUse(kind=kind, use=use, files=len(group), size_bytes=sum(each.size_bytes for each in group))
        for (kind, use), group in sorted(groups.items())
    )


def _kinds(connection: Connection) -> dict[Digest, str]:
    kinds = {variant.manifest.digest: "model" for variant in variant_store.list_variants(connection)}
    for program in programs.list_programs(connection):
        kinds |= {file.digest: "program" for file in program.bundle.files}
    return kinds | dict.fromkeys(builtin_digests(), "own")


def _evidence_ages(connection: Connection, now: datetime) -> tuple[EvidenceAge, ...]:
    found: list[EvidenceAge] = []
    # A clock that was put back must not hide what came later than now.
    until = now + timedelta(days=3650)
    for age, days in _AGES:
        since = now - timedelta(days=days)
        found.append(_evidence_age(connection, age, since, until))
        until = since
    return (*found, _evidence_age(connection, "older", None, until))


def _evidence_age(connection: Connection, age: str, since: datetime | None, until: datetime) -> EvidenceAge:
    reports, size_bytes = evidence_store.retained_between(connection, since, until)
    return EvidenceAge(age=age, reports=reports, size_bytes=size_bytes)


def _device_storage(connection: Connection) -> tuple[DeviceStorage, ...]:
    return tuple(
        DeviceStorage(device_id=device.device_id, free_bytes=device.condition.storage_free_bytes)
        for device in devices.list_devices(connection)
        if device.condition is not None and device.condition.storage_free_bytes is not None
    )


def _limits(rules: StorageRules) -> LimitsView:
    return LimitsView(
        blobs_limit_bytes=rules.blobs_limit_bytes,
        evidence_keep_days=rules.evidence_keep_days,
        evidence_limit_bytes=rules.evidence_limit_bytes,
        disk_reserve_bytes=rules.reserve_bytes,
    )
