import random

import pytest

from farm.core.results.statistics.interval import log_interval, step_variance
from farm.core.results.statistics.past_variance import VariancePrior

LOGS = [0.01, -0.02, 0.03, 0.0, 0.015]


def test_a_p_value_of_5_percent_is_an_interval_that_ends_at_no_difference() -> None:
    plain = log_interval(LOGS)
    shifted = log_interval([log - plain.low for log in LOGS])
    assert shifted.low == pytest.approx(0, abs=1e-12)
    assert shifted.p_value == pytest.approx(0.05)


def test_what_the_clock_hides_is_not_averaged_away() -> None:
    # 3 ms in whole milliseconds, on both sides: every round reads the same.
    hidden = 2 * step_variance(3e6, 1_000_000)
    for rounds in (5, 50):
        answer = log_interval([0.0] * rounds, hidden_variance=hidden)
        assert answer.half_width == pytest.approx(1.96 * hidden**0.5, rel=0.001)
        assert answer.half_width > 0.09


def test_a_hidden_variance_of_nothing_changes_nothing() -> None:
    assert log_interval(LOGS, hidden_variance=0.0) == log_interval(LOGS)


def test_a_past_moderates_the_variance_and_adds_its_degrees_of_freedom() -> None:
    plain = log_interval(LOGS)
    as_today = log_interval(LOGS, prior=VariancePrior(variance=0.000355, degrees=20, matrices=6))
    steadier = log_interval(LOGS, prior=VariancePrior(variance=0.0001, degrees=20, matrices=6))
    restless = log_interval(LOGS, prior=VariancePrior(variance=0.01, degrees=20, matrices=6))
    assert steadier.half_width < as_today.half_width < plain.half_width < restless.half_width
    assert steadier.mean == plain.mean
    assert steadier.detectable < plain.detectable < restless.detectable


def test_the_order_of_rounds_does_not_matter() -> None:
    shuffled = random.Random(3).sample(LOGS, len(LOGS))
    assert log_interval(shuffled, hidden_variance=1e-5) == log_interval(LOGS, hidden_variance=1e-5)
