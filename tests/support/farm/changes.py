"""A change as a detection finds it, of what a farm under test has measured."""

from datetime import timedelta
from typing import Any

from farm.core.results.history.recorded_change import (
    ChangeCause,
    ChangedPart,
    ChangedSeries,
    ChangedVersion,
    FoundChange,
)
from farm.database.transaction import bind_tx
from farm.services.results.history.changes import record_change
from tests.support.farm.service_fixture import FarmRig

_COMPARED = (
    "SELECT c.cell_id, own.series_id, base.series_id AS baseline_series_id FROM cells AS c"
    " JOIN cells AS b ON b.matrix_id = c.matrix_id AND b.cell_index = c.baseline_index"
    " JOIN measurements AS own ON own.cell_id = c.cell_id"
    " JOIN measurements AS base ON base.cell_id = b.cell_id"
    " WHERE c.replica = 1 ORDER BY c.cell_id DESC LIMIT 1"
)


def found_change(farm: FarmRig, **values: Any) -> FoundChange:
    """A regression of 5 % of the newest compared cell, told now; with other values where they are given."""
    (row,) = farm.rows(_COMPARED)
    now = farm.clock.now()
    usual: dict[str, Any] = {
        "cause": ChangeCause.FILE,
        "scope": {"model": "mobilenet_v2", "variant": "int8-core", "device": "phone-1"},
        "delta": 0.05,
        "se_delta": 0.004,
        "before_at": now - timedelta(days=2),
        "since_at": now - timedelta(days=1),
        "told_at": now,
        "devices": 1,
        "of_devices": 2,
        "versions": [ChangedVersion(part=ChangedPart.FILE, old="a" * 64, new="b" * 64)],
        "series": [ChangedSeries(**row, delta=0.05)],
    }
    return FoundChange(**{**usual, **values})


def recorded_change(farm: FarmRig, **values: Any) -> int | None:
    """Its number; None if it is recorded already."""
    found = found_change(farm, **values)
    return farm.write(bind_tx(record_change, now=farm.clock.now()), found)
