"""Upload the files of a program to the farm and register it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBar

from farm.cli.files.program_files import LocalFile, choose_entry_file, file_specs, local_program
from farm.cli.shell.output import err, print_notice
from farm.core.errors import InvalidInput
from farm.core.programs.bundle import PLAIN_COMMAND, Bundle, BundleFile
from farm.core.programs.bundle_rules import check_bundle
from farm.wire.documents.files.programs import BundleFileSpec, ProgramRegistration, RegisteredProgramView

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.client.upload import Progress


def add_program(
    farm: "FarmClient",
    name: str,
    path: Path,
    *,
    abi: str | None = None,
    entry: str | None = None,
    env: Mapping[str, str] | None = None,
    command: Sequence[str] = PLAIN_COMMAND,
    definition: Mapping[str, Any] | None = None,
) -> RegisteredProgramView:
    """Upload a file or a folder and register it as the program that new matrices of the harness run.

    Args:
        farm: the farm.
        name: the harness.
        path: the program, or its folder.
        abi: None detects it from the files.
        entry: the file of a folder to start; None if it is unambiguous.
        env: `${work}` in a value is the run's folder.
        command: one word each, `${program}` and `${arguments}` among them.
        definition: of a generic harness; None if the farm has an adapter.

    Raises:
        InvalidInput: the files or their description are not valid.
    """
    program = local_program(path)
    for skipped in program.skipped:
        print_notice(f"skipped {skipped}")
    entry = choose_entry_file(program.files, entry, abi=abi)
    specs = file_specs(program.files, entry)
    bundle = Bundle(files=_bundle_files(specs), entry=entry, env=env or {}, command=tuple(command))
    # The farm checks this again; checking it here avoids a useless upload.
    check_bundle(bundle)
    registration = _registration(name, abi, bundle, specs, definition)
    _upload(farm, specs)
    return farm.register_program(registration)


def _bundle_files(specs: Mapping[LocalFile, BundleFileSpec]) -> tuple[BundleFile, ...]:
    return tuple(
        BundleFile(path=spec.path, digest=spec.digest, size_bytes=file.size_bytes, executable=spec.executable)
        for file, spec in specs.items()
    )


def _registration(
    name: str,
    abi: str | None,
    bundle: Bundle,
    specs: Mapping[LocalFile, BundleFileSpec],
    definition: Mapping[str, Any] | None,
) -> ProgramRegistration:
    try:
        return ProgramRegistration(
            name=name,
            abi=abi,
            files=tuple(specs.values()),
            entry=bundle.entry,
            env=dict(bundle.env),
            command=bundle.command,
            definition=None if definition is None else dict(definition),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _upload(farm: "FarmClient", specs: Mapping[LocalFile, BundleFileSpec]) -> None:
    """Upload each content once, even if several files have it."""
    file_by_digest = {spec.digest: file for file, spec in specs.items()}
    with _progress_bar(sum(file.size_bytes for file in file_by_digest.values())) as progress:
        for digest, file in file_by_digest.items():
            farm.upload(file.source, digest, progress=progress)


@contextmanager
def _progress_bar(total_bytes: int) -> Iterator["Progress"]:
    columns = (TextColumn("uploading"), BarColumn(20), DownloadColumn(), TransferSpeedColumn())
    console = err()
    with ProgressBar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total_bytes)
        yield lambda more_bytes: bar.advance(task, more_bytes)
