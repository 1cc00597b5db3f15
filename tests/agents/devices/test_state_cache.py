"""What the agent believes of a phone without asking again, and when it stops."""

from datetime import UTC, datetime

import pytest

from agents.device.conditions import (
    PREFLIGHT_MAX_AGE_S,
    VERIFIED_FOR_S,
    DeviceStateCache,
    Preflight,
    state_by_digest,
)
from farm.core.base.ids import Digest, digest_of
from farm.core.devices.condition import Condition
from farm.core.devices.controls import Screen
from farm.core.runs.plan import PlanFile

NAME = digest_of(b"some weights")
STATE = "12 34 644 1970-01-01 00:00:07.000000000 +0000 2024-05-06 07:08:09.100000000 +0000"
FILE = PlanFile(name="model", digest=NAME, size_bytes=34)


def look(**state_by_name: str) -> Preflight:
    states = {Digest(name): state for name, state in state_by_name.items()}
    return Preflight(condition=Condition(taken_at=datetime(2024, 5, 6, tzinfo=UTC)), state_by_digest=states)


def memory() -> DeviceStateCache:
    known = DeviceStateCache()
    known.record_verified({NAME: STATE}, 0.0)
    return known


def test_a_file_that_is_as_it_was_when_its_digest_was_computed_is_believed() -> None:
    assert memory().holds_files([FILE], look(**{NAME: STATE}), 1.0)


@pytest.mark.parametrize(
    "changed",
    [
        STATE.replace("12 ", "13 ", 1),
        STATE.replace(" 34 ", " 33 "),
        STATE.replace(" 644 ", " 600 "),
        STATE.replace("07.000000000", "07.000000001"),
        STATE.replace("09.100000000", "09.100000001"),
    ],
)
def test_any_change_of_a_file_makes_it_doubtful(changed: str) -> None:
    assert not memory().holds_files([FILE], look(**{NAME: changed}), 1.0)


def test_a_file_that_is_gone_or_was_never_verified_is_not_believed() -> None:
    assert not memory().holds_files([FILE], look(), 1.0)
    assert not DeviceStateCache().holds_files([FILE], look(**{NAME: STATE}), 1.0)


def test_a_digest_is_computed_again_after_a_while() -> None:
    assert memory().holds_files([FILE], look(**{NAME: STATE}), VERIFIED_FOR_S)
    assert not memory().holds_files([FILE], look(**{NAME: STATE}), VERIFIED_FOR_S + 1)


def test_a_file_that_is_needed_as_a_program_must_be_one() -> None:
    program = PlanFile(name="program", digest=NAME, size_bytes=34, executable=True)
    assert not memory().holds_files([program], look(**{NAME: STATE}), 1.0)
    executable = STATE.replace(" 644 ", " 755 ")
    known = DeviceStateCache()
    known.record_verified({NAME: executable}, 0.0)
    assert known.holds_files([program], look(**{NAME: executable}), 1.0)


def test_trouble_leaves_nothing_to_believe() -> None:
    known = memory()
    known.lasting_controls = (True, Screen.ON)
    known.store_preflight(look(), 0.0)
    known.forget()
    assert not known.holds_files([FILE], look(**{NAME: STATE}), 1.0)
    assert not known.is_awake
    assert known.take_preflight(0.1) is None


def test_a_look_serves_one_run_that_begins_soon() -> None:
    known, seen = DeviceStateCache(), look()
    known.store_preflight(seen, 0.0)
    assert known.take_preflight(PREFLIGHT_MAX_AGE_S) is seen
    assert known.take_preflight(PREFLIGHT_MAX_AGE_S) is None
    known.store_preflight(seen, 0.0)
    assert known.take_preflight(PREFLIGHT_MAX_AGE_S + 1) is None


def test_the_phone_after_a_run_and_its_cache_after_the_clean_up_are_a_look_of_the_earlier_moment() -> None:
    known, seen = DeviceStateCache(), look(**{NAME: STATE})
    known.record_after_run(seen.condition, 5.0)
    assert known.find_preflight(5.0) is None, "nobody has cleaned up"
    known.record_cleaned(seen.state_by_digest)
    assert known.find_preflight(5.0 + PREFLIGHT_MAX_AGE_S) == seen
    assert known.find_preflight(5.0 + PREFLIGHT_MAX_AGE_S + 1) is None


def test_a_clean_up_after_no_run_or_after_trouble_is_no_look() -> None:
    known = DeviceStateCache()
    known.record_cleaned({NAME: STATE})
    assert known.find_preflight(0.0) is None
    known.record_after_run(look().condition, 0.0)
    known.forget()
    known.record_cleaned({NAME: STATE})
    assert known.find_preflight(0.0) is None


def test_uses_that_are_written_down_on_the_phone_make_their_files_doubtful() -> None:
    known = memory()
    known.record_use([FILE], 7)
    known.record_use([FILE], 9)
    assert known.take_recorded_uses() == {9: [NAME]}
    assert not known.holds_files([FILE], look(**{NAME: STATE}), 1.0)
    assert known.take_recorded_uses() == {}


def test_what_stat_prints_is_told_from_digests_and_other_names() -> None:
    printed = f"{STATE} {NAME}\r\n{NAME}  {NAME}\n{STATE} notes.txt\nstat: *: No such file\n"
    assert state_by_digest(printed) == {NAME: STATE}
