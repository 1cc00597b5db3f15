"""Services are tried on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.farm.service_fixture import FarmRig, checked_rig


@pytest.fixture
def farm(any_database_url: str, tmp_path: Path) -> Iterator[FarmRig]:
    """An empty farm with the programs it comes with; whatever the test did, no invariant may be broken."""
    with checked_rig(tmp_path, any_database_url) as rig:
        yield rig


@pytest.fixture
def sqlite_farm(tmp_path: Path) -> Iterator[FarmRig]:
    """One for what is so on SQLite only, or looks into its file."""
    with checked_rig(tmp_path) as rig:
        yield rig
