"""`farm device identify` and `clean`: what the agent does on a phone when it is free."""

from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.identity import operator_request
from farm.cli.shell.output import Json, print_json, print_notice
from farm.core.errors import DeviceError
from farm.core.upkeep.device_action import DeviceActionKind

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.devices import DeviceActionView

_VERBS = {
    DeviceActionKind.CHECK_SETTINGS: "look at its settings",
    DeviceActionKind.PROVISION: "set it up",
    DeviceActionKind.RESTORE_SETTINGS: "put its settings back",
}
Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, its label, or the beginning of either.")]


def identify(device: Id, as_json: Json = False) -> None:
    """Wake a phone's screen and have it show what it is called here, for 15 s; an old phone blinks.

    Example: farm device identify bench-a
    """
    _run(device, DeviceActionKind.IDENTIFY, as_json=as_json)


def clean(device: Id, as_json: Json = False) -> None:
    """End what runs have left on a phone and empty the farm's cache there; says how much that freed.

    Example: farm device clean bench-a
    """
    _run(device, DeviceActionKind.CLEAN, as_json=as_json)


def _run(device: str, kind: DeviceActionKind, *, as_json: bool) -> None:
    ended = run_device_action(device, kind)
    if as_json:
        print_json(ended.model_dump(mode="json"))


def run_device_action(device: str, kind: DeviceActionKind, *, tells: bool = True) -> "DeviceActionView":
    """Ask for an errand, stay until it is over, and tell what was done, where it `tells`.

    Raises:
        DeviceError: it could not be done.
    """
    from farm.wire.documents.devices import OperatorRequest

    with connect() as farm:
        action = farm.request_device_action(device, kind, operator_request(OperatorRequest))
        try:
            ended = _wait_until_done(farm, action)
        except KeyboardInterrupt:
            print_notice(
                f"Action {action.device_action_id} stays open until {action.expires_at.astimezone():%H:%M}."
            )
            raise typer.Exit(130) from None
    if ended.error is not None:
        raise DeviceError(f"{ended.name}: {ended.error}", hint=f"farm device show {ended.device_id}")
    if tells:
        print_notice(f"{ended.name}: {ended.done}.")
    return ended


def _wait_until_done(farm: "FarmClient", action: "DeviceActionView") -> "DeviceActionView":
    from farm.cli.shell.wait import wait_for

    return wait_for(
        lambda: farm.device_action(action.device_action_id),
        lambda now: now.finished_at is not None,
        _waiting_text,
    )


def _waiting_text(action: "DeviceActionView") -> str:
    if action.waiting_for is None:
        return f"{action.name}: its agent is asked to {_VERBS.get(action.kind, f'{action.kind} it')}"
    return f"{action.name}: waiting, {action.waiting_for}"
