"""Which settings of a phone on a shelf are right, what is changed, and what an undo puts back."""

from collections.abc import Sequence

import pytest

from farm.core.upkeep.device_settings import (
    DEVICE_SETTINGS,
    SettingRestore,
    SettingResult,
    SettingState,
    compare_settings,
    keep_originals,
    results_of_change,
    results_of_restore,
    settings_text,
    settings_to_change,
    settings_to_restore,
)

RIGHT = {setting.name: setting.wanted for setting in DEVICE_SETTINGS}


def of(name: str, found: Sequence[SettingResult]) -> SettingResult:
    return next(each for each in found if each.name == name)


def test_a_phone_that_is_set_up_needs_nothing() -> None:
    found = compare_settings(RIGHT, on_network=False)
    assert {each.state for each in found} == {SettingState.RIGHT}
    assert settings_to_change(found) == ()


@pytest.mark.parametrize(
    ("name", "value", "state"),
    [
        ("global/stay_on_while_plugged_in", "7", SettingState.RIGHT),
        ("global/stay_on_while_plugged_in", "0", SettingState.DIFFERENT),
        ("global/low_power", None, SettingState.RIGHT),
        ("global/low_power", "1", SettingState.DIFFERENT),
        ("global/adb_allowed_connection_time", None, SettingState.DIFFERENT),
        ("global/window_animation_scale", "0.0", SettingState.RIGHT),
        ("global/wifi_on", "1", SettingState.DIFFERENT),
    ],
)
def test_a_setting_is_judged_by_its_value(name: str, value: str | None, state: SettingState) -> None:
    values = {key: known for key, known in {**RIGHT, name: value}.items() if known is not None}
    assert of(name, compare_settings(values, on_network=False)).state is state


def test_the_wifi_that_adb_comes_by_is_never_switched_off() -> None:
    found = compare_settings({**RIGHT, "global/wifi_on": "1"}, on_network=True)
    assert of("global/wifi_on", found).state is SettingState.SKIPPED
    assert "global/wifi_on" not in [setting.name for setting in settings_to_change(found)]


def test_what_is_set_is_read_back_and_what_is_not_taken_says_so() -> None:
    found = compare_settings(
        {**RIGHT, "global/low_power": "1", "system/screen_brightness": "200"}, on_network=False
    )
    after = results_of_change(found, {**RIGHT, "system/screen_brightness": "200"})
    assert (of("global/low_power", after).state, of("global/low_power", after).original) == ("set", "1")
    assert of("system/screen_brightness", after).state is SettingState.REFUSED
    assert settings_to_restore(after) == (SettingRestore(name="global/low_power", value="1"),)
    assert "1 set: global/low_power 1 to 0" in settings_text(after)


def test_the_first_value_is_kept_however_often_a_phone_is_set_up() -> None:
    first = results_of_change(compare_settings({**RIGHT, "global/low_power": "1"}, on_network=False), RIGHT)
    again = keep_originals(compare_settings(RIGHT, on_network=False), first)
    meddled = keep_originals(
        results_of_change(compare_settings({**RIGHT, "global/low_power": "2"}, on_network=False), RIGHT),
        again,
    )
    assert settings_to_restore(again) == settings_to_restore(meddled)
    assert settings_to_restore(meddled) == (SettingRestore(name="global/low_power", value="1"),)


def test_an_undo_is_over_where_it_worked_and_goes_on_where_it_did_not() -> None:
    was = {**RIGHT, "global/low_power": "1", "system/screen_brightness": "200"}
    done = results_of_change(compare_settings(was, on_network=False), RIGHT)
    back = settings_to_restore(done)
    undone = keep_originals(results_of_restore(RIGHT, back, {**RIGHT, "global/low_power": "1"}), done)
    assert of("global/low_power", undone).state is SettingState.RESTORED
    assert settings_to_restore(undone) == (SettingRestore(name="system/screen_brightness", value="200"),)


def test_a_key_that_was_not_there_is_removed_by_an_undo() -> None:
    values = {key: value for key, value in RIGHT.items() if key != "global/adb_allowed_connection_time"}
    done = results_of_change(compare_settings(values, on_network=False), RIGHT)
    assert settings_to_restore(done) == (
        SettingRestore(name="global/adb_allowed_connection_time", value=None),
    )
