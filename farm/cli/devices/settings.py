"""`farm device setup`: what a phone on a shelf needs of its settings."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.devices.actions import Id, run_device_action
from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json, print_notice
from farm.core.errors import InvalidInput
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import MANUAL_STEPS, DeviceSettingsRecord, SettingState

if TYPE_CHECKING:
    from farm.wire.documents.devices import DeviceDetail


def setup(
    device: Id,
    yes: Annotated[bool, typer.Option("--yes", help="Change what differs, without a question.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only look; ask nothing.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Put back what the farm changed.")] = False,
    as_json: Json = False,
) -> None:
    """Look at the settings that a phone on a shelf needs, and change those that differ if you agree.

    Example: farm device setup bench-a --yes
    """
    if yes + check + undo > 1:
        raise InvalidInput(
            "--yes, --check and --undo exclude each other", hint="farm device setup ID --check"
        )
    if yes or undo:
        run_device_action(
            device, DeviceActionKind.RESTORE_SETTINGS if undo else DeviceActionKind.PROVISION, tells=False
        )
    else:
        run_device_action(device, DeviceActionKind.CHECK_SETTINGS, tells=False)
    view = _show_settings(device, as_json=as_json)
    differing = _count_differing(view.settings)
    if yes or check or undo or not differing:
        return
    if not sys.stdin.isatty():
        print_notice(f"Nothing was changed: farm device setup {view.name} --yes changes these {differing}.")
        return
    typer.confirm(f"Change these {differing}?", abort=True, err=True)
    run_device_action(device, DeviceActionKind.PROVISION, tells=False)
    _show_settings(device, as_json=as_json)


def _show_settings(device: str, *, as_json: bool) -> "DeviceDetail":
    from farm.cli.devices.settings_table import settings_line, settings_reasons, settings_table

    with connect() as farm:
        view = farm.device(device)
    if view.settings is None:
        return view
    if as_json:
        print_json(view.model_dump(mode="json")["settings"])
    else:
        out().print(settings_table(view.settings))
        for reason in settings_reasons(view.settings):
            out().print(reason, markup=False, soft_wrap=True)
        print_notice(f"{view.name}: {settings_line(view.settings)}.")
        for step in MANUAL_STEPS if view.settings.kind is not DeviceActionKind.RESTORE_SETTINGS else ():
            print_notice(f"By hand: {step}.")
    return view


def _count_differing(record: DeviceSettingsRecord | None) -> int:
    found = () if record is None else record.settings
    return sum(each.state is SettingState.DIFFERENT for each in found)
