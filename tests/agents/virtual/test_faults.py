"""The file that says what is wrong with a virtual phone has many writers, none of which is the phone."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from agents.virtual.faults import Faults, FaultState, parse_faults, set_faults


def test_faults_are_read_again_when_they_change_and_unknown_keys_mean_nothing(tmp_path: Path) -> None:
    box = FaultState(tmp_path)
    assert box.current() == Faults()
    set_faults(tmp_path, Faults(hang=True))
    assert box.current().hang
    (tmp_path / "faults.json").write_text("{half")
    assert box.current().hang
    (tmp_path / "faults.json").unlink()
    assert box.current() == Faults()
    assert parse_faults({"gremlins": 3, "disk_full": True}) == Faults(disk_full=True)


def test_corrupt_pushes_are_counted_down(tmp_path: Path) -> None:
    set_faults(tmp_path, Faults(corrupt_pushes=2))
    box = FaultState(tmp_path)

    assert [box.take("corrupt_pushes") for _ in range(3)] == [True, True, False]


def test_what_someone_wrote_stays_as_it_is_where_a_phone_counts_down(tmp_path: Path) -> None:
    """It did not: a phone that had read the file before wrote it back, without what came in between."""
    set_faults(tmp_path, Faults(eofs=2))
    before = (tmp_path / "faults.json").stat()
    assert FaultState(tmp_path).take("eofs")
    after = (tmp_path / "faults.json").stat()
    # Not the time of the last read, which is one.
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_phone_that_starts_again_goes_on_counting_where_it_was(tmp_path: Path) -> None:
    set_faults(tmp_path, Faults(reboots=2))
    assert FaultState(tmp_path).take("reboots")
    assert [FaultState(tmp_path).take("reboots") for _ in range(2)] == [True, False]


def test_a_file_that_is_written_again_counts_again(tmp_path: Path) -> None:
    box = FaultState(tmp_path)
    set_faults(tmp_path, Faults(reboots=1))
    assert [box.take("reboots") for _ in range(2)] == [True, False]
    set_faults(tmp_path, Faults(reboots=1, slow_ms=1))
    assert [box.take("reboots") for _ in range(2)] == [True, False]


def test_a_counted_fault_is_not_repeated_while_someone_half_wrote_the_file(tmp_path: Path) -> None:
    box = FaultState(tmp_path)
    set_faults(tmp_path, Faults(reboots=1))
    assert box.take("reboots")
    (tmp_path / "faults.json").write_text("{half")
    assert not box.take("reboots")


def test_all_who_write_at_once_get_through_and_one_of_them_is_the_last(tmp_path: Path) -> None:
    """One took the other's draft away, and whoever came second died of it."""
    wanted = [Faults(slow_ms=number) for number in range(4)]
    with ThreadPoolExecutor(len(wanted)) as writers:
        for _ in range(100):
            list(writers.map(partial(set_faults, tmp_path), wanted))
    assert FaultState(tmp_path).current() in wanted
    assert [path.name for path in tmp_path.iterdir()] == ["faults.json"]
