"""`farm device provision`: check and change the settings of a device."""

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


def provision(
    device: Id,
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
        raise InvalidInput(
            "--yes, --check and --undo exclude each other", hint="farm device provision ID --check"
        )
    if yes or undo:
        run_device_action(
            device, DeviceActionKind.RESTORE_SETTINGS if undo else DeviceActionKind.PROVISION, prints=False
        )
    else:
        run_device_action(device, DeviceActionKind.CHECK_SETTINGS, prints=False)
    view = _show_settings(device, as_json=as_json)
    differing = _count_differing(view.settings)
    if yes or check or undo or not differing:
        return
    if not sys.stdin.isatty():
        print_notice(
            f"Nothing was changed: farm device provision {view.name} --yes changes these {differing}."
        )
        return
    typer.confirm(f"Change these {differing}?", abort=True, err=True)
    run_device_action(device, DeviceActionKind.PROVISION, prints=False)
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
            print_notice(f"Manual step: {step}.")
    return view


def _count_differing(record: DeviceSettingsRecord | None) -> int:
    settings = () if record is None else record.settings
    return sum(setting.state is SettingState.DIFFERENT for setting in settings)
