"""`farm run`: measure a model file or a program with one command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.matrices.matrix import ResultOptions, follow_to_end, submission_text
from farm.cli.results.gate import (
    Decide,
    GateOption,
    Summary,
    check_gate_is_watched,
    deciding_rounds,
    summary_if_unreachable,
)
from farm.cli.run.comparison import comparison_spec
from farm.cli.run.matrix import RunOptions, harness_spec, listed_backends, program_spec
from farm.cli.shell.address import connect
from farm.cli.shell.next_steps import watch_again_text, watch_text
from farm.cli.shell.options import DeclaredInputs, DeviceNames, Json, Metrics, ProcessTimeout, WatchToEnd
from farm.cli.shell.output import print_done, print_notice
from farm.client.farm_client import FarmClient
from farm.core.errors import InvalidInput
from farm.presentation.text import seconds


def run(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE...]", help="Model files or variants; the first is the baseline."),
    ] = None,
    harness: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Harness of the files, or one for each format; or the name of your program."
        ),
    ] = None,
    device: DeviceNames = None,
    backend: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Comma-separated; the first is the baseline. Default: cpu."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=100, metavar="N", help="Process starts of each cell. Default: 5.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One round: no interval, and no verdict.")] = False,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the network; default: the file name.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(metavar="WORD", help="Precision of a new file: float32, int8-core, ...")
    ] = None,
    inputs: DeclaredInputs = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="'REGEX UNIT'",
            help="Pattern of the times in the output; default: time the whole process.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME=REGEX UNIT BETTER'",
            help="Pattern of a further metric; BETTER is lower or higher. Repeatable.",
        ),
    ] = None,
    timeout: ProcessTimeout = "2m",
    watch: WatchToEnd = True,
    metrics: Metrics = False,
    gate: GateOption = None,
    decide: Decide = False,
    summary: Summary = None,
    as_json: Json = False,
) -> None:
    """Measure model files or a program of your own on devices. Ctrl-C detaches.

    Several files are compared with the first one, each run by the harness of its format.

    Flags of the harness follow `--`, or without FILE the program with its arguments. Such a program, a binary
    or a script, is pushed to each device and timed there.

    Example: farm run model.ptl --harness speed_benchmark_torch --device "Pixel 8" -- --iter 50

    Example: farm run net.tflite net.pte net.onnx

    Example: farm run --quick --time 'took ([0-9.]+) ms' -- ./my_bench --size 3
    """
    if quick and rounds is not None:
        raise InvalidInput("--quick and --rounds exclude each other", hint="leave one of them out")
    check_gate_is_watched(gate, watch=watch, summary=summary, as_json=as_json)
    options = RunOptions(
        devices=tuple(device or ()),
        backends=listed_backends(backend),
        rounds=1 if quick else rounds or 5,
        timeout_s=float(seconds(timeout)),
        model=model,
        precision=precision,
        inputs=tuple(inputs or ()),
        time=time,
        metrics=tuple(metric or ()),
    )
    with summary_if_unreachable(summary), connect() as farm:
        spec = _spec(farm, files or (), harness or (), context.obj, options)
        if decide:
            if "baseline" not in spec:
                hint = "name the baseline first: --backend cpu,nnapi; or farm compare A B"
                raise InvalidInput("--decide needs something to compare", hint=hint)
            spec["rounds"] = deciding_rounds(spec["rounds"], gate)
        results = ResultOptions(
            metrics=metrics or bool(metric),
            gate=gate,
            can_decide=not decide,
            summary=summary,
            as_json=as_json,
        )
        code = run_spec(farm, spec, results, watch=watch)
    raise typer.Exit(code)


def _spec(
    farm: FarmClient,
    files: Sequence[str],
    harnesses: Sequence[str],
    arguments: list[str],
    options: RunOptions,
) -> dict[str, object]:
    """Return the matrix of the run, and register its file or program.

    Raises:
        InvalidInput: the arguments do not say what to run, or it cannot be run.
    """
    if not files and options.inputs:
        hint = "leave it out, or name the file: farm run FILE --harness NAME --input 1x3x224x224:float32"
        raise InvalidInput("--input describes a model file, and none is named", hint=hint)
    is_program = not files and arguments and not arguments[0].startswith("-")
    if len(harnesses) > 1 and len(files) < 2:
        raise InvalidInput("several harnesses for one run", hint="name one, or several files")
    harness = harnesses[0] if harnesses else None
    if is_program:
        return program_spec(farm, Path(arguments[0]), arguments[1:], harness, options)
    if options.time is not None or options.metrics:
        hint = "write the program after `--`: farm run --time '...' -- ./my_bench"
        raise InvalidInput("--time and --metric parse the output of a program of your own", hint=hint)
    if len(files) > 1:
        if options.model is not None:
            raise InvalidInput("--model names one file, and there are several", hint="leave it out")
        return comparison_spec(farm, files, harnesses, arguments, options)
    if not files and harness is None:
        hint = "for a model: farm run FILE; for a program: farm run -- ./my_bench"
        raise InvalidInput("nothing to run", hint=hint)
    file = files[0] if files else None
    return harness_spec(farm, file, harness, arguments, options)


def run_spec(farm: FarmClient, spec: dict[str, object], options: ResultOptions, *, watch: bool) -> int:
    """Submit a matrix, watch it and print its results, or say how to watch it; return the exit code.

    Raises:
        typer.Exit: the user pressed Ctrl-C.
    """
    view = farm.submit_matrix(spec)
    try:
        print_notice(submission_text(view))
        if watch:
            return follow_to_end(farm, view.matrix_id, options)
    except KeyboardInterrupt:
        print_notice(watch_again_text(view.matrix_id))
        raise typer.Exit(130) from None
    print_done(view, watch_text(view.matrix_id), as_json=options.as_json)
    return 0
