import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.results.statistics.families import alarm_share, discoveries, named_by_chance

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=50)


def test_the_example_of_benjamini_and_hochberg_has_four_discoveries() -> None:
    # Their table of 15 hypotheses, 1995, section 4.
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
    p_values += [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000]
    assert discoveries(p_values) == [True] * 4 + [False] * 11


@given(P_VALUES)
def test_a_discovery_is_at_most_5_percent_and_all_that_is_smaller_is_one_too(p_values: list[float]) -> None:
    found = discoveries(p_values)
    assert all(p <= 0.05 for p, is_found in zip(p_values, found, strict=True) if is_found)
    least_missed = min((p for p, is_found in zip(p_values, found, strict=True) if not is_found), default=2.0)
    assert all(p < least_missed for p, is_found in zip(p_values, found, strict=True) if is_found)


@given(P_VALUES)
def test_a_row_of_certainty_hides_no_other(p_values: list[float]) -> None:
    before, after = discoveries(p_values), discoveries([*p_values, 0.0])[:-1]
    assert all(now or not then for then, now in zip(before, after, strict=True))


def test_no_rows_are_no_discoveries() -> None:
    assert discoveries([]) == []
    assert named_by_chance(80) == pytest.approx(4)


def test_the_share_of_alarms_has_the_exact_interval() -> None:
    # By the tables of Clopper and Pearson.
    share = alarm_share(2, 40)
    assert (share.low, share.high) == (pytest.approx(0.0061, abs=1e-4), pytest.approx(0.1692, abs=1e-4))
    assert alarm_share(0, 10).low == 0.0
    assert alarm_share(0, 10).high == pytest.approx(0.3085, abs=1e-4)
    assert alarm_share(10, 10).high == 1.0
