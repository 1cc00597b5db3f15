import math

import pytest

from farm.core.results.statistics.cell_summary import summarize_cell


def test_a_level_has_an_interval_from_five_rounds_on_that_holds_its_median() -> None:
    assert summarize_cell([1.0, 2.0, 3.0, 4.0]).ci_low is None
    summary = summarize_cell([10.0, 10.0, 10.0, 10.0, 90.0])
    assert summary.ci_low is not None
    assert summary.ci_high is not None
    assert summary.ci_low <= summary.median == 10.0 <= summary.ci_high
    assert summarize_cell([1.0, 2.0, 0.0, 4.0, 5.0]).ci_low is None


def test_the_interval_is_students_over_the_logarithms() -> None:
    """Logarithms 0, 1, 2, 3, 4: mean 2, standard error sqrt(0.5), t 2.776 with 4 degrees of freedom."""
    summary = summarize_cell([math.exp(power) for power in range(5)])
    assert summary.ci_low == pytest.approx(math.exp(2 - 2.776445 * math.sqrt(0.5)), rel=1e-6)
    assert summary.ci_high == pytest.approx(math.exp(2 + 2.776445 * math.sqrt(0.5)), rel=1e-6)
