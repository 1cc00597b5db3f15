import pytest

from farm.core.base.units import (
    duration_text,
    elapsed_text,
    quantity_text,
    ratio_text,
    share_of_percent,
    size_text,
)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (7, "7 ns"),
        (999.6, "1.00 µs"),
        (456_000, "456 µs"),
        (1_234_567, "1.23 ms"),
        (12_345_678, "12.3 ms"),
        (99_960_000, "100 ms"),
        (999_600_000, "1.00 s"),
        (65e9, "65.0 s"),
        (-1_500_000, "-1.50 ms"),
        (0.25, "0.25 ns"),
    ],
)
def test_durations_have_three_digits_and_the_fitting_unit(ns: float, text: str) -> None:
    assert duration_text(ns) == text


@pytest.mark.parametrize(("size", "text"), [(13_300_000, "13.3 MB"), (999, "999 B"), (2_500, "2.50 kB")])
def test_sizes_are_in_powers_of_1000(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(12.25, "MB", "12.25 MB"), (104_857_600, "bytes", "105 MB"), (1_234_567.8, "us", "1.23457e+06 us")],
)
def test_metrics_have_their_own_unit_and_bytes_are_sizes(value: float, unit: str, text: str) -> None:
    assert quantity_text(value, unit) == text


@pytest.mark.parametrize(("ratio", "text"), [(2.314, "2.31x"), (1.0041, "1.004x"), (0.5, "0.500x")])
def test_ratios_near_1_show_their_per_mille(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text


@pytest.mark.parametrize(("seconds", "text"), [(41.7, "42 s"), (185, "3 min 5 s"), (7800, "2 h 10 min")])
def test_elapsed_time_is_in_whole_seconds(seconds: float, text: str) -> None:
    assert elapsed_text(seconds) == text


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("3%", 0.03),
        ("0.25 %", 0.0025),
        ("99%", 0.99),
        ("100%", None),
        ("3", None),
        ("-3%", None),
        ("", None),
        ("٣%", None),
    ],
)
def test_a_percentage_is_read_as_a_share(text: str, share: float | None) -> None:
    assert share_of_percent(text) == share
