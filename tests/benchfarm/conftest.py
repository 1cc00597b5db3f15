"""Farms as the Python client sees them: one with results, and one that requires tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchfarm import Farm
from farm.cli.access.credentials import Login, save_login
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.ids import MatrixId
from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.tokens import revoke_access_token
from farm.web.app import create_app_with_pages
from farm.wire.tokens import token_id_of
from tests.support.farm.http_farm import HttpFarm, http_farm, served
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


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    """A farm that requires tokens, which the commands find by its address."""
    for name in ("FARM_TOKEN", "FARM_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with http_farm(tmp_path / "data", require_tokens=True) as farm:
        monkeypatch.setenv("FARM_URL", farm.url)
        yield farm


def log_in(farm: HttpFarm, name: str) -> str:
    token = farm.access_token(Role.SUBMITTER, name)
    save_login(Login(url=farm.url, token=token))
    return token


def revoke(farm: HttpFarm, token: str) -> None:
    now = farm.context.clock.now()
    farm.context.database.write(bind_tx(revoke_access_token, now=now, actor="user:root"), token_id_of(token))
