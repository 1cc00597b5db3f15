"""What a job waits for, and in which order somebody should see to it."""

from datetime import UTC, datetime
from itertools import permutations

import pytest

from farm.core.devices.device import Blocker, Presence
from farm.core.devices.host_state import IncidentKind, SessionState
from farm.core.devices.remediation import MESSAGE_BY_BLOCKER
from farm.core.jobs.attempt import LIVE_STATES, AttemptState
from farm.core.jobs.pending_reasons import (
    TEMPORARY,
    DeviceRef,
    LiveAttempt,
    StateOrigin,
    actionable_first,
    attempt_reasons,
    blocker_reason,
    incident_reason,
)

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def place(presence: Presence = Presence.ONLINE) -> DeviceRef:
    return DeviceRef(name="pixel-8", host="bench-1", presence=presence)


def live(state: AttemptState, **changes: object) -> LiveAttempt:
    values: dict[str, object] = {
        "state": state,
        "since": NOON,
        "waiting_for": None,
        "session": SessionState.LIVE,
        "heartbeat_at": NOON,
        "place": place(),
        "gates_wait_s": 300.0,
        "timeout_s": 60.0,
        **changes,
    }
    return LiveAttempt(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("blocker", Blocker)
@pytest.mark.parametrize("presence", Presence)
def test_everything_in_the_way_comes_with_something_to_do(blocker: Blocker, presence: Presence) -> None:
    reason = blocker_reason(blocker, place(presence), StateOrigin())
    assert reason.code == blocker
    assert reason.message.startswith(MESSAGE_BY_BLOCKER[blocker])
    assert reason.hint
    # What goes by itself says so, and what does not says what a person can do.
    assert reason.hint.startswith("wait") == reason.passes


def test_a_decision_of_a_person_is_told_with_the_command_that_takes_it_back() -> None:
    hint_by_blocker = {
        blocker: blocker_reason(blocker, place(), StateOrigin()).hint
        for blocker in (Blocker.CORDONED, Blocker.RESERVED, Blocker.PENDING, Blocker.HOST_DRAINING)
    }
    assert hint_by_blocker == {
        Blocker.CORDONED: "farm device uncordon pixel-8",
        Blocker.RESERVED: "farm device release pixel-8",
        Blocker.PENDING: "farm device admit pixel-8",
        Blocker.HOST_DRAINING: "farm host activate bench-1",
    }


def test_what_a_person_must_see_to_stands_before_what_passes() -> None:
    some = (Blocker.DEVICE_ACTION, Blocker.CORDONED, Blocker.NOT_CLEANED, Blocker.RETIRED)
    for given in permutations(some):
        found = actionable_first(given)
        assert [blocker in TEMPORARY for blocker in found] == [False, False, True, True]
        assert found[0] is Blocker.RETIRED


def test_that_a_busy_phone_is_not_clean_goes_without_saying() -> None:
    assert actionable_first([Blocker.BUSY, Blocker.NOT_CLEANED]) == [Blocker.BUSY]
    assert actionable_first([Blocker.NOT_CLEANED]) == [Blocker.NOT_CLEANED]


@pytest.mark.parametrize("kind", IncidentKind)
def test_what_a_host_goes_through_is_someones_to_see_to(kind: IncidentKind) -> None:
    reason = incident_reason(kind, "bench-1", StateOrigin(cause="its disk is full"))
    assert "bench-1" in reason.hint
    assert not reason.passes


@pytest.mark.parametrize("state", LIVE_STATES)
def test_each_phase_of_a_run_is_told_with_its_beginning(state: AttemptState) -> None:
    (reason,) = attempt_reasons(live(state))
    assert (reason.code, reason.since, reason.passes) == (state.value, NOON, True)


def test_a_phone_that_is_too_warm_is_told_in_its_agents_words() -> None:
    (reason,) = attempt_reasons(live(AttemptState.PREPARING, waiting_for="skin 41.0 C, at most 38.0 C"))
    assert reason.code == "gates_shut"
    assert "skin 41.0 C" in reason.message
    assert "300 s" in reason.hint


def test_gates_are_no_matter_once_the_run_has_begun() -> None:
    (reason,) = attempt_reasons(live(AttemptState.MEASURING, waiting_for="skin 41.0 C"))
    assert reason.code == "measuring"


def test_a_silent_agent_and_an_unreachable_phone_are_told_before_the_phase() -> None:
    attempt = live(
        AttemptState.MEASURING, session=SessionState.SILENT, place=place(Presence.OFFLINE), heartbeat_at=NOON
    )
    reasons = attempt_reasons(attempt)
    assert [reason.code for reason in reasons] == ["session_silent", "not_online", "measuring"]
    assert "replug" in reasons[1].hint
