"""`farm device hold` and `release`: a phone for a person, for a while."""

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

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, its label, or the beginning of either.")]


def reserve(
    device: Id,
    span: Annotated[str, typer.Option("--for", metavar="TIME", help="From now on: 30m, 2h, 7d.")],
    reason: Annotated[str | None, typer.Option(help="What for; others will ask.")] = None,
) -> None:
    """Take a phone out of the pool for yourself, until then at the latest; again gives it a new end.

    A run under way ends first, and the command waits for that. Afterwards the phone is checked before
    anything is measured on it again.

    Example: farm device hold bench-a --for 2h --reason "a driver to try"
    """
    from farm.wire.documents.devices import ReservationRequest

    request = operator_request(ReservationRequest, for_s=seconds(span), reason=reason)
    with connect() as farm:
        change = farm.change_device(device, "hold", request)
        print_notice(f"{change.said}.")
        try:
            view = _wait_until_idle(farm, change.device)
        except KeyboardInterrupt:
            print_notice("It stays held, and the run on it goes on to its end.")
            raise typer.Exit(130) from None
    print_notice(_reserved_text(view))


def release(
    device: Id,
    force: Annotated[bool, typer.Option("--force", help="Also what somebody else holds.")] = False,
    assert_clean: Annotated[
        bool,
        typer.Option("--assert-clean", help="Say that nothing is left on it of a run whose host is lost."),
    ] = False,
    reason: Annotated[str | None, typer.Option("--reason", help="Kept with the event.")] = None,
) -> None:
    """Give a phone that you hold back to the pool. It is checked before it gets work.

    With --assert-clean: a phone that was at work when its host was lost gets work again on your word, where
    no agent can look: it was reset, say.

    Example: farm device release bench-a

    Example: farm device release bench-a --assert-clean --reason "reset to factory settings"
    """
    from farm.wire.documents.devices import ReleaseRequest

    if assert_clean and reason is None:
        raise InvalidInput(
            "who asserts that a phone is clean says how they know",
            hint='add --reason, like --reason "reset to factory settings"',
        )
    request = operator_request(ReleaseRequest, force=force, assert_clean=assert_clean, reason=reason)
    with connect() as farm:
        change = farm.change_device(device, "release", request)
    print_notice(f"{change.said}." if change.changed else f"Nothing changed: {change.said}.")


def _wait_until_idle(farm: "FarmClient", view: "DeviceView") -> "DeviceView":
    """The phone when nothing of the farm's runs on it, or when there is no telling because it is away."""
    from farm.cli.shell.wait import wait_for

    return wait_for(
        lambda: farm.device(view.device_id), lambda now: now.is_quiet or not now.is_reachable, _waiting_text
    )


def _waiting_text(view: "DeviceView") -> str:
    job = f"job {view.job_id} ends" if view.job_id is not None else "it is cleaned up"
    return f"waiting until {job} on {view.name}"


def _reserved_text(view: "DeviceView") -> str:
    if not view.is_reachable:
        return f"It is {view.presence} now; nothing will be run on it when it comes back."
    return f"It is yours. Talk to it: farm adb {quote(view.name)} shell"
