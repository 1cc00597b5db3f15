"""Reading the journal of a virtual phone."""

import json
from pathlib import Path

import pytest

from tests.support.agents.run_spans import RunSpan, overlapping_runs, run_spans


def line(
    event: str, at_ns: int, fence: int = -1, pid: int = -1, last_seen_ns: int = -1, boot: str = "b"
) -> str:
    fields = {"event": event, "at_ns": at_ns, "serial": "s", "boot_id": boot, "fence": fence, "pid": pid}
    return json.dumps({**fields, "ticks": pid, "last_seen_ns": last_seen_ns}) + "\n"


def spans_of(path: Path, *lines: str) -> list[tuple[int, int, int]]:
    path.write_text("".join(lines))
    return [(span.fence, span.first_seen_ns, span.last_seen_ns) for span in run_spans(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_a_run_lasts_from_the_first_look_to_the_last_of_any_of_its_processes(path: Path) -> None:
    found = spans_of(
        path,
        line("phone", 0),
        line("seen", 10, fence=1, pid=5),
        line("seen", 20, fence=1, pid=6),
        line("gone", 40, fence=1, pid=6, last_seen_ns=30),
        line("gone", 60, fence=1, pid=5, last_seen_ns=50),
    )
    assert found == [(1, 10, 50)]


def test_a_run_that_no_one_called_gone_lasts_to_the_last_line(path: Path) -> None:
    assert spans_of(
        path,
        line("seen", 10, fence=1, pid=5),
        line("seen", 20, fence=2, pid=6),
        line("gone", 40, fence=2, pid=6, last_seen_ns=30),
    ) == [(1, 10, 40), (2, 20, 30)]


def test_a_line_cut_short_and_a_missing_file_are_passed_over(path: Path) -> None:
    assert run_spans(path) == []
    assert spans_of(path, line("seen", 10, fence=1, pid=5), line("gone", 20, fence=1, pid=5)[:-9]) == [
        (1, 10, 10)
    ]


def test_a_run_of_an_earlier_boot_does_not_last_into_the_next(path: Path) -> None:
    assert spans_of(
        path, line("seen", 10, fence=1, pid=5, boot="a"), line("phone", 5), line("seen", 7, fence=2, pid=5)
    ) == [(1, 10, 10), (2, 7, 7)]


def span(fence: int, first_ns: int, last_ns: int, boot: str = "b") -> RunSpan:
    return RunSpan(fence=fence, first_seen_ns=first_ns, last_seen_ns=last_ns, serial="s", boot_id=boot)


def test_a_long_run_overlaps_all_that_begin_within_it() -> None:
    long, one, two = span(1, 0, 100), span(2, 10, 20), span(3, 30, 40)

    assert overlapping_runs([two, one, long]) == [(long, one), (long, two)]


def test_runs_one_after_the_other_or_of_different_boots_do_not_overlap() -> None:
    assert overlapping_runs([span(1, 0, 10), span(2, 11, 20), span(3, 5, 30, boot="c")]) == []
    assert overlapping_runs([]) == []
