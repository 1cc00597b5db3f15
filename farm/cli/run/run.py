"""`farm run`: one line from a file, or a program of one's own, to a table."""

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

_PASSTHROUGH_KEY = "farm.cli.run.run.behind_the_dashes"


class PassthroughCommand(TyperCommand):
    """A command that keeps what stands behind `--` apart: it is meant for another program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put it into the context, and parse the rest."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[_PASSTHROUGH_KEY] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)


def run(
    context: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A model file, or a variant's name.")
    ] = None,
    harness: Annotated[
        str | None, typer.Option(metavar="NAME", help="What runs it; for a program of yours, its name.")
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Id, label, device model or `Pixel*`; again for more. Default: all."
        ),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(metavar="LIST", help="By comma; the first is the baseline. Default: cpu.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=100, metavar="N", help="Process starts each. Default: 5.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One round: no interval, and no verdict.")] = False,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the network is called; default: the file's name.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(metavar="WORD", help="What a new file is: float32, int8-core, ...")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="'REGEX UNIT'", help="Where your program prints its times; else it is timed whole."
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME=REGEX UNIT BETTER'",
            help="A further figure; BETTER is lower or higher. Repeatable.",
        ),
    ] = None,
    timeout: Annotated[str, typer.Option(metavar="SPAN", help="The longest a process may take.")] = "2m",
    watch: Annotated[bool, typer.Option("--watch/--no-watch", help="Stay until it is finished.")] = True,
    as_json: Json = False,
) -> None:
    """Measure a model file, or a program of your own, on phones; Ctrl-C detaches.

    Behind `--` stand the harness's flags, or where there is no FILE the program with its arguments. Such a
    program, a binary or a script, is pushed to each phone and timed there.

    Example: farm run model.ptl --harness speed_benchmark_torch --device "Pixel 8" -- --iter 50

    Example: farm run --quick --time 'took ([0-9.]+) ms' -- ./my_bench --size 3
    """
    from farm.cli.run.matrix import RunOptions
    from farm.cli.shell.duration import seconds

    if quick and rounds is not None:
        raise InvalidInput("--quick is one round, and --rounds says how many", hint="leave one of them out")
    options = RunOptions(
        devices=tuple(device or ()),
        backends=tuple(word.strip() for word in (backend or "").split(",") if word.strip()),
        rounds=1 if quick else rounds or 5,
        timeout_s=float(seconds(timeout)),
        model=model,
        precision=precision,
    )
    behind: list[str] = context.meta.get(_PASSTHROUGH_KEY, [])
    with connect() as farm:
        spec = _spec(farm, file, harness, behind, options, time=time, metrics=metric or [])
        raise typer.Exit(_run(farm, spec, watch=watch, as_json=as_json))


def _spec(
    farm: "FarmClient",
    file: str | None,
    harness: str | None,
    behind: list[str],
    options: "RunOptions",
    *,
    time: str | None,
    metrics: list[str],
) -> dict[str, object]:
    """The matrix that is meant; what it runs is registered by then.

    Raises:
        InvalidInput: what is to be run is not said, or cannot be.
    """
    from farm.cli.run.matrix import harness_spec, program_spec

    is_program = file is None and behind and not behind[0].startswith("-")
    if is_program:
        return program_spec(farm, Path(behind[0]), behind[1:], harness, options, time=time, metrics=metrics)
    if time is not None or metrics:
        hint = "write the program behind `--`: farm run --time '...' -- ./my_bench"
        raise InvalidInput("--time and --metric read the output of a program of your own", hint=hint)
    if harness is None:
        if file is not None:
            hint = f"farm run {quote(str(file))} --harness NAME; `farm harness list` has the names"
            raise InvalidInput(f"nothing says what runs {file}", hint=hint)
        hint = "for a model: farm run FILE --harness NAME; for a program: farm run -- ./my_bench"
        raise InvalidInput("nothing says what runs", hint=hint)
    return harness_spec(farm, file, harness, behind, options)


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
