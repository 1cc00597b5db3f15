"""`farm harness`: list, show, register and test benchmark programs."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json, print_notice, show
from farm.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient

app = typer.Typer(no_args_is_help=True, help="Harnesses: benchmark programs and the parsers of their output.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name in `farm harness list`.")]


@app.command("list")
def list_command(
    adapters: Annotated[bool, typer.Option("--adapters", help="Only the built-in adapters.")] = False,
    as_json: Json = False,
) -> None:
    """List the registered programs, one for each ABI, and the built-in adapters.

    Example: farm harness list --adapters
    """
    from farm.cli.files.harness_report import adapter_table, program_table

    with connect() as farm:
        if not adapters:
            show(farm.programs(), program_table, as_json=as_json)
        if adapters or not as_json:
            show(farm.adapters(), adapter_table, as_json=as_json)


@app.command("show")
def show_command(name: Name, as_json: Json = False) -> None:
    """Show one harness: what its clock covers, its flags, backends and program files.

    Example: farm harness show speed_benchmark_torch
    """
    from farm.cli.files.harness_report import harness_report

    with connect() as farm:
        view = farm.harness(name)
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(harness_report(view))


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The harness.")],
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The program, or a folder with all its files.")
    ],
    abi: Annotated[
        str | None, typer.Option(metavar="ABI", help="arm64-v8a, ...; default: detected from the files.")
    ] = None,
    entry: Annotated[
        str | None, typer.Option(metavar="FILE", help="The file of the folder to start.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Environment; ${work} is the run's folder. Repeatable."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(metavar="WORDS", help="Start command: 'taskset f0 ${program} ${arguments}'."),
    ] = None,
    definition: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Definition of a generic harness.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Register a program of your own. New matrices run it on devices of its ABI.

    All files of a folder are pushed to the device, below the working folder of each run. Write ${work} in
    single quotes, otherwise your shell expands it.

    Example: farm harness add speed_benchmark_torch ./out --env 'LD_LIBRARY_PATH=${work}/lib'
    """
    from farm.cli.files.harness_report import program_table, registered_lines
    from farm.cli.files.program_upload import add_program
    from farm.core.programs.bundle import PLAIN_COMMAND

    variables = dict(map(_variable, env or []))
    words = PLAIN_COMMAND if command is None else _words(command)
    with connect() as farm:
        view = add_program(
            farm,
            name,
            path,
            abi=abi,
            entry=entry,
            env=variables,
            command=words,
            definition=_definition(farm, name, definition),
        )
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(program_table([view.program]))
    for line in registered_lines(view):
        print_notice(line)


@app.command("test")
def try_command(
    name: Name,
    device: Annotated[str, typer.Option(metavar="ID", help="Id or label of the device.")],
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Variant or model file; default: the newest variant that can run."),
    ] = None,
    backend: Annotated[str | None, typer.Option(metavar="NAME", help="Default: cpu.")] = None,
    timeout: Annotated[str, typer.Option(metavar="SPAN", help="Time-out of the run.")] = "2m",
    flags: Annotated[
        list[str] | None, typer.Argument(metavar="-- FLAGS", help="Flags of the harness, behind `--`.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a harness once on a device, ahead of its queue, and show the parsed output.

    If nothing could be parsed, the exit code shows the blame.

    Example: farm harness test speed_benchmark_torch --device pixel-8-a -- --iter 10
    """
    from farm.cli.files.harness_trial import exit_code_of, run_trial
    from farm.cli.jobs.attempt_report import attempt_report
    from farm.cli.shell.duration import seconds

    with connect() as farm:
        view = run_trial(
            farm,
            name,
            device,
            model=model,
            backend=backend,
            flags=flags or [],
            timeout_s=float(seconds(timeout)),
        )
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(attempt_report(view), soft_wrap=True)
    raise typer.Exit(exit_code_of(view))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"--env {text}: no value", hint="write NAME=VALUE")
    return name, value


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidInput(f"--command {text}: {error}", hint="quote it as a shell would read it") from error


def _definition(farm: "FarmClient", name: str, file: Path | None) -> dict[str, Any] | None:
    """Return the definition in the file, else the registered one; None if the farm has an adapter.

    Raises:
        NotFound: there is neither a file nor a harness of that name.
        HarnessInvalid: the file is not a definition.
    """
    from farm.wire.documents.files.harness_definition import definition_from_text

    if file is None:
        return _registered_definition(farm, name)
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise InvalidInput(f"{file}: {reason}", hint="name a definition in YAML") from error
    return definition_from_text(text).model_dump(mode="json")


def _registered_definition(farm: "FarmClient", name: str) -> dict[str, Any] | None:
    try:
        return farm.harness(name).definition
    except NotFound as error:
        hint = f"{error.hint}; for a program of your own, --definition FILE defines how it is run and parsed"
        raise NotFound(error.message, hint=hint) from error
