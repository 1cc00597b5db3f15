"""The settings of a phone on a shelf, as a table and in a line."""

from collections import Counter
from collections.abc import Iterator

from rich.table import Table

from farm.cli.shell.formatting import NOTHING, moment
from farm.cli.shell.tables import add_row, listing
from farm.core.upkeep.device_settings import UNSET, FoundSetting, SettingState, ShelfRecord

_WORDS = {
    SettingState.RIGHT: "right",
    SettingState.DIFFERENT: "differs",
    SettingState.SET: "set",
    SettingState.REFUSED: "not taken by the phone",
    SettingState.PUT_BACK: "put back",
    SettingState.LEFT_ALONE: "left alone",
}


def settings_table(record: ShelfRecord) -> Table:
    """One row for each setting; those that need somebody first."""
    table = listing(names=("setting", "is", "should be"), words=("state",))
    for found in sorted(record.settings, key=lambda each: (each.state is SettingState.RIGHT, each.name)):
        add_row(table, found.name, found.now or UNSET, found.wanted, _state(found))
    return table


def settings_reasons(record: ShelfRecord) -> Iterator[str]:
    """One line for each reason, with the settings that are not right for it."""
    names_by_reason: dict[str, list[str]] = {}
    for found in sorted(record.settings, key=lambda each: each.name):
        if found.state is not SettingState.RIGHT:
            names_by_reason.setdefault(found.note or found.why, []).append(found.name.rpartition("/")[2])
    return (f"{', '.join(names)}: {reason}" for reason, names in names_by_reason.items())


def settings_line(record: ShelfRecord) -> str:
    """What was last found or done, for the screen of a phone."""
    counts = Counter(each.state for each in record.settings)
    said = ", ".join(_counted(counts[state], state) for state in _WORDS if counts[state])
    ours = sum(each.ours for each in record.settings)
    kept = f"; {ours} set by the farm" if ours else ""
    return f"{said or NOTHING}{kept} (for {record.asked_by}, at {moment(record.at)})"


def _counted(count: int, state: SettingState) -> str:
    """`1 differs`, and `2 differ`."""
    return f"{count} {'differ' if state is SettingState.DIFFERENT and count > 1 else _WORDS[state]}"


def _state(found: FoundSetting) -> str:
    words = _WORDS[found.state]
    return f"{words}, was {found.original or UNSET}" if found.ours else words
