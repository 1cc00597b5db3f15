"""Output of `farm storage`: text and tables."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.shell.formatting import join_or_dash, local_time_text, plural
from farm.cli.shell.tables import add_row, new_table
from farm.core.base.units import size_text
from farm.wire.documents.files.storage import (
    ArtifactEviction,
    LimitsView,
    StorageView,
    SweepPreview,
    SweepView,
)


def storage_report(view: StorageView) -> RenderableType:
    """Return the report: disk, files by kind and use, output by age, next sweep."""
    parts: list[RenderableType] = [
        _lines(
            f"data      {view.data_dir}: {size_text(view.disk_free_bytes)} free on its disk",
            f"database  {size_text(view.database_bytes)}, of which {size_text(view.database_free_bytes)}"
            " are free and reused first",
            f"limits    {limits_text(view.limits)}",
        ),
        _artifact_table(view),
        _lines(f"expired artifacts: {view.expired_artifacts}, their rows are kept"),
        _evidence_table(view),
        _lines(f"expired output: {plural(view.expired_reports, 'report')}, their measurements are kept"),
    ]
    if view.phones:
        parts.append(_device_table(view))
    if view.next_sweep.artifacts:
        parts.append(eviction_table(view.next_sweep.artifacts))
    return Group(*parts, _lines(plan_text(view.next_sweep)))


def limits_text(limits: LimitsView) -> str:
    """Return the limits; `none` where there is no limit."""
    days, size = limits.evidence_keep_days, limits.evidence_limit_bytes
    output = [plural(days, "day") if days else "", "" if size is None else size_text(size)]
    artifacts = "none" if limits.blobs_limit_bytes is None else size_text(limits.blobs_limit_bytes)
    return (
        f"artifacts: {artifacts}; output: {' and '.join(filter(None, output)) or 'none'};"
        f" uploads leave {size_text(limits.disk_reserve_bytes)} of the disk free"
    )


def plan_text(plan: SweepPreview) -> str:
    """Return what the next sweep would remove, in one line."""
    parts = _counts(
        (len(plan.artifacts), "artifact", plan.artifact_bytes),
        (plan.reports, "report", plan.report_bytes),
        (plan.files, "stray file", plan.file_bytes),
    )
    if plan.lost:
        parts.append(f"{plural(len(plan.lost), 'artifact')} with missing files marked")
    return f"the next sweep: {join_or_dash(parts)}" if parts else "the next sweep: nothing to do"


def sweep_text(swept: SweepView) -> str:
    """Return what a sweep removed, in one line."""
    parts = _counts(
        (swept.artifacts, "artifact", swept.artifact_bytes),
        (swept.reports, "report", swept.report_bytes),
    )
    parts += [f"{size_text(swept.file_bytes)} freed on the disk"] if swept.files else []
    if swept.lost:
        parts.append(f"{plural(swept.lost, 'artifact')} with missing files marked")
    return f"swept: {join_or_dash(parts)}" if parts else "swept: nothing to remove"


def eviction_table(evictions: Sequence[ArtifactEviction]) -> Table:
    """Return a table of the artifacts to remove, in order."""
    table = new_table(names=("removed",), words=("names",), numbers=("size", "last used"))
    for artifact in evictions:
        add_row(
            table,
            artifact.digest[:12],
            join_or_dash(artifact.names),
            size_text(artifact.size_bytes),
            local_time_text(artifact.used_at),
        )
    return table


def _artifact_table(view: StorageView) -> Table:
    table = new_table(names=("artifacts", "use"), numbers=("files", "size"))
    for use in view.artifacts:
        add_row(table, use.kind, use.use, str(use.files), size_text(use.size_bytes))
    return table


def _evidence_table(view: StorageView) -> Table:
    table = new_table(names=("output",), numbers=("reports", "size"))
    for age in view.evidence:
        add_row(table, age.age, str(age.reports), size_text(age.size_bytes))
    return table


def _device_table(view: StorageView) -> Table:
    table = new_table(names=("device",), numbers=("free",))
    for device in view.phones:
        add_row(table, device.device_id, size_text(device.free_bytes))
    return table


def _counts(*counted: tuple[int, str, int]) -> list[str]:
    return [f"{plural(count, noun)} ({size_text(size)})" for count, noun, size in counted if count]


def _lines(*lines: str) -> Text:
    return Text("\n".join(("", *lines)).removeprefix("\n"), overflow="fold")
