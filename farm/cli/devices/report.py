"""One phone on one screen."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.devices.hardware import hardware_table
from farm.cli.devices.settings_table import settings_line
from farm.cli.devices.state_text import recovery_words, since_words, state_words
from farm.cli.shell.formatting import NOTHING, joined, moment, phone, plural
from farm.cli.shell.tables import add_row, listing
from farm.core.base.units import size_text
from farm.core.devices.condition import Condition
from farm.wire.documents.devices import DeviceDetail


def device_report(view: DeviceDetail) -> RenderableType:
    """All there is to say about a phone: what it is, how it is, what it waits for, what happened to it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, value in _facts(view):
        grid.add_row(Text(name), Text(value))
    parts: list[RenderableType] = [grid]
    if view.facts is not None:
        parts += [Text(""), hardware_table(view.facts)]
    if view.attempts:
        parts += [Text(""), _attempt_table(view)]
    if view.events:
        parts += [Text(""), _event_table(view)]
    return Group(*parts)


def _facts(view: DeviceDetail) -> Iterator[tuple[str, str]]:
    yield "device", view.name if view.label is None else f"{view.label} ({view.device_id})"
    yield "state", f"{state_words(view)}, for {since_words(view)}" if view.since else state_words(view)
    if view.waiting_for:
        yield "no work because", joined(view.waiting_for)
    if view.why:
        yield "why", view.why
    if view.advice:
        yield "what to do", view.advice
    if view.incident:
        yield "its host", f"{view.incident}; that is not held against the phone"
    yield "presence", f"{view.presence} ({view.detail})" if view.detail else view.presence
    if view.recovery is not None:
        yield "recovery", recovery_words(view.recovery)
    yield "health", view.health
    if view.golden_run:
        yield "golden run", view.golden_run
    if view.level_accepted_at:
        yield "its level", f"accepted {moment(view.level_accepted_at)}: compared with its own runs since then"
    yield "admin", view.admin
    kind = phone(view.device_model, view.soc, virtual=view.virtual)
    yield "phone", f"{kind}, unit {view.unit}" if view.unit else kind
    yield "tags", ", ".join(view.tags) or NOTHING
    yield "host, serial", f"{view.host}, {view.serial}; last seen {moment(view.seen_at)}"
    if view.condition is not None:
        yield "condition", condition_words(view.condition)
    if view.settings is not None:
        yield "settings", settings_line(view.settings)
    yield "queue", plural(view.queued_jobs, "job")
    for errand in view.errands:
        waits = f", waits because {errand.waiting_for}" if errand.waiting_for else ""
        yield "errand", f"{errand.kind} for {errand.asked_by}{waits}"


def condition_words(condition: Condition) -> str:
    """What the phone was like when it was last looked at; what it does not report is left out."""
    level, charging = condition.battery_level_pct, condition.charging
    free = condition.storage_free_bytes
    parts = [
        condition.thermal_status is not None and f"thermal {condition.thermal_status.name}",
        condition.skin_c is not None and f"skin {condition.skin_c:.1f} °C",
        level is not None and f"battery {level} %" + (" charging" if charging else ""),
        condition.charging_note,
        condition.battery_c is not None and f"battery {condition.battery_c:.1f} °C",
        free is not None and f"{size_text(free)} free",
        condition.load_1m is not None and f"load {condition.load_1m:.2f}",
    ]
    said = ", ".join(part for part in parts if part)
    return f"{said or 'it reports nothing'} (at {moment(condition.taken_at)})"


def _attempt_table(view: DeviceDetail) -> Table:
    table = listing(names=("attempt", "job", "what", "ended"), numbers=("claimed",), prose=("why",))
    for attempt in view.attempts:
        ended = str(attempt.outcome or attempt.state)
        ids = (str(attempt.attempt_id), str(attempt.job_id))
        add_row(table, *ids, attempt.kind, ended, moment(attempt.claimed_at), attempt.code or NOTHING)
    return table


def _event_table(view: DeviceDetail) -> Table:
    table = listing(names=("at", "what"), words=("by",), prose=("why",))
    for event in view.events:
        change = event.kind.removeprefix("device_").replace("_", " ")
        moved = f" to {event.to_state}" if event.kind.endswith("_changed") else ""
        add_row(table, moment(event.at), change + moved, event.actor, event.cause or NOTHING)
    return table
