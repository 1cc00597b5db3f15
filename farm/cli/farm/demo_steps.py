"""The steps of the demo, each printed in one line with its duration."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from farm.cli.farm.process import LOG_NAME, farm_process, log_tail
from farm.cli.farm.readiness import wait_for_devices
from farm.cli.files.variant_build import build_and_register
from farm.cli.matrices.file import submit_file
from farm.cli.matrices.matrix import exit_code_of, follow
from farm.cli.matrices.report import jobs_line
from farm.cli.shell.address import connect_to, find_running
from farm.cli.shell.formatting import plural
from farm.cli.shell.next_steps import demo_detach_text
from farm.cli.shell.output import err, print_notice
from farm.client.farm_client import FarmClient
from farm.core.base.ids import MatrixId
from farm.core.base.units import elapsed_text
from farm.core.errors import FarmError, InvalidInput
from farm.variants.model_zoo import recipes_of
from farm.wire.documents.matrices.matrices import SpeedupView

MODEL = "mobilenet_v2"
PRECISIONS = ("float32", "int8-core")
FORMATS = ("torchscript", "lite")
DEVICES = 2


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
        url = running or _start(folder, started)
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


def _start(folder: Path, started: ExitStack) -> str:
    with err().status("starting a farm"):
        return started.enter_context(farm_process(folder, virtual=DEVICES))


def _run(
    farm: FarmClient, folder: Path, matrix_file: Path, steps: _StepReporter, *, keeps_farm_running: bool
) -> DemoResult:
    devices = wait_for_devices(farm, DEVICES, err())
    steps.done(f"{plural(len(devices), 'virtual device')} ready: {', '.join(devices)}")

    recipes = recipes_of(PRECISIONS, FORMATS)
    variants = build_and_register(farm, MODEL, recipes, folder / "variants", err())
    built = sum(1 for variant in variants if variant.how == "built")
    steps.done(
        f"{plural(len(variants), 'variant')} of {MODEL}: {built} built, {len(variants) - built} reused"
    )

    matrix_id = submit_file(farm, matrix_file).matrix_id
    leaving = demo_detach_text(folder, matrix_id, keeps_farm_running=keeps_farm_running)
    view = follow(farm, matrix_id, leaving=leaving)
    steps.done(f"matrix {view.matrix_id} {view.state}, {jobs_line(view)}")
    return DemoResult(
        matrix_id=view.matrix_id,
        speedups=list(farm.speedups(matrix_id=view.matrix_id)),
        exit_code=exit_code_of(view),
        keeps_farm_running=keeps_farm_running,
    )
