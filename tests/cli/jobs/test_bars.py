"""Values as bars: the same bar for the same share, wherever one is drawn."""

import pytest

from farm.presentation.jobs.bars import bar


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, "▁"), (0.99, "▁"), (1.0, "▂"), (4.5, "▅"), (7.99, "█"), (8.0, "█")]
)
def test_each_bar_stands_for_an_eighth_of_the_range(value: float, expected: str) -> None:
    assert bar(value, 0.0, 8.0) == expected


def test_values_beyond_the_range_and_a_range_of_nothing_have_a_bar() -> None:
    assert (bar(9.0, 0.0, 8.0), bar(-1.0, 0.0, 8.0), bar(3.0, 3.0, 3.0)) == ("█", "▁", "▁")
