"""How the settings of a phone on a shelf are shown."""

import io
from dataclasses import replace
from datetime import UTC, datetime

from rich.console import Console

from farm.cli.devices.report import settings_line, settings_reasons, settings_table
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import (
    DEVICE_SETTINGS,
    DeviceSettingsRecord,
    compare_settings,
    results_of_change,
)

RIGHT = {setting.name: setting.wanted for setting in DEVICE_SETTINGS}
RECORD = DeviceSettingsRecord(
    at=datetime(2026, 5, 6, 7, tzinfo=UTC),
    kind=DeviceActionKind.PROVISION,
    requested_by="anna",
    settings=results_of_change(
        compare_settings(
            {**RIGHT, "global/low_power": "1", "system/screen_brightness": "99"}, on_network=False
        ),
        {**RIGHT, "system/screen_brightness": "99"},
    ),
)


def test_what_needs_someone_stands_first_and_what_was_set_says_what_it_was() -> None:
    console = Console(file=io.StringIO(), width=160)
    console.print(settings_table(RECORD))
    file = console.file
    assert isinstance(file, io.StringIO)
    rows = [line.strip() for line in file.getvalue().splitlines()]
    assert "set, was 1" in rows[1]
    assert "refused by the device" in rows[2]
    assert "right" in rows[3]
    assert len(rows) == 1 + len(DEVICE_SETTINGS)


def test_each_reason_is_told_once_with_the_settings_that_are_not_right_for_it() -> None:
    found = compare_settings(
        {**RIGHT, "global/low_power": "1", "global/low_power_sticky": "1"}, on_network=False
    )
    record = replace(RECORD, settings=found)
    assert list(settings_reasons(record)) == [
        "low_power, low_power_sticky: saving power slows the clocks",
    ]


def test_a_setting_keeps_to_one_line_where_there_is_little_room() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(settings_table(replace(RECORD, settings=compare_settings({}, on_network=False))))
    file = console.file
    assert isinstance(file, io.StringIO)
    assert len(file.getvalue().splitlines()) == 1 + len(DEVICE_SETTINGS)


def test_a_line_counts_what_was_found_and_names_who_asked() -> None:
    line = settings_line(RECORD)
    assert line.startswith(
        f"{len(DEVICE_SETTINGS) - 2} right, 1 set, 1 refused by the device; 1 set by the farm"
    )
    assert "(for anna, at " in line


def test_one_setting_differs_and_two_differ() -> None:
    one = compare_settings({**RIGHT, "global/low_power": "1"}, on_network=False)
    two = compare_settings(
        {**RIGHT, "global/low_power": "1", "global/low_power_sticky": "1"}, on_network=False
    )
    assert ", 1 differs (" in settings_line(replace(RECORD, settings=one))
    assert ", 2 differ (" in settings_line(replace(RECORD, settings=two))
