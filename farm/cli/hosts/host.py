"""`farm host`: list, show, drain, limit and retire hosts."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.devices.report import device_table, event_table
from farm.cli.shell.address import connect, show_view
from farm.cli.shell.identity import operator_request, print_change
from farm.cli.shell.options import Json, Reason, Yes
from farm.cli.shell.output import confirm, print_notice
from farm.cli.shell.tables import Listing, name, number, prose, sections, sheet
from farm.cli.shell.wait import wait_for
from farm.client.farm_client import FarmClient
from farm.core.base.units import duration_text, elapsed_text
from farm.core.checks.failures import HostIncident
from farm.core.devices.device import Blocker
from farm.core.errors import InvalidInput
from farm.presentation.labels import device_name
from farm.presentation.text import EMPTY_CELL, local_time_text, plural
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.hosts import HostDetail, HostRetirementPlan, HostView, LimitRequest

_table = Listing[HostView](
    name("host", lambda view: view.host_id),
    name("state", lambda view: view.state),
    name("agent", lambda view: view.session or "never called"),
    name("version", lambda view: view.agent_version),
    number("last heard", lambda view: last_heard_text(view)),
    number("clock", lambda view: clock_offset_text(view)),
    number("runs", lambda view: f"{len(view.runs)} of {view.max_runs}" if view.max_runs else len(view.runs)),
    prose("devices", lambda view: device_counts_text(view)),
)


def host_table(hosts: Sequence[HostView]) -> RenderableType:
    """Return one line for each host, then one line for each problem."""
    notes = [Text(line) for view in hosts for line in _notes(view)]
    return sections(_table(hosts), Group(*notes) if notes else None)


def host_report(view: HostDetail) -> RenderableType:
    """Return the report of a host: agent, devices, runs, incidents and events."""
    return sections(
        sheet(_fields(view)),
        device_table(view.devices) if view.devices else None,
        event_table(view.events) if view.events else None,
    )


def last_heard_text(view: HostView) -> str:
    """Return `3 s ago`; `-` if its agent never called."""
    if view.heartbeat_at is None:
        return EMPTY_CELL
    return f"{elapsed_text(max(0.0, (datetime.now(UTC) - view.heartbeat_at).total_seconds()))} ago"


def clock_offset_text(view: HostView) -> str:
    """Return how far a host's clock is ahead of the farm's: `+3.20 ms`; `-` if they were never compared."""
    if view.clock is None:
        return EMPTY_CELL
    sign = "-" if view.clock.ahead_s < 0 else "+"
    return f"{sign}{_clock_lag_text(abs(view.clock.ahead_s))}"


def device_counts_text(view: HostView) -> str:
    """Return `2 free, 1 busy, 1 not online`."""
    counts = [f"{n} {state.replace('_', ' ')}" for state, n in view.devices_by_state.items()]
    return ", ".join(counts) or EMPTY_CELL


def incident_text(incident: HostIncident) -> str:
    """Return the period, the cause and the devices of an incident."""
    affected = f" ({', '.join(incident.devices)})" if incident.devices else ""
    until = f" until {local_time_text(incident.ended_at)}" if incident.ended_at else ""
    return f"since {local_time_text(incident.began_at)}{until}: {incident.cause}{affected}"


def _clock_lag_text(seconds: float) -> str:
    return elapsed_text(seconds) if seconds >= 60 else duration_text(seconds * 1e9)


def _clock_text(view: HostView) -> str:
    if view.clock is None or view.clock_compared_at is None:
        return "not compared with the farm's yet"
    way = "behind" if view.clock.ahead_s < 0 else "ahead of"
    lag, bound = _clock_lag_text(abs(view.clock.ahead_s)), _clock_lag_text(view.clock.uncertainty_s)
    age = elapsed_text(max(0.0, (datetime.now(UTC) - view.clock_compared_at).total_seconds()))
    return f"{lag} {way} the farm's (± {bound}), compared {age} ago"


def _notes(view: HostView) -> Iterator[str]:
    if view.clock is not None and view.clock.is_off:
        yield f"{view.host_id}: its clock is {_clock_text(view)}"
    if view.why:
        yield f"{view.host_id}: {view.state}: {view.why}"
    yield from (f"{view.host_id}: {incident_text(incident)}" for incident in view.incidents)


def _fields(view: HostDetail) -> Iterator[tuple[str, object]]:
    since = f" since {local_time_text(view.since)}" if view.since else ""
    version = f", version {view.agent_version}" if view.agent_version else ""
    admission = "are admitted" if view.auto_admit else "wait"
    limit = "no limit" if view.max_runs is None else f"{view.max_runs} at most"
    yield "host", view.host_id
    yield "state", f"{view.state}{since}" + (f": {view.why}" if view.why else "")
    yield "agent", f"{view.session or 'never called'}{version}; last heard {last_heard_text(view)}"
    yield "clock", _clock_text(view)
    yield "joined", local_time_text(view.created_at)
    yield "devices", f"{device_counts_text(view)}; new devices {admission}"
    yield "runs", f"{len(view.runs)} ({limit})"
    for run in view.runs:
        yield (
            "",
            f"job {run.job_id} on {device_name(run)}, {run.state} since {local_time_text(run.claimed_at)}",
        )
    yield "queue", plural(view.queued_jobs, "job")
    for incident in (*view.incidents, *view.past_incidents):
        yield "incident", incident_text(incident)


app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="HOST", help="The name in `farm host list`.")]


@app.command("list")
def list_hosts(as_json: Json = False) -> None:
    """List the hosts: agent, devices, current runs, and problems. Short form: `farm hosts`.

    Example: farm host list --json
    """
    show_view(lambda farm: farm.hosts(), host_table, as_json=as_json)


@app.command("show")
def show_host(host: Name, as_json: Json = False) -> None:
    """Show one host in detail: agent, devices, current runs, incidents and events.

    Example: farm host show lab-2
    """
    show_view(lambda farm: farm.host(host), host_report, as_json=as_json)


@app.command()
def drain(
    host: Name,
    reason: Reason = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until its last run has ended.")] = False,
) -> None:
    """Stop starting runs on a host, checks included. Current runs end normally.

    Example: farm host drain lab-2 --reason "a new hub" --wait
    """
    with connect() as farm:
        change = farm.change_host(host, "drain", operator_request(OperatorRequest, reason=reason))
        print_change(change)
        for line in _running(change.host):
            print_notice(line)
        if wait:
            _wait_until_idle(farm, change.host)


@app.command()
def activate(host: Name, reason: Reason = None) -> None:
    """Give a drained host work again.

    Example: farm host activate lab-2
    """
    _change(host, "activate", OperatorRequest, reason=reason)


@app.command()
def limit(
    host: Name,
    runs: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Concurrent runs, checks included.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Remove the limit.")] = False,
    reason: Reason = None,
) -> None:
    """Limit the concurrent runs of a host. Without a limit each of its devices may have one.

    Example: farm host limit lab-2 --runs 4 --reason "its hub is weak"
    """
    if none == (runs is not None):
        raise InvalidInput("say how many, or --none", hint="farm host limit HOST --runs N")
    _change(host, "limit", LimitRequest, max_runs=runs, reason=reason)


@app.command()
def retire(
    host: Name,
    yes: Yes = False,
    reason: Reason = None,
) -> None:
    """Remove a host from the farm: revoke its credential; its current runs are lost.

    The machine can join again with a new token.

    Example: farm host retire lab-2 --yes
    """
    with connect() as farm:
        plan = farm.host_retirement(host)
        print_notice(_plan_text(plan))
        if not yes:
            confirm("Retire it?")
        print_change(farm.change_host(host, "retire", operator_request(OperatorRequest, reason=reason)))


def _plan_text(plan: HostRetirementPlan) -> str:
    view = plan.host
    names = f": {', '.join(plan.devices)}" if plan.devices else ""
    lines = [f"{view.host_id} has {plural(len(plan.devices), 'device')}{names}."]
    lines += [f"{line}: it will be lost." for line in _running(view)]
    if plan.queued_jobs:
        of = f" of {', '.join(f'matrix {matrix_id}' for matrix_id in plan.matrices)}" if plan.matrices else ""
        lines.append(
            f"{plural(plan.queued_jobs, 'queued job')}{of} will wait until the devices are attached to "
            "another host; `farm device retire ID` cancels the jobs of a device."
        )
    return "\n".join(lines)


def _running(view: HostView) -> list[str]:
    return [f"job {run.job_id} runs on {device_name(run)} ({run.state})" for run in view.runs]


def _wait_until_idle(farm: FarmClient, view: HostView) -> None:
    wait_for(
        lambda: farm.host(view.host_id),
        lambda now: now.is_idle,
        _waiting_text,
        detached="It stays drained, and its current runs end normally.",
    )
    print_notice(f"{view.host_id} is idle.")


def _waiting_text(view: HostView) -> str:
    if view.runs:
        return f"waiting for {plural(len(view.runs), 'run')} to end on {view.host_id}"
    uncleaned = view.devices_by_state.get(Blocker.NOT_CLEANED, 0)
    return f"waiting for {plural(uncleaned, 'device')} to be cleaned up"


def _change(host: str, verb: str, kind: type[OperatorRequest], **fields: object) -> None:
    with connect() as farm:
        print_change(farm.change_host(host, verb, operator_request(kind, **fields)))
