from math import inf, isnan

import pytest

from farm.harness.base.printed_numbers import last_digit


@pytest.mark.parametrize(
    ("text", "weight"),
    [("3.20", 0.01), ("3.2e3", 100), ("32", 1), ("-7.", 1), ("5E-2", 0.01), ("1e999", inf), ("1e-999", 0)],
)
def test_the_last_digit_of_a_number_has_its_weight(text: str, weight: float) -> None:
    assert last_digit(text) == weight


@pytest.mark.parametrize("text", ["inf", "nan", "1_0", "²", "1e" + "9" * 5000])
def test_what_is_no_decimal_number_has_no_last_digit(text: str) -> None:
    assert isnan(last_digit(text))
