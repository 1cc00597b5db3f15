"""Checks of disk space, limits and permissions."""

import os
import resource
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from farm.core.base.units import size_text
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning

_LOW_SPACE_BYTES, _MIN_SPACE_BYTES = 5_000_000_000, 1_000_000_000
#: Phones, connections and files of one process; a hundred phones need some thousands.
_MIN_OPEN_FILES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderProbe:
    """A folder of ours, or the place where it would be created."""

    path: Path
    is_there: bool
    is_writable: bool
    is_private: bool
    free_bytes: int


def probe_folder(path: Path) -> FolderProbe:
    """Probe a folder, or its nearest existing parent when it is missing."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    return FolderProbe(
        path=path,
        is_there=existing == path,
        is_writable=existing.is_dir() and os.access(existing, os.W_OK | os.X_OK),
        is_private=existing != path or not stat.S_IMODE(existing.stat().st_mode) & 0o002,
        free_bytes=shutil.disk_usage(existing).free,
    )


def check_folder(folder: FolderProbe, variable: str) -> list[Diagnostic]:
    """Check whether a data folder can be used; `variable` is the setting that names it."""
    free = f"{size_text(folder.free_bytes)} free"
    subject = "data folder"
    if not folder.is_writable:
        where = "cannot be written by this user" if folder.is_there else "cannot be made by this user"
        hint = f"give it to the user that runs this, or name another one with {variable}"
        return [problem(subject, f"{folder.path} {where}", hint)]
    if not folder.is_private:
        hint = f"chmod o-w {folder.path}"
        return [problem(subject, f"anybody on this machine may write to {folder.path}", hint)]
    message = f"{folder.path}: {'' if folder.is_there else 'not made yet, '}{free}"
    if folder.free_bytes < _MIN_SPACE_BYTES:
        return [problem(subject, message, f"free space there, or name a larger disk with {variable}")]
    if folder.free_bytes < _LOW_SPACE_BYTES:
        return [warning(subject, message, "models and evidence need some gigabytes: free space soon")]
    return [ok(subject, message)]


def read_file_limit() -> int:
    """Return the limit of open files; some services start with a lower one than a shell."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def check_file_limit(limit: int) -> Diagnostic:
    """Check whether the limit is enough for many devices."""
    if limit == resource.RLIM_INFINITY or limit >= _MIN_OPEN_FILES:
        return ok("limits", f"a process may open {'any number of' if limit < 0 else limit} files")
    return warning(
        "limits",
        f"a process may open {limit} files only",
        f"raise it: ulimit -n {_MIN_OPEN_FILES}, or LimitNOFILE={_MIN_OPEN_FILES} in the unit",
    )


def read_mode(path: Path) -> int | None:
    """Return the permission bits of a file; None when it is missing."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def check_private_file(path: Path, mode: int | None) -> list[Diagnostic]:
    """Check whether a secret is readable by its owner only; a missing one yields no diagnostic."""
    if mode is None:
        return []
    if mode & 0o077:
        return [problem("secrets", f"others may read {path} (mode {mode:o})", f"chmod 600 {path}")]
    return [ok("secrets", f"{path} is its owner's alone")]
