"""`farm device`: list, admit, label, reserve and maintain devices."""

import sys
from itertools import islice
from shlex import quote
from typing import Annotated

import typer

from farm.cli.devices.report import (
    device_report,
    device_table,
    settings_line,
    settings_reasons,
    settings_table,
)
from farm.cli.devices.reservation import reserve_device
from farm.cli.devices.usage import usage_of_weeks, usage_report
from farm.cli.events.alarms import warn_of_alarms
from farm.cli.shell.address import connect, show_view
from farm.cli.shell.identity import operator_request, print_change
from farm.cli.shell.options import DeviceName, Json, Reason, Yes
from farm.cli.shell.output import confirm, print_data, print_json, print_notice, show
from farm.cli.shell.wait import wait_for
from farm.core.devices.device import Admin
from farm.core.errors import DeviceError, InvalidInput
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import MANUAL_STEPS, SettingState
from farm.presentation.device_state import StateClass, is_found
from farm.presentation.text import plural, seconds
from farm.wire.documents.devices import (
    DeviceActionView,
    DeviceDetail,
    LabelRequest,
    OperatorRequest,
    RebaselineRequest,
    ReleaseRequest,
    RetirementPlan,
    TagRequest,
)

app = typer.Typer(no_args_is_help=True)

RequiredReason = Annotated[str, typer.Option(help="Recorded with the event, for other operators.")]


@app.command("list")
def list_devices(
    usage: Annotated[
        bool, typer.Option("--usage", help="Show what the time of the devices was used for.")
    ] = False,
    week: Annotated[
        str | None, typer.Option(metavar="WEEK", help="With --usage: an ISO week, like 2026-W47.")
    ] = None,
    weeks: Annotated[
        int, typer.Option(min=1, max=53, help="With --usage: also the weeks before, this many in all.")
    ] = 1,
    find: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only those with each word in name, id, model, SoC, host or tags."),
    ] = None,
    state: Annotated[
        StateClass | None, typer.Option(help="Only those that run, are free, wait, or need attention.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the devices: model, state, and what to do about those with a problem. Short form: `farm devices`.

    With --usage: in per cent of each week, for each device and each device model, how long devices measured,
    were prepared, were not fit, were checked, waited for work, and were away. docs/operator.md defines these.

    Example: farm device list --find "pixel 8" --state down

    Example: farm device list --usage --weeks 4
    """
    if not usage and (week is not None or weeks > 1):
        raise InvalidInput("--week and --weeks need --usage", hint="farm device list --usage --weeks 4")
    if usage and (find or state):
        raise InvalidInput("--usage goes without --find and --state", hint="leave one of them out")
    with connect() as farm:
        if usage:
            views = list(islice(usage_of_weeks(farm.device_usage, week), weeks))
            show(views, usage_report, as_json=as_json)
            return
        devices = [view for view in farm.devices() if is_found(view, find or "", state)]
        show(devices, device_table, as_json=as_json)
        if not as_json:
            warn_of_alarms(farm)


@app.command()
def reserve(
    device: DeviceName,
    span: Annotated[str, typer.Option("--for", metavar="TIME", help="Duration from now: 30m, 2h, 7d.")],
    reason: Annotated[str | None, typer.Option(help="Recorded with the event, for other operators.")] = None,
) -> None:
    """Reserve a device for yourself for a limited time. Run it again to change the end of the reservation.

    A run in progress ends first, and the command waits for it. After the reservation the device is checked
    before it gets work again.

    Example: farm device reserve bench-a --for 2h --reason "try a driver"
    """
    with connect() as farm:
        view = reserve_device(farm, device, seconds(span), reason, detached="It stays reserved")
    if view.is_reachable:
        print_notice(f"It is reserved for you. Connect to it: farm adb {quote(view.name)} shell")
    else:
        print_notice(f"It is {view.presence} now; the farm will run nothing on it when it comes back.")


@app.command()
def release(
    device: DeviceName,
    force: Annotated[
        bool, typer.Option("--force", help="Also release a device that another person has reserved.")
    ] = False,
    assert_clean: Annotated[
        bool,
        typer.Option("--assert-clean", help="Assert that nothing is left of a run whose host is lost."),
    ] = False,
    reason: Reason = None,
) -> None:
    """Release a device that you have reserved. It is checked before it gets work.

    With --assert-clean: give work to a device again whose host was lost during a run. No agent can check such
    a device, so you assert that it is clean, for example after a reset.

    Example: farm device release bench-a

    Example: farm device release bench-a --assert-clean --reason "reset to factory settings"
    """
    if assert_clean and reason is None:
        hint = 'add --reason, like --reason "reset to factory settings"'
        raise InvalidInput("--assert-clean needs a reason", hint=hint)
    request = operator_request(ReleaseRequest, force=force, assert_clean=assert_clean, reason=reason)
    with connect() as farm:
        print_change(farm.change_device(device, "release", request))


@app.command()
def identify(device: DeviceName, as_json: Json = False) -> None:
    """Wake the screen of a device and show its name for 15 s. An old device blinks instead.

    Example: farm device identify bench-a
    """
    _print_action(run_device_action(device, DeviceActionKind.IDENTIFY), as_json=as_json)


@app.command()
def provision(
    device: DeviceName,
    yes: Annotated[
        bool, typer.Option("--yes", help="Change the settings that differ, without confirmation.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check; change nothing.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the settings that the farm changed.")] = False,
    as_json: Json = False,
) -> None:
    """Check the device settings profile, and change the settings that differ after confirmation.

    Example: farm device provision bench-a --yes
    """
    if yes + check + undo > 1:
        hint = "farm device provision ID --check"
        raise InvalidInput("--yes, --check and --undo exclude each other", hint=hint)
    change = DeviceActionKind.RESTORE_SETTINGS if undo else DeviceActionKind.PROVISION
    run_device_action(device, change if yes or undo else DeviceActionKind.CHECK_SETTINGS)
    view = _show_settings(device, as_json=as_json)
    settings = () if view.settings is None else view.settings.settings
    differing = sum(setting.state is SettingState.DIFFERENT for setting in settings)
    if yes or check or undo or not differing:
        return
    if not sys.stdin.isatty():
        print_notice(
            f"Nothing was changed: farm device provision {view.name} --yes changes these {differing}."
        )
        return
    typer.confirm(f"Change these {differing}?", abort=True, err=True)
    run_device_action(device, DeviceActionKind.PROVISION)
    _show_settings(device, as_json=as_json)


@app.command()
def clean(device: DeviceName, as_json: Json = False) -> None:
    """End left-over processes on a device and empty its cache. Prints how much space was freed.

    Example: farm device clean bench-a
    """
    _print_action(run_device_action(device, DeviceActionKind.CLEAN), as_json=as_json)


@app.command("show")
def show_device(device: DeviceName, as_json: Json = False) -> None:
    """Show one device in detail: hardware, state, pending reasons, recent attempts and events.

    Example: farm device show bench-a
    """
    show_view(lambda farm: farm.device(device), device_report, as_json=as_json)


@app.command()
def admit(
    device: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The devices to admit.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All devices that await admission.")] = False,
    host: Annotated[str | None, typer.Option(help="With --all: only devices of this host.")] = None,
    reason: Reason = None,
) -> None:
    """Admit devices to the pool. A retired device is admitted again only by its own id.

    Example: farm device admit --all --host lab-2
    """
    if every == bool(device) or (host and not every):
        raise InvalidInput("name devices, or use --all", hint="farm device admit --all [--host HOST]")
    with connect() as farm:
        waiting = [
            view for view in farm.devices() if view.admin is Admin.PENDING and host in (None, view.host)
        ]
        named = [view.device_id for view in waiting] if every else device or []
        for name in named:
            print_change(farm.change_device(name, "admit", operator_request(OperatorRequest, reason=reason)))
    if not named:
        print_notice(
            "No device awaits admission." if host is None else f"No device of {host} awaits admission."
        )


@app.command()
def label(
    device: DeviceName,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Letters, digits, `.`, `_`, `-`.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the label.")] = False,
    reason: Reason = None,
) -> None:
    """Label a device. Every command accepts the label instead of the id.

    Example: farm device label R5CR70ABCDE bench-a
    """
    if clear == (name is not None):
        raise InvalidInput("give a name, or --clear", hint="farm device label ID NAME")
    _change(device, "label", LabelRequest, label=name, reason=reason)


@app.command()
def tag(
    device: DeviceName,
    add: Annotated[list[str] | None, typer.Argument(metavar="[TAG]...", help="Tags to add.")] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="TAG", help="May be repeated.")
    ] = None,
    reason: Reason = None,
) -> None:
    """Add or remove tags of a device. Matrices select devices by tags.

    Example: farm device tag bench-a camera rooted --remove old
    """
    if not add and not remove:
        raise InvalidInput("name a tag to add, or --remove TAG", hint="`farm device show ID` lists its tags")
    _change(device, "tags", TagRequest, add=tuple(add or ()), remove=tuple(remove or ()), reason=reason)


@app.command()
def check(device: DeviceName, reason: Reason = None) -> None:
    """Request a health check, ahead of all queued jobs of the device. A run in progress ends first.

    Example: farm device check bench-a
    """
    _change(device, "check", OperatorRequest, reason=reason)


@app.command()
def rebaseline(device: DeviceName, reason: RequiredReason) -> None:
    """Begin a new reference range: compare reference runs only with those of the device from now on.

    Use it for a device that is permanently slower, for example after a battery swap. Only another rebaseline
    replaces it.

    Example: farm device rebaseline bench-a --reason "a new battery, the maker's limit is lower"
    """
    _change(device, "rebaseline", RebaselineRequest, reason=reason)


@app.command()
def cordon(device: DeviceName, reason: RequiredReason) -> None:
    """Stop giving a device work. A run in progress ends normally; queued jobs wait for uncordon.

    Example: farm device cordon bench-a --reason "swollen battery"
    """
    _change(device, "cordon", OperatorRequest, reason=reason)


@app.command()
def uncordon(device: DeviceName, reason: Reason = None) -> None:
    """Give a cordoned device work again.

    Example: farm device uncordon bench-a
    """
    _change(device, "uncordon", OperatorRequest, reason=reason)


@app.command()
def retire(
    device: DeviceName,
    yes: Yes = False,
    reason: Reason = None,
) -> None:
    """Remove a device from the farm and cancel its queued jobs. It stays retired when it is plugged in again.

    Example: farm device retire bench-a --yes
    """
    with connect() as farm:
        plan = farm.retirement(device)
        print_notice(_plan_text(plan))
        if not yes:
            confirm("Retire it?")
        print_change(
            farm.change_device(
                plan.device.device_id, "retire", operator_request(OperatorRequest, reason=reason)
            )
        )


def _plan_text(plan: RetirementPlan) -> str:
    view = plan.device
    of = f" of {', '.join(f'matrix {matrix_id}' for matrix_id in plan.matrices)}" if plan.matrices else ""
    lines = [f"{view.name} on {view.host}: {plural(plan.queued_jobs, 'queued job')}{of} will be cancelled."]
    if view.job_id is not None:
        lines.append(f"Job {view.job_id} is running there and will finish.")
    return "\n".join(lines)


def _change(device: str, verb: str, kind: type[OperatorRequest], **fields: object) -> None:
    with connect() as farm:
        print_change(farm.change_device(device, verb, operator_request(kind, **fields)))


def run_device_action(device: str, kind: DeviceActionKind) -> DeviceActionView:
    """Request a device action, and wait until it has ended.

    Raises:
        DeviceError: the action failed.
    """
    with connect() as farm:
        action = farm.request_device_action(device, kind, operator_request(OperatorRequest))
        until = f"{action.expires_at.astimezone():%H:%M}"
        action = wait_for(
            lambda: farm.device_action(action.device_action_id),
            lambda current: current.finished_at is not None,
            _action_text,
            detached=f"Action {action.device_action_id} is open until {until}.",
        )
    if action.error is not None:
        raise DeviceError(f"{action.name}: {action.error}", hint=f"farm device show {action.device_id}")
    return action


def _action_text(action: DeviceActionView) -> str:
    if action.waiting_for is None:
        return f"{action.name}: waiting for its agent to {_VERBS.get(action.kind, f'{action.kind} it')}"
    return f"{action.name}: waiting, {action.waiting_for}"


def _print_action(action: DeviceActionView, *, as_json: bool) -> None:
    print_notice(f"{action.name}: {action.done}.")
    if as_json:
        print_json(action)


def _show_settings(device: str, *, as_json: bool) -> DeviceDetail:
    with connect() as farm:
        view = farm.device(device)
    if view.settings is None:
        return view
    if as_json:
        print_json(view.model_dump(mode="json")["settings"])
        return view
    print_data(settings_table(view.settings))
    for reason in settings_reasons(view.settings):
        print_data(reason)
    print_notice(f"{view.name}: {settings_line(view.settings)}.")
    for step in MANUAL_STEPS if view.settings.kind is not DeviceActionKind.RESTORE_SETTINGS else ():
        print_notice(f"Manual step: {step}.")
    return view


_VERBS = {
    DeviceActionKind.CHECK_SETTINGS: "check its settings",
    DeviceActionKind.PROVISION: "provision it",
    DeviceActionKind.RESTORE_SETTINGS: "restore its settings",
}
