"""`farm device identify` and `clean`: actions that the agent performs on a free device."""

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
    DeviceActionKind.CHECK_SETTINGS: "check its settings",
    DeviceActionKind.PROVISION: "provision it",
    DeviceActionKind.RESTORE_SETTINGS: "restore its settings",
}
Id = Annotated[str, typer.Argument(metavar="ID", help="Device id, label, or a unique prefix of either.")]


def identify(device: Id, as_json: Json = False) -> None:
    """Wake the screen of a device and show its name for 15 s. An old device blinks instead.

    Example: farm device identify bench-a
    """
    _run(device, DeviceActionKind.IDENTIFY, as_json=as_json)


def clean(device: Id, as_json: Json = False) -> None:
    """End left-over processes on a device and empty its cache. Prints how much space was freed.

    Example: farm device clean bench-a
    """
    _run(device, DeviceActionKind.CLEAN, as_json=as_json)


def _run(device: str, kind: DeviceActionKind, *, as_json: bool) -> None:
    action = run_device_action(device, kind)
    if as_json:
        print_json(action.model_dump(mode="json"))


def run_device_action(device: str, kind: DeviceActionKind, *, prints: bool = True) -> "DeviceActionView":
    """Request a device action, wait until it has ended, and print its result if `prints`.

    Raises:
        DeviceError: the action failed.
    """
    from farm.wire.documents.devices import OperatorRequest

    with connect() as farm:
        action = farm.request_device_action(device, kind, operator_request(OperatorRequest))
        try:
            action = _wait_until_done(farm, action)
        except KeyboardInterrupt:
            print_notice(
                f"Action {action.device_action_id} is open until {action.expires_at.astimezone():%H:%M}."
            )
            raise typer.Exit(130) from None
    if action.error is not None:
        raise DeviceError(f"{action.name}: {action.error}", hint=f"farm device show {action.device_id}")
    if prints:
        print_notice(f"{action.name}: {action.done}.")
    return action


def _wait_until_done(farm: "FarmClient", action: "DeviceActionView") -> "DeviceActionView":
    from farm.cli.shell.wait import wait_for

    return wait_for(
        lambda: farm.device_action(action.device_action_id),
        lambda current: current.finished_at is not None,
        _waiting_text,
    )


def _waiting_text(action: "DeviceActionView") -> str:
    if action.waiting_for is None:
        return f"{action.name}: waiting for its agent to {_VERBS.get(action.kind, f'{action.kind} it')}"
    return f"{action.name}: waiting, {action.waiting_for}"
