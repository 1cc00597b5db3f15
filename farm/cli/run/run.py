"""`farm run`: measure a model file or a program with one command."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, print_json, print_notice
from farm.core.base.ids import MatrixId
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from farm.cli.run.matrix import RunOptions
    from farm.client.farm_client import FarmClient

_PASSTHROUGH_KEY = "farm.cli.run.run.passthrough_arguments"


class PassthroughCommand(TyperCommand):
    """A command that stores the arguments after `--`, which are for another program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Store the arguments after `--` in the context, and parse the rest."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[_PASSTHROUGH_KEY] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)


def run(
    context: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="Model file or name of a variant.")
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Harness that runs it; for a program of your own, its name."),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Id, label, device model or `Pixel*`; repeatable. Default: all."),
    ] = None,
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
    timeout: Annotated[str, typer.Option(metavar="SPAN", help="Time-out of a process.")] = "2m",
    watch: Annotated[bool, typer.Option("--watch/--no-watch", help="Watch it until it is finished.")] = True,
    as_json: Json = False,
) -> None:
    """Measure a model file or a program of your own on devices. Ctrl-C detaches.

    Flags of the harness follow `--`, or without FILE the program with its arguments. Such a program, a binary
    or a script, is pushed to each device and timed there.

    Example: farm run model.ptl --harness speed_benchmark_torch --device "Pixel 8" -- --iter 50

    Example: farm run --quick --time 'took ([0-9.]+) ms' -- ./my_bench --size 3
    """
    from farm.cli.run.matrix import RunOptions
    from farm.cli.shell.duration import seconds

    if quick and rounds is not None:
        raise InvalidInput("--quick and --rounds exclude each other", hint="leave one of them out")
    options = RunOptions(
        devices=tuple(device or ()),
        backends=tuple(word.strip() for word in (backend or "").split(",") if word.strip()),
        rounds=1 if quick else rounds or 5,
        timeout_s=float(seconds(timeout)),
        model=model,
        precision=precision,
    )
    arguments: list[str] = context.meta.get(_PASSTHROUGH_KEY, [])
    with connect() as farm:
        spec = _spec(farm, file, harness, arguments, options, time=time, metrics=metric or [])
        raise typer.Exit(_run(farm, spec, watch=watch, as_json=as_json))


def _spec(
    farm: "FarmClient",
    file: str | None,
    harness: str | None,
    arguments: list[str],
    options: "RunOptions",
    *,
    time: str | None,
    metrics: list[str],
) -> dict[str, object]:
    """Return the matrix of the run, and register its file or program.

    Raises:
        InvalidInput: the arguments do not say what to run, or it cannot be run.
    """
    from farm.cli.run.matrix import harness_spec, program_spec

    is_program = file is None and arguments and not arguments[0].startswith("-")
    if is_program:
        return program_spec(
            farm, Path(arguments[0]), arguments[1:], harness, options, time=time, metrics=metrics
        )
    if time is not None or metrics:
        hint = "write the program after `--`: farm run --time '...' -- ./my_bench"
        raise InvalidInput("--time and --metric parse the output of a program of your own", hint=hint)
    if harness is None:
        if file is not None:
            hint = f"farm run {quote(str(file))} --harness NAME; `farm harness list` has the names"
            raise InvalidInput(f"no harness for {file}", hint=hint)
        hint = "for a model: farm run FILE --harness NAME; for a program: farm run -- ./my_bench"
        raise InvalidInput("nothing to run", hint=hint)
    return harness_spec(farm, file, harness, arguments, options)


def _run(farm: "FarmClient", spec: dict[str, object], *, watch: bool, as_json: bool) -> int:
    from farm.cli.matrices.matrix import submission_text
    from farm.cli.shell.next_steps import watch_again_text, watch_text

    view = farm.submit_matrix(spec)
    try:
        print_notice(submission_text(view))
        if watch:
            return _watch_run(farm, view.matrix_id, as_json=as_json)
        if as_json:
            print_json(view.model_dump(mode="json"))
        else:
            print_notice(watch_text(view.matrix_id))
    except KeyboardInterrupt:
        print_notice(watch_again_text(view.matrix_id))
        raise typer.Exit(130) from None
    return 0


def _watch_run(farm: "FarmClient", matrix_id: MatrixId, *, as_json: bool) -> int:
    from farm.cli.matrices.matrix import exit_code_of, follow
    from farm.cli.run.result import print_result, result_document
    from farm.cli.shell.next_steps import watch_again_text

    view = follow(farm, matrix_id, leaving=watch_again_text(matrix_id))
    results, speedups = farm.results(matrix_id), farm.speedups(matrix_id=matrix_id)
    if as_json:
        print_json(result_document(view, results, speedups))
    else:
        print_result(view, results, speedups)
    return exit_code_of(view)
