"""Disk space reserved on the host, so that a full disk does not lose results of current runs."""

import os
import shutil
from pathlib import Path

from farm.core.base.units import size_text
from farm.core.errors import HostDiskFull


class DiskReserve:
    """A preallocated file whose space is released when the disk is full. Blocking: for the disk thread.

    File systems with compression or block sharing may reserve less than the size of the file.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        """Allocate nothing yet: see `refill`."""
        self._path = path
        self._size_bytes = size_bytes

    def refill(self) -> None:
        """Allocate the space again after a release.

        Raises:
            HostDiskFull: there is too little, or this disk keeps nothing back.
        """
        if self._is_whole():
            return
        # Checked first: a failing allocation would use up all space first.
        if not self.has_room():
            raise HostDiskFull(f"no space for {self._path}")
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size_bytes)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._path.unlink(missing_ok=True)
            raise HostDiskFull(f"no space for {self._path}: {error.strerror}") from error

    def release(self) -> bool:
        """Release the space; return False when it was released before."""
        is_there = self._path.exists()
        self._path.unlink(missing_ok=True)
        return is_there

    def shortage(self) -> str | None:
        """Return why this disk can take no new work; None while there is space beside the reserve."""
        try:
            self.refill()
            is_short = not self.has_room()
        except HostDiskFull:
            is_short = True
        return f"the agent's disk has less than {size_text(self._size_bytes)} free" if is_short else None

    def has_room(self, beside_bytes: int = 0) -> bool:
        """Return whether the free space exceeds the reserve plus these bytes; nothing is allocated."""
        return shutil.disk_usage(self._path.parent).free >= self._size_bytes + beside_bytes

    def _is_whole(self) -> bool:
        try:
            return self._path.stat().st_size >= self._size_bytes
        except FileNotFoundError:
            return False


#: As large as a report may be: two outputs at a plan's limit, escaped.
RESERVE_BYTES = 64 * 1024 * 1024
