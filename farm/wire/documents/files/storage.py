"""Documents about storage use, and about what the next sweep would delete."""

from datetime import datetime

from farm.core.base.ids import DeviceId, Digest
from farm.wire.base import Wire


class ArtifactUse(Wire):
    """Artifacts of one kind and use, together."""

    #: `model`, `program`, `own` (comes with the farm), or `unregistered` (sent, and never referred to).
    kind: str
    #: `needed` by an unfinished matrix or the farm, `measured` (was measured with), or `unused`.
    use: str
    files: int
    size_bytes: int


class EvidenceAge(Wire):
    """Raw output received in one span of time."""

    #: `last day`, `last week`, `last month`, `last year`, `older`; each without the ones before.
    age: str
    reports: int
    size_bytes: int


class DeviceStorage(Wire):
    """The last reported storage of a device."""

    device_id: DeviceId
    device_label: str | None
    free_bytes: int


class LimitsView(Wire):
    """The limits in force; null where there is none."""

    blobs_limit_bytes: int | None
    evidence_keep_days: int | None
    evidence_limit_bytes: int | None
    history_keep_days: int | None
    disk_reserve_bytes: int


class ArtifactEviction(Wire):
    """An artifact that the next sweep would delete."""

    digest: Digest
    size_bytes: int
    used_at: datetime
    #: The variants or programs whose file it is.
    names: tuple[str, ...]


class StoredFileView(Wire):
    """A file that a person uploaded."""

    digest: Digest
    size_bytes: int
    created_at: datetime
    used_at: datetime
    #: The variants or programs whose file it is.
    names: tuple[str, ...]
    #: `needed` by an unfinished matrix or the farm, `measured` (was measured with), or `unused`.
    use: str


class StoredFilesView(Wire):
    """GET /api/v1/storage/files: the files that count for a person's quota."""

    person: str
    #: Null where they have none.
    quota_bytes: int | None
    #: Of all their files, how many and their bytes.
    files: int
    size_bytes: int
    #: Bytes that have arrived of uploads that are not complete, by digest; they count, too.
    arriving: dict[Digest, int]
    largest: tuple[StoredFileView, ...]


class FileRemoval(Wire):
    """DELETE /api/v1/storage/files/{digest}: its result."""

    digest: Digest
    #: Of the quota these are free at once; the disk has them back when the trash is emptied.
    size_bytes: int
    #: The variants or programs whose file it was: they need it again before they can run.
    names: tuple[str, ...]


class SweepPreview(Wire):
    """The effect of the next sweep, as things stand now."""

    artifacts: tuple[ArtifactEviction, ...]
    artifact_bytes: int
    reports: int
    report_bytes: int
    #: Files that no row keeps: they go into the trash.
    files: int
    file_bytes: int
    #: Rows whose files are gone from the disk.
    lost: tuple[Digest, ...]
    #: Of old history; output that the same sweep removes may free more of it.
    events: int = 0
    sessions: int = 0
    plans: int = 0


class SweepResult(Wire):
    """POST /api/v1/storage/sweep: its result."""

    artifacts: int
    artifact_bytes: int
    reports: int
    report_bytes: int
    #: That no row kept, or of artifacts that expired: moved into the trash.
    files: int
    file_bytes: int
    #: From the trash, where their time was over or space was short; and uploads that broke off.
    deleted: int
    deleted_bytes: int
    #: Rows whose files were gone from the disk.
    lost: int
    #: Of old history.
    events: int
    sessions: int
    plans: int


class StorageView(Wire):
    """GET /api/v1/storage."""

    data_dir: str
    disk_free_bytes: int
    #: The database's files; of these, free inside and used again before the file grows.
    database_bytes: int
    database_free_bytes: int
    artifacts: tuple[ArtifactUse, ...]
    #: Of these the farm keeps the rows only.
    expired_artifacts: int
    #: Removed artifacts in the trash, which use space until their time is over or space is short.
    trash: int
    trash_bytes: int
    trash_keep_days: int
    evidence: tuple[EvidenceAge, ...]
    expired_reports: int
    #: Time of the oldest event, and what was last removed of old history, with the time.
    oldest_event_at: datetime | None
    history_expired_at: datetime | None
    history_expired: str | None
    #: As last reported; only its agent knows the size of a host's own cache.
    devices: tuple[DeviceStorage, ...]
    limits: LimitsView
    next_sweep: SweepPreview
