"""The budget of calls: what one caller may ask for in a minute."""

import pytest

from farm.core.errors import LimitReached
from farm.core.operations.call_budget import CallBudget, is_counted


def calls_made(budget: CallBudget, now_s: float, caller: str = "ann") -> int:
    """How many calls the caller gets through before the first refusal."""
    for number in range(10_000):
        try:
            budget.spend(caller, now_s)
        except LimitReached:
            return number
    raise AssertionError("nothing is refused")


def test_a_caller_makes_a_minutes_calls_at_once_and_then_as_many_as_time_brings() -> None:
    budget = CallBudget(120)
    assert calls_made(budget, 1000.0) == 120
    assert calls_made(budget, 1000.0) == 0
    assert calls_made(budget, 1005.0) == 10
    assert calls_made(budget, 2000.0) == 120


def test_the_wait_that_a_refusal_names_is_long_enough_and_no_longer() -> None:
    budget = CallBudget(60)
    calls_made(budget, 0.0)
    with pytest.raises(LimitReached) as refused:
        budget.spend("ann", 0.25)
    assert refused.value.wait_s == pytest.approx(0.75)
    assert calls_made(budget, 0.25 + refused.value.wait_s) == 1


def test_one_callers_calls_take_none_from_another() -> None:
    budget = CallBudget(10)
    calls_made(budget, 0.0)
    assert calls_made(budget, 0.0, "bob") == 10


def test_callers_whose_budget_is_full_again_are_forgotten_without_giving_anybody_more() -> None:
    budget = CallBudget(10)
    for stranger in range(1000):
        budget.spend(f"stranger {stranger}", 1000.0)
    assert calls_made(budget, 1050.0) == 10
    # The first call after a minute forgets the strangers.
    budget.spend("bob", 1061.0)
    assert len(budget._full_at_s) == 2
    assert calls_made(budget, 1062.0) == 2


@pytest.mark.parametrize(
    ("call", "counts"),
    [
        ("POST /api/v1/matrices", True),
        ("PUT /api/v1/blobs/ab", True),
        ("POST /api/v1/agent/enroll", True),
        ("POST /api/v1/agent/attempts/reports", True),
        ("POST /api/v1/agent/sessions/12/exchange", False),
        ("GET /api/v1/devices", False),
        ("GET /api/v1/health", False),
        ("GET /api/v1/export/samples", True),
        ("GET /api/v1/speedups", True),
        ("GET /api/v1/matrices/3", False),
        ("GET /api/v1/matrices/3/results", True),
        ("POST /api/v1/sign-in/device/token", True),
        ("GET /login/oidc/callback", True),
        ("GET /login", False),
    ],
)
def test_writing_and_expensive_calls_count(call: str, counts: bool) -> None:
    assert is_counted(*call.split()) is counts
