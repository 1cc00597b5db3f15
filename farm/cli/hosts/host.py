"""`farm host`: what operators see of machines with phones and decide about them."""

from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.hosts.hosts import hosts
from farm.cli.shell.address import connect
from farm.cli.shell.identity import operator_request
from farm.cli.shell.output import Json, confirm, out, print_json, print_notice
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.devices import OperatorRequest
    from farm.wire.documents.hosts import HostChange, HostRetirementPlan, HostView

app = typer.Typer(no_args_is_help=True, help="Hosts: the machines that phones hang on, and their agents.")

Name = Annotated[str, typer.Argument(metavar="HOST", help="As `farm hosts` names it.")]
Why = Annotated[str | None, typer.Option("--reason", help="Kept with the event.")]

app.command("list")(hosts)


@app.command()
def show(host: Name, as_json: Json = False) -> None:
    """Show all of one host: its agent, its phones, what runs there, what happened to it.

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
    reason: Why = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until nothing runs there any more.")] = False,
) -> None:
    """Begin nothing new on a host, checks included. What runs there goes on to its end.

    Example: farm host drain lab-2 --reason "a new hub" --wait
    """
    from farm.wire.documents.devices import OperatorRequest

    with connect() as farm:
        change = farm.change_host(host, "drain", operator_request(OperatorRequest, reason=reason))
        _say(change)
        for line in _running(change.host):
            print_notice(line)
        if wait:
            _wait_until_idle(farm, change.host)


@app.command()
def activate(host: Name, reason: Why = None) -> None:
    """Give a drained host work again.

    Example: farm host activate lab-2
    """
    from farm.wire.documents.devices import OperatorRequest

    _change(host, "activate", operator_request(OperatorRequest, reason=reason))


@app.command()
def limit(
    host: Name,
    runs: Annotated[int | None, typer.Option(min=1, max=10_000, help="At once, checks included.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Take the limit away.")] = False,
    reason: Why = None,
) -> None:
    """Set how many runs a host may have at once; without a limit each of its phones may have one.

    Example: farm host limit lab-2 --runs 4 --reason "its hub is weak"
    """
    from farm.wire.documents.hosts import LimitRequest

    if none == (runs is not None):
        raise InvalidInput("say how many, or --none", hint="farm host limit HOST --runs N")
    _change(host, "limit", operator_request(LimitRequest, max_runs=runs, reason=reason))


@app.command()
def retire(
    host: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not confirm.")] = False,
    reason: Why = None,
) -> None:
    """Take a host out of the farm: its credential opens nothing any more, and what runs there is lost.

    Its machine can join again, with a new token.

    Example: farm host retire lab-2 --yes
    """
    from farm.wire.documents.devices import OperatorRequest

    with connect() as farm:
        plan = farm.host_retirement(host)
        print_notice(_plan_text(plan))
        if not yes:
            confirm("Retire it?")
        _say(farm.change_host(host, "retire", operator_request(OperatorRequest, reason=reason)))


def _plan_text(plan: "HostRetirementPlan") -> str:
    from farm.cli.shell.formatting import plural

    view = plan.host
    phones = f": {', '.join(plan.devices)}" if plan.devices else ""
    lines = [f"{view.host_id} has {plural(len(plan.devices), 'phone')}{phones}."]
    lines += [f"{line}: that will be lost." for line in _running(view)]
    if plan.queued_jobs:
        of = f" of {', '.join(f'matrix {each}' for each in plan.matrices)}" if plan.matrices else ""
        lines.append(
            f"{plural(plan.queued_jobs, 'queued job')}{of} will wait until the phones turn up at "
            "another host; `farm device retire ID` cancels what waits for one."
        )
    return "\n".join(lines)


def _running(view: "HostView") -> list[str]:
    return [f"job {run.job_id} runs on {run.device_id} ({run.state})" for run in view.runs]


def _wait_until_idle(farm: "FarmClient", view: "HostView") -> None:
    from farm.cli.shell.wait import wait_for

    try:
        wait_for(lambda: farm.host(view.host_id), lambda now: now.is_idle, _waiting_text)
    except KeyboardInterrupt:
        print_notice("It stays drained, and what runs there goes on to its end.")
        raise typer.Exit(130) from None
    print_notice(f"Nothing runs on {view.host_id} any more.")


def _waiting_text(view: "HostView") -> str:
    from farm.cli.shell.formatting import plural

    if view.runs:
        return f"waiting for {plural(len(view.runs), 'run')} to end on {view.host_id}"
    return f"waiting for {plural(view.phones.get('not_cleaned', 0), 'phone')} to be cleaned up"


def _change(host: str, verb: str, request: "OperatorRequest") -> None:
    with connect() as farm:
        _say(farm.change_host(host, verb, request))


def _say(change: "HostChange") -> None:
    print_notice(f"{change.said}." if change.changed else f"Nothing changed: {change.said}.")
