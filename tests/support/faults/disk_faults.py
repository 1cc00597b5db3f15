"""Full disks: a process whose files do not grow, and a file system of a few megabytes."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def no_file_grows_beyond(pid: int, limit_bytes: int) -> Iterator[None]:
    """No write of a process beyond so many bytes of a file succeeds; it may end meanwhile."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


class SmallDisk:
    """A file system of some MiB, in a namespace of its own; every process of this user reaches its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, leave_bytes: int = 0) -> None:
        """Use up all space but so many bytes."""
        filler = self.folder / "of-others"
        with filler.open("ab") as file:
            # Others write at the same time: until not even a page is left.
            while (size_bytes := shutil.disk_usage(self.folder).free - leave_bytes) > 0:
                with suppress(OSError):
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), size_bytes)

    def free(self) -> None:
        """Give back all that was used up."""
        (self.folder / "of-others").unlink(missing_ok=True)


@contextmanager
def small_disk(mount_point: Path, size_mib: int) -> Iterator[SmallDisk]:
    """Mount a file system in memory; skip the test where this machine allows no mounts of a user's own."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare(1)")
    mount_point.mkdir()
    script = f'mount -t tmpfs -o size={size_mib}m tmpfs "$0" && echo mounted && exec cat'
    holder = subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", script, str(mount_point)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        if not holder.stdout.readline():
            _, reason = holder.communicate()
            pytest.skip(f"this machine allows no mounts of a user's own: {reason.strip()}")
        # The kernel leads every process of this user into the namespace of another (proc(5)).
        yield SmallDisk(Path(f"/proc/{holder.pid}/root{mount_point}"))
    finally:
        holder.communicate()
