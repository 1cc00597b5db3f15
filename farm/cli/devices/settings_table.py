"""The settings of a device as a table and in one line."""

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
    SettingState.REFUSED: "refused by the device",
    SettingState.RESTORED: "restored",
    SettingState.SKIPPED: "skipped",
}


def settings_table(record: DeviceSettingsRecord) -> Table:
    """Return one row for each setting, those that are not right first."""
    table = new_table(names=("setting", "actual", "required"), words=("state",))
    for result in sorted(
        record.settings, key=lambda result: (result.state is SettingState.RIGHT, result.name)
    ):
        add_row(table, result.name, result.now or NOT_SET, result.wanted, _state(result))
    return table


def settings_reasons(record: DeviceSettingsRecord) -> Iterator[str]:
    """Return one line for each reason, with the settings that are not right."""
    names_by_reason: dict[str, list[str]] = {}
    for result in sorted(record.settings, key=lambda result: result.name):
        if result.state is not SettingState.RIGHT:
            names_by_reason.setdefault(result.note or result.why, []).append(result.name.rpartition("/")[2])
    return (f"{', '.join(names)}: {reason}" for reason, names in names_by_reason.items())


def settings_line(record: DeviceSettingsRecord) -> str:
    """Return the counts of the last check or change in one line."""
    counts = Counter(result.state for result in record.settings)
    text = ", ".join(_count_text(counts[state], state) for state in _STATE_TEXT if counts[state])
    ours = sum(result.ours for result in record.settings)
    by_farm = f"; {ours} set by the farm" if ours else ""
    return f"{text or EMPTY_CELL}{by_farm} (for {record.requested_by}, at {local_time_text(record.at)})"


def _count_text(count: int, state: SettingState) -> str:
    """Return `1 differs` or `2 differ`."""
    return f"{count} {'differ' if state is SettingState.DIFFERENT and count > 1 else _STATE_TEXT[state]}"


def _state(result: SettingResult) -> str:
    text = _STATE_TEXT[result.state]
    return f"{text}, was {result.original or NOT_SET}" if result.ours else text
