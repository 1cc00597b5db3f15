"""Evidence on disk, in every state a crash can leave it in."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from agents.host.atomic_file import translate_disk_errors, write_file_durably
from agents.outbox.spool import KEEP_ACKNOWLEDGED_BYTES, KEEP_REFUSED_BYTES, Spool
from farm.core.base.ids import AttemptId
from farm.core.errors import HostDiskFull
from tests.support.fake_clock import FakeClock

ONE, TWO = AttemptId(1), AttemptId(2)
NOW = FakeClock().now()


@pytest.mark.invariant("I12")
def test_a_report_waits_until_it_is_acknowledged(tmp_path: Path) -> None:
    Spool(tmp_path).put(ONE, b"evidence")
    later = Spool(tmp_path)
    assert later.pending() == [ONE]
    assert later.find(ONE) == b"evidence"
    later.acknowledge(ONE, NOW)
    assert Spool(tmp_path).pending() == []


@pytest.mark.invariant("I12")
def test_a_report_and_then_its_name_are_on_the_disk_before_it_counts(tmp_path: Path) -> None:
    """What a power cut leaves depends on the order of these three, which no file shows afterwards."""
    spool = Spool(tmp_path)
    with noted("fsync", "replace") as asked:
        spool.put(ONE, b"evidence")
    assert asked == ["fsync", "replace", "fsync"]


@contextmanager
def noted(*names: str) -> Iterator[list[str]]:
    """What the system is asked for meanwhile, in its order."""
    asked: list[str] = []

    def note(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ in names and called.__module__ == os.name:
            asked.append(called.__name__)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield asked
    finally:
        sys.setprofile(before)


@pytest.mark.invariant("I12")
def test_the_bytes_of_a_report_never_change(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(ONE, b"first")
    spool.put(ONE, b"second")
    assert spool.find(ONE) == b"first"


@pytest.mark.invariant("I12")
def test_a_crash_before_the_rename_leaves_no_report(tmp_path: Path) -> None:
    (tmp_path / "1.json.tmp").write_bytes(b"half a rep")
    spool = Spool(tmp_path)
    assert spool.pending() == []
    assert list(tmp_path.glob("*.tmp")) == []


def test_reports_are_pending_in_the_order_of_their_attempts(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for attempt_id in (10, 9, 100):
        spool.put(AttemptId(attempt_id), b"x")
    assert spool.pending() == [9, 10, 100]


def test_acknowledging_twice_is_harmless(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(ONE, b"x")
    spool.acknowledge(ONE, NOW)
    spool.acknowledge(ONE, NOW)
    assert spool.find(ONE) is None


@pytest.mark.invariant("I12")
def test_a_refused_report_is_kept_for_a_week(tmp_path: Path) -> None:
    spool, clock = Spool(tmp_path), FakeClock()
    spool.put(ONE, b"refused")
    spool.refuse(ONE, clock.now())
    assert spool.pending() == []
    assert (tmp_path / "refused" / "1.json").read_bytes() == b"refused"
    clock.advance(timedelta(days=6).total_seconds())
    spool.refuse(TWO, clock.now())
    assert (tmp_path / "refused" / "1.json").exists()
    clock.advance(timedelta(days=2).total_seconds())
    spool.refuse(TWO, clock.now())
    assert not (tmp_path / "refused" / "1.json").exists()


@pytest.mark.invariant("I12")
def test_refused_reports_have_a_bounded_size(tmp_path: Path) -> None:
    spool, clock = Spool(tmp_path), FakeClock()
    for attempt_id in (1, 2, 3):
        spool.put(AttemptId(attempt_id), b"")
        os.truncate(tmp_path / f"{attempt_id}.json", KEEP_REFUSED_BYTES // 2)
        spool.refuse(AttemptId(attempt_id), clock.now())
        clock.advance(60)
    assert sorted(path.stem for path in (tmp_path / "refused").iterdir()) == ["2", "3"]


@pytest.mark.fault(29)
@pytest.mark.invariant("I12")
@pytest.mark.fault(44)
def test_an_acknowledged_report_is_kept_for_a_week_and_can_be_sent_again(tmp_path: Path) -> None:
    spool, clock = Spool(tmp_path), FakeClock()
    for attempt_id in (ONE, TWO):
        spool.put(attempt_id, b"evidence")
        spool.acknowledge(attempt_id, clock.now())
        clock.advance(timedelta(days=3).total_seconds())
    later = Spool(tmp_path)
    assert later.acknowledged() == [ONE, TWO]
    assert later.resend(ONE)
    assert (later.pending(), later.find(ONE), later.acknowledged()) == ([ONE], b"evidence", [TWO])
    assert not later.resend(ONE)
    clock.advance(timedelta(days=3).total_seconds())
    later.acknowledge(ONE, clock.now())
    assert later.acknowledged() == [TWO, ONE]
    clock.advance(timedelta(days=2).total_seconds())
    later.acknowledge(ONE, clock.now())
    assert later.acknowledged() == [ONE]


@pytest.mark.invariant("I12")
def test_acknowledged_reports_have_a_bounded_size_and_the_oldest_go_first(tmp_path: Path) -> None:
    spool, clock = Spool(tmp_path), FakeClock()
    for attempt_id in (3, 2, 1):
        spool.put(AttemptId(attempt_id), b"")
        os.truncate(tmp_path / f"{attempt_id}.json", KEEP_ACKNOWLEDGED_BYTES // 2)
        spool.acknowledge(AttemptId(attempt_id), clock.now())
        clock.advance(60)
    assert spool.acknowledged() == Spool(tmp_path).acknowledged() == [2, 1]


def test_a_full_disk_is_named_as_such(tmp_path: Path) -> None:
    with (
        pytest.raises(HostDiskFull, match=r"no space left for 1\.json"),
        translate_disk_errors(tmp_path / "1.json"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_durable_file_has_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    write_file_durably(tmp_path / "secret", b"x", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
