"""The manifest of a backup."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from farm.core.base.ids import Digest

#: Raised when an older release could not read a backup any more.
BACKUP_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """One backup: a database as it was at one moment, and which artifacts belong to it."""

    format: int = BACKUP_FORMAT
    farm_version: str
    #: The moment of the database's snapshot: nothing that was committed later is in it.
    made_at: datetime
    #: `sqlite` or `postgresql`: where it was taken. The backup itself is an SQLite file always.
    source: str
    schema_revision: str
    #: The history of the database that it belongs to.
    epoch: str
    database_digest: Digest | None = None
    database_bytes: int = 0
    #: By table.
    rows: Mapping[str, int]
    #: False when only the database was asked for.
    with_artifacts: bool = False
    artifacts: int = 0
    artifact_bytes: int = 0
    #: Referenced by the database, and missing when they were copied: a sweep had removed them in between.
    missing: tuple[Digest, ...] = ()
    #: Referenced by the database, and left out because the farm's file has other bytes.
    damaged: tuple[Digest, ...] = ()
