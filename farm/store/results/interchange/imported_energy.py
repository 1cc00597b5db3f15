"""Energy that people import: measured by an instrument of theirs, and kept with an attempt's measurement."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId
from farm.core.runs.derived.energy import EnergyReading, energy_metric, stored_energy
from farm.core.runs.measurement import EXTERNAL_ENERGY
from farm.database.tables import measurements

_EXTERNAL = "external"


def timed_inferences(connection: Connection, attempt_id: AttemptId) -> int | None:
    """Return the number of samples of an attempt's accepted measurement; None without a measurement."""
    query = sa.select(measurements.c.sample_count).where(
        measurements.c.attempt_id == attempt_id, measurements.c.accepted
    )
    return connection.execute(query).scalar_one_or_none()


def put_imported_energy(connection: Connection, attempt_id: AttemptId, energy: EnergyReading) -> None:
    """Keep energy with the accepted measurement of an attempt, in the place of any imported before."""
    metric = energy_metric(energy)
    values = {name: getattr(metric, name) for name in metric.__dataclass_fields__}
    _put(connection, attempt_id, stored_energy([energy]), [values])


def keep_imported_energy(connection: Connection, attempt_id: AttemptId, measurement_id: int) -> None:
    """Give the accepted measurement of an attempt the imported energy of the one that it replaces."""
    columns = (measurements.c.energy, measurements.c.metrics)
    row = connection.execute(sa.select(*columns).where(measurements.c.measurement_id == measurement_id)).one()
    energy = [entry for entry in row.energy or () if entry["method"] == _EXTERNAL]
    if energy:
        metrics = [metric for metric in row.metrics if metric["name"] == EXTERNAL_ENERGY]
        _put(connection, attempt_id, energy, metrics)


def _put(
    connection: Connection,
    attempt_id: AttemptId,
    energy: Sequence[Mapping[str, Any]],
    metrics: Sequence[Mapping[str, Any]],
) -> None:
    accepted = (measurements.c.attempt_id == attempt_id, measurements.c.accepted)
    row = connection.execute(
        sa.select(measurements.c.energy, measurements.c.metrics).where(*accepted)
    ).one_or_none()
    if row is None:
        return
    others = [entry for entry in row.energy or () if entry["method"] != _EXTERNAL]
    printed = [metric for metric in row.metrics if metric["name"] != EXTERNAL_ENERGY]
    connection.execute(
        measurements.update().where(*accepted).values(energy=[*others, *energy], metrics=[*printed, *metrics])
    )
