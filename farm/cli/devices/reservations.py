"""`farm device reserve` and `release`: take a device out of the pool for a person, for a limited time."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.duration import seconds
from farm.cli.shell.identity import operator_request
from farm.cli.shell.output import print_notice
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.devices import DeviceView

Id = Annotated[str, typer.Argument(metavar="ID", help="Device id, label, or a unique prefix of either.")]


def reserve(
    device: Id,
    span: Annotated[str, typer.Option("--for", metavar="TIME", help="Duration from now: 30m, 2h, 7d.")],
    reason: Annotated[str | None, typer.Option(help="Recorded with the event, for other operators.")] = None,
) -> None:
    """Reserve a device for yourself for a limited time. Run it again to change the end of the reservation.

    A run in progress ends first, and the command waits for it. After the reservation the device is checked
    before it gets work again.

    Example: farm device reserve bench-a --for 2h --reason "try a driver"
    """
    from farm.wire.documents.devices import ReservationRequest

    request = operator_request(ReservationRequest, for_s=seconds(span), reason=reason)
    with connect() as farm:
        change = farm.change_device(device, "reserve", request)
        print_notice(f"{change.said}.")
        try:
            view = _wait_until_idle(farm, change.device)
        except KeyboardInterrupt:
            print_notice("It stays reserved, and the run on it ends normally.")
            raise typer.Exit(130) from None
    print_notice(_reserved_text(view))


def release(
    device: Id,
    force: Annotated[
        bool, typer.Option("--force", help="Also release a device that another person has reserved.")
    ] = False,
    assert_clean: Annotated[
        bool,
        typer.Option("--assert-clean", help="Assert that nothing is left of a run whose host is lost."),
    ] = False,
    reason: Annotated[str | None, typer.Option("--reason", help="Recorded with the event.")] = None,
) -> None:
    """Release a device that you have reserved. It is checked before it gets work.

    With --assert-clean: give work to a device again whose host was lost during a run. No agent can check such
    a device, so you assert that it is clean, for example after a reset.

    Example: farm device release bench-a

    Example: farm device release bench-a --assert-clean --reason "reset to factory settings"
    """
    from farm.wire.documents.devices import ReleaseRequest

    if assert_clean and reason is None:
        raise InvalidInput(
            "--assert-clean needs a reason",
            hint='add --reason, like --reason "reset to factory settings"',
        )
    request = operator_request(ReleaseRequest, force=force, assert_clean=assert_clean, reason=reason)
    with connect() as farm:
        change = farm.change_device(device, "release", request)
    print_notice(f"{change.said}." if change.changed else f"Nothing changed: {change.said}.")


def _wait_until_idle(farm: "FarmClient", view: "DeviceView") -> "DeviceView":
    """Return the device once the farm runs nothing on it, or once it is unreachable."""
    from farm.cli.shell.wait import wait_for

    return wait_for(
        lambda: farm.device(view.device_id), lambda now: now.is_quiet or not now.is_reachable, _waiting_text
    )


def _waiting_text(view: "DeviceView") -> str:
    step = f"job {view.job_id} to end on" if view.job_id is not None else "the clean-up of"
    return f"waiting for {step} {view.name}"


def _reserved_text(view: "DeviceView") -> str:
    if not view.is_reachable:
        return f"It is {view.presence} now; the farm will run nothing on it when it comes back."
    return f"It is reserved for you. Connect to it: farm adb {quote(view.name)} shell"
