"""Files of tests in an order in which those that wait stand beside those that compute.

Workers begin with equal parts of the list. In the order of folders, one worker gets all that waits for
devices, the others compete for the cores, and the cores idle at the end. They idle, too, while one worker
ends a test of minutes that it began last.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import pytest

#: A file with a test that may take so long is begun first. Most tests have the limit of pyproject.toml.
LONG_S = 600.0


class MixedFiles:
    """Orders the files of a run, alike on each of its workers; the tests of a file stay together."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Sort by a digest of the file's name, which has nothing to do with what is in it.

        Files of long tests are at the beginning of each worker's part, by turns.
        """
        if hasattr(config, "workerinput"):
            items.sort(key=lambda item: _digest(item.path, config.rootpath))
            files = [list(of_file) for _, of_file in groupby(items, key=lambda item: item.path)]
            items[:] = _in_parts(files, config.workerinput["workercount"])


def _digest(path: Path, root: Path) -> bytes:
    return sha256(str(path.relative_to(root)).encode()).digest()


def _in_parts(files: Sequence[Sequence[pytest.Item]], parts: int) -> Iterator[pytest.Item]:
    """Yield the tests of files so that each of so many equal parts begins with files of long tests."""
    long_files = [file for file in files if _longest_s(file) >= LONG_S]
    other_files = iter([file for file in files if _longest_s(file) < LONG_S])
    count, yielded = sum(map(len, files)), 0
    for part in range(parts):
        for file in long_files[part::parts]:
            yield from file
            yielded += len(file)
        while yielded < count * (part + 1) // parts and (file := next(other_files, None)) is not None:
            yield from file
            yielded += len(file)


def _longest_s(file: Sequence[pytest.Item]) -> float:
    """Return the longest time limit that a test of the file has by a mark, in seconds."""
    marks = (item.get_closest_marker("timeout") for item in file)
    return max((float(mark.args[0]) for mark in marks if mark is not None), default=0.0)
