"""The identity of the database that a folder of artifacts belongs to, as a file of the folder."""

import secrets
from pathlib import Path

from farm.blobs.copy import make_folder, sync_file, translated_disk_errors

_FILE = "database-epoch"


def find_owner(folder: Path) -> str | None:
    """Return the epoch of the database that a folder belongs to; None for a folder of none."""
    try:
        return (folder / _FILE).read_text(encoding="ascii", errors="replace").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def set_owner(folder: Path, epoch: str) -> None:
    """Record the epoch of the database that a folder belongs to from now on; the folder is made when missing.

    Raises:
        FarmFault: it cannot be written; a full disk is FarmDiskFull.
    """
    make_folder(folder)
    draft = folder / f".{_FILE}.{secrets.token_hex(4)}"
    with translated_disk_errors(folder):
        try:
            draft.write_text(f"{epoch}\n", encoding="ascii")
            sync_file(draft)
            draft.replace(folder / _FILE)
            sync_file(folder)
        finally:
            draft.unlink(missing_ok=True)
