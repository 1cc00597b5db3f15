"""How long to wait before trying again."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agents.host.retry import Backoff


@given(st.integers(), st.integers(min_value=1, max_value=60))
def test_every_wait_is_at_least_the_first_and_at_most_the_cap(seed: int, failures: int) -> None:
    backoff = Backoff(Random(seed), first_s=1.0, cap_s=30.0)
    waits = [backoff.next_s() for _ in range(failures)]
    assert all(1.0 <= wait <= 30.0 for wait in waits)


def test_waits_grow_until_something_works() -> None:
    backoff = Backoff(Random(1), first_s=1.0, cap_s=1000.0)
    waits = [backoff.next_s() for _ in range(8)]
    assert waits == sorted(waits)
    assert waits[-1] >= 64.0
    backoff.reset()
    assert backoff.next_s() == 1.0


def test_those_that_failed_together_do_not_come_back_together() -> None:
    waits = [[backoff.next_s() for _ in range(6)] for backoff in (Backoff(Random(1)), Backoff(Random(2)))]
    # The first is the shortest there may be.
    assert all(one != other for one, other in zip(*(each[1:] for each in waits), strict=True))
