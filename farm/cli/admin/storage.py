"""`farm storage`: show and free the disk space of the farm."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.files.stored_files import find_stored_file, remove_files
from farm.cli.shell.address import connect, data_dir, show_view
from farm.cli.shell.options import Data, Json, Yes
from farm.cli.shell.output import print_data, print_done, print_json, print_notice
from farm.cli.shell.settings import farm_config
from farm.cli.shell.tables import Listing, name, number, prose
from farm.core.base.units import size_text
from farm.core.errors import InvalidInput
from farm.presentation.labels import device_name
from farm.presentation.text import join_or_dash, local_time_text, plural
from farm.wire.documents.files.storage import (
    ArtifactEviction,
    ArtifactUse,
    DeviceStorage,
    EvidenceAge,
    LimitsView,
    StorageView,
    StoredFilesView,
    StoredFileView,
    SweepPreview,
    SweepResult,
)


def storage_report(view: StorageView) -> RenderableType:
    """Return the report: disk, files by kind and use, output by age, next sweep."""
    return Group(
        _lines(
            f"data      {view.data_dir}: {size_text(view.disk_free_bytes)} free on its disk",
            f"database  {size_text(view.database_bytes)}, of which {size_text(view.database_free_bytes)}"
            " are free and reused first",
            f"limits    {limits_text(view.limits)}",
        ),
        _artifact_table(view.artifacts),
        _lines(f"expired artifacts: {view.expired_artifacts}, their rows are kept", trash_text(view)),
        _evidence_table(view.evidence),
        _lines(f"expired output: {plural(view.expired_reports, 'report')}, their measurements are kept"),
        _lines(history_text(view)),
        *([_device_table(view.devices)] if view.devices else []),
        *([eviction_table(view.next_sweep.artifacts)] if view.next_sweep.artifacts else []),
        _lines(plan_text(view.next_sweep)),
    )


def trash_text(view: StorageView) -> str:
    """Return what the trash holds, and how long."""
    if not view.trash:
        return "trash: empty"
    (files,) = _counts((view.trash, "removed file", view.trash_bytes))
    kept = plural(view.trash_keep_days, "day")
    return f"trash: {files}, each deleted after {kept}, or earlier if the disk is short of space"


def history_text(view: StorageView) -> str:
    """Return since when there are events, and what was last removed of the history."""
    oldest = "none" if view.oldest_event_at is None else f"since {local_time_text(view.oldest_event_at)}"
    if view.history_expired_at is None:
        return f"events: {oldest}; no history was removed"
    return f"events: {oldest}; removed {local_time_text(view.history_expired_at)}: {view.history_expired}"


def limits_text(limits: LimitsView) -> str:
    """Return the limits; `none` where there is no limit."""
    days, size = limits.evidence_keep_days, limits.evidence_limit_bytes
    output = [plural(days, "day") if days else "", "" if size is None else size_text(size)]
    artifacts = "none" if limits.blobs_limit_bytes is None else size_text(limits.blobs_limit_bytes)
    history = plural(limits.history_keep_days, "day") if limits.history_keep_days else "none"
    return (
        f"artifacts: {artifacts}; output: {' and '.join(filter(None, output)) or 'none'};"
        f" history: {history}; uploads leave {size_text(limits.disk_reserve_bytes)} of the disk free"
    )


def plan_text(plan: SweepPreview) -> str:
    """Return what the next sweep would remove, in one line."""
    parts = _counts(
        (len(plan.artifacts), "artifact", plan.artifact_bytes),
        (plan.reports, "report", plan.report_bytes),
        (plan.files, "stray file", plan.file_bytes),
    )
    parts += _history_counts(plan)
    if plan.lost:
        parts.append(f"{plural(len(plan.lost), 'artifact')} with missing files marked")
    return f"the next sweep: {join_or_dash(parts)}" if parts else "the next sweep: nothing to do"


def sweep_text(swept: SweepResult) -> str:
    """Return what a sweep removed, in one line."""
    parts = _counts(
        (swept.artifacts, "artifact", swept.artifact_bytes),
        (swept.reports, "report", swept.report_bytes),
    )
    parts += [f"{size_text(swept.file_bytes)} moved to the trash"] if swept.files else []
    parts += [f"{size_text(swept.deleted_bytes)} freed on the disk"] if swept.deleted else []
    parts += _history_counts(swept)
    if swept.lost:
        parts.append(f"{plural(swept.lost, 'artifact')} with missing files marked")
    return f"swept: {join_or_dash(parts)}" if parts else "swept: nothing to remove"


def stored_files_report(view: StoredFilesView) -> RenderableType:
    """Return the report of a person's files: what they take of the quota, and a table."""
    arriving_bytes = sum(view.arriving.values())
    taken = size_text(view.size_bytes + arriving_bytes)
    quota = "no quota" if view.quota_bytes is None else f"{size_text(view.quota_bytes)} allowed"
    parts = [f"{view.person}: {plural(view.files, 'file')}, {taken}, {quota}"]
    for digest, size_bytes in view.arriving.items():
        parts.append(f"{size_text(size_bytes)} arrived of {digest[:12]}, whose upload is not complete")
    if len(view.largest) < view.files:
        parts.append(f"the largest {len(view.largest)} are shown")
    return Group(_lines(*parts), stored_file_table(view.largest))


#: The files of a person.
stored_file_table = Listing[StoredFileView](
    name("file", lambda file: file.digest[:12]),
    prose("names", lambda file: join_or_dash(file.names)),
    name("use", lambda file: file.use),
    number("size", lambda file: size_text(file.size_bytes)),
    number("last used", lambda file: local_time_text(file.used_at)),
)

#: The artifacts to remove, in order.
eviction_table = Listing[ArtifactEviction](
    name("removed", lambda artifact: artifact.digest[:12]),
    prose("names", lambda artifact: join_or_dash(artifact.names)),
    number("size", lambda artifact: size_text(artifact.size_bytes)),
    number("last used", lambda artifact: local_time_text(artifact.used_at)),
)

_artifact_table = Listing[ArtifactUse](
    name("artifacts", lambda use: use.kind),
    name("use", lambda use: use.use),
    number("files", lambda use: use.files),
    number("size", lambda use: size_text(use.size_bytes)),
)

_evidence_table = Listing[EvidenceAge](
    name("output", lambda age: age.age),
    number("reports", lambda age: age.reports),
    number("size", lambda age: size_text(age.size_bytes)),
)

_device_table = Listing[DeviceStorage](
    name("device", device_name),
    number("free", lambda device: size_text(device.free_bytes)),
)


def _history_counts(sweep: SweepPreview | SweepResult) -> list[str]:
    history = ((sweep.events, "event"), (sweep.sessions, "session"), (sweep.plans, "plan"))
    return [plural(count, f"old {noun}") for count, noun in history if count]


def _counts(*counted: tuple[int, str, int]) -> list[str]:
    return [f"{plural(count, noun)} ({size_text(size)})" for count, noun, size in counted if count]


def _lines(*lines: str) -> Text:
    return Text("\n".join(("", *lines)).removeprefix("\n"), overflow="fold")


app = typer.Typer(no_args_is_help=True)


@app.command("show")
def show_command(as_json: Json = False) -> None:
    """Show disk usage, limits, and what the next sweep would remove.

    Example: farm storage show --json
    """
    show_view(lambda farm: farm.storage(), storage_report, as_json=as_json)


@app.command("files")
def files_command(
    person: Annotated[str | None, typer.Option(help="Whose files; default: yours.", metavar="NAME")] = None,
    as_json: Json = False,
) -> None:
    """List the files that you uploaded, the largest first, and what they take of your quota.

    Example: farm storage files
    """
    show_view(lambda farm: farm.stored_files(person), stored_files_report, as_json=as_json)


@app.command()
def remove(
    digests: Annotated[
        list[str],
        typer.Argument(metavar="DIGEST", help="Files of yours, by the beginnings of their digests."),
    ],
    person: Annotated[
        str | None, typer.Option(help="Whose files; default: yours. Takes an admin.", metavar="NAME")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove files that you uploaded, so that others fit into your quota.

    Files that an unfinished matrix needs are kept. Measurements stay; variants and programs whose files go
    need them again before they can run.

    Example: farm storage remove 3f9a2b7c41d0
    """
    with connect() as farm:
        view = farm.stored_files(person)
        selected = [find_stored_file(view, digest) for digest in dict.fromkeys(digests)]
        remove_files(farm, selected, yes=yes, as_json=as_json)


@app.command()
def sweep(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Enforce the limits now, as the farm does automatically every FARM_SWEEP_EVERY_S seconds.

    Files that an unfinished matrix needs are kept. Removed files are recorded as expired.

    Example: farm storage sweep --dry-run
    """
    with connect() as farm:
        plan = farm.storage().next_sweep
        if dry_run and as_json:
            print_json(plan)
            return
        if plan.artifacts and not as_json:
            print_data(eviction_table(plan.artifacts))
        print_notice(plan_text(plan))
        if dry_run:
            return
        swept = farm.sweep_storage()
    print_done(swept, sweep_text(swept), as_json=as_json)


@app.command()
def compact(as_json: Json = False, data: Data = None) -> None:
    """Return free space inside the database to the disk. The farm must be stopped.

    Example: farm storage compact --data /var/lib/benchfarm/farm
    """
    from farm.daemon import data_folder_lock
    from farm.store.files.disk_use import compact as vacuum

    config = farm_config(data_dir=data or data_dir())
    if config.database_url is not None:
        raise InvalidInput(
            "this farm uses PostgreSQL, which reuses free space automatically",
            hint="to return it to the disk, its administrator runs VACUUM FULL while the farm is stopped",
        )
    if not config.database_path.exists():
        raise InvalidInput(f"there is no farm in {config.data_dir}", hint="set its location with --data")
    with data_folder_lock(config.data_dir):
        freed_bytes = vacuum(config.database_path)
    text = f"{config.database_path}: {size_text(freed_bytes)} freed"
    print_done({"freed_bytes": freed_bytes}, text, as_json=as_json)
