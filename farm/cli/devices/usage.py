"""The usage of devices as text: `farm device list --usage`."""

from collections.abc import Callable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.shell.tables import Column, Listing, name, number, prose, sections
from farm.core.operations.usage import UsageState, week_before, week_named
from farm.presentation.text import device_kind, local_time_text, plural
from farm.wire.documents.devices import DeviceUsage, ModelUsage, UsageView

_DAY_S = 86400
#: A name, and what is known of it.
_Row = tuple[str, DeviceUsage | ModelUsage]


def usage_of_weeks(fetch: Callable[[str | None], UsageView], week: str | None) -> Iterator[UsageView]:
    """Yield the usage in a week, by default this one, and in each week before."""
    while True:
        view = fetch(week)
        yield view
        week = week_before(week_named(view.week)).name


def usage_report(weeks: Sequence[UsageView]) -> RenderableType:
    """Return the tables of each week, and since when anything is known."""
    since = next((view.known_since for view in weeks if view.known_since), None)
    known = "The farm has seen no device yet." if since is None else f"Known since {local_time_text(since)}."
    return sections(*(part for view in weeks for part in _parts(view)), Text(known))


def _parts(view: UsageView) -> Iterator[RenderableType]:
    week = f"week {view.week}, from {view.begin:%Y-%m-%d} UTC"
    if not view.devices:
        yield Text(f"{week}: nothing is known.")
        return
    devices = _table(name("device", _name_of))((usage.name, usage) for usage in view.devices)
    yield Group(Text(f"{week}, in per cent of the known time"), devices)
    yield _table(prose("device model", _name_of))((_model_text(usage), usage) for usage in view.models)


def _known_text(seconds: float) -> str:
    """Return `6.5 d`, `3.2 h`, `12 min` or `42 s`."""
    for unit_s, unit in ((_DAY_S, "d"), (3600, "h")):
        if seconds >= unit_s:
            return f"{seconds / unit_s:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def _model_text(usage: ModelUsage) -> str:
    kind = device_kind(usage.device_model, usage.soc, virtual=usage.virtual)
    return f"{kind}: {plural(usage.devices, 'device')}"


def _name_of(row: _Row) -> str:
    return row[0]


def _table(names: Column[_Row]) -> Listing[_Row]:
    return Listing(
        names, number("known", lambda row: _known_text(row[1].known_s)), *map(_share_column, UsageState)
    )


def _share_column(state: UsageState) -> Column[_Row]:
    return number(state.value, lambda row: f"{row[1].shares_pct[state]:.1f}")
