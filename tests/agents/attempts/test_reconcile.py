"""What an answer of the farm means for the active attempts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.attempts.reconcile import AttemptDecision, SentExchange, reconcile
from agents.outbox.attempt_journal import StartBlockers
from farm.core.base.ids import AttemptId, DeviceId
from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import Assignment, AttemptReport, Exchange, ExchangeAnswer
from tests.support.agents.factories import assignment, attempt_report

NOTHING = StartBlockers(busy=frozenset(), fence_by_device={})


def sent(*attempts: AttemptReport, seq: int = 7, at_s: float = 100.0) -> SentExchange:
    return SentExchange(exchange=Exchange(seq=seq, attempts=attempts), at_s=at_s)


def answer(*assignments: Assignment, seq: int = 7, **changes: Any) -> ExchangeAnswer:
    return ExchangeAnswer(seq=seq, assignments=assignments, start_within_s=30.0, **changes)


def test_an_assignment_with_a_plan_is_started() -> None:
    decision = reconcile(sent(), answer(assignment()), NOTHING, now_s=101.0)
    assert [each.attempt_id for each in decision.start] == [1]


@pytest.mark.fault(39)
def test_an_answer_to_another_exchange_changes_nothing() -> None:
    measuring = attempt_report(2, AttemptState.MEASURING)
    decision = reconcile(sent(measuring), answer(assignment(), seq=6), NOTHING, now_s=101.0)
    assert decision == AttemptDecision()


def test_a_decision_that_changes_any_attempt_is_not_empty() -> None:
    one = (AttemptId(1),)
    changing = [
        AttemptDecision(start=(assignment(),)),
        AttemptDecision(stop=one),
        AttemptDecision(forget=one),
    ]
    assert AttemptDecision().is_empty
    assert not any(decision.is_empty for decision in changing)


@pytest.mark.fault(31)
def test_an_assignment_is_not_started_when_its_answer_took_too_long() -> None:
    assert reconcile(sent(), answer(assignment()), NOTHING, now_s=130.0).start
    assert not reconcile(sent(), answer(assignment()), NOTHING, now_s=130.1).start


def test_an_assignment_without_a_plan_is_not_started() -> None:
    assert not reconcile(sent(), answer(assignment(plan=None)), NOTHING, now_s=100.0).start


@pytest.mark.invariant("I8")
def test_nothing_is_started_on_a_device_whose_last_attempt_is_still_active() -> None:
    start_blockers = StartBlockers(
        busy=frozenset({DeviceId("phone-1")}), fence_by_device={DeviceId("phone-1"): 1}
    )
    decision = reconcile(sent(), answer(assignment(2), assignment(3, "phone-2")), start_blockers, now_s=100.0)
    assert [each.attempt_id for each in decision.start] == [3]


@pytest.mark.invariant("I8")
@pytest.mark.fault(39)
def test_an_attempt_that_was_finished_in_between_is_not_run_again() -> None:
    start_blockers = StartBlockers(busy=frozenset(), fence_by_device={DeviceId("phone-1"): 5})
    assert not reconcile(sent(), answer(assignment(5)), start_blockers, now_s=100.0).start
    assert reconcile(sent(), answer(assignment(6)), start_blockers, now_s=100.0).start


def test_only_the_highest_fence_of_a_device_is_started() -> None:
    decision = reconcile(sent(), answer(assignment(4), assignment(5)), NOTHING, now_s=100.0)
    assert [each.attempt_id for each in decision.start] == [5]


@pytest.mark.parametrize("phase", [AttemptState.CLAIMED, AttemptState.PREPARING, AttemptState.MEASURING])
def test_an_attempt_the_farm_no_longer_lists_is_stopped(phase: AttemptState) -> None:
    decision = reconcile(sent(attempt_report(2, phase)), answer(), NOTHING, now_s=100.0)
    assert decision == AttemptDecision(stop=(AttemptId(2),))


def test_evidence_is_sent_even_when_the_farm_no_longer_lists_its_attempt() -> None:
    reporting = attempt_report(2, AttemptState.REPORTING)
    assert reconcile(sent(reporting), answer(), NOTHING, now_s=100.0) == AttemptDecision()


def test_a_give_back_is_forgotten_when_the_farm_took_note_of_it() -> None:
    given_back = attempt_report(2, AttemptState.RETURNED)
    assert reconcile(sent(given_back), answer(), NOTHING, now_s=100.0) == AttemptDecision(
        forget=(AttemptId(2),)
    )
    assert (
        reconcile(sent(given_back), answer(assignment(2, plan=None)), NOTHING, now_s=100.0)
        == AttemptDecision()
    )


@given(st.permutations([assignment(1), assignment(2), assignment(3, "phone-2"), assignment(4, plan=None)]))
def test_the_order_of_the_list_does_not_matter(assignments: list[Assignment]) -> None:
    decision = reconcile(sent(), answer(*assignments), NOTHING, now_s=100.0)
    assert {each.attempt_id for each in decision.start} == {2, 3}
