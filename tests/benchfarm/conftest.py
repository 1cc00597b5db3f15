"""A farm with results, as the Python client sees it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from benchfarm import Farm
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.ids import MatrixId
from farm.web.app import create_app_with_pages
from tests.support.farm.http_farm import served
from tests.web.conftest import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFarm:
    """A client of a farm on loopback, and what the farm has."""

    farm: Farm
    #: Finished with five rounds; its candidate is twice as quick.
    finished: MatrixId
    #: Still queued.
    queued: MatrixId


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredFarm]:
    """A farm with two devices and three matrices; tests add matrices and change none of these."""
    folder = tmp_path_factory.mktemp("measured")
    finished, _, queued = fill(folder)
    app = create_app_with_pages(FarmConfig(data_dir=folder), SystemClock())
    with served(app) as (url, _), Farm(url) as farm:
        yield MeasuredFarm(farm=farm, finished=finished, queued=queued)
