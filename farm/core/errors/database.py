"""Errors of a database or of its backup."""

from farm.core.errors.base import FarmError


class SchemaMismatch(FarmError):
    """The database's schema is not the one this release works with."""

    code = "farm.schema_mismatch"
    default_hint = "`farm admin migrate` brings an older database up to date"


class BackupDamaged(FarmError):
    """A backup is not whole, or is not what its manifest says."""

    code = "farm.backup_damaged"
    default_hint = "restore another backup; this one cannot be trusted"
