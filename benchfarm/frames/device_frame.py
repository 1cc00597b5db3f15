"""Devices as a frame, and as a table of a notebook."""

from collections.abc import Callable, Iterable
from datetime import datetime
from html import escape
from typing import Any

from benchfarm.frames.frame import Frame, FrameColumn
from benchfarm.frames.setup_columns import flag, integer, moment, number, text
from farm.core.devices.device import Blocker
from farm.presentation.text import device_kind
from farm.wire.documents.devices import DeviceView


class DeviceFrame(Frame[DeviceView]):
    """Devices, one row each, in the order of their ids."""

    def __init__(self, rows: Iterable[DeviceView], *, as_of: datetime) -> None:
        super().__init__(list(rows), _COLUMNS, as_of=as_of)

    def _repr_html_(self) -> str:
        """Return a table of the devices, and why one gets no work."""
        head = "".join(f"<th>{name}</th>" for name in ("device", "model", "Android", "state"))
        body = "".join(map(_row_html, self.rows))
        noun = "device" if len(self) == 1 else "devices"
        as_of = f"{len(self)} {noun}, as of {self.as_of:%Y-%m-%d %H:%M:%S} UTC"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{as_of}</p>"


def _row_html(view: DeviceView) -> str:
    kind = device_kind(view.device_model, view.soc, virtual=view.virtual)
    cells = (view.name, kind, view.android or "-", _state(view))
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _state(view: DeviceView) -> str:
    return ", ".join(view.waiting_for) or "free"


def _of_condition(name: str) -> Callable[[DeviceView], Any]:
    return lambda view: None if view.condition is None else getattr(view.condition, name)


_COLUMNS: tuple[FrameColumn[DeviceView], ...] = (
    text("device", lambda view: view.name),
    text("device_id"),
    text("device_label", lambda view: view.label),
    text("device_model"),
    text("manufacturer"),
    text("soc"),
    text("android"),
    integer("api_level"),
    text("abi"),
    text("build_fingerprint"),
    flag("virtual"),
    text("host"),
    text("tags", lambda view: ", ".join(view.tags)),
    text("presence"),
    text("health"),
    text("admin"),
    flag("free", lambda view: not view.blocked_by),
    flag("busy", lambda view: Blocker.BUSY in view.blocked_by),
    text("waiting_for", lambda view: ", ".join(view.waiting_for) or None),
    text("advice"),
    number("skin_c", _of_condition("skin_c")),
    number("battery_c", _of_condition("battery_c")),
    integer("battery_level_pct", _of_condition("battery_level_pct")),
    moment("condition_at", _of_condition("taken_at")),
    moment("seen_at"),
)
