"""A phone with a reference range takes ten checks to make: it is made once for a file, and copied."""

from collections.abc import Iterator
from copy import copy
from pathlib import Path
from shutil import copytree

import pytest

from tests.support.farm.reference_fixture import phone_with_band
from tests.support.farm.service_fixture import FarmRig, HostRig, checked_rig


@pytest.fixture(scope="module")
def band(tmp_path_factory: pytest.TempPathFactory) -> HostRig:
    """The original; its farm is closed."""
    farm = FarmRig(tmp_path_factory.mktemp("band"))
    try:
        return phone_with_band(farm)
    finally:
        farm.close()


@pytest.fixture
def farm(request: pytest.FixtureRequest, any_database_url: str, tmp_path: Path) -> Iterator[FarmRig]:
    """Empty, or a copy for a test that begins with the phone."""
    is_copy = "phone" in request.fixturenames and any_database_url.startswith("sqlite")
    band: HostRig | None = request.getfixturevalue("band") if is_copy else None
    if band is not None:
        copytree(band.farm.path.parent, tmp_path, dirs_exist_ok=True)
    with checked_rig(tmp_path, any_database_url) as rig:
        if band is not None:
            rig.clock = copy(band.farm.clock)
        yield rig


@pytest.fixture
def phone(request: pytest.FixtureRequest, farm: FarmRig, any_database_url: str) -> HostRig:
    if not any_database_url.startswith("sqlite"):
        return phone_with_band(farm)
    band: HostRig = request.getfixturevalue("band")
    return band.at(farm)
