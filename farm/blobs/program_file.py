"""Inspection of a program file before it is accepted; nothing in it is run."""

import mmap
from collections.abc import Collection
from pathlib import Path

from farm.core.errors import InvalidInput
from farm.core.programs.binary_inspection import FileInspection, inspect_file


def inspect_program_file(path: Path, flags: Collection[str] = ()) -> FileInspection:
    """Return the kind of a file, its size, and which of these flags it contains.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                return inspect_file(b"")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return inspect_file(content, flags)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from error
