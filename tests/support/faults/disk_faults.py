"""What a process sees of a full disk: its files do not grow."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress


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
