"""The local files of a program: one file, or all files of a folder."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from farm.blobs.program_file import inspect_program_file
from farm.core.base.ids import Digest
from farm.core.errors import InvalidInput
from farm.core.programs.abi import program_abi, select_entry
from farm.core.programs.bundle_rules import MAX_FILES, path_problem
from farm.wire.documents.files.programs import BundleFileSpec

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


def file_specs(files: Sequence[LocalFile], entry: str) -> dict[LocalFile, BundleFileSpec]:
    """Return the specification of each file with its digest.

    Raises:
        InvalidInput: a file cannot be read.
    """
    return {
        file: BundleFileSpec(
            path=file.path, digest=_digest(file.source), executable=file.executable or file.path == entry
        )
        for file in files
    }


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


def _digest(source: Path) -> Digest:
    try:
        with source.open("rb") as content:
            return Digest(file_digest(content, "sha256").hexdigest())
    except OSError as error:
        raise InvalidInput(f"{source}: cannot be read: {error.strerror}") from error
