"""`farm compare`: measure two model files against each other, on each device."""

from typing import Annotated

import typer

from farm.cli.matrices.matrix import ResultOptions
from farm.cli.results.gate import (
    Decide,
    GateOption,
    Summary,
    check_gate_is_watched,
    deciding_rounds,
    summary_if_unreachable,
)
from farm.cli.run.comparison import comparison_spec
from farm.cli.run.matrix import RunOptions, listed_backends
from farm.cli.run.run import run_spec
from farm.cli.shell.address import connect
from farm.cli.shell.options import DeclaredInputs, DeviceNames, Json, ProcessTimeout, WatchToEnd
from farm.core.matrices.matrix import USUAL_ROUNDS
from farm.presentation.text import seconds


def compare(
    context: typer.Context,
    baseline: Annotated[str, typer.Argument(metavar="A", help="Model file, or name or digest of a variant.")],
    candidate: Annotated[str, typer.Argument(metavar="B", help="The same; it is compared with A.")],
    harness: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Harness that runs them, or one for each. Default: by format."),
    ] = None,
    device: DeviceNames = None,
    backend: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Comma-separated; A and B are compared on each. Default: cpu."),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, max=100, metavar="N", help="Process starts of each. Default: 10."),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(metavar="WORD", help="Precision of new files: float32, int8-core, ...")
    ] = None,
    inputs: DeclaredInputs = None,
    timeout: ProcessTimeout = "2m",
    watch: WatchToEnd = True,
    gate: GateOption = None,
    decide: Decide = False,
    summary: Summary = None,
    as_json: Json = False,
) -> None:
    """Compare two model files or variants on devices: B against A. Ctrl-C detaches.

    Both run in every round on the same device, so heat and drift cancel. It is a matrix like others. Those of
    two matrices are of different hours, and are not compared. `--input` declares an input of both. Flags of
    the harness follow `--`.

    Example: farm compare old.ptl new.ptl --harness speed_benchmark_torch --gate not-slower=3% --decide
    """
    check_gate_is_watched(gate, watch=watch, summary=summary, as_json=as_json)
    options = RunOptions(
        devices=tuple(device or ()),
        backends=listed_backends(backend),
        rounds=rounds or USUAL_ROUNDS,
        timeout_s=float(seconds(timeout)),
        precision=precision,
        inputs=tuple(inputs or ()),
    )
    with summary_if_unreachable(summary), connect() as farm:
        spec = comparison_spec(farm, (baseline, candidate), harness or (), context.obj, options)
        if decide:
            spec["rounds"] = deciding_rounds(spec["rounds"], gate)
        results = ResultOptions(gate=gate, can_decide=not decide, summary=summary, as_json=as_json)
        code = run_spec(farm, spec, results, watch=watch)
    raise typer.Exit(code)
