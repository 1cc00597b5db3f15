"""Output of `df`: toybox, coreutils, and the old toolbox."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from farm.phone.adb.decoding import complete_lines, lines

_UNIT_BYTES = {"": 1024, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
#: coreutils' -h writes `3,8G` in locales with a decimal comma.
_AMOUNT = r"(\d{1,12}(?:\.\d{1,3}|,\d(?=[KMGT]))?)([KMGT]?)"
#: Size, used, available, use%, mount point, at the end of a line: a long file system name is wrapped before.
_ROW = re.compile(rf"(?:.*\s)?{_AMOUNT}\s+{_AMOUNT}\s+{_AMOUNT}\s+\d+%\s+(/\S*)", re.ASCII)
#: Android's toolbox, up to 6: mount point, size, used, free, block size.
_OLD_ROW = re.compile(rf"(/\S*)\s+{_AMOUNT}\s+{_AMOUNT}\s+{_AMOUNT}\s+\d+", re.ASCII)
#: Android's toolbox, up to 4: `/data: 2013012K total, 391508K used, 1621504K available (block size 4096)`.
_OLDEST_ROW = re.compile(
    rf"(/\S*): {_AMOUNT} total, {_AMOUNT} used, {_AMOUNT} available \(block size \d+\)", re.ASCII
)
#: `1K-blocks`, `1024-blocks`, `1M-blocks`: the unit of a plain number; `df -i` counts files instead.
_BLOCKS = re.compile(r"Filesystem\s+(\d{1,7})([KMG]?)-blocks\s.*", re.ASCII)
_COUNTS_FILES = re.compile(r"Filesystem\s+Inodes\s.*", re.ASCII)
#: Mount points of the users' data in a whole listing; old versions of Magisk mount it elsewhere. Emulated
#: storage lies on it.
_DATA_MOUNTS = (
    *("/data", "/data/user/0", "/data/data", "/sbin/.magisk/mirror/data"),
    *("/storage/emulated", "/storage/emulated/0", "/mnt/shell/emulated"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """One row. A plain number is kilobytes, where the heading has no block size."""

    mount: str
    size_bytes: int
    free_bytes: int


def _rows(listing: Iterable[str]) -> list[FileSystem]:
    rows: list[FileSystem] = []
    block_bytes: int | None = _UNIT_BYTES[""]
    for line in listing:
        if (heading := _BLOCKS.fullmatch(line)) is not None:
            block_bytes = int(heading[1]) * (_UNIT_BYTES[heading[2]] if heading[2] else 1)
        elif _COUNTS_FILES.fullmatch(line):
            block_bytes = None
        elif block_bytes is not None and (row := _row(line, block_bytes)) is not None:
            rows.append(row)
    return rows


def _row(line: str, block_bytes: int) -> FileSystem | None:
    if (row := _ROW.fullmatch(line)) is not None:
        size, free, mount = (row[1], row[2]), (row[5], row[6]), row[7]
    elif (row := _OLD_ROW.fullmatch(line) or _OLDEST_ROW.fullmatch(line)) is not None:
        size, free, mount = (row[2], row[3]), (row[6], row[7]), row[1]
    else:
        return None
    size_bytes, free_bytes = (_bytes(*amount, block_bytes) for amount in (size, free))
    return FileSystem(mount=mount, size_bytes=size_bytes, free_bytes=free_bytes)


def data_file_system(text: str) -> FileSystem | None:
    """Return the only file system listed, or the users' data in a whole listing; None when neither is there.

    After a single row something may be cut off, so it need not be the only one.
    """
    # Complete rows only: without a line end the mount point may be cut.
    listed = _rows(complete_lines(text))
    # The last line of a terminal is its prompt.
    if len(listed) == 1 and (not (last := lines(text)[-1]).strip() or last.endswith(("$", "#"))):
        return listed[0]
    # The answer to `df /data`, copied without its last line end; a cut mount point does not matter.
    listed = listed or _rows(lines(text))
    of_data = [row for mount in _DATA_MOUNTS for row in listed if row.mount == mount]
    return of_data[0] if of_data else None


def storage_free_bytes(text: str) -> int | None:
    """Return the free bytes on the requested file system; None when it is not in the listing."""
    data = data_file_system(text)
    return None if data is None else data.free_bytes


def storage_size_bytes(text: str) -> int | None:
    """Return the size of the file system that `storage_free_bytes` is about."""
    data = data_file_system(text)
    return None if data is None else data.size_bytes


def _bytes(amount: str, unit: str, block_bytes: int) -> int:
    return int(float(amount.replace(",", ".")) * (_UNIT_BYTES[unit] if unit else block_bytes))
