"""Screen and wakefulness as controls: what a look at a phone says of them, and what is made of it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.devices.condition import Condition, CpuPolicy, Gates, UnknownGatePolicy, closed_gates
from farm.core.devices.controls import ControlLevel, Controls, Screen, control_deviations, control_level
from farm.core.devices.screen_state import ScreenState, screen_controls, with_screen_after
from farm.phone.condition.screen import screen_on, screen_state, stay_awake

LOOK = Condition(taken_at=datetime(2031, 2, 3, tzinfo=UTC), screen_on=True, stay_awake=True)
POWER = """\
POWER MANAGER (dumpsys power)
  mWakefulness=Awake
  mStayOn=false
  mStayOnWhilePluggedInSetting={setting}
Display Power: state=ON
"""


@pytest.mark.parametrize(("setting", "stays"), [("0", False), ("3", True), ("15", True), ("", None)])
def test_a_phone_says_whether_it_is_set_to_stay_awake(setting: str, stays: bool | None) -> None:
    assert stay_awake(POWER.format(setting=setting).replace("\n", "\r\n")) is stays


@pytest.mark.parametrize(
    ("noted", "found"),
    [
        ("null off", ScreenState(stay_awake=False, screen_on=False)),
        ("0 on", ScreenState(stay_awake=False, screen_on=True)),
        ("7 -", ScreenState(stay_awake=True)),
        ("3", ScreenState(stay_awake=True)),
        ("", ScreenState()),
        ("sh: settings: not found", ScreenState()),
    ],
)
def test_how_a_phone_was_found_is_read_off_the_note_on_it(noted: str, found: ScreenState) -> None:
    assert screen_state(noted) == found


@given(st.text())
def test_no_text_breaks_what_reads_screen_and_wakefulness(text: str) -> None:
    assert stay_awake(text) in (None, True, False)
    assert screen_on(text) in (None, True, False)
    assert isinstance(screen_state(text), ScreenState)


def test_only_what_was_asked_for_is_a_state() -> None:
    assert list(screen_controls(Controls(stay_awake=False, screen=Screen.LEAVE), ScreenState(), LOOK)) == []
    (screen,) = screen_controls(Controls(stay_awake=False), ScreenState(screen_on=False), LOOK)
    assert (screen.name, screen.requested) == ("screen", "on")
    assert (screen.before, screen.actual_before) == ("off", "on")


def test_what_did_not_hold_until_the_end_is_told_and_what_is_not_known_passes() -> None:
    states = list(screen_controls(Controls(), ScreenState(), LOOK))
    assert control_deviations(with_screen_after(states, None)) == []
    assert control_deviations(with_screen_after(states, replace(LOOK, screen_on=None, stay_awake=None))) == []
    assert control_deviations(with_screen_after(states, replace(LOOK, screen_on=False))) == [
        "screen was off after the run, on was asked for"
    ]


def test_a_screen_that_is_on_fixes_nothing() -> None:
    states = list(with_screen_after(screen_controls(Controls(), ScreenState(), LOOK), LOOK))
    assert control_level(states) is ControlLevel.FREE


def test_a_phone_that_does_not_stay_awake_is_not_fit_where_it_is_to() -> None:
    sleepy = replace(LOOK, stay_awake=False)
    assert closed_gates(sleepy, Gates(), Controls()) == ["it is not set to stay awake while it is plugged in"]
    assert closed_gates(sleepy, Gates(), Controls(stay_awake=False)) == []


HIDDEN = CpuPolicy(name="policy0", max_hz=1_800_000_000)
SHOWN = replace(HIDDEN, hardware_max_hz=1_800_000_000)


@pytest.mark.parametrize(
    ("cpus", "is_known"), [((), False), ((HIDDEN,), False), ((SHOWN, HIDDEN), False), ((SHOWN,), True)]
)
def test_clocks_that_cannot_be_read_are_unknown_to_the_gate_of_full_clocks(
    cpus: tuple[CpuPolicy, ...], is_known: bool
) -> None:
    seen = replace(LOOK, cpus=cpus, thermal_status=0, skin_c=30.0, battery_level_pct=90, battery_c=30.0)
    seen = replace(seen, storage_free_bytes=2**40)
    strict = Gates(unknown=UnknownGatePolicy.DEFER)
    unknown = [] if is_known else ["CPU clocks unknown: the phone does not report it"]
    assert closed_gates(seen, strict) == unknown
    assert closed_gates(seen, replace(strict, full_clocks=False)) == []
    assert closed_gates(seen, Gates()) == []
