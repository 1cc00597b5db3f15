"""What is printed at the end of a run: how long each folder's tests took, and which quick ones took long."""

from collections import defaultdict
from pathlib import PurePosixPath

import pytest

#: A quick test that takes longer is named; nothing fails for its time.
SLOW_S = 3.0


class DurationTable:
    """Adds up what each test took with its set-up and its end; under xdist, in the process that reports."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._long: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one phase of a test."""
        self._seconds[report.nodeid] += report.duration
        if "long" in report.keywords:
            self._long.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table where tests of more than one folder ran, and the slow tests of the quick tier."""
        folders = self.by_folder()
        if len(folders) > 1:
            terminalreporter.section("durations by folder")
            for line in table(folders):
                terminalreporter.write_line(line)
        if slow := self.slow():
            terminalreporter.section(f"quick tests that took more than {SLOW_S:g} s")
            for seconds, test in slow:
                terminalreporter.write_line(f"{seconds:8.1f} s  {test}")

    def by_folder(self) -> dict[str, list[float]]:
        """Return the seconds of each test, by the folder of its file."""
        folders: defaultdict[str, list[float]] = defaultdict(list)
        for test, seconds in self._seconds.items():
            folders[str(PurePosixPath(test.partition("::")[0]).parent)].append(seconds)
        return folders

    def slow(self) -> list[tuple[float, str]]:
        """Return the tests of the quick tier that took long, with their seconds, the slowest first."""
        slow = [
            (seconds, test)
            for test, seconds in self._seconds.items()
            if seconds > SLOW_S and test not in self._long
        ]
        return sorted(slow, reverse=True)


def table(folders: dict[str, list[float]]) -> list[str]:
    """Return one line for each folder, the dearest first, and one for all of them."""
    width = max(map(len, folders))
    every = [seconds for taken in folders.values() for seconds in taken]
    ordered = sorted(folders.items(), key=lambda folder: -sum(folder[1]))
    lines = [f"{'folder':{width}}  tests  seconds  slowest"]
    for name, taken in [*ordered, ("all", every)]:
        lines.append(f"{name:{width}}  {len(taken):5}  {sum(taken):7.1f}  {max(taken):7.1f}")
    return lines
