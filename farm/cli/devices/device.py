"""`farm device`: list, admit, label, reserve and maintain devices."""

from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.devices import actions, provision, reservations
from farm.cli.events.alarms import warn_of_alarms
from farm.cli.shell.address import connect
from farm.cli.shell.identity import operator_request
from farm.cli.shell.output import Json, confirm, out, print_json, print_notice
from farm.cli.shell.output import show as show_list
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from farm.wire.documents.devices import DeviceChange, OperatorRequest, RetirementPlan

app = typer.Typer(no_args_is_help=True, help="Devices: list, admit, label, reserve and maintain them.")

Id = Annotated[str, typer.Argument(metavar="ID", help="Device id, label, or a unique prefix of either.")]
Ids = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Device ids, labels, or unique prefixes of them.")
]
OptionalReason = Annotated[str | None, typer.Option("--reason", help="Recorded with the event.")]
Reason = Annotated[str, typer.Option(help="Recorded with the event, for other operators.")]


@app.command("list")
def list_devices(as_json: Json = False) -> None:
    """List the devices: model, state, and what to do about those with a problem. Short form: `farm devices`.

    Example: farm device list --json
    """
    from farm.cli.devices.table import device_table

    with connect() as farm:
        show_list(farm.devices(), device_table, as_json=as_json)
        if not as_json:
            warn_of_alarms(farm)


app.command("reserve")(reservations.reserve)
app.command("release")(reservations.release)
app.command("identify")(actions.identify)
app.command("provision")(provision.provision)
app.command("clean")(actions.clean)


@app.command()
def show(device: Id, as_json: Json = False) -> None:
    """Show one device in detail: hardware, state, pending reasons, recent attempts and events.

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
    device: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The devices to admit.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All devices that await admission.")] = False,
    host: Annotated[str | None, typer.Option(help="With --all: only devices of this host.")] = None,
    reason: OptionalReason = None,
) -> None:
    """Admit devices to the pool. A retired device is admitted again only by its own id.

    Example: farm device admit --all --host lab-2
    """
    from farm.wire.documents.devices import OperatorRequest

    if every == bool(device) or (host and not every):
        raise InvalidInput("name devices, or use --all", hint="farm device admit --all [--host HOST]")
    with connect() as farm:
        waiting = [view for view in farm.devices() if view.admin == "pending" and host in (None, view.host)]
        named = [view.device_id for view in waiting] if every else device or []
        for name in named:
            _print_change(farm.change_device(name, "admit", operator_request(OperatorRequest, reason=reason)))
    if not named:
        print_notice(
            "No device awaits admission." if host is None else f"No device of {host} awaits admission."
        )


@app.command()
def label(
    device: Id,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Letters, digits, `.`, `_`, `-`.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the label.")] = False,
    reason: OptionalReason = None,
) -> None:
    """Label a device. Every command accepts the label instead of the id.

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
    reason: OptionalReason = None,
) -> None:
    """Add or remove tags of a device. Matrices select devices by tags.

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
def check(device: Id, reason: OptionalReason = None) -> None:
    """Request a health check, ahead of all queued jobs of the device. A run in progress ends first.

    Example: farm device check bench-a
    """
    from farm.wire.documents.devices import OperatorRequest

    _change(device, "check", operator_request(OperatorRequest, reason=reason))


@app.command()
def rebaseline(device: Id, reason: Reason) -> None:
    """Begin a new reference range: compare reference runs only with those of the device from now on.

    Use it for a device that is permanently slower, for example after a battery swap. Only another rebaseline
    replaces it.

    Example: farm device rebaseline bench-a --reason "a new battery, the maker's limit is lower"
    """
    from farm.wire.documents.devices import RebaselineRequest

    _change(device, "rebaseline", operator_request(RebaselineRequest, reason=reason))


@app.command()
def cordon(device: Id, reason: Reason) -> None:
    """Stop giving a device work. A run in progress ends normally; queued jobs wait for uncordon.

    Example: farm device cordon bench-a --reason "swollen battery"
    """
    from farm.wire.documents.devices import OperatorRequest

    _change(device, "cordon", operator_request(OperatorRequest, reason=reason))


@app.command()
def uncordon(device: Id, reason: OptionalReason = None) -> None:
    """Give a cordoned device work again.

    Example: farm device uncordon bench-a
    """
    from farm.wire.documents.devices import OperatorRequest

    _change(device, "uncordon", operator_request(OperatorRequest, reason=reason))


@app.command()
def retire(
    device: Id,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    reason: OptionalReason = None,
) -> None:
    """Remove a device from the farm and cancel its queued jobs. It stays retired when it is plugged in again.

    Example: farm device retire bench-a --yes
    """
    from farm.wire.documents.devices import OperatorRequest

    with connect() as farm:
        plan = farm.retirement(device)
        print_notice(_plan_text(plan))
        if not yes:
            confirm("Retire it?")
        _print_change(
            farm.change_device(
                plan.device.device_id, "retire", operator_request(OperatorRequest, reason=reason)
            )
        )


def _plan_text(plan: "RetirementPlan") -> str:
    from farm.cli.shell.formatting import plural

    view = plan.device
    of = f" of {', '.join(f'matrix {matrix_id}' for matrix_id in plan.matrices)}" if plan.matrices else ""
    lines = [f"{view.name} on {view.host}: {plural(plan.queued_jobs, 'queued job')}{of} will be cancelled."]
    if view.job_id is not None:
        lines.append(f"Job {view.job_id} is running there and will finish.")
    return "\n".join(lines)


def _change(device: str, verb: str, request: "OperatorRequest") -> None:
    with connect() as farm:
        _print_change(farm.change_device(device, verb, request))


def _print_change(change: "DeviceChange") -> None:
    print_notice(f"{change.said}." if change.changed else f"Nothing changed: {change.said}.")
