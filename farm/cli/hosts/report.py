"""The table of `farm host list` and the report of `farm host show`."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.devices.table import device_table
from farm.cli.shell.formatting import EMPTY_CELL, local_time_text, plural
from farm.cli.shell.tables import add_row, new_table
from farm.core.base.units import elapsed_text
from farm.wire.documents.hosts import HostDetail, HostView, IncidentView


def host_table(hosts: Sequence[HostView]) -> RenderableType:
    """Return one line for each host, then one line for each problem."""
    table = new_table(
        names=("host", "state", "agent", "version"), numbers=("last heard", "runs"), prose=("devices",)
    )
    for view in hosts:
        names = (view.host_id, view.state, view.session or "never called", view.agent_version or EMPTY_CELL)
        add_row(table, *names, last_heard_text(view), _runs(view), device_counts_text(view))
    notes = [Text(line) for view in hosts for line in _notes(view)]
    return Group(table, Text(""), *notes) if notes else table


def host_report(view: HostDetail) -> RenderableType:
    """Return the report of a host: agent, devices, runs, incidents and events."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, value in _facts(view):
        grid.add_row(Text(name), Text(value))
    parts: list[RenderableType] = [grid]
    if view.devices:
        parts += [Text(""), device_table(view.devices)]
    if view.events:
        parts += [Text(""), _events(view)]
    return Group(*parts)


def last_heard_text(view: HostView, now: datetime | None = None) -> str:
    """Return `3 s ago`; `-` if its agent never called."""
    if view.heartbeat_at is None:
        return EMPTY_CELL
    return f"{elapsed_text(max(0.0, ((now or datetime.now(UTC)) - view.heartbeat_at).total_seconds()))} ago"


def device_counts_text(view: HostView) -> str:
    """Return `2 free, 1 busy, 1 not online`."""
    return ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in view.phones.items()) or EMPTY_CELL


def _runs(view: HostView) -> str:
    return str(len(view.runs)) if view.max_runs is None else f"{len(view.runs)} of {view.max_runs}"


def _notes(view: HostView) -> Iterator[str]:
    if view.why:
        yield f"{view.host_id}: {view.state}: {view.why}"
    for incident in view.incidents:
        yield f"{view.host_id}: {incident_text(incident)}"


def incident_text(incident: IncidentView) -> str:
    """Return the period, the cause and the devices of an incident."""
    affected = f" ({', '.join(incident.devices)})" if incident.devices else ""
    until = f" until {local_time_text(incident.ended_at)}" if incident.ended_at else ""
    return f"since {local_time_text(incident.began_at)}{until}: {incident.cause}{affected}"


def _facts(view: HostDetail) -> Iterator[tuple[str, str]]:
    since = f" since {local_time_text(view.since)}" if view.since else ""
    yield "host", view.host_id
    yield "state", f"{view.state}{since}" + (f": {view.why}" if view.why else "")
    version = f", version {view.agent_version}" if view.agent_version else ""
    yield "agent", f"{view.session or 'never called'}{version}; last heard {last_heard_text(view)}"
    yield "joined", local_time_text(view.created_at)
    yield (
        "devices",
        f"{device_counts_text(view)}; new devices {'are admitted' if view.auto_admit else 'wait'}",
    )
    limit = "no limit" if view.max_runs is None else f"{view.max_runs} at most"
    yield "runs", f"{len(view.runs)} ({limit})"
    for run in view.runs:
        yield "", f"job {run.job_id} on {run.device_id}, {run.state} since {local_time_text(run.claimed_at)}"
    yield "queue", plural(view.queued_jobs, "job")
    for incident in (*view.incidents, *view.past_incidents):
        yield "incident", incident_text(incident)


def _events(view: HostDetail) -> Table:
    table = new_table(names=("at", "what"), words=("by",), prose=("why",))
    for event in view.events:
        what = event.kind.removeprefix("host_").replace("_", " ")
        add_row(table, local_time_text(event.at), what, event.actor, event.cause or EMPTY_CELL)
    return table
