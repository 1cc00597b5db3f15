"""Retries never exceed their budget (I16), whatever the attempts of a job end like."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import DeviceId
from farm.core.errors import Blame
from farm.core.jobs.retry import (
    MAX_ATTEMPTS,
    RETRY_BUDGETS,
    FinishedAttempt,
    RetryBudget,
    budget_of,
    may_retry,
)
from farm.core.runs.measurement import Outcome

CODES = st.sampled_from(
    [None, "host.lost", "host.device_moved", "host.retired", "host.let_go", "device.lost"]
)
TRIES = st.builds(
    FinishedAttempt,
    outcome=st.sampled_from(Outcome),
    blame=st.one_of(st.none(), st.sampled_from(Blame)),
    code=CODES,
    device_id=st.sampled_from([DeviceId("phone-1"), DeviceId("phone-2")]),
)
INCONCLUSIVE = st.builds(
    FinishedAttempt,
    outcome=st.just(Outcome.INCONCLUSIVE),
    blame=st.sampled_from([Blame.DEVICE, Blame.HOST, Blame.FARM]),
    code=CODES,
    device_id=st.just(DeviceId("phone-1")),
)


def tried(endings: list[FinishedAttempt]) -> list[FinishedAttempt]:
    """What a farm would really try: attempts until the first that may not be followed by another."""
    done: list[FinishedAttempt] = []
    for ending in endings:
        done.append(ending)
        if not may_retry(done):
            break
    return done


@given(endings=st.lists(TRIES, min_size=1, max_size=40))
@pytest.mark.invariant("I16")
def test_no_history_leads_to_more_attempts_than_the_budget(endings: list[FinishedAttempt]) -> None:
    done = tried(endings)
    assert len(done) <= MAX_ATTEMPTS
    for budget, lost in Counter(budget_of(past.blame, past.code) for past in done if past.blame).items():
        assert lost <= RETRY_BUDGETS[budget] + 1


@given(endings=st.lists(INCONCLUSIVE, min_size=MAX_ATTEMPTS, max_size=20))
@pytest.mark.invariant("I13", "I16")
def test_endless_failures_end_the_job(endings: list[FinishedAttempt]) -> None:
    assert not may_retry(tried(endings))


@given(endings=st.lists(TRIES, min_size=1, max_size=6))
def test_only_an_inconclusive_end_is_tried_again(endings: list[FinishedAttempt]) -> None:
    if may_retry(endings):
        assert endings[-1].outcome is Outcome.INCONCLUSIVE


@given(blame=st.sampled_from([Blame.USER, Blame.VARIANT]))
def test_what_the_user_or_the_variant_did_is_not_tried_again(blame: Blame) -> None:
    past = FinishedAttempt(outcome=Outcome.INCONCLUSIVE, blame=blame, device_id=DeviceId("phone-1"))
    assert not may_retry([past])


def test_every_party_has_a_budget() -> None:
    assert set(RETRY_BUDGETS) == set(RetryBudget)
    assert {budget_of(blame, None) for blame in Blame} | {budget_of(Blame.HOST, "host.lost")} == set(
        RetryBudget
    )


@pytest.mark.parametrize(
    ("blame", "code", "attempts"),
    [
        (Blame.DEVICE, "device.lost", 3),
        (Blame.HOST, "host.lost", 4),
        (Blame.HOST, "host.let_go", 4),
        (Blame.FARM, "farm.busy", 4),
        (Blame.VARIANT, "harness.crashed", 1),
        (Blame.USER, None, 1),
    ],
)
@pytest.mark.invariant("I16")
def test_a_job_is_tried_so_often_at_most(blame: Blame, code: str | None, attempts: int) -> None:
    past = FinishedAttempt(
        outcome=Outcome.INCONCLUSIVE, blame=blame, code=code, device_id=DeviceId("phone-1")
    )
    assert len(tried([past] * 10)) == attempts


@pytest.mark.invariant("I16")
def test_failures_of_hosts_and_of_the_farm_share_a_budget_and_lost_hosts_have_their_own() -> None:
    def past(blame: Blame, code: str) -> FinishedAttempt:
        return FinishedAttempt(
            outcome=Outcome.INCONCLUSIVE, blame=blame, code=code, device_id=DeviceId("phone-1")
        )

    trouble = [past(Blame.HOST, "host.disk_full"), past(Blame.FARM, "farm.busy")] * 2
    assert not may_retry(trouble)
    assert may_retry([*trouble[:3], past(Blame.HOST, "host.lost")])
    assert not may_retry([*trouble[:3], *[past(Blame.HOST, "host.lost")] * 3])
