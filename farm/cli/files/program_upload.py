"""Local files on their way to the farm: their digest and upload, and the registration of a program."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from farm.blobs.inspection import inspect_program_file
from farm.cli.shell.output import err, print_notice
from farm.client.farm_client import FarmClient
from farm.core.base.ids import Digest
from farm.core.errors import InvalidInput
from farm.core.programs.abi import program_abi, select_entry
from farm.core.programs.built_with import ProgramPart
from farm.core.programs.bundle import MAX_FILES, PLAIN_COMMAND, Bundle, BundleFile, check_bundle
from farm.core.runs.plan import path_problem
from farm.wire.documents.files.programs import (
    BundleFileSpec,
    ProgramRegistration,
    RegisteredProgramView,
)

_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME = 64


def local_digest(path: Path, *, error_type: type[InvalidInput] = InvalidInput) -> Digest:
    """Return the SHA-256 digest of a file; raises `error_type` if it cannot be read."""
    try:
        with path.open("rb") as content:
            return Digest(file_digest(content, "sha256").hexdigest())
    except OSError as error:
        raise error_type(f"{path}: cannot be read: {error.strerror}") from error


def matrix_name(file_name: str) -> str:
    """Return a file name with `_` for characters that a matrix does not allow; empty if nothing is left."""
    return _INVALID_IN_NAME.sub("_", file_name).lstrip("._-")[:_MAX_NAME]


def upload_files(farm: FarmClient, path_by_digest: Mapping[Digest, Path], *, label: str) -> None:
    """Upload files, with a progress bar on a terminal."""
    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(20), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=sum(path.stat().st_size for path in path_by_digest.values()))
        for digest, path in path_by_digest.items():
            farm.upload(path, digest, progress=lambda more_bytes: bar.advance(task, more_bytes))


#: Files of editors, operating systems and version control that no program reads.
_JUNK = frozenset({".git", ".hg", ".svn", ".DS_Store", "Thumbs.db", "desktop.ini", "__pycache__", "__MACOSX"})
_JUNK_PREFIX = "._"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """One file of a program."""

    #: Relative to the folder.
    path: str
    source: Path
    size_bytes: int
    executable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalProgram:
    """All files of a program, and the paths that were skipped."""

    files: tuple[LocalFile, ...]
    skipped: tuple[str, ...] = ()


def local_program(path: Path) -> LocalProgram:
    """Return the files of a program. Links are followed.

    Raises:
        InvalidInput: there is no file, there are too many, or one is neither file nor folder.
    """
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such file or folder", hint="name the program, or its folder")
    if not path.is_dir():
        return LocalProgram(files=(_local_file(path, path.name),))
    files: list[LocalFile] = []
    skipped: list[str] = []
    for relative, is_junk in _walk(path):
        if is_junk:
            skipped.append(relative)
            continue
        if len(files) == MAX_FILES:
            hint = "name the folder of the program alone, or put data into one archive"
            raise InvalidInput(f"{path}: over {MAX_FILES} files", hint=hint)
        files.append(_local_file(path / relative, relative))
    if not files:
        raise InvalidInput(f"{path}: the folder is empty", hint="name the program, or its folder")
    return LocalProgram(files=tuple(files), skipped=tuple(skipped))


def choose_entry_file(files: Sequence[LocalFile], requested: str | None, *, abi: str | None = None) -> str:
    """Return the path of the file to start, after checking that all files are of one ABI.

    Raises:
        InvalidInput: there is no such file, the choice is ambiguous without a request, the file cannot be
            started, or the files are not for the requested ABI.
    """
    inspection_by_path = {file.path: inspect_program_file(file.source) for file in files}
    entry = _find_entry(files, requested) or select_entry(
        inspection_by_path, [file.path for file in files if file.executable]
    )
    program_abi(inspection_by_path, entry, abi)
    return entry


def _find_entry(files: Sequence[LocalFile], requested: str | None) -> str | None:
    entry = None if requested is None else os.path.normpath(requested)
    if entry is not None and entry not in {file.path for file in files}:
        listed = ", ".join(sorted(file.path for file in files)[:12])
        raise InvalidInput(
            f"--entry {requested}: there is no such file in the bundle", hint=f"it has {listed}"
        )
    return entry


def _walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """Return each file and whether it is skipped; skipped folders are not entered."""
    for root, folders, names in os.walk(folder, followlinks=True, onerror=_raise_unreadable):
        if _is_link_loop(Path(root), folder):
            raise InvalidInput(f"{root}: a link forms a loop", hint="remove the link")
        here = os.path.relpath(root, folder)
        for name in sorted([*names, *filter(_is_junk, folders)]):
            yield os.path.normpath(f"{here}/{name}"), _is_junk(name)
        folders[:] = sorted(name for name in folders if not _is_junk(name))


def _is_link_loop(place: Path, folder: Path) -> bool:
    """Return whether a link leads to one of its parent folders."""
    parents = [folder / parent for parent in place.relative_to(folder).parents]
    return place != folder and any(place.samefile(parent) for parent in parents)


def _is_junk(name: str) -> bool:
    return name in _JUNK or name.startswith(_JUNK_PREFIX)


def _raise_unreadable(error: OSError) -> None:
    raise InvalidInput(f"{error.filename}: cannot be read: {error.strerror}") from error


def _local_file(source: Path, path: str) -> LocalFile:
    if why := path_problem(path):
        raise InvalidInput(f"the path {path[:80]!r} {why}", hint="rename it, or leave it out")
    try:
        is_file, size_bytes = source.is_file(), source.stat().st_size
    except OSError as error:
        raise InvalidInput(f"{source}: cannot be read: {error.strerror}") from error
    if not is_file:
        raise InvalidInput(f"{source}: is neither a file nor a folder", hint="leave it out")
    return LocalFile(path=path, source=source, size_bytes=size_bytes, executable=os.access(source, os.X_OK))


def add_program(
    farm: FarmClient,
    name: str,
    path: Path,
    *,
    abi: str | None = None,
    entry: str | None = None,
    env: Mapping[str, str] | None = None,
    command: Sequence[str] = PLAIN_COMMAND,
    definition: Mapping[str, Any] | None = None,
    built_with: Sequence[ProgramPart] = (),
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
        built_with: what it was built from, as far as that is known.

    Raises:
        InvalidInput: the files or their description are not valid.
    """
    program = local_program(path)
    for skipped in program.skipped:
        print_notice(f"skipped {skipped}")
    entry = choose_entry_file(program.files, entry, abi=abi)
    source_by_file = {
        BundleFile(
            path=file.path,
            digest=local_digest(file.source),
            size_bytes=file.size_bytes,
            executable=file.executable or file.path == entry,
        ): file.source
        for file in program.files
    }
    bundle = Bundle(files=tuple(source_by_file), entry=entry, env=env or {}, command=tuple(command))
    # The farm checks this again; checking it here avoids a useless upload.
    check_bundle(bundle)
    try:
        registration = ProgramRegistration(
            name=name,
            abi=abi,
            files=tuple(
                BundleFileSpec(path=file.path, digest=file.digest, executable=file.executable)
                for file in bundle.files
            ),
            entry=entry,
            env=dict(bundle.env),
            command=bundle.command,
            definition=None if definition is None else dict(definition),
            built_with=tuple(built_with),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    # Several files may have the same content.
    path_by_digest = {file.digest: source for file, source in source_by_file.items()}
    upload_files(farm, path_by_digest, label="uploading")
    return farm.register_program(registration)
