"""Every state machine of the farm, as its table says; and a job with its attempts, whatever befalls them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from farm.core.base.ids import DeviceId
from farm.core.devices import admin, host_state
from farm.core.devices.device import Admin
from farm.core.devices.host_state import HostEvent, HostState, SessionEvent, SessionState
from farm.core.errors import Blame
from farm.core.jobs import attempt, job
from farm.core.jobs.attempt import LIVE_STATES, AttemptEvent, AttemptState
from farm.core.jobs.job import JobEvent, JobState
from farm.core.jobs.retry import MAX_ATTEMPTS, MAX_RETURNS, RETRY_BUDGETS, FinishedAttempt, may_retry
from farm.core.runs.measurement import Outcome
from tests.support.session.example_count import examples

Table = Mapping[tuple[StrEnum, StrEnum], StrEnum]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One table of transitions with the function that reads it."""

    states: Iterable[StrEnum]
    events: Iterable[StrEnum]
    table: Table
    advance: Callable[..., StrEnum | None]
    start: StrEnum
    #: Where nothing leads out.
    ends: frozenset[StrEnum]


MACHINES: dict[str, Machine] = {
    "job": Machine(
        states=JobState,
        events=JobEvent,
        table=job.TRANSITIONS,
        advance=job.advance,
        start=JobState.QUEUED,
        ends=frozenset({JobState.FINISHED}),
    ),
    "attempt": Machine(
        states=AttemptState,
        events=AttemptEvent,
        table=attempt.TRANSITIONS,
        advance=attempt.advance,
        start=AttemptState.CLAIMED,
        ends=frozenset({AttemptState.FINISHED, AttemptState.RETURNED}),
    ),
    "session": Machine(
        states=SessionState,
        events=SessionEvent,
        table=host_state.SESSION_TRANSITIONS,
        advance=host_state.advance_session,
        start=SessionState.LIVE,
        ends=frozenset({SessionState.LOST, SessionState.CLOSED}),
    ),
    "host": Machine(
        states=HostState,
        events=HostEvent,
        table=host_state.HOST_TRANSITIONS,
        advance=host_state.advance_host,
        start=HostState.ACTIVE,
        ends=frozenset(),
    ),
    "admin": Machine(
        states=Admin,
        events=admin.AdminEvent,
        table=admin.TRANSITIONS,
        advance=admin.advance,
        start=Admin.PENDING,
        ends=frozenset(),
    ),
}
each_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


def reached(table: Table, start: StrEnum) -> set[StrEnum]:
    """The states that a path leads to, the start included."""
    found, before = {start}, set[StrEnum]()
    while found != before:
        before = set(found)
        found |= {to for (state, _), to in table.items() if state in before}
    return found


@each_machine
def test_an_event_leads_where_the_table_says_and_nowhere_else(machine: Machine) -> None:
    for state, event in product(machine.states, machine.events):
        assert machine.advance(state, event) == machine.table.get((state, event))


@each_machine
def test_a_path_leads_to_every_state_and_every_event_can_happen_on_one(machine: Machine) -> None:
    assert reached(machine.table, machine.start) == set(machine.states)
    assert {event for _, event in machine.table} == set(machine.events)


@pytest.mark.invariant("I6")
@each_machine
def test_what_is_over_stays_over_and_nothing_else_is_stuck(machine: Machine) -> None:
    stuck = {state for state in machine.states if reached(machine.table, state) == {state}}
    assert stuck == machine.ends


@each_machine
def test_whatever_has_ends_can_come_to_one_from_everywhere(machine: Machine) -> None:
    for state in machine.states:
        assert not machine.ends or reached(machine.table, state) & machine.ends


@each_machine
def test_every_event_changes_something(machine: Machine) -> None:
    assert [key for key, to in machine.table.items() if key[0] is to] == []


class JobAndItsAttempts(RuleBasedStateMachine):
    """What the services do with a job, on the tables alone: claims, ends, give-backs, losses, late reports.

    The services decide by the same tables and by `may_retry`; here nothing else is in the way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.job = JobState.QUEUED
        self.attempts: list[AttemptState] = []
        self.tries: dict[int, FinishedAttempt] = {}
        self.measured = 0
        self.was_finished = False

    @property
    def current(self) -> AttemptState:
        return self.attempts[-1]

    def move_job(self, event: JobEvent) -> None:
        to = job.advance(self.job, event)
        assert to is not None, f"{event} in {self.job}"
        self.job = JobState(to)

    def move_current(self, event: AttemptEvent) -> bool:
        to = attempt.advance(self.current, event)
        if to is not None:
            self.attempts[-1] = to
        return to is not None

    @precondition(lambda self: self.job is JobState.QUEUED)
    @rule()
    def claim(self) -> None:
        self.move_job(JobEvent.CLAIMED)
        self.attempts.append(AttemptState.CLAIMED)

    @precondition(lambda self: self.attempts)
    @rule(event=st.sampled_from([AttemptEvent.PREPARED, AttemptEvent.STARTED, AttemptEvent.ENDED]))
    def phase(self, event: AttemptEvent) -> None:
        self.move_current(event)

    @precondition(lambda self: self.attempts)
    @rule()
    def return_attempt(self) -> None:
        if self.move_current(AttemptEvent.RETURNED) and self.job is JobState.ACTIVE:
            is_last = self.attempts.count(AttemptState.RETURNED) >= MAX_RETURNS
            self.move_job(JobEvent.FINISHED if is_last else JobEvent.REQUEUED)

    @precondition(lambda self: self.attempts)
    @rule()
    def lose(self) -> None:
        if self.move_current(AttemptEvent.LOST):
            self.end(Outcome.INCONCLUSIVE, Blame.HOST)

    @precondition(lambda self: self.attempts and self.job is not JobState.FINISHED)
    @rule(
        ending=st.sampled_from(
            [
                (Outcome.SUCCEEDED, None),
                (Outcome.FAILED, Blame.VARIANT),
                *[(Outcome.INCONCLUSIVE, blame) for blame in Blame],
            ]
        )
    )
    def report(self, ending: tuple[Outcome, Blame | None]) -> None:
        """Also a late one, of an attempt that was lost while its job waits."""
        if self.move_current(AttemptEvent.SETTLED):
            self.measured += ending[0] is Outcome.SUCCEEDED
            self.end(*ending)

    @rule()
    def cancel(self) -> None:
        if self.job is not JobState.FINISHED:
            self.move_job(JobEvent.CANCELLED)

    @precondition(lambda self: self.attempts and self.job is JobState.FINISHED)
    @rule()
    def let_go(self) -> None:
        self.move_current(AttemptEvent.CANCELLED)

    def end(self, outcome: Outcome, blame: Blame | None) -> None:
        self.tries[len(self.attempts)] = FinishedAttempt(
            outcome=outcome, blame=blame, device_id=DeviceId("phone")
        )
        if self.job is JobState.FINISHED:
            return
        if outcome is not Outcome.INCONCLUSIVE:
            self.move_job(JobEvent.FINISHED)
        elif self.job is JobState.ACTIVE:
            self.move_job(JobEvent.REQUEUED if may_retry(list(self.tries.values())) else JobEvent.FINISHED)

    @invariant()
    def an_active_job_has_one_live_attempt_and_a_queued_one_none(self) -> None:
        live = sum(state in LIVE_STATES for state in self.attempts)
        assert live <= 1
        if self.job is not JobState.FINISHED:
            assert live == (self.job is JobState.ACTIVE)

    @invariant()
    def what_is_finished_stays_so_with_one_measurement_at_most(self) -> None:
        assert not self.was_finished or self.job is JobState.FINISHED
        self.was_finished = self.job is JobState.FINISHED
        assert self.measured <= 1

    @invariant()
    def budgets_are_kept(self) -> None:
        assert len(self.tries) <= MAX_ATTEMPTS
        assert self.attempts.count(AttemptState.RETURNED) <= MAX_RETURNS
        by_blame = Counter(past.blame for past in self.tries.values() if past.blame is not None)
        assert all(lost <= max(RETRY_BUDGETS.values()) + 1 for lost in by_blame.values())


TestJobAndItsAttempts = pytest.mark.invariant("I1", "I2", "I4", "I6", "I16")(JobAndItsAttempts.TestCase)
TestJobAndItsAttempts.settings = settings(
    deadline=None, max_examples=examples(15, 60), stateful_step_count=60
)
