"""The report of `farm device show`."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.devices.hardware import hardware_table
from farm.cli.devices.settings_table import settings_line
from farm.cli.devices.state_text import device_state_text, recovery_text, since_text
from farm.cli.shell.formatting import EMPTY_CELL, device_kind, join_or_dash, local_time_text, plural
from farm.cli.shell.tables import add_row, new_table
from farm.core.base.units import size_text
from farm.core.devices.condition import Condition
from farm.wire.documents.devices import DeviceDetail


def device_report(view: DeviceDetail) -> RenderableType:
    """Return the report of a device: hardware, state, pending reasons, recent attempts and events."""
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
    yield (
        "state",
        f"{device_state_text(view)}, for {since_text(view)}" if view.since else device_state_text(view),
    )
    if view.waiting_for:
        yield "no work because", join_or_dash(view.waiting_for)
    if view.why:
        yield "why", view.why
    if view.advice:
        yield "what to do", view.advice
    if view.incident:
        yield "its host", f"{view.incident}; not counted against the device"
    yield "presence", f"{view.presence} ({view.detail})" if view.detail else view.presence
    if view.recovery is not None:
        yield "recovery", recovery_text(view.recovery)
    yield "health", view.health
    if view.reference_run:
        yield "reference run", view.reference_run
    if view.rebaselined_at:
        yield (
            "baseline",
            f"set {local_time_text(view.rebaselined_at)}: compared with its own runs since then",
        )
    yield "admin", view.admin
    kind = device_kind(view.device_model, view.soc, virtual=view.virtual)
    yield "model", f"{kind}, unit {view.unit}" if view.unit else kind
    yield "tags", ", ".join(view.tags) or EMPTY_CELL
    yield "host, serial", f"{view.host}, {view.serial}; last seen {local_time_text(view.seen_at)}"
    if view.condition is not None:
        yield "condition", condition_text(view.condition)
    if view.settings is not None:
        yield "settings", settings_line(view.settings)
    yield "queue", plural(view.queued_jobs, "job")
    for device_action in view.device_actions:
        waits = f", waiting: {device_action.waiting_for}" if device_action.waiting_for else ""
        yield "action", f"{device_action.kind} for {device_action.requested_by}{waits}"


def condition_text(condition: Condition) -> str:
    """Return the last reported condition of a device; values that it does not report are left out."""
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
    text = ", ".join(part for part in parts if part)
    return f"{text or 'nothing reported'} (at {local_time_text(condition.taken_at)})"


def _attempt_table(view: DeviceDetail) -> Table:
    table = new_table(names=("attempt", "job", "what", "ended"), numbers=("claimed",), prose=("why",))
    for attempt in view.attempts:
        ended = str(attempt.outcome or attempt.state)
        ids = (str(attempt.attempt_id), str(attempt.job_id))
        add_row(
            table, *ids, attempt.kind, ended, local_time_text(attempt.claimed_at), attempt.code or EMPTY_CELL
        )
    return table


def _event_table(view: DeviceDetail) -> Table:
    table = new_table(names=("at", "what"), words=("by",), prose=("why",))
    for event in view.events:
        change = event.kind.removeprefix("device_").replace("_", " ")
        moved = f" to {event.to_state}" if event.kind.endswith("_changed") else ""
        add_row(table, local_time_text(event.at), change + moved, event.actor, event.cause or EMPTY_CELL)
    return table
