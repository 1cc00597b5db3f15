"""`farm demo`: start a farm as a child process, and run one matrix on its virtual devices."""

import fcntl
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from farm.cli.files.local_variants import build_and_register
from farm.cli.matrices.file import send_file
from farm.cli.matrices.matrix import exit_code_of, follow
from farm.cli.matrices.report import jobs_line
from farm.cli.results.speedups.command import print_speedups
from farm.cli.shell.address import connect_to, data_dir, find_running
from farm.cli.shell.next_steps import demo_commands, demo_detach_text
from farm.cli.shell.output import err, print_json, print_notice
from farm.client.farm_client import FarmClient
from farm.core.base.ids import DeviceId, MatrixId
from farm.core.base.units import elapsed_text
from farm.core.devices.device import Admin, Health, Presence
from farm.core.errors import DeviceTimeout, FarmError, FarmFault, InvalidInput
from farm.presentation.text import plural
from farm.variants.model_zoo import recipes_of
from farm.variants.sources.source import zoo_source
from farm.wire.documents.devices import DeviceView
from farm.wire.documents.results.speedups import SpeedupView

START_S = 60.0
START_POLL_S = 0.2
#: Seconds before the next, stronger signal: the agent may be in the middle of a run.
TIMEOUT_S_BY_SIGNAL = {signal.SIGINT: 30.0, signal.SIGTERM: 15.0, signal.SIGKILL: 10.0}
LOG_NAME = "farm-up.log"
TAIL_LINES = 15


@contextmanager
def farm_process(folder: Path) -> Iterator[str]:
    """Run `farm up` with the demo's virtual devices on a free port during the block, and yield its address.

    Raises:
        FarmFault: it did not start; the error contains the end of its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / LOG_NAME
    command = [sys.executable, "-m", "farm.cli.shell.main", "up", "--port", "0", "--data", str(folder)]
    with log.open("ab") as sink:
        child = subprocess.Popen(
            [*command, "--virtual", str(DEVICES)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            # Ctrl-C goes to the parent only, which then stops the child.
            start_new_session=True,
        )
    try:
        yield _wait_for_address(child, folder, log)
    finally:
        stop_process(child)


def stop_process(child: "subprocess.Popen[bytes]") -> None:
    """Stop a process with increasingly strong signals, and wait until it has ended."""
    for number, timeout_s in TIMEOUT_S_BY_SIGNAL.items():
        child.send_signal(number)
        try:
            child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            continue
        return


def log_tail(log: Path) -> str:
    """Return the path and the last lines of a log."""
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:] if log.exists() else []
    return "\n".join([f"the end of {log}:", *(f"  {line}" for line in lines)])


def _wait_for_address(child: "subprocess.Popen[bytes]", folder: Path, log: Path) -> str:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        if child.poll() is not None:
            raise _start_error(f"the farm ended with exit code {child.returncode}", log)
        url = find_running(folder)
        if url and _is_responding(url):
            return url
        time.sleep(START_POLL_S)
    raise _start_error(f"the farm did not answer within {START_S:.0f} s", log)


def _is_responding(url: str) -> bool:
    with FarmClient(url, answer_s=5.0) as farm:
        return farm.is_healthy()


def _start_error(message: str, log: Path) -> FarmFault:
    return FarmFault(f"{message}; {log_tail(log)}", hint=f"the whole log is in {log}")


#: Locked by a running demo; the kernel releases the lock with the process.
LOCK_FILE = "demo.lock"
READY_TIMEOUT_S = 180.0
POLL_S = 0.5
MODEL = "mobilenet_v2"
PRECISIONS = ("float32", "int8-core")
FORMATS = ("torchscript", "lite")
DEVICES = 2


@contextmanager
def demo_lock(folder: Path, notify: Callable[[str], None]) -> Iterator[None]:
    """Hold the demo lock of a folder during the block; notify if another demo holds it.

    Raises:
        InvalidInput: the folder cannot be used.
    """
    from farm.daemon import make_data_folder

    make_data_folder(folder)
    with (folder / LOCK_FILE).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            notify(f"Another demo is running in {folder}; waiting until it ends. Ctrl-C cancels.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def wait_for_devices(farm: FarmClient, count: int, console: Console) -> Sequence[DeviceId]:
    """Wait until `count` virtual devices can be given work, and return their ids.

    Raises:
        DeviceTimeout: too few were ready in time; the message contains what each waits for.
    """
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    with console.status("waiting for the devices") as status:
        while True:
            devices = [device for device in farm.devices() if device.virtual]
            ready = [device.device_id for device in devices if is_ready(device)]
            if len(ready) >= count:
                return ready
            if time.monotonic() > deadline_s:
                raise DeviceTimeout(
                    f"{len(ready)} of {count} virtual devices were ready after {READY_TIMEOUT_S:.0f} s "
                    f"({waiting_text(devices)})",
                    hint="a farm that is already running needs virtual devices: stop it, then run "
                    "`farm up --virtual 2`",
                )
            status.update(f"waiting for the devices: {waiting_text(devices)}")
            time.sleep(POLL_S)


def is_ready(device: DeviceView) -> bool:
    """Return whether the device may get jobs, now or once it is free."""
    is_healthy = device.presence is Presence.ONLINE and device.health is Health.GOOD
    return is_healthy and device.is_reachable and device.admin is Admin.ACTIVE


def waiting_text(devices: Sequence[DeviceView]) -> str:
    """Return what each device that is not ready waits for."""
    waiting = [
        f"{device.device_id}: {next(iter(device.waiting_for), f'{device.presence}, {device.health}')}"
        for device in devices
        if not is_ready(device)
    ]
    return "; ".join(waiting) or ("all are ready" if devices else "none has connected yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The result of a demo."""

    matrix_id: MatrixId
    speedups: Sequence[SpeedupView]
    exit_code: int
    #: The farm ran before the demo and keeps running.
    keeps_farm_running: bool


class _StepReporter:
    """Prints each step when it is done."""

    def __init__(self, total: int) -> None:
        self._number, self._total = 0, total
        self._since_s = time.monotonic()

    def done(self, what: str) -> None:
        now_s = time.monotonic()
        self._number += 1
        print_notice(f"[{self._number}/{self._total}] {what} ({elapsed_text(now_s - self._since_s)})")
        self._since_s = now_s


def demo_matrix() -> Path:
    """Return the path of the demo's matrix in the checkout.

    Raises:
        InvalidInput: this does not run from a checkout.
    """
    for root in (Path(__file__).parents[3], Path()):
        if (matrix := root / "examples" / "demo.yaml").is_file():
            return matrix
    raise InvalidInput(
        "examples/demo.yaml is not there", hint="run this in a checkout, or give --matrix FILE"
    )


def run_demo(folder: Path, matrix_file: Path) -> DemoResult:
    """Run all steps, and stop what was started even after an error.

    Raises:
        FarmError: a step failed; the end of the log of a started farm has been printed.
    """
    running = find_running(folder)
    # A farm that was running before is not stopped, which is one step less.
    steps = _StepReporter(4 if running else 5)
    with ExitStack() as started:
        with nullcontext() if running else err().status("starting a farm"):
            url = running or started.enter_context(farm_process(folder))
        steps.done(f"using the farm at {url}" if running else f"started a farm at {url}, data in {folder}")
        farm = started.enter_context(connect_to(url))
        try:
            result = _run(farm, folder, matrix_file, steps, keeps_farm_running=bool(running))
        except FarmError:
            if not running:
                print_notice(log_tail(folder / LOG_NAME))
            raise
    if not running:
        steps.done("stopped the farm and its devices")
    return result


def _run(
    farm: FarmClient, folder: Path, matrix_file: Path, steps: _StepReporter, *, keeps_farm_running: bool
) -> DemoResult:
    devices = wait_for_devices(farm, DEVICES, err())
    steps.done(f"{plural(len(devices), 'virtual device')} ready: {', '.join(devices)}")

    recipes = recipes_of(PRECISIONS, FORMATS)
    variants = build_and_register(farm, zoo_source(MODEL), recipes, folder / "variants", err())
    built = sum(1 for variant in variants if variant.how == "built")
    steps.done(
        f"{plural(len(variants), 'variant')} of {MODEL}: {built} built, {len(variants) - built} reused"
    )

    matrix_id = send_file(matrix_file, farm.submit_matrix).matrix_id
    leaving = demo_detach_text(folder, matrix_id, keeps_farm_running=keeps_farm_running)
    view = follow(farm, matrix_id, leaving=leaving)
    steps.done(f"matrix {view.matrix_id} {view.state}, {jobs_line(view)}")
    return DemoResult(
        matrix_id=view.matrix_id,
        speedups=list(farm.speedups(matrix_id=view.matrix_id)),
        exit_code=exit_code_of(view),
        keeps_farm_running=keeps_farm_running,
    )


def demo(
    data: Annotated[
        Path | None, typer.Option(help="The data folder; default: FARM_DATA_DIR, else ./farm-data.")
    ] = None,
    matrix: Annotated[
        Path | None, typer.Option(help="The matrix to run; default: examples/demo.yaml.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the speedups as one JSON document.")] = False,
) -> None:
    """Run a small matrix on two virtual devices and print the speedups of the variants.

    It uses the farm that runs in the data folder, or starts one and stops it again. A second run reuses the
    built files; if another demo is running, it waits for it.

    Example: farm demo
    """
    folder = data or data_dir()
    with demo_lock(folder, print_notice):
        result = run_demo(folder, matrix or demo_matrix())
    if as_json:
        print_json(result.speedups)
    else:
        print_speedups(result.speedups)
    print_notice(demo_commands(folder, result.matrix_id, keeps_farm_running=result.keeps_farm_running))
    raise typer.Exit(result.exit_code)
