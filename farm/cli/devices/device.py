"""`farm device`: what operators see of phones and decide about them."""

from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.devices import actions, reservations, settings
from farm.cli.devices.devices import devices
from farm.cli.shell.address import connect
from farm.cli.shell.identity import operator_request
from farm.cli.shell.output import Json, confirm, out, print_json, print_notice
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from farm.wire.documents.devices import DeviceChange, OperatorRequest, RetirementPlan

app = typer.Typer(no_args_is_help=True, help="Phones: how they are, what they are called, who may use them.")

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, its label, or the beginning of either.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, labels, or beginnings of them.")]
Why = Annotated[str | None, typer.Option("--reason", help="Kept with the event.")]

app.command("list")(devices)
app.command("identify")(actions.identify)
app.command("clean")(actions.clean)
app.command("setup")(settings.setup)
app.command("hold")(reservations.reserve)
app.command("release")(reservations.release)


@app.command()
def show(device: Id, as_json: Json = False) -> None:
    """Show all of one phone: what it is, how it is, what it waits for, what happened to it.

    Example: farm device show bench-a
    """
    from farm.cli.devices.report import device_report

    with connect() as farm:
        view = farm.device(device)
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(device_report(view))


@app.command()
def admit(
    device: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Which phones.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All that wait to be admitted.")] = False,
    host: Annotated[str | None, typer.Option(help="With --all: those of this host.")] = None,
    reason: Why = None,
) -> None:
    """Let phones into the pool. A retired one comes back only by its own id.

    Example: farm device admit --all --host lab-2
    """
    from farm.wire.documents.devices import OperatorRequest

    if every == bool(device) or (host and not every):
        raise InvalidInput("name phones, or use --all", hint="farm device admit --all [--host HOST]")
    with connect() as farm:
        waiting = [view for view in farm.devices() if view.admin == "pending" and host in (None, view.host)]
        named = [view.device_id for view in waiting] if every else device or []
        for name in named:
            _say(farm.change_device(name, "admit", operator_request(OperatorRequest, reason=reason)))
    if not named:
        print_notice(
            "No phone waits to be admitted." if host is None else f"No phone of {host} waits to be admitted."
        )


@app.command()
def label(
    device: Id,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Letters, digits, `.`, `_`, `-`.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take its label away.")] = False,
    reason: Why = None,
) -> None:
    """Give a phone a name of yours; every command takes it in place of the id.

    Example: farm device label R5CR70ABCDE bench-a
    """
    from farm.wire.documents.devices import LabelRequest

    if clear == (name is not None):
        raise InvalidInput("give a name, or --clear", hint="farm device label ID NAME")
    _change(device, "label", operator_request(LabelRequest, label=name, reason=reason))


@app.command()
def tag(
    device: Id,
    add: Annotated[list[str] | None, typer.Argument(metavar="[TAG]...", help="Tags to add.")] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="TAG", help="May be repeated.")
    ] = None,
    reason: Why = None,
) -> None:
    """Add tags to a phone, or remove them; matrices select phones by them.

    Example: farm device tag bench-a camera rooted --remove old
    """
    from farm.wire.documents.devices import TagRequest

    if not add and not remove:
        raise InvalidInput("name a tag to add, or --remove TAG", hint="`farm device show ID` lists its tags")
    _change(
        device,
        "tags",
        operator_request(TagRequest, add=tuple(add or ()), remove=tuple(remove or ()), reason=reason),
    )


@app.command()
def check(device: Id, reason: Why = None) -> None:
    """Have a phone checked now, before everything that waits for it. A run under way ends first.

    Example: farm device check bench-a
    """
    from farm.wire.documents.devices import OperatorRequest

    _change(device, "check", operator_request(OperatorRequest, reason=reason))


@app.command()
def accept(device: Id, reason: Annotated[str, typer.Option(help="Why; others will confirm.")]) -> None:
    """Take how fast a phone is now for right: its golden runs are compared with its own alone from now on.

    For a phone that is slower for good, say after a battery swap. Only another accept takes it back.

    Example: farm device accept bench-a --reason "a new battery, the maker's limit is lower"
    """
    from farm.wire.documents.devices import RebaselineRequest

    _change(device, "accept", operator_request(RebaselineRequest, reason=reason))


@app.command()
def cordon(device: Id, reason: Annotated[str, typer.Option(help="Why; others will confirm.")]) -> None:
    """Give a phone no further work. A run under way ends; its queue waits for uncordon.

    Example: farm device cordon bench-a --reason "the battery swells"
    """
    from farm.wire.documents.devices import OperatorRequest

    _change(device, "cordon", operator_request(OperatorRequest, reason=reason))


@app.command()
def uncordon(device: Id, reason: Why = None) -> None:
    """Give a cordoned phone work again.

    Example: farm device uncordon bench-a
    """
    from farm.wire.documents.devices import OperatorRequest

    _change(device, "uncordon", operator_request(OperatorRequest, reason=reason))


@app.command()
def retire(
    device: Id,
    yes: Annotated[bool, typer.Option("--yes", help="Do not confirm.")] = False,
    reason: Why = None,
) -> None:
    """Take a phone out of the farm. What is queued for it is cancelled; plugged in again, it stays retired.

    Example: farm device retire bench-a --yes
    """
    from farm.wire.documents.devices import OperatorRequest

    with connect() as farm:
        plan = farm.retirement(device)
        print_notice(_plan_text(plan))
        if not yes:
            confirm("Retire it?")
        _say(
            farm.change_device(
                plan.device.device_id, "retire", operator_request(OperatorRequest, reason=reason)
            )
        )


def _plan_text(plan: "RetirementPlan") -> str:
    from farm.cli.shell.formatting import plural

    view = plan.device
    of = f" of {', '.join(f'matrix {each}' for each in plan.matrices)}" if plan.matrices else ""
    lines = [f"{view.name} on {view.host}: {plural(plan.queued_jobs, 'queued job')}{of} will be cancelled."]
    if view.job_id is not None:
        lines.append(f"Job {view.job_id} runs there now, and to its end.")
    return "\n".join(lines)


def _change(device: str, verb: str, request: "OperatorRequest") -> None:
    with connect() as farm:
        _say(farm.change_device(device, verb, request))


def _say(change: "DeviceChange") -> None:
    print_notice(f"{change.said}." if change.changed else f"Nothing changed: {change.said}.")
