"""What `farm admin` says, in words, tables and documents."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from rich.console import Group, RenderableType

from farm.cli.admin.setting_sources import Setting, UnknownVariable
from farm.cli.shell.formatting import local_time_text, plural
from farm.cli.shell.tables import add_row, new_table
from farm.core.base.units import size_text
from farm.core.operations.backup import BackupManifest

if TYPE_CHECKING:
    # Settings are shown without what a farm and its statistics need, which takes seconds to import.
    from farm.cli.admin.actions import RestorePlan
    from farm.database.schema_state import SchemaState
    from farm.services.files.backup.backup import Backup
    from farm.services.files.backup.restore import RestoreResult
    from farm.store.operations.database_epochs import DatabaseEpoch

_MANIFEST = TypeAdapter(BackupManifest)


def settings_table(farm: Sequence[Setting], agent: Sequence[Setting]) -> RenderableType:
    """The farm's settings, then an agent's."""
    return Group(_settings("the farm", farm), "", _settings("an agent on this machine", agent))


def settings_document(
    farm: Sequence[Setting], agent: Sequence[Setting], unknown: Sequence[UnknownVariable]
) -> dict[str, Any]:
    """As JSON has it."""
    return {
        "farm": [asdict(each) for each in farm],
        "agent": [asdict(each) for each in agent],
        "unknown": [asdict(each) for each in unknown],
    }


def unknown_text(variable: UnknownVariable) -> str:
    """A remark on a variable that does nothing."""
    meant = f": did you mean {variable.meant}?" if variable.meant else ""
    return f"note: {variable.name} is set, and nothing reads it{meant}"


def schema_text(before: "SchemaState", after: "SchemaState") -> str:
    """What schema the database has."""
    if before.revision != after.revision:
        return f"migrated from schema {before.revision or 'none'} to {after.revision}"
    if after.is_newest:
        return f"the database has schema {after.revision}, the newest that this release knows"
    if not after.is_known:
        return f"the database has schema {after.revision}, of a newer release; this one knows {after.newest}"
    return f"the database has schema {after.revision or 'none'}; this release works with {after.newest}"


def schema_document(before: "SchemaState", after: "SchemaState") -> dict[str, Any]:
    """As JSON has it."""
    return {"before": before.revision, "revision": after.revision, "newest": after.newest}


def backup_text(manifest: BackupManifest) -> str:
    """What a backup holds, in one line, and what is missing in another."""
    files = f"{plural(manifest.artifacts, 'artifact')} of {size_text(manifest.artifact_bytes)}"
    said = (
        f"{sum(manifest.rows.values())} rows in {size_text(manifest.database_bytes)}, "
        f"{files if manifest.with_artifacts else 'no artifacts'}, schema {manifest.schema_revision}"
    )
    if manifest.missing:
        said += f"\nnote: {plural(len(manifest.missing), 'artifact')} went while the backup was made"
    return said


def backup_document(made: "Backup") -> dict[str, Any]:
    """As JSON has it."""
    return {"folder": str(made.folder), **_MANIFEST.dump_python(made.manifest, mode="json")}


def restore_plan_text(plan: "RestorePlan") -> str:
    """What a restore would do."""
    manifest = plan.manifest
    return "\n".join(
        (
            f"backup     {plan.backup}, made {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC on {manifest.source}",
            f"holds      {backup_text(manifest)}",
            f"database   {plan.place}: empty, gets all rows",
            f"artifacts  {plan.config.blobs_dir}: gets the files, each verified",
            "then       what happened since is forgotten: agents connect anew, tell what they have,",
            "           and send again what they reported in the last 7 days; numbers leap by a million",
        )
    )


def restore_text(restored: "RestoreResult", data: Path | None) -> str:
    """What a restore came to, and what to do next."""
    files = plural(restored.artifacts, "artifact")
    up = "farm up" if data is None else f"farm up --data {shlex.quote(str(data))}"
    said = f"restored {restored.rows} rows and {files}; start the farm: {up}"
    if restored.missing:
        said += (
            f"\nnote: of {plural(restored.missing, 'artifact')} the backup has no file: they are marked as"
            " expired, and whoever needs them sends them again"
        )
    return said


def restore_document(plan: "RestorePlan", restored: "RestoreResult") -> dict[str, Any]:
    """As JSON has it."""
    return {
        "backup": str(plan.backup),
        "database": plan.place,
        "rows": restored.rows,
        "artifacts": restored.artifacts,
        "missing": restored.missing,
        "epoch": restored.epoch.epoch,
    }


def epoch_table(epochs: "Sequence[DatabaseEpoch]") -> RenderableType:
    """Histories of a database, the one that is being written last."""
    table = new_table(names=("epoch", "since"), prose=("why",))
    for each in epochs:
        # The first of a database is as old as it: nobody noted when that was.
        since = "-" if each.began_at.timestamp() == 0 else local_time_text(each.began_at)
        add_row(table, each.epoch, since, each.cause)
    return table


def epoch_documents(epochs: "Sequence[DatabaseEpoch]") -> list[dict[str, Any]]:
    """As JSON has it."""
    return [
        {"epoch": each.epoch, "began_at": each.began_at.isoformat(), "cause": each.cause} for each in epochs
    ]


def _settings(title: str, settings: Sequence[Setting]) -> RenderableType:
    table = new_table(names=(title,), words=("value", "from"), prose=("meaning",))
    for each in settings:
        add_row(table, each.name, each.value, each.source, each.meaning)
    return table
