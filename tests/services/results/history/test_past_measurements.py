"""What earlier matrices measured of series is found by points, and is what a search of all rows finds."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId, SeriesId
from farm.database.tables import cells, measurements
from farm.store.results.past_pairs import past_measurements
from tests.services.results.history.test_chosen_pairs import measured
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig


def all_series(farm: FarmRig) -> list[SeriesId]:
    return [row["series_id"] for row in farm.rows("SELECT series_id FROM series ORDER BY series_id")]


def values(
    connection: Connection, series_ids: list[SeriesId], *, before: MatrixId, matrices: int
) -> list[tuple[MatrixId, list[float]]]:
    found: dict[MatrixId, list[float]] = {}
    for own in past_measurements(connection, series_ids, before=before, matrices=matrices):
        found.setdefault(own.matrix_id, []).append(own.value_ns)
    return [*found.items()]


def values_in_everything(
    connection: Connection, series_ids: list[SeriesId], *, before: MatrixId, matrices: int
) -> list[tuple[MatrixId, list[float]]]:
    query = (
        sa.select(cells.c.matrix_id, measurements.c.value_ns)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(measurements.c.accepted)
        .where(measurements.c.series_id.in_(series_ids), cells.c.matrix_id < before)
        .order_by(measurements.c.measurement_id)
    )
    found: dict[MatrixId, list[float]] = {}
    for matrix_id, value_ns in connection.execute(query):
        found.setdefault(matrix_id, []).append(value_ns)
    return sorted(found.items())[-matrices:]


def test_the_past_of_series_is_that_of_their_newest_matrices(farm: FarmRig, host: HostRig) -> None:
    first, second, third, fourth = (
        measured(farm, host, cells=number, rounds=2, name=f"nightly {number}") for number in (2, 4, 2, 3)
    )
    every = all_series(farm)

    def check() -> None:
        for series_ids in (every, every[:1], every[-1:], []):
            for before in (first, third, fourth, MatrixId(fourth + 1)):
                for matrices in (1, 2, 9):
                    asked = {"series_ids": series_ids, "before": before, "matrices": matrices}
                    assert farm.read(values, **asked) == farm.read(values_in_everything, **asked), asked

    check()
    compute_points(farm)
    check()
    assert [own for own, _ in farm.read(values, every, before=fourth, matrices=2)] == [second, third]
