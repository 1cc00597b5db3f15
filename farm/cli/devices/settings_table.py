"""The settings of a phone on a shelf, as a table and in a line."""

from collections import Counter
from collections.abc import Iterator

from rich.table import Table

from farm.cli.shell.formatting import EMPTY_CELL, local_time_text
from farm.cli.shell.tables import add_row, new_table
from farm.core.upkeep.device_settings import NOT_SET, DeviceSettingsRecord, SettingResult, SettingState

_STATE_TEXT = {
    SettingState.RIGHT: "right",
    SettingState.DIFFERENT: "differs",
    SettingState.SET: "set",
    SettingState.REFUSED: "not taken by the phone",
    SettingState.RESTORED: "put back",
    SettingState.SKIPPED: "left alone",
}


def settings_table(record: DeviceSettingsRecord) -> Table:
    """One row for each setting; those that need somebody first."""
    table = new_table(names=("setting", "is", "should be"), words=("state",))
    for found in sorted(record.settings, key=lambda each: (each.state is SettingState.RIGHT, each.name)):
        add_row(table, found.name, found.now or NOT_SET, found.wanted, _state(found))
    return table


def settings_reasons(record: DeviceSettingsRecord) -> Iterator[str]:
    """One line for each reason, with the settings that are not right for it."""
    names_by_reason: dict[str, list[str]] = {}
    for found in sorted(record.settings, key=lambda each: each.name):
        if found.state is not SettingState.RIGHT:
            names_by_reason.setdefault(found.note or found.why, []).append(found.name.rpartition("/")[2])
    return (f"{', '.join(names)}: {reason}" for reason, names in names_by_reason.items())


def settings_line(record: DeviceSettingsRecord) -> str:
    """What was last found or done, for the screen of a phone."""
    counts = Counter(each.state for each in record.settings)
    said = ", ".join(_count_text(counts[state], state) for state in _STATE_TEXT if counts[state])
    ours = sum(each.ours for each in record.settings)
    kept = f"; {ours} set by the farm" if ours else ""
    return f"{said or EMPTY_CELL}{kept} (for {record.requested_by}, at {local_time_text(record.at)})"


def _count_text(count: int, state: SettingState) -> str:
    """`1 differs`, and `2 differ`."""
    return f"{count} {'differ' if state is SettingState.DIFFERENT and count > 1 else _STATE_TEXT[state]}"


def _state(found: SettingResult) -> str:
    words = _STATE_TEXT[found.state]
    return f"{words}, was {found.original or NOT_SET}" if found.ours else words
