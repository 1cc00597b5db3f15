"""`farm live`: hold a phone for TVM's RPC, and time a library on such a phone."""

import fcntl
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.devices.adb import check_attached_here
from farm.cli.devices.live.release import released
from farm.cli.devices.live.timing import (
    LiveTiming,
    TimingRequest,
    declared_shapes,
    measure,
    record,
)
from farm.cli.devices.reservation import reserve_device
from farm.cli.shell.address import connect
from farm.cli.shell.identity import require_identity
from farm.cli.shell.options import DeviceName, Json
from farm.cli.shell.output import print_data, print_json, print_notice
from farm.core.base.units import duration_text
from farm.core.errors import Conflict, InvalidInput
from farm.presentation.text import seconds
from farm.variants.build import interpreter_of
from farm.variants.environments.locks import lock_file
from farm.variants.environments.runtime_environments import environments_dir
from farm.wire.documents.devices import DeviceView

app = typer.Typer(no_args_is_help=True)

_REASON = "driven live by TVM's RPC"
_HARNESS = "tvm_benchmark"
_NO_KEY = re.compile(r"[^A-Za-z0-9._-]")


@app.command()
def tvm(
    device: DeviceName,
    span: Annotated[
        str, typer.Option("--for", metavar="TIME", help="The longest time from now: 30m, 2h.")
    ] = "1h",
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="By which clients request it; default: the device's name."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port of the tracker; 0: a free one.")
    ] = 0,
    harness: Annotated[
        str, typer.Option(metavar="NAME", help="Harness whose program serves the sessions.")
    ] = _HARNESS,
) -> None:
    """Reserve a device and serve it by TVM's tracker and RPC, for a loop of edit, compile and time.

    It runs on the host that the device is attached to, until Ctrl-C or the end of the time, and then releases
    the device; until then the farm runs no job there. One client after the other has the device, by priority.

    Example: farm live tvm bench-a --for 2h --key pixel
    """
    with connect() as farm, ExitStack() as stack:
        view = farm.device(device)
        known_by = _checked_key(key or _NO_KEY.sub("-", view.name))
        settings = (f"--for={span}", f"--key={known_by}", f"--harness={harness}")
        there = ["farm", "live", "tvm", view.name, *settings]
        # With a terminal, so that Ctrl-C ends the command there as well.
        check_attached_here(view.host, farm.host(view.host).boot_id, view.name, there, options=["-t"])
        # Before the reservation, which a second command of the same person would end.
        stack.enter_context(_only_command(view))
        end_s = time.monotonic() + seconds(span)
        with released(farm, view.device_id):
            reserve_device(farm, device, seconds(span), _REASON, detached="It is released")
            access = farm.adb_access(view.device_id, require_identity())
            # Imported here: laptops, which have no adb, time libraries too.
            from farm.cli.devices.live.hold import Hold, serve_phone

            hold = Hold(
                access=access,
                name=view.name,
                by=require_identity(),
                end_s=end_s,
                key=known_by,
                harness=harness,
                port=port,
            )
            serve_phone(farm, hold)


def _checked_key(key: str) -> str:
    """Return a key, which TVM's clients send between blanks and colons."""
    if _NO_KEY.search(key):
        raise InvalidInput(f"{key!r} is no key", hint="letters, digits, `.`, `_` and `-`, like pixel-8")
    return key


@contextmanager
def _only_command(view: DeviceView) -> Iterator[None]:
    """Keep other commands of this user from serving the device.

    Raises:
        Conflict: one does.
    """
    name = sha256(view.device_id.encode()).hexdigest()[:16]
    with lock_file(environments_dir().with_name("live") / name) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(
                f"another `farm live tvm` serves {view.name}", hint="use its tracker, or end it by Ctrl-C"
            ) from error
        yield


@app.command("time")
def time_library(
    library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="A library that TVM compiled.")],
    tracker: Annotated[str, typer.Option(metavar="HOST:PORT", help="As `farm live tvm` prints it.")],
    key: Annotated[str, typer.Option(metavar="KEY", help="Of the phone, as `farm live tvm` prints it.")],
    inputs: Annotated[
        list[str],
        typer.Option("--input", metavar="SPEC", help="Shape and type: 1x3x224x224:float32; repeatable."),
    ],
    number: Annotated[
        int, typer.Option(min=1, metavar="N", help="Calls between two readings of the clock.")
    ] = 3,
    repeat: Annotated[int, typer.Option(min=1, metavar="N", help="Samples, each the mean of --number.")] = 10,
    wait: Annotated[str, typer.Option(metavar="TIME", help="How long to wait for the phone.")] = "5m",
    deadline: Annotated[
        str, typer.Option(metavar="TIME", help="How long the session may last; the phone ends it.")
    ] = "60s",
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the network; default: the file's.")
    ] = None,
    python: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A Python with TVM; default: `farm env`'s.")
    ] = None,
    keep: Annotated[bool, typer.Option("--record/--no-record", help="Record the result at the farm.")] = True,
    as_json: Json = False,
) -> None:
    """Time a library by TVM's `time_evaluator` on a phone of `farm live tvm`, or of another tracker.

    The result is recorded as driven live, among those that the farm's plans did not measure: it enters no
    comparison. To compare, measure with `farm run`.

    Example: farm live time net.so --tracker 127.0.0.1:9190 --key pixel --input 1x3x224x224:float32
    """
    request = TimingRequest(
        library=library,
        tracker=tracker,
        key=key,
        inputs=declared_shapes(inputs),
        number=number,
        repeat=repeat,
        wait_s=_positive_s("--wait", wait),
        deadline_s=_positive_s("--deadline", deadline),
    )
    with nullcontext(python) if python else interpreter_of("tvm", print_notice) as chosen:
        timing = measure(request, chosen, model)
    recorded = None
    if keep:
        with connect() as farm:
            recorded = record(farm, timing).import_id
    if as_json:
        print_json({**asdict(timing), "import_id": recorded})
        return
    print_data(_text(timing))
    if recorded is not None:
        print_notice(f"Recorded as import {recorded}, driven live: it enters no comparison.")


def _positive_s(option: str, text: str) -> int:
    """Return the seconds of an option.

    Raises:
        InvalidInput: it is not a duration, or 0, which TVM takes for no limit.
    """
    value = seconds(text)
    if value < 1:
        raise InvalidInput(f"{option} {text} is no time", hint="1s or more")
    return value


def _text(timing: LiveTiming) -> str:
    return (
        f"{timing.model} on {timing.device or timing.key}: mean {duration_text(timing.mean_ns)}, "
        f"median {duration_text(timing.median_ns)}, standard deviation {duration_text(timing.deviation_ns)} "
        f"({timing.repeat} samples of {timing.number} calls, TVM {timing.tool_version})"
    )
