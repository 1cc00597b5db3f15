"""States move as the tables say, whatever happens in whatever order."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.devices import host_state
from farm.core.devices.host_state import OPEN_SESSION, HostEvent, HostState, SessionEvent, SessionState
from farm.core.jobs import attempt, job
from farm.core.jobs.attempt import LIVE_STATES, AttemptEvent, AttemptState
from farm.core.jobs.job import JobEvent, JobState

JOB_EVENTS = st.lists(st.sampled_from(JobEvent), max_size=30)
ATTEMPT_EVENTS = st.lists(st.sampled_from(AttemptEvent), max_size=30)


def test_every_state_answers_every_event() -> None:
    for state, event in product(JobState, JobEvent):
        assert job.advance(state, event) in {None, *JobState}
    for its_state, its_event in product(AttemptState, AttemptEvent):
        assert attempt.advance(its_state, its_event) in {None, *AttemptState}
    for session, heard in product(SessionState, SessionEvent):
        assert host_state.advance_session(session, heard) in {None, *SessionState}
    for host, decided in product(HostState, HostEvent):
        assert host_state.advance_host(host, decided) in {None, *HostState}


def test_every_state_can_be_reached_and_every_event_can_happen() -> None:
    assert {JobState.QUEUED, *job.TRANSITIONS.values()} == set(JobState)
    assert {event for _, event in job.TRANSITIONS} == set(JobEvent)
    assert {AttemptState.CLAIMED, *attempt.TRANSITIONS.values()} == set(AttemptState)
    assert {event for _, event in attempt.TRANSITIONS} == set(AttemptEvent)
    assert {SessionState.LIVE, *host_state.SESSION_TRANSITIONS.values()} == set(SessionState)
    assert {event for _, event in host_state.SESSION_TRANSITIONS} == set(SessionEvent)
    assert {HostState.ACTIVE, *host_state.HOST_TRANSITIONS.values()} == set(HostState)
    assert {event for _, event in host_state.HOST_TRANSITIONS} == set(HostEvent)


def sources(event: AttemptEvent) -> set[AttemptState]:
    """The states in which an event can happen."""
    return {state for state in AttemptState if attempt.advance(state, event) is not None}


@pytest.mark.invariant("I6")
def test_nothing_leads_out_of_an_end() -> None:
    assert not [event for event in JobEvent if job.advance(JobState.FINISHED, event)]
    for state in (AttemptState.FINISHED, AttemptState.RETURNED):
        assert not [event for event in AttemptEvent if attempt.advance(state, event)]


@pytest.mark.invariant("I6")
def test_a_lost_attempt_can_only_be_settled_by_its_own_late_report() -> None:
    ways_out = [event for event in AttemptEvent if attempt.advance(AttemptState.LOST, event)]
    assert ways_out == [AttemptEvent.SETTLED]


@given(happened=JOB_EVENTS)
@pytest.mark.invariant("I6")
def test_a_finished_job_stays_finished(happened: list[JobEvent]) -> None:
    state, ended = JobState.QUEUED, False
    for event in happened:
        state = job.advance(state, event) or state
        ended = ended or state is JobState.FINISHED
        assert not ended or state is JobState.FINISHED


@given(happened=ATTEMPT_EVENTS)
def test_phases_never_walk_back_and_an_attempt_that_is_over_never_lives_again(
    happened: list[AttemptEvent],
) -> None:
    state = AttemptState.CLAIMED
    for event in happened:
        to = attempt.advance(state, event)
        if to is None:
            continue
        assert to not in LIVE_STATES or (
            state in LIVE_STATES and LIVE_STATES.index(to) > LIVE_STATES.index(state)
        )
        state = to


def test_nothing_is_returned_once_it_was_measured() -> None:
    assert sources(AttemptEvent.RETURNED) == {AttemptState.CLAIMED, AttemptState.PREPARING}


def test_everything_live_can_be_lost_and_settled() -> None:
    assert sources(AttemptEvent.LOST) == set(LIVE_STATES)
    assert sources(AttemptEvent.SETTLED) == {*LIVE_STATES, AttemptState.LOST}


@pytest.mark.invariant("I3")
def test_a_session_that_is_over_never_comes_back() -> None:
    for state in set(SessionState) - set(OPEN_SESSION):
        assert not [event for event in SessionEvent if host_state.advance_session(state, event)]


def test_each_state_of_a_session_is_reached_by_one_event() -> None:
    by_state = {to: event for (_, event), to in host_state.SESSION_TRANSITIONS.items()}
    assert len(set(by_state.values())) == len(set(host_state.SESSION_TRANSITIONS.values()))


@pytest.mark.invariant("I19")
def test_a_retired_host_comes_back_by_joining_again_and_in_no_other_way() -> None:
    ways_out = [event for event in HostEvent if host_state.advance_host(HostState.RETIRED, event)]
    assert ways_out == [HostEvent.REJOINED]
