"""`farm device identify` and `clean`: what the agent does on a phone when it is free."""

from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.identity import asked
from farm.cli.shell.output import Json, print_json, talk
from farm.core.errors import DeviceError
from farm.core.upkeep.device_action import ErrandKind

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.devices import ErrandView

_VERBS = {
    ErrandKind.CHECK_SETTINGS: "look at its settings",
    ErrandKind.SET_UP: "set it up",
    ErrandKind.UNDO_SETTINGS: "put its settings back",
}
Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, its label, or the beginning of either.")]


def identify(device: Id, as_json: Json = False) -> None:
    """Wake a phone's screen and have it show what it is called here, for 15 s; an old phone blinks.

    Example: farm device identify bench-a
    """
    _run(device, ErrandKind.IDENTIFY, as_json=as_json)


def clean(device: Id, as_json: Json = False) -> None:
    """End what runs have left on a phone and empty the farm's cache there; says how much that freed.

    Example: farm device clean bench-a
    """
    _run(device, ErrandKind.CLEAN, as_json=as_json)


def _run(device: str, kind: ErrandKind, *, as_json: bool) -> None:
    ended = run_errand(device, kind)
    if as_json:
        print_json(ended.model_dump(mode="json"))


def run_errand(device: str, kind: ErrandKind, *, tells: bool = True) -> "ErrandView":
    """Ask for an errand, stay until it is over, and tell what was done, where it `tells`.

    Raises:
        DeviceError: it could not be done.
    """
    from farm.wire.documents.devices import Asked

    with connect() as farm:
        errand = farm.ask_errand(device, kind, asked(Asked))
        try:
            ended = _ended(farm, errand)
        except KeyboardInterrupt:
            talk(
                f"It stays asked for until {errand.expires_at.astimezone():%H:%M}; errand {errand.errand_id}."
            )
            raise typer.Exit(130) from None
    if ended.error is not None:
        raise DeviceError(f"{ended.name}: {ended.error}", hint=f"farm device show {ended.device_id}")
    if tells:
        talk(f"{ended.name}: {ended.done}.")
    return ended


def _ended(farm: "FarmClient", errand: "ErrandView") -> "ErrandView":
    from farm.cli.shell.wait import wait_for

    return wait_for(lambda: farm.errand(errand.errand_id), lambda now: now.finished_at is not None, _waits)


def _waits(errand: "ErrandView") -> str:
    if errand.waiting_for is None:
        return f"{errand.name}: its agent is asked to {_VERBS.get(errand.kind, f'{errand.kind} it')}"
    return f"{errand.name}: waiting, {errand.waiting_for}"
