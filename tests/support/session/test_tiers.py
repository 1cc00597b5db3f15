"""Which tests are in which tier, and what a run prints of its durations."""

from pathlib import Path

import pytest

from tests.support.session.duration_table import DurationTable, table
from tests.support.session.mixed_files import MixedFiles

pytest_plugins = ["pytester"]
TESTS = Path(__file__).resolve().parents[1]


def chosen(pytester: pytest.Pytester, expression: str) -> list[str]:
    """The tests of a small suite that an expression chooses."""
    pytester.makeconftest(
        "import pytest\n"
        "from tiers import Tiers\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(Tiers())\n"
        "@pytest.fixture\n"
        "def postgres(): ...\n"
        '@pytest.fixture(params=["sqlite", "postgresql"])\n'
        "def database(request): ...\n"
    )
    pytester.makeini("[pytest]\nmarkers =\n  long\n  on_postgresql\n")
    pytester.makepyfile(
        test_some="import pytest\n"
        "def test_pure(): ...\n"
        "@pytest.mark.long\n"
        "def test_storm(): ...\n"
        "def test_each(database): ...\n"
        "@pytest.mark.on_postgresql\n"
        "def test_both(database): ...\n"
        "def test_server(postgres): ...\n"
    )
    pytester.syspathinsert(TESTS)
    collected = pytester.runpytest("--collect-only", "-q", "-p", "no:schemathesis", "-m", expression)
    return [line.partition("::")[2] for line in collected.outlines if "::" in line]


def test_what_needs_a_postgresql_is_long_unless_it_is_kept(pytester: pytest.Pytester) -> None:
    quick = ["test_pure", "test_each[sqlite]", "test_both[sqlite]", "test_both[postgresql]"]
    assert chosen(pytester, "not long") == quick
    assert chosen(pytester, "long") == ["test_storm", "test_each[postgresql]", "test_server"]


def test_files_are_mixed_on_several_workers_and_their_tests_stay_together(pytester: pytest.Pytester) -> None:
    for number in range(9):
        pytester.makepyfile(**{f"test_{number}": "def test_a(): ...\ndef test_b(): ...\n"})
    items, _ = pytester.inline_genitems("-p", "no:schemathesis")
    names = [item.nodeid for item in items]
    config = items[0].config
    MixedFiles().pytest_collection_modifyitems(config, items)
    assert [item.nodeid for item in items] == names
    # As xdist does in each of its workers.
    config.__dict__["workerinput"] = {"workercount": 2}
    MixedFiles().pytest_collection_modifyitems(config, items)
    mixed = [item.nodeid for item in items]
    assert mixed != names
    assert sorted(mixed) == names
    assert {(first[:-1], second[:-1]) for first, second in zip(mixed[::2], mixed[1::2], strict=True)} == {
        (f"test_{number}.py::test_", f"test_{number}.py::test_") for number in range(9)
    }


def test_each_worker_begins_with_files_of_long_tests(pytester: pytest.Pytester) -> None:
    long = {f"test_{number}" for number in (2, 3, 5, 8)}
    for name in [f"test_{number}" for number in range(12)]:
        mark = "@pytest.mark.timeout(600)\n" if name in long else ""
        tests = "".join(f"{mark}def test_{test}(): ...\n" for test in "abcd")
        pytester.makepyfile(**{name: f"import pytest\n{tests}"})
    items, _ = pytester.inline_genitems("-p", "no:schemathesis")
    config = items[0].config
    config.__dict__["workerinput"] = {"workercount": 4}
    names = sorted(item.nodeid for item in items)
    MixedFiles().pytest_collection_modifyitems(config, items)
    assert sorted(item.nodeid for item in items) == names
    # xdist gives each worker a part of the same length.
    assert {items[begin].path.stem for begin in range(0, len(items), len(items) // 4)} == long


def report(test: str, seconds: float, *marks: str) -> pytest.TestReport:
    return pytest.TestReport(
        test, ("", 0, ""), dict.fromkeys(marks, 1), "passed", None, "call", duration=seconds
    )


def test_durations_are_added_up_by_folder_and_slow_quick_tests_named() -> None:
    durations = DurationTable()
    durations.pytest_runtest_logreport(report("tests/a/test_x.py::test_one", 2.0))
    durations.pytest_runtest_logreport(report("tests/a/test_x.py::test_one", 2.0))
    durations.pytest_runtest_logreport(report("tests/b/test_y.py::test_two", 9.0, "long"))
    assert durations.slow() == [(4.0, "tests/a/test_x.py::test_one")]
    assert table(durations.by_folder()) == [
        "folder   tests  seconds  slowest",
        "tests/b      1      9.0      9.0",
        "tests/a      1      4.0      4.0",
        "all          2     13.0      9.0",
    ]
