"""Another user of the machine, as which only root can act."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

#: The user of that name on every Linux.
NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@contextmanager
def other_user(uid: int = NOBODY) -> Iterator[None]:
    """Be another user, without any capability: in all threads, so for single calls."""
    # The real one, too: access(2) asks for that.
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
