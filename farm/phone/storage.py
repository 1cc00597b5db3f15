"""What `df` prints: toybox, coreutils, and the toolbox of old."""

import re
from dataclasses import dataclass

from farm.phone.text import lines

_UNIT_BYTES = {"": 1024, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_AMOUNT = r"(\d{1,12}(?:\.\d{1,3})?)([KMGT]?)"
#: Size, used, available, use%, mount point, at the end of a line: a long file system name is wrapped before.
_ROW = re.compile(rf"(?:.*\s)?{_AMOUNT}\s+{_AMOUNT}\s+{_AMOUNT}\s+\d+%\s+(/\S*)", re.ASCII)
#: Android's toolbox, up to 6: mount point, size, used, free, block size.
_OLD_ROW = re.compile(rf"(/\S*)\s+{_AMOUNT}\s+{_AMOUNT}\s+{_AMOUNT}\s+\d+", re.ASCII)
#: Where a whole listing shows the users' data; Magisk of old mounts it in a place of its own.
_DATA_MOUNTS = ("/data", "/data/user/0", "/data/data", "/sbin/.magisk/mirror/data")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """One row. A plain figure is kilobytes, which all forms mean by 1K-blocks."""

    mount: str
    size_bytes: int
    free_bytes: int


def file_systems(text: str) -> list[FileSystem]:
    """Every row that is whole, in the order of the listing."""
    found: list[FileSystem] = []
    for line in lines(text):
        if (row := _ROW.fullmatch(line)) is not None:
            size, free, mount = (row[1], row[2]), (row[5], row[6]), row[7]
        elif (row := _OLD_ROW.fullmatch(line)) is not None:
            size, free, mount = (row[2], row[3]), (row[6], row[7]), row[1]
        else:
            continue
        found.append(FileSystem(mount=mount, size_bytes=_bytes(*size), free_bytes=_bytes(*free)))
    return found


def data_file_system(text: str) -> FileSystem | None:
    """The one file system listed, or the one of the users' data in a whole listing; None when neither is."""
    found = file_systems(text)
    if len(found) == 1:
        return found[0]
    of_data = [row for mount in _DATA_MOUNTS for row in found if row.mount == mount]
    return of_data[0] if of_data else None


def storage_free_bytes(text: str) -> int | None:
    """Free bytes on the file system that was asked for; None when it is not in the listing."""
    found = data_file_system(text)
    return None if found is None else found.free_bytes


def storage_size_bytes(text: str) -> int | None:
    """How large it is, as `storage_free_bytes`."""
    found = data_file_system(text)
    return None if found is None else found.size_bytes


def _bytes(amount: str, unit: str) -> int:
    return int(float(amount) * _UNIT_BYTES[unit])
