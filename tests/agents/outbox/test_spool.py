"""Evidence on disk, in every state a crash can leave it in."""

import errno
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agents.host.atomic_file import translate_disk_errors, unsealed, write_file_durably
from agents.outbox.spool import KEEP_ACKNOWLEDGED_BYTES, KEEP_REFUSED_BYTES, Spool
from farm.core.base.ids import AttemptId
from farm.core.errors import HostDiskFailed, HostDiskFull
from tests.support.fake_clock import FakeClock
from tests.support.faults.system_calls import noted

ONE, TWO = AttemptId(1), AttemptId(2)
NOW = FakeClock().now()


@pytest.mark.invariant("I12")
def test_a_report_waits_until_it_is_acknowledged(tmp_path: Path) -> None:
    Spool(tmp_path).put(ONE, b"evidence")
    later = Spool(tmp_path)
    assert later.pending() == [ONE]
    assert later.find(ONE) == b"evidence"
    later.acknowledge(ONE)
    assert Spool(tmp_path).pending() == []


@pytest.mark.invariant("I12")
def test_a_report_and_then_its_name_are_on_the_disk_before_it_counts(tmp_path: Path) -> None:
    """What a power cut leaves depends on the order of these three, which no file shows afterwards."""
    spool = Spool(tmp_path)
    with noted("fsync", "replace") as asked:
        spool.put(ONE, b"evidence")
    assert asked == ["fsync", "replace", "fsync"]


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
    spool.acknowledge(ONE)
    spool.acknowledge(ONE)
    assert spool.find(ONE) is None


@pytest.mark.invariant("I12")
def test_a_refused_report_is_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(ONE, b"refused")
    spool.refuse(ONE)
    spool.refuse(TWO)
    assert spool.pending() == []
    assert unsealed((tmp_path / "refused" / "1.json").read_bytes()) == b"refused"


@pytest.mark.invariant("I12")
def test_refused_reports_have_a_bounded_size(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for attempt_id in (1, 2, 3):
        spool.put(AttemptId(attempt_id), b"")
        os.truncate(tmp_path / f"{attempt_id}.json", KEEP_REFUSED_BYTES // 2)
        spool.refuse(AttemptId(attempt_id))
    assert sorted(path.stem for path in (tmp_path / "refused").iterdir()) == ["2", "3"]


@pytest.mark.fault(29)
@pytest.mark.invariant("I12")
@pytest.mark.fault(44, 49)
def test_an_acknowledged_report_is_kept_and_can_be_sent_again(tmp_path: Path) -> None:
    """However old its file is, or appears to be by a clock that was set."""
    spool = Spool(tmp_path)
    for attempt_id, age_s in ((TWO, 10**6), (ONE, -(10**6))):
        spool.put(attempt_id, b"evidence")
        spool.acknowledge(attempt_id)
        os.utime(tmp_path / "acknowledged" / f"{attempt_id}.json", times=(10**9 - age_s,) * 2)
    later = Spool(tmp_path)
    assert later.acknowledged() == [ONE, TWO]
    assert later.resend(ONE)
    assert (later.pending(), later.find(ONE), later.acknowledged()) == ([ONE], b"evidence", [TWO])
    assert not later.resend(ONE)
    later.acknowledge(ONE)
    assert later.acknowledged() == [ONE, TWO]


@pytest.mark.invariant("I12")
def test_acknowledged_reports_have_a_bounded_size_and_the_oldest_go_first(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for attempt_id in (2, 3, 1):
        spool.put(AttemptId(attempt_id), b"")
        os.truncate(tmp_path / f"{attempt_id}.json", KEEP_ACKNOWLEDGED_BYTES // 2)
        spool.acknowledge(AttemptId(attempt_id))
    assert spool.acknowledged() == Spool(tmp_path).acknowledged() == [2, 3]


def test_a_full_disk_is_named_as_such(tmp_path: Path) -> None:
    with (
        pytest.raises(HostDiskFull, match=r"no space left for 1\.json"),
        translate_disk_errors(tmp_path / "1.json"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_durable_file_has_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    write_file_durably(tmp_path / "secret", b"x", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.invariant("I12")
def test_a_report_with_a_changed_byte_is_set_aside_and_never_sent(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(ONE, b'{"median_ns": 123456}')
    spool.put(TWO, b"other")
    path = tmp_path / "1.json"
    path.write_bytes(path.read_bytes().replace(b"123456", b"123457"))
    with capture_logs() as logs:
        assert spool.find(ONE) is None
    assert [log["event"] for log in logs] == ["report_unreadable"]
    assert Spool(tmp_path).pending() == [TWO]
    assert Spool(tmp_path).find(TWO) == b"other"
    assert b"123457" in (tmp_path / "1.unreadable").read_bytes()


@pytest.mark.parametrize("folder", ["", "acknowledged", "refused"])
def test_a_folder_in_the_place_of_a_report_holds_up_no_other(tmp_path: Path, folder: str) -> None:
    Spool(tmp_path).put(TWO, b"other")
    (tmp_path / folder / "1.json" / "inside").mkdir(parents=True)
    spool = Spool(tmp_path)
    assert spool.find(ONE) is None
    assert spool.find(TWO) == b"other"
    spool.put(ONE, b"evidence")
    assert spool.find(ONE) == b"evidence"
    spool.acknowledge(TWO)


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_a_disk_that_takes_no_writes_is_an_error_of_the_host(tmp_path: Path, number: int) -> None:
    with pytest.raises(HostDiskFailed), translate_disk_errors(tmp_path / "1.json"):
        raise OSError(number, os.strerror(number))
