"""`farm host`: list, drain, limit and retire hosts."""

from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.identity import operator_request
from farm.cli.shell.output import Json, confirm, out, print_json, print_notice
from farm.cli.shell.output import show as show_list
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.devices import OperatorRequest
    from farm.wire.documents.hosts import HostChange, HostRetirementPlan, HostView

app = typer.Typer(
    no_args_is_help=True, help="Hosts: the machines that devices are attached to, and their agents."
)

Name = Annotated[str, typer.Argument(metavar="HOST", help="The name in `farm host list`.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Recorded with the event.")]


@app.command("list")
def list_hosts(as_json: Json = False) -> None:
    """List the hosts: agent, devices, current runs, and problems. Short form: `farm hosts`.

    Example: farm host list --json
    """
    from farm.cli.hosts.report import host_table

    with connect() as farm:
        show_list(farm.hosts(), host_table, as_json=as_json)


@app.command()
def show(host: Name, as_json: Json = False) -> None:
    """Show one host in detail: agent, devices, current runs, incidents and events.

    Example: farm host show lab-2
    """
    from farm.cli.hosts.report import host_report

    with connect() as farm:
        view = farm.host(host)
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(host_report(view))


@app.command()
def drain(
    host: Name,
    reason: Reason = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until its last run has ended.")] = False,
) -> None:
    """Stop starting runs on a host, checks included. Current runs end normally.

    Example: farm host drain lab-2 --reason "a new hub" --wait
    """
    from farm.wire.documents.devices import OperatorRequest

    with connect() as farm:
        change = farm.change_host(host, "drain", operator_request(OperatorRequest, reason=reason))
        _print_change(change)
        for line in _running(change.host):
            print_notice(line)
        if wait:
            _wait_until_idle(farm, change.host)


@app.command()
def activate(host: Name, reason: Reason = None) -> None:
    """Give a drained host work again.

    Example: farm host activate lab-2
    """
    from farm.wire.documents.devices import OperatorRequest

    _change(host, "activate", operator_request(OperatorRequest, reason=reason))


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
    from farm.wire.documents.hosts import LimitRequest

    if none == (runs is not None):
        raise InvalidInput("say how many, or --none", hint="farm host limit HOST --runs N")
    _change(host, "limit", operator_request(LimitRequest, max_runs=runs, reason=reason))


@app.command()
def retire(
    host: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    reason: Reason = None,
) -> None:
    """Remove a host from the farm: revoke its credential; its current runs are lost.

    The machine can join again with a new token.

    Example: farm host retire lab-2 --yes
    """
    from farm.wire.documents.devices import OperatorRequest

    with connect() as farm:
        plan = farm.host_retirement(host)
        print_notice(_plan_text(plan))
        if not yes:
            confirm("Retire it?")
        _print_change(farm.change_host(host, "retire", operator_request(OperatorRequest, reason=reason)))


def _plan_text(plan: "HostRetirementPlan") -> str:
    from farm.cli.shell.formatting import plural

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


def _running(view: "HostView") -> list[str]:
    return [f"job {run.job_id} runs on {run.device_id} ({run.state})" for run in view.runs]


def _wait_until_idle(farm: "FarmClient", view: "HostView") -> None:
    from farm.cli.shell.wait import wait_for

    try:
        wait_for(lambda: farm.host(view.host_id), lambda now: now.is_idle, _waiting_text)
    except KeyboardInterrupt:
        print_notice("It stays drained, and its current runs end normally.")
        raise typer.Exit(130) from None
    print_notice(f"{view.host_id} is idle.")


def _waiting_text(view: "HostView") -> str:
    from farm.cli.shell.formatting import plural

    if view.runs:
        return f"waiting for {plural(len(view.runs), 'run')} to end on {view.host_id}"
    return f"waiting for {plural(view.phones.get('not_cleaned', 0), 'device')} to be cleaned up"


def _change(host: str, verb: str, request: "OperatorRequest") -> None:
    with connect() as farm:
        _print_change(farm.change_host(host, verb, request))


def _print_change(change: "HostChange") -> None:
    print_notice(f"{change.said}." if change.changed else f"Nothing changed: {change.said}.")
