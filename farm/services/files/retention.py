"""Retention: sweeps that keep the farm within its limits, and never delete what unfinished work needs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
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
from farm.database.transaction import Tx, bind_tx
from farm.services.files.artifacts import expire_missing, set_aside_unreferenced
from farm.services.files.builtin_programs import builtin_digests
from farm.services.files.folder_owner import check_sweepable
from farm.services.operations.history_retention import HistoryKind, HistoryWalk
from farm.store.files import artifacts
from farm.store.files.artifacts import Artifact
from farm.store.operations.events import record_event
from farm.store.results import evidence as evidence_store
from farm.store.results.evidence import RetainedReport
from farm.wire.documents.files.storage import SweepResult

T = TypeVar("T")

_log = structlog.get_logger(__name__)

#: Rows that one transaction changes: agents wait for it no longer than for one of their own.
BATCH = 200
#: A file that was sent or needed within this time stays: its sender is about to register it.
MIN_FILE_AGE = timedelta(hours=1)
#: Tolerated gain of a wall clock on the time that passed since the farm started. It gains while a machine
#: sleeps, too: then output is kept for longer than it had to be.
_MAX_CLOCK_JUMP = timedelta(days=1)
#: An upload that broke off can be gone on with for so long.
UPLOAD_MAX_AGE = timedelta(days=1)


def sweep_storage(
    database: Database,
    blobs: DiskBlobs,
    rules: StorageRules,
    clock: Clock,
    *,
    history: HistoryWalk | None = None,
) -> SweepResult:
    """Enforce the storage limits, and bring rows and files in step. Blocks; many short transactions.

    `history` is the walk over old history to go on with; None: a new one.

    Raises:
        Conflict, FarmFault: the folder of artifacts does not belong to the database.
    """
    database.read(check_sweepable, blobs.folder)
    artifact_count, artifact_bytes = _expire_artifacts(database, rules, clock)
    on_disk = blobs.digests()
    unreferenced = _set_aside_unreferenced(database, blobs, on_disk, clock)
    lost = _mark_lost(database, blobs, on_disk, clock)
    deleted_bytes = [
        *blobs.expire_uploads((clock.now() - UPLOAD_MAX_AGE).timestamp()),
        *blobs.empty_trash(0.0 if rules.trash_keep is None else (clock.now() - rules.trash_keep).timestamp()),
    ]
    report_count, report_bytes = _expire_evidence(database, rules, clock)
    removed: Mapping[HistoryKind, int] = {}
    if rules.history_keep is not None:
        # After the raw output, on which some of it depends.
        removed = (history or HistoryWalk())(database, clock, rules.history_keep)
    result = SweepResult(
        artifacts=artifact_count,
        artifact_bytes=artifact_bytes,
        reports=report_count,
        report_bytes=report_bytes,
        files=len(unreferenced),
        file_bytes=sum(file.size_bytes for file in unreferenced),
        deleted=len(deleted_bytes),
        deleted_bytes=sum(deleted_bytes),
        lost=lost,
        events=removed.get(HistoryKind.EVENTS, 0),
        sessions=removed.get(HistoryKind.SESSIONS, 0),
        plans=removed.get(HistoryKind.PLANS, 0),
    )
    if any(dict(result).values()):
        _log.info("storage_swept", **dict(result))
    return result


def artifacts_to_expire(tx: Tx, rules: StorageRules, *, limit: int | None = None) -> list[Artifact]:
    """Return the artifacts that the limit pushes out, least recently used first; at most `limit` of them.

    Behind them come the other files of their variants, which nothing can run any more.
    """
    if rules.blobs_limit_bytes is None:
        return []
    excess_bytes = artifacts.stored_bytes(tx.connection) - rules.blobs_limit_bytes
    if excess_bytes <= 0:
        return []
    stored = artifacts.stored_artifacts(tx.connection)
    needed = artifacts.needed_digests(tx.connection) | builtin_digests()
    unused = [file for file in stored if file.digest not in needed and tx.now - file.used_at > MIN_FILE_AGE]
    going = select_for_eviction(unused, excess_bytes)[:limit]
    beside = artifacts.files_beside(tx.connection, [file.digest for file in going])
    return [*going, *(file for file in unused if file.digest in beside)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRule:
    """A rule by which raw output is deleted now."""

    name: str
    #: It applies to what was received since then, and before; None: whenever.
    since: datetime | None = None
    before: datetime | None = None
    #: It applies to the first reports of so many bytes; None: to all.
    excess_bytes: int | None = None

    def after(self, expired: Iterable[RetainedReport]) -> "EvidenceRule":
        """Return the rule for what is left when these are gone."""
        if self.excess_bytes is None:
            return self
        return replace(self, excess_bytes=self.excess_bytes - sum(report.size_bytes for report in expired))


def age_rule(tx: Tx, rules: StorageRules) -> EvidenceRule | None:
    """Return the rule of days, or None."""
    if rules.evidence_keep is None:
        return None
    return EvidenceRule(name=f"rule of {rules.evidence_keep_days} days", before=tx.now - rules.evidence_keep)


def size_rule(tx: Tx, rules: StorageRules) -> EvidenceRule | None:
    """Return the rule of bytes, or None."""
    if rules.evidence_limit_bytes is None:
        return None
    excess_bytes = evidence_store.retained_bytes(tx.connection) - rules.evidence_limit_bytes
    return EvidenceRule(name=f"limit of {size_text(rules.evidence_limit_bytes)}", excess_bytes=excess_bytes)


def reports_to_expire(
    connection: Connection, rule: EvidenceRule, *, limit: int | None = None
) -> list[RetainedReport]:
    """Return the reports that a rule deletes, in order; at most `limit` of them."""
    may_go = evidence_store.expirable_reports(connection, since=rule.since, before=rule.before, limit=limit)
    in_order = islice(may_go, limit)
    return list(in_order) if rule.excess_bytes is None else select_for_eviction(in_order, rule.excess_bytes)


def _expire_artifacts(database: Database, rules: StorageRules, clock: Clock) -> tuple[int, int]:
    """Mark what the limit pushes out; return how many artifacts, and their bytes."""
    count = size_bytes = 0
    while expired := database.write(bind_tx(expire_over_limit, now=clock.now()), rules):
        count += len(expired)
        size_bytes += sum(artifact.size_bytes for artifact in expired)
    return count, size_bytes


def expire_over_limit(tx: Tx, rules: StorageRules) -> list[Artifact]:
    """Mark what the limit pushes out, at most one batch of it; the files are still there afterwards."""
    going = artifacts_to_expire(tx, rules, limit=BATCH)
    cause = f"limit of {size_text(rules.blobs_limit_bytes or 0)}"
    artifacts.expire_artifacts(tx, [artifact.digest for artifact in going], cause=cause)
    return going


def _set_aside_unreferenced(
    database: Database, blobs: DiskBlobs, on_disk: Set[Digest], clock: Clock
) -> list[StoredFile]:
    """Move files without a row into the trash, also those an earlier process only marked; return them."""
    unreferenced = database.read(bind_tx(unreferenced_files, now=clock.now()), blobs, on_disk)
    going: set[Digest] = set()
    for batch in _batches(unreferenced):
        digests = [file.digest for file in batch]
        going.update(database.write(bind_tx(set_aside_unreferenced, now=clock.now()), blobs, digests))
    return [file for file in unreferenced if file.digest in going]


def _mark_lost(database: Database, blobs: DiskBlobs, on_disk: Set[Digest], clock: Clock) -> int:
    """Mark the artifacts whose files are gone as expired; return how many."""
    lost = [
        digest
        for batch in _batches(database.read(missing_artifacts, on_disk))
        for digest in database.write(bind_tx(expire_missing, now=clock.now()), blobs, batch)
    ]
    for digest in lost:
        _log.warning("artifact_lost", digest=digest)
    return len(lost)


def unreferenced_files(tx: Tx, blobs: DiskBlobs, on_disk: Set[Digest]) -> list[StoredFile]:
    """Return files whose rows expired, or that have none; one that just came may get its row in a moment.

    Only of these the disk is asked for size and time.
    """
    without_row = sorted(on_disk - artifacts.stored_sizes(tx.connection).keys())
    settled_s = (tx.now - MIN_FILE_AGE).timestamp()
    return [
        file
        for file in map(blobs.stored_file, without_row)
        if file is not None
        and (file.modified_s < settled_s or artifacts.find_artifact(tx.connection, file.digest) is not None)
    ]


def missing_artifacts(connection: Connection, on_disk: Set[Digest]) -> list[Digest]:
    """Return the artifacts whose rows say that their files are here, and are not."""
    return sorted(artifacts.stored_sizes(connection).keys() - on_disk)


def _expire_evidence(database: Database, rules: StorageRules, clock: Clock) -> tuple[int, int]:
    """Delete the bodies of reports by each rule; return how many, and their bytes."""
    count = size_bytes = 0
    for find_rule in (age_rule, size_rule):
        rule = database.read(bind_tx(find_rule, now=clock.now()), rules)
        while rule is not None and (rows := database.write(bind_tx(_expire_reports, now=clock.now()), rule)):
            rule = rule.after(rows)
            count += len(rows)
            size_bytes += sum(report.size_bytes for report in rows)
    return count, size_bytes


def _expire_reports(tx: Tx, rule: EvidenceRule) -> list[RetainedReport]:
    going = reports_to_expire(tx.connection, rule, limit=BATCH)
    if going:
        evidence_store.expire_reports(tx, [report.evidence_id for report in going], rule=rule.name)
        size_bytes = sum(report.size_bytes for report in going)
        record_event(
            tx.by("farm"),
            FarmEvent.EVIDENCE_EXPIRED,
            "evidence",
            subject=EventSubject.STORAGE,
            from_state="kept",
            to_state="expired",
            cause=f"{len(going)} reports, {size_text(size_bytes)}, by the {rule.name}",
        )
    return going


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[first : first + BATCH] for first in range(0, len(items), BATCH))


class Sweeper:
    """Enforces the limits whenever called.

    Output that went by age does not come back. So while the wall clock is ahead of the time that passed, by
    more than corrections explain, none goes by age; a farm that is restarted believes its clock again.
    """

    def __init__(self, database: Database, blobs: DiskBlobs, rules: StorageRules, clock: Clock) -> None:
        self._database = database
        self._blobs = blobs
        self._rules = rules
        self._clock = clock
        self._history = HistoryWalk()
        self._started_at, self._started_s = clock.now(), clock.monotonic()

    def __call__(self) -> SweepResult:
        """Sweep once; raises like `sweep_storage`."""
        rules = self._rules
        passed = timedelta(seconds=self._clock.monotonic() - self._started_s)
        ahead = self._clock.now() - self._started_at - passed
        if ahead > _MAX_CLOCK_JUMP:
            _log.warning(
                "clock_jumped", ahead_s=ahead.total_seconds(), hint="until then nothing expires by age"
            )
            rules = replace(rules, evidence_keep_days=None, trash_keep_days=None, history_keep_days=None)
        return sweep_storage(self._database, self._blobs, rules, self._clock, history=self._history)
