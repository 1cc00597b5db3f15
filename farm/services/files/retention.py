"""Keeps the farm within its limits: what goes, in which order, and never what unfinished work needs."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

import structlog
from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs, StoredFile
from farm.clock import Clock
from farm.core.base.ids import Digest
from farm.core.base.units import size_text
from farm.core.operations.event import EventSubject, FarmEvent
from farm.core.operations.retention import StorageRules, select_for_eviction
from farm.database.engine import Database
from farm.services.files.artifacts import expire_missing, stage_unreferenced
from farm.services.files.builtin_programs import builtin_digests
from farm.store.files import artifacts
from farm.store.files.artifacts import Artifact
from farm.store.operations.events import record_event
from farm.store.results import evidence as evidence_store
from farm.store.results.evidence import RetainedReport

T = TypeVar("T")

_log = structlog.get_logger(__name__)

#: Rows that one transaction changes: agents wait for it no longer than for one of their own.
BATCH = 200
#: A file that was sent or needed within this time stays: whoever sent it is about to register it.
MIN_FILE_AGE = timedelta(hours=1)
#: An upload that broke off can be gone on with for so long.
UPLOAD_MAX_AGE = timedelta(days=1)


@dataclass(slots=True, kw_only=True)
class SweepResult:
    """What a sweep did."""

    artifacts: int = 0
    artifact_bytes: int = 0
    reports: int = 0
    report_bytes: int = 0
    #: Files that no row kept, of artifacts that expired now or before; and of uploads that broke off.
    files: int = 0
    file_bytes: int = 0
    #: Rows whose files were gone from the disk.
    lost: int = 0


def sweep_storage(database: Database, blobs: DiskBlobs, rules: StorageRules, clock: Clock) -> SweepResult:
    """Bring the farm within its limits, and rows and files in step. Blocks; many short transactions."""
    swept = SweepResult()
    _sweep_artifacts(database, rules, clock, swept)
    _sweep_files(database, blobs, clock, swept)
    _sweep_uploads(blobs, clock, swept)
    _sweep_evidence(database, rules, clock, swept)
    if swept != SweepResult():
        _log.info("storage_swept", **{name: getattr(swept, name) for name in SweepResult.__slots__})
    return swept


def artifacts_to_expire(connection: Connection, rules: StorageRules, *, now: datetime) -> list[Artifact]:
    """The artifacts that the farm's limit pushes out, least recently used first."""
    if rules.blobs_limit_bytes is None:
        return []
    kept = artifacts.stored_artifacts(connection)
    excess_bytes = sum(artifact.size_bytes for artifact in kept) - rules.blobs_limit_bytes
    if excess_bytes <= 0:
        return []
    stays = artifacts.needed_digests(connection) | builtin_digests()
    may_go = [each for each in kept if each.digest not in stays and now - each.used_at > MIN_FILE_AGE]
    return select_for_eviction(may_go, excess_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRule:
    """One rule that lets raw output go now."""

    name: str
    #: It lets go what was received since then, and before; None: whenever.
    since: datetime | None = None
    before: datetime | None = None
    #: It lets go the first ones of so many bytes; None: all.
    excess_bytes: int | None = None

    def after(self, gone: Iterable[RetainedReport]) -> "EvidenceRule":
        """The rule once these are gone."""
        if self.excess_bytes is None:
            return self
        return replace(self, excess_bytes=self.excess_bytes - sum(report.size_bytes for report in gone))


def age_rule(_: Connection, rules: StorageRules, *, now: datetime) -> EvidenceRule | None:
    """The rule of days, where there is one."""
    if rules.evidence_keep is None:
        return None
    return EvidenceRule(name=f"rule of {rules.evidence_keep_days} days", before=now - rules.evidence_keep)


def size_rule(connection: Connection, rules: StorageRules, *, now: datetime) -> EvidenceRule | None:
    """The rule of bytes, where there is one."""
    if rules.evidence_limit_bytes is None:
        return None
    excess_bytes = evidence_store.retained_bytes(connection) - rules.evidence_limit_bytes
    return EvidenceRule(name=f"limit of {size_text(rules.evidence_limit_bytes)}", excess_bytes=excess_bytes)


def reports_to_expire(
    connection: Connection, rule: EvidenceRule, *, limit: int | None = None
) -> list[RetainedReport]:
    """The reports that a rule lets go, in the order they go; at most `limit` of them."""
    may_go = evidence_store.expirable_reports(connection, since=rule.since, before=rule.before, limit=limit)
    in_order = islice(may_go, limit)
    return list(in_order) if rule.excess_bytes is None else select_for_eviction(in_order, rule.excess_bytes)


def _sweep_artifacts(database: Database, rules: StorageRules, clock: Clock, swept: SweepResult) -> None:
    while gone := database.write(expire_over_limit, rules, now=clock.now()):
        swept.artifacts += len(gone)
        swept.artifact_bytes += sum(artifact.size_bytes for artifact in gone)


def expire_over_limit(connection: Connection, rules: StorageRules, *, now: datetime) -> list[Artifact]:
    """Mark what the limit pushes out, at most one batch of it; the files are still there afterwards."""
    going = artifacts_to_expire(connection, rules, now=now)[:BATCH]
    cause = f"limit of {size_text(rules.blobs_limit_bytes or 0)}"
    artifacts.expire_artifacts(connection, [each.digest for each in going], now=now, cause=cause)
    return going


def _sweep_uploads(blobs: DiskBlobs, clock: Clock, swept: SweepResult) -> None:
    """Remove what nobody went on sending."""
    freed_bytes = blobs.expire_uploads((clock.now() - UPLOAD_MAX_AGE).timestamp())
    swept.files += len(freed_bytes)
    swept.file_bytes += sum(freed_bytes)


def _sweep_files(database: Database, blobs: DiskBlobs, clock: Clock, swept: SweepResult) -> None:
    """Remove what no row keeps, also what an earlier life only marked; mark what is not there."""
    on_disk = list(blobs.files())
    for batch in _batches(database.read(unreferenced_files, on_disk, now=clock.now())):
        digests = [file.digest for file in batch]
        swept.files += len(database.write(stage_unreferenced, blobs, digests))
        swept.file_bytes += blobs.remove_set_aside()
    for lost in _batches(database.read(missing_artifacts, on_disk)):
        marked = database.write(expire_missing, blobs, lost, now=clock.now())
        swept.lost += len(marked)
        for digest in marked:
            _log.warning("artifact_lost", digest=digest)


def unreferenced_files(
    connection: Connection, on_disk: Sequence[StoredFile], *, now: datetime
) -> list[StoredFile]:
    """Files whose rows expired, or that have none; one that just came may get its row in a moment."""
    kept = {artifact.digest for artifact in artifacts.stored_artifacts(connection)}
    settled_s = (now - MIN_FILE_AGE).timestamp()
    return [
        file
        for file in on_disk
        if file.digest not in kept
        and (file.modified_s < settled_s or artifacts.find_artifact(connection, file.digest) is not None)
    ]


def missing_artifacts(connection: Connection, on_disk: Sequence[StoredFile]) -> list[Digest]:
    """Artifacts whose rows say that they are here, and are not."""
    there: Set[Digest] = {file.digest for file in on_disk}
    return [each.digest for each in artifacts.stored_artifacts(connection) if each.digest not in there]


def _sweep_evidence(database: Database, rules: StorageRules, clock: Clock, swept: SweepResult) -> None:
    for find_rule in (age_rule, size_rule):
        rule = database.read(find_rule, rules, now=clock.now())
        while rule is not None and (gone := database.write(_expire_reports, rule, now=clock.now())):
            rule = rule.after(gone)
            swept.reports += len(gone)
            swept.report_bytes += sum(report.size_bytes for report in gone)


def _expire_reports(connection: Connection, rule: EvidenceRule, *, now: datetime) -> list[RetainedReport]:
    going = reports_to_expire(connection, rule, limit=BATCH)
    if going:
        evidence_store.expire_reports(
            connection, [each.evidence_id for each in going], now=now, rule=rule.name
        )
        size_bytes = sum(report.size_bytes for report in going)
        record_event(
            connection,
            at=now,
            actor="farm",
            kind=FarmEvent.EVIDENCE_EXPIRED,
            subject=EventSubject.STORAGE,
            subject_id="evidence",
            from_state="kept",
            to_state="expired",
            cause=f"{len(going)} reports, {size_text(size_bytes)}, by the {rule.name}",
        )
    return going


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[first : first + BATCH] for first in range(0, len(items), BATCH))
