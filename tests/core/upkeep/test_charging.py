"""When a phone is charged whose battery is kept within a window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.devices.condition import Gates
from farm.core.upkeep.charging import ChargeWindow, charge_window, should_charge

WINDOW = ChargeWindow(low_pct=40, high_pct=80)


@pytest.mark.parametrize(
    ("level_pct", "is_held", "charge"),
    [
        (79, False, True),
        (80, False, False),
        (95, False, False),
        (79, True, False),
        (41, True, False),
        (40, True, True),
        (10, True, True),
        (10, False, True),
        (None, True, True),
    ],
)
def test_a_battery_is_charged_to_the_top_and_left_until_the_bottom(
    level_pct: int | None, is_held: bool, charge: bool
) -> None:
    assert should_charge(WINDOW, level_pct, is_held=is_held) is charge


def test_without_a_window_phones_charge() -> None:
    assert should_charge(None, 100, is_held=True)


@pytest.mark.parametrize(
    ("gates", "charge"),
    [(Gates(mains=True), True), (Gates(min_battery_pct=90), True), (Gates(min_battery_pct=50), False)],
)
def test_no_run_waits_for_the_window(gates: Gates, charge: bool) -> None:
    assert should_charge(WINDOW, 85, is_held=True, gates=gates) is charge


@given(levels=st.lists(st.integers(-3, 3), max_size=200), begin=st.integers(0, 100))
def test_it_never_switches_to_and_fro_within_the_window(levels: list[int], begin: int) -> None:
    """Between two switches the level has crossed the whole window."""
    level, is_held = begin, False
    switched_at: list[int] = []
    for step in levels:
        level = min(100, max(0, level + step))
        charge = should_charge(WINDOW, level, is_held=is_held)
        if charge is is_held:
            switched_at.append(level)
            is_held = not charge
    tops, bottoms = switched_at[::2], switched_at[1::2]
    assert all(each >= WINDOW.high_pct for each in tops)
    assert all(each <= WINDOW.low_pct for each in bottoms)


@pytest.mark.parametrize("text", ["40-80", " 40 - 80 ", "40-80%"])
def test_a_window_is_two_percentages(text: str) -> None:
    assert charge_window(text) == WINDOW


@pytest.mark.parametrize("text", ["", "40", "80-40", "40-42", "0-80", "40-101", "a-b", "40-80-90", "٤٠-٨٠"])
def test_what_makes_no_sense_is_no_window(text: str) -> None:
    with pytest.raises(ValueError, match="40-80"):
        charge_window(text)
