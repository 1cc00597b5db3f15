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
def both_variants(farm: FarmRig) -> None:
    """Register both variants of the usual matrix."""
    farm.variant("float32")
    farm.variant("int8-core")
