"""What is made once in a test run, by the worker that needs it first: a folder that its workers share."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def shared_folder(factory: pytest.TempPathFactory, worker_id: str, name: str) -> Path:
    """Return a folder of that name, which is the same for all workers of one test run."""
    base = factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / name
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other worker makes what belongs there; it is made, then, or never was."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
