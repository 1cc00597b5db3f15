"""Submissions are prepared in one transaction and stored in another; what changes in between is noticed."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.api.routes.matrices import MAX_TRIES, submit
from farm.core.base.ids import MatrixId
from farm.core.errors import FarmBusy
from farm.core.matrices.matrix import MatrixSpec
from farm.database.tables import devices
from farm.services.matrices.submit import PreparedMatrix, prepare_matrix
from farm.store.matrices.search import list_matrices
from farm.wire.documents.matrices.matrix import matrix_spec as checked_spec
from tests.api.routes.test_all_routes import matrix_spec, register_variant
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import ANN, phone


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path) as served:
        assert register_variant(served).status_code == 201
        assert served.enroll().exchange(devices=[phone("phone-1")]).status_code == 200
        yield served


class ChangingFarm:
    """Prepares matrices, and relabels the device after the first preparations."""

    def __init__(self, farm: HttpFarm, *, changes: int) -> None:
        self.farm = farm
        self.changes = changes
        self.prepared = 0

    def prepare(self, connection: Connection, spec: MatrixSpec) -> PreparedMatrix:
        prepared = prepare_matrix(connection, spec)
        self.prepared += 1
        if self.prepared <= self.changes:
            self.farm.context.database.write(_relabel, f"label {self.prepared}")
        return prepared

    def submit(self, **changed: Any) -> MatrixId:
        spec = checked_spec(matrix_spec(**changed))
        prepare = partial(self.prepare, spec=spec)
        return asyncio.run(submit(self.farm.context, None, prepare, ANN)).matrix_id


def _relabel(connection: Connection, label: str) -> None:
    connection.execute(sa.update(devices).values(label=label))


def test_a_farm_that_changes_each_time_is_busy_and_stores_nothing(farm: HttpFarm) -> None:
    changing = ChangingFarm(farm, changes=MAX_TRIES)
    with pytest.raises(FarmBusy) as caught:
        changing.submit()
    assert caught.value.hint == "submit the matrix again"
    assert changing.prepared == MAX_TRIES
    assert farm.context.database.read(list_matrices) == []


def test_a_matrix_is_prepared_again_over_what_changed(farm: HttpFarm) -> None:
    changing = ChangingFarm(farm, changes=MAX_TRIES - 1)
    matrix_id = changing.submit()
    assert changing.prepared == MAX_TRIES
    assert [matrix.matrix_id for matrix in farm.context.database.read(list_matrices)] == [matrix_id]
