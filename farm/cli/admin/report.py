"""Output of `farm admin`: text, tables and JSON documents."""

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
    # `farm admin config` must not import the farm and its statistics, which takes seconds.
    from farm.cli.admin.actions import RestorePlan
    from farm.database.schema_state import SchemaState
    from farm.services.files.backup.backup import Backup
    from farm.services.files.backup.restore import RestoreResult
    from farm.store.operations.database_epochs import DatabaseEpoch

_MANIFEST = TypeAdapter(BackupManifest)


def settings_table(farm: Sequence[Setting], agent: Sequence[Setting]) -> RenderableType:
    """Return tables of the settings of the farm and of an agent."""
    return Group(_settings("the farm", farm), "", _settings("an agent on this machine", agent))


def settings_document(
    farm: Sequence[Setting], agent: Sequence[Setting], unknown: Sequence[UnknownVariable]
) -> dict[str, Any]:
    """Return the JSON document."""
    return {
        "farm": [asdict(setting) for setting in farm],
        "agent": [asdict(setting) for setting in agent],
        "unknown": [asdict(variable) for variable in unknown],
    }


def unknown_text(variable: UnknownVariable) -> str:
    """Return a note on a variable without effect."""
    suggestion = f": did you mean {variable.meant}?" if variable.meant else ""
    return f"note: {variable.name} is set but has no effect{suggestion}"


def schema_text(before: "SchemaState", after: "SchemaState") -> str:
    """Return the schema of the database, or its migration."""
    if before.revision != after.revision:
        return f"migrated from schema {before.revision or 'none'} to {after.revision}"
    if after.is_newest:
        return f"the database has schema {after.revision}, the newest of this release"
    if not after.is_known:
        return f"the database has schema {after.revision} of a newer release; this release has {after.newest}"
    return f"the database has schema {after.revision or 'none'}; this release works with {after.newest}"


def schema_document(before: "SchemaState", after: "SchemaState") -> dict[str, Any]:
    """Return the JSON document."""
    return {"before": before.revision, "revision": after.revision, "newest": after.newest}


def backup_text(manifest: BackupManifest) -> str:
    """Return the contents of a backup in one line, and missing artifacts in a second."""
    files = f"{plural(manifest.artifacts, 'artifact')} of {size_text(manifest.artifact_bytes)}"
    text = (
        f"{sum(manifest.rows.values())} rows in {size_text(manifest.database_bytes)}, "
        f"{files if manifest.with_artifacts else 'no artifacts'}, schema {manifest.schema_revision}"
    )
    if manifest.missing:
        text += f"\nnote: {plural(len(manifest.missing), 'artifact')} removed during the backup"
    return text


def backup_document(backup: "Backup") -> dict[str, Any]:
    """Return the JSON document."""
    return {"folder": str(backup.folder), **_MANIFEST.dump_python(backup.manifest, mode="json")}


def restore_plan_text(plan: "RestorePlan") -> str:
    """Return what a restore will do."""
    manifest = plan.manifest
    return "\n".join(
        (
            f"backup     {plan.backup}, of {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC on {manifest.source}",
            f"contents   {backup_text(manifest)}",
            f"database   {plan.place}: empty; receives all rows",
            f"artifacts  {plan.config.blobs_dir}: receives the files, each verified",
            "then       changes since the backup are lost: agents reconnect, report their state and resend",
            "           the reports of the last 7 days; new ids start a million higher",
        )
    )


def restore_text(restored: "RestoreResult", data: Path | None) -> str:
    """Return the result of a restore, and the next step."""
    files = plural(restored.artifacts, "artifact")
    up = "farm up" if data is None else f"farm up --data {shlex.quote(str(data))}"
    text = f"restored {restored.rows} rows and {files}; start the farm: {up}"
    if restored.missing:
        text += (
            f"\nnote: {plural(restored.missing, 'artifact')} without a file in the backup: marked as expired;"
            " upload them again where they are needed"
        )
    return text


def restore_document(plan: "RestorePlan", restored: "RestoreResult") -> dict[str, Any]:
    """Return the JSON document."""
    return {
        "backup": str(plan.backup),
        "database": plan.place,
        "rows": restored.rows,
        "artifacts": restored.artifacts,
        "missing": restored.missing,
        "epoch": restored.epoch.epoch,
    }


def epoch_table(epochs: "Sequence[DatabaseEpoch]") -> RenderableType:
    """Return a table of the epochs of a database, the current one last."""
    table = new_table(names=("epoch", "since"), prose=("why",))
    for epoch in epochs:
        # The time of the first epoch of a database is not recorded.
        since = "-" if epoch.began_at.timestamp() == 0 else local_time_text(epoch.began_at)
        add_row(table, epoch.epoch, since, epoch.cause)
    return table


def epoch_documents(epochs: "Sequence[DatabaseEpoch]") -> list[dict[str, Any]]:
    """Return the JSON document."""
    return [
        {"epoch": epoch.epoch, "began_at": epoch.began_at.isoformat(), "cause": epoch.cause}
        for epoch in epochs
    ]


def _settings(title: str, settings: Sequence[Setting]) -> RenderableType:
    table = new_table(names=(title,), words=("value", "from"), prose=("meaning",))
    for setting in settings:
        add_row(table, setting.name, setting.value, setting.source, setting.meaning)
    return table
