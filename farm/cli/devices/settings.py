"""`farm device setup`: what a phone on a shelf needs of its settings."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.devices.actions import Id, run_errand
from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json, talk
from farm.core.errors import InvalidInput
from farm.core.upkeep.device_action import ErrandKind
from farm.core.upkeep.device_settings import BY_HAND, SettingState, ShelfRecord

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
        run_errand(device, ErrandKind.UNDO_SETTINGS if undo else ErrandKind.SET_UP, tells=False)
    else:
        run_errand(device, ErrandKind.CHECK_SETTINGS, tells=False)
    view = _shown(device, as_json=as_json)
    differing = _differing(view.settings)
    if yes or check or undo or not differing:
        return
    if not sys.stdin.isatty():
        talk(f"Nothing was changed: farm device setup {view.name} --yes changes these {differing}.")
        return
    typer.confirm(f"Change these {differing}?", abort=True, err=True)
    run_errand(device, ErrandKind.SET_UP, tells=False)
    _shown(device, as_json=as_json)


def _shown(device: str, *, as_json: bool) -> "DeviceDetail":
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
        talk(f"{view.name}: {settings_line(view.settings)}.")
        for step in BY_HAND if view.settings.kind is not ErrandKind.UNDO_SETTINGS else ():
            talk(f"By hand: {step}.")
    return view


def _differing(record: ShelfRecord | None) -> int:
    found = () if record is None else record.settings
    return sum(each.state is SettingState.DIFFERENT for each in found)
