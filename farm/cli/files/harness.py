"""`farm harness`: list, show, register and test benchmark programs."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from farm.cli.files.program_build import build, fetch
from farm.cli.files.program_report import program_table, show_registered, use_text
from farm.cli.files.program_upload import add_program
from farm.cli.jobs.attempt import attempt_report
from farm.cli.matrices.report import current_work
from farm.cli.run.matrix import RunOptions, harness_spec
from farm.cli.shell.address import connect, show_view
from farm.cli.shell.next_steps import watch_again_text
from farm.cli.shell.options import Json
from farm.cli.shell.output import print_data, print_notice, show
from farm.cli.shell.tables import Listing, name, number, prose, sections
from farm.cli.shell.wait import wait_for
from farm.client.farm_client import FarmClient
from farm.core.base.ids import DeviceId, MatrixId
from farm.core.base.spec_errors import name_hint
from farm.core.base.units import size_text
from farm.core.errors import Blame, InvalidInput, NotFound
from farm.core.jobs.job import JobState
from farm.core.matrices.matrix import value_text
from farm.core.programs.bundle import PLAIN_COMMAND
from farm.core.runs.measurement import Outcome
from farm.presentation.labels import device_name
from farm.presentation.text import plural, seconds
from farm.wire.documents.files.harness_definition import definition_from_text
from farm.wire.documents.files.programs import AdapterView, FlagView, HarnessView, ProgramView
from farm.wire.documents.matrices.jobs import AttemptView, JobView

#: Above the priority of matrices, below health checks.
_PRIORITY = 100
_NAME = "harness test"


def run_trial(
    farm: FarmClient, name: str, device: str, model: str | None, flags: Sequence[str], options: RunOptions
) -> AttemptView:
    """Run a harness once on a device and wait for it; a repeat for noise is cancelled.

    Raises:
        NotFound: there is no such harness, device or variant.
        InvalidInput: the harness has no such flag, or there is no file that it can run.
        typer.Exit: the user pressed Ctrl-C; the run continues.
    """
    harness = farm.harness(name)
    for backend in set(options.backends) - set(harness.backends):
        hint = name_hint(backend, harness.backends)
        raise InvalidInput(f"{name} has no backend `{backend}`", hint=hint)
    device_id = farm.device(device).device_id
    file = _model(farm, harness, model, options.backends or harness.backends)
    spec = harness_spec(farm, file, name, flags, replace(options, devices=(device_id,)))
    view = farm.submit_matrix(
        {**spec, "name": _NAME, "priority": _PRIORITY, "devices": {"device_id": device_id}}
    )
    job = _finished_job(farm, view.matrix_id, device_id)
    if not job.attempts:
        raise InvalidInput(f"the run was {job.outcome} before it started", hint="run the test again")
    return farm.attempt(job.attempts[-1])


def exit_code_of(view: AttemptView) -> int:
    """Return 0 for a measurement, else the exit code for the blame."""
    if view.outcome is Outcome.SUCCEEDED:
        return 0
    return Blame(view.blame or Blame.FARM).exit_code


def _model(
    farm: FarmClient, harness: HarnessView, requested: str | None, backends: Sequence[str]
) -> str | None:
    """Return the requested file, else the newest variant that can run if the harness needs one."""
    if requested is not None or not harness.needs_model:
        return requested
    candidates = [
        view
        for view in farm.variants()
        if view.replaced_by is None
        if set(backends) & set(view.manifest.backends)
        and (not harness.formats or view.manifest.recipe.format in harness.formats)
    ]
    if not candidates:
        hint = "`farm variant build mobilenet_v2` builds one, `farm variant add FILE` registers yours"
        raise InvalidInput(f"{harness.name} runs a model, and the farm has no suitable one", hint=hint)
    newest = max(candidates, key=lambda view: view.variant_id)
    print_notice(f"Using {newest.name}; --model selects another.")
    return newest.name


def _finished_job(farm: FarmClient, matrix_id: MatrixId, device_id: DeviceId) -> JobView:
    """Wait for the first job and return it; repeats of its block are cancelled."""

    def text(_: JobView) -> str:
        progress = farm.matrix(matrix_id).progress
        if not progress:
            return f"{device_id}: queued"
        return f"{device_name(progress[0])}: {current_work(progress[0])}"

    job = wait_for(
        lambda: farm.jobs(matrix_id)[0],
        lambda job: job.state is JobState.FINISHED,
        text,
        detached=watch_again_text(matrix_id),
    )
    if len(farm.jobs(matrix_id)) > 1:
        farm.cancel_matrix(matrix_id)
    return job


_adapter_table = Listing[AdapterView](
    name("adapter", lambda view: view.name),
    prose("formats", lambda view: ", ".join(view.formats)),
    prose("backends", lambda view: ", ".join(view.backends)),
    prose("ABIs", lambda view: ", ".join(view.abis) or None),
    number("parser", lambda view: view.parser_version),
)


def _range_text(flag: FlagView) -> str:
    ends = {"at least": flag.minimum, "at most": flag.maximum}
    texts = [f"{word} {end}" for word, end in ends.items() if end is not None]
    return f" ({', '.join(texts)})" if texts else ""


_flag_table = Listing[FlagView](
    name("flag", lambda flag: flag.name),
    name("default", lambda flag: value_text(flag.default) or None),
    prose("description", lambda flag: flag.help + _range_text(flag)),
)


def harness_report(view: HarnessView) -> RenderableType:
    """Return the report of a harness."""
    kind = "generic" if view.definition is not None else "built-in adapter"
    model = "runs a model" if view.needs_model else "runs no model"
    formats = f", formats {', '.join(view.formats)}" if view.formats else ""
    facts = (
        f"{view.name}: {kind}, {model}{formats}, parser version {view.parser_version}",
        f"backends: {', '.join(view.backends)}",
        f"the clock covers: {view.clock_covers}",
        f"metrics besides the time: {', '.join(view.metrics) or 'none'}",
    )
    programs = [Text("\n".join(_program_lines(program))) for program in reversed(view.programs)]
    return sections(
        Text("\n".join(facts)),
        _flag_table(view.flags) if view.flags else None,
        *(programs or [Text("no program is registered: `farm harness add` registers one")]),
    )


def _program_lines(view: ProgramView) -> Iterator[str]:
    yield f"{view.abi}: {view.digest}, {'in use ' if view.in_use else ''}{use_text(view)}"
    for file in view.files:
        marks = [size_text(file.size_bytes), file.digest[:12]]
        marks += ["started"] if file.path == view.entry else ["executable"] if file.executable else []
        yield f"  {file.path}  {', '.join(marks)}"
    yield from (f"  environment: {variable}={value}" for variable, value in view.env.items())
    if view.command != PLAIN_COMMAND:
        # Placeholders are not quoted.
        yield f"  command: {' '.join(word if '${' in word else shlex.quote(word) for word in view.command)}"
    if view.missing_flags:
        yield f"  missing flags: {', '.join(view.missing_flags)}"
    for part in view.built_with:
        yield f"  built with: {part.name} {part.version}, {part.digest[:12]}, {part.source}"


app = typer.Typer(no_args_is_help=True)
app.command("build")(build)
app.command("fetch")(fetch)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name in `farm harness list`.")]
Replaced = Annotated[
    bool, typer.Option("--all", help="Also programs that were replaced by newer ones for the same ABI.")
]


@app.command("list")
def list_command(
    adapters: Annotated[bool, typer.Option("--adapters", help="Only the built-in adapters.")] = False,
    replaced: Replaced = False,
    as_json: Json = False,
) -> None:
    """List the registered programs, one for each ABI, and the built-in adapters.

    Example: farm harness list --adapters
    """
    with connect() as farm:
        if not adapters:
            programs = [view for view in farm.programs() if view.in_use or replaced]
            show(programs, program_table, as_json=as_json)
            if not as_json:
                print_data("")
        if adapters or not as_json:
            show(farm.adapters(), _adapter_table, as_json=as_json)


@app.command("show")
def show_command(name: Name, replaced: Replaced = False, as_json: Json = False) -> None:
    """Show one harness: what its clock covers, its flags, backends, metrics and program files.

    Example: farm harness show speed_benchmark_torch
    """
    show_view(lambda farm: _without_replaced(farm.harness(name), replaced), harness_report, as_json=as_json)


def _without_replaced(view: HarnessView, replaced: bool) -> HarnessView:
    """Return a harness without the programs that newer ones replaced, unless they are asked for."""
    if replaced:
        return view
    programs = tuple(program for program in view.programs if program.in_use)
    if others := len(view.programs) - len(programs):
        print_notice(f"{plural(others, 'replaced program')} not shown: --all shows all.")
    return view.model_copy(update={"programs": programs})


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
            definition=stated_definition(farm, name, definition),
        )
    show_registered(view, as_json=as_json)


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
    backends = () if backend is None else (backend,)
    options = RunOptions(backends=backends, rounds=1, timeout_s=float(seconds(timeout)))
    with connect() as farm:
        view = run_trial(farm, name, device, model, flags or [], options)
    show(view, attempt_report, as_json=as_json)
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


def stated_definition(farm: FarmClient, name: str, file: Path | None) -> dict[str, Any] | None:
    """Return the definition in the file, else the registered one; None if the farm has an adapter.

    Raises:
        NotFound: there is neither a file nor a harness of that name.
        HarnessInvalid: the file is not a definition.
    """
    if file is None:
        try:
            return farm.harness(name).definition
        except NotFound as error:
            hint = (
                f"{error.hint}; for a program of your own, --definition FILE defines how it is run and parsed"
            )
            raise NotFound(error.message, hint=hint) from error
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise InvalidInput(f"{file}: {reason}", hint="name a definition in YAML") from error
    return definition_from_text(text).model_dump(mode="json")
