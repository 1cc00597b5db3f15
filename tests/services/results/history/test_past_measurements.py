"""What earlier matrices measured of series is found by points, and is what a search of all rows finds."""

from itertools import chain

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId, SeriesId
from farm.core.results.history.chosen_labels import PairChoice
from farm.core.results.statistics.past_variance import MAX_MATRICES, MIN_MATRICES
from farm.database.tables import cells, measurements
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.speedups.listing import list_speedups
from farm.store.results.past_pairs import SeriesPast, past_measurements
from farm.wire.documents.results.speedups import SpeedupView
from tests.services.results.history.test_chosen_pairs import measured
from tests.services.results.history.test_retractions import retract
from tests.support.database.sent_statements import sent_to
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig

Values = list[tuple[MatrixId, list[float]]]


def every_past(farm: FarmRig, *before: int) -> list[SeriesPast]:
    """Each series with each, before some matrices."""
    known = [row["series_id"] for row in farm.rows("SELECT series_id FROM series ORDER BY series_id")]
    return [SeriesPast(its, other, MatrixId(end)) for its in known for other in known for end in before]


def values(connection: Connection, asked: list[SeriesPast], *, matrices: int) -> list[Values]:
    found = past_measurements(connection, asked, matrices=matrices)
    return [[(own[0].matrix_id, sorted(one.value_ns for one in own)) for own in found[one]] for one in asked]


def values_in_everything(connection: Connection, asked: list[SeriesPast], *, matrices: int) -> list[Values]:
    query = (
        sa.select(cells.c.matrix_id, measurements.c.series_id, measurements.c.value_ns)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(measurements.c.accepted)
    )
    by_series: dict[tuple[MatrixId, SeriesId], list[float]] = {}
    for matrix_id, series_id, value_ns in connection.execute(query):
        by_series.setdefault((matrix_id, series_id), []).append(value_ns)
    newest_first = sorted({matrix_id for matrix_id, _ in by_series}, reverse=True)
    found = []
    for own in asked:
        sides = [
            (matrix_id, [by_series.get((matrix_id, series_id), []) for series_id in {*own[:2]}])
            for matrix_id in newest_first
            if matrix_id < own.before
        ]
        both = [(matrix_id, sorted(chain(*each))) for matrix_id, each in sides if all(each)]
        found.append(both[:matrices])
    return found


def test_the_past_of_series_is_that_of_the_newest_matrices_that_measured_both(
    farm: FarmRig, host: HostRig
) -> None:
    first, _, third, fourth = (
        measured(farm, host, cells=number, rounds=2, name=f"nightly {number}") for number in (2, 4, 2, 3)
    )
    asked = every_past(farm, third, fourth + 1)

    def check() -> None:
        for matrices in (1, 2, 9):
            expected = farm.read(values_in_everything, asked, matrices=matrices)
            assert farm.read(values, asked, matrices=matrices) == expected

    check()
    compute_points(farm)
    check()
    # The points of the third are those of measurements that count no more.
    assert retract(farm, matrix_id=third) == 4
    check()
    assert first in {matrix_id for own in farm.read(values, asked, matrices=9) for matrix_id, _ in own}


def test_the_past_of_more_series_takes_no_more_statements(farm: FarmRig, host: HostRig) -> None:
    last = [measured(farm, host, cells=3, rounds=1) for _ in range(3)][-1]
    compute_points(farm)
    every = every_past(farm, 2, last)

    def sent(asked: list[SeriesPast]) -> int:
        with sent_to(farm.database.engine) as statements:
            farm.read(past_measurements, asked, matrices=MAX_MATRICES)
        return len(statements)

    assert sent(every[-1:]) == sent(every)


def cell_id(view: SpeedupView) -> int:
    return view.cell_id


@pytest.mark.long
def test_a_comparison_is_the_same_on_a_page_with_others_and_alone(farm: FarmRig) -> None:
    host = farm.healthy_host("phone-1", "phone-2")
    farm.variant("float32")
    for device_id in ("phone-1",) * MIN_MATRICES + ("phone-2",) * MAX_MATRICES:
        measured(farm, host, cells=2, rounds=5, devices={"device_id": device_id})
    matrix_id = measured(farm, host, cells=3, rounds=5, devices={"virtual": True})

    def check() -> None:
        for ask in (
            lambda **which: farm.read(list_speedups, matrix_id, **which),
            lambda **which: farm.read(list_latest_speedups, **which),
        ):
            whole = ask()
            paged, after = [], None
            while page := ask(after=after, limit=1):
                paged += page
                after = page[-1].cell_id
            assert paged == whole
            filtered = [view for device in ("phone-1", "phone-2") for view in ask(device=device)]
            assert sorted(filtered, key=cell_id) == sorted(whole, key=cell_id)
            chosen = [view for label in ("=1", "=2") for view in ask(choice=PairChoice(candidate=label))]
            assert sorted(chosen, key=cell_id) == sorted(whole, key=cell_id)

    check()
    compute_points(farm)
    check()
    moderated = [view.moderated_by for view in farm.read(list_speedups, matrix_id)]
    assert sorted(moderated) == [0, 0, MIN_MATRICES, MAX_MATRICES]
