"""Which cached files go when a phone is short of room."""

from agents.device.cleanup import CachedFile, cached_files, select_evictions
from agents.device.run.run_control import SUPERVISOR_FILE
from farm.core.base.ids import Digest
from farm.core.runs.plan import PlanFile

OLD, MID, NEW = (Digest(letter * 64) for letter in "abc")
CACHED = [
    CachedFile(modified_s=1, size_bytes=10, digest=SUPERVISOR_FILE.digest),
    CachedFile(modified_s=30, size_bytes=10, digest=NEW),
    CachedFile(modified_s=10, size_bytes=10, digest=OLD),
    CachedFile(modified_s=20, size_bytes=10, digest=MID),
]


def gone(short_bytes: int, *needed: Digest, size_bytes: int = 10) -> list[Digest]:
    plan = [PlanFile(name=digest[0], digest=digest, size_bytes=size_bytes) for digest in needed]
    return [file.digest for file in select_evictions(CACHED, plan, short_bytes=short_bytes)]


def test_nothing_goes_while_there_is_room() -> None:
    assert gone(0) == []
    assert gone(-100, Digest("d" * 64)) == []


def test_what_was_not_used_for_longest_goes_first_and_no_more_than_must() -> None:
    assert gone(1) == [OLD]
    assert gone(11) == [OLD, MID]


def test_the_supervisor_and_what_the_plan_needs_stay_however_short_room_is() -> None:
    assert gone(10**9, OLD) == [MID, NEW]


def test_files_that_are_still_to_come_need_room_too() -> None:
    assert gone(-5, Digest("d" * 64)) == [OLD]


def test_a_time_that_some_clock_set_counts_as_used_before_all_runs() -> None:
    by_clock = CachedFile(modified_s=1_790_000_000, size_bytes=10, digest=Digest("d" * 64))
    assert select_evictions([*CACHED, by_clock], [], short_bytes=1) == [by_clock]


def test_among_times_that_clocks_set_the_oldest_goes_first() -> None:
    older, newer = (
        CachedFile(modified_s=1_790_000_000 + more, size_bytes=10, digest=Digest(letter * 64))
        for more, letter in ((0, "d"), (60, "e"))
    )
    assert select_evictions([newer, older], [], short_bytes=1) == [older]


def test_a_listing_is_read_and_what_is_no_digest_is_left_alone() -> None:
    text = f"17 4096 {OLD}\r\n18 1 notes.txt\n19 5 {NEW}.new\nstat: '*': No such file or directory\n"
    assert cached_files(text) == [CachedFile(modified_s=17, size_bytes=4096, digest=OLD)]
