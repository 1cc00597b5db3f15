"""A farm refuses the artifacts of another database before it changes anything."""

from pathlib import Path

import pytest

from farm.blobs.owner import set_owner
from farm.config import FarmConfig
from farm.core.errors import Conflict
from farm.daemon import UpOptions, run
from tests.support.database.migrated_database import put_migrated


def test_a_farm_that_forgot_its_database_is_refused_and_leaves_none_behind(tmp_path: Path) -> None:
    config = FarmConfig(data_dir=tmp_path, port=0)
    set_owner(config.blobs_dir, "of-postgresql")
    with pytest.raises(Conflict, match="belong to another database"):
        run(UpOptions(config=config, agent=False))
    assert not config.database_path.exists()


def test_a_farm_is_refused_with_the_database_that_it_was_moved_from(tmp_path: Path) -> None:
    config = FarmConfig(data_dir=tmp_path, port=0)
    put_migrated(config.database_path)
    set_owner(config.blobs_dir, "of-postgresql")
    with pytest.raises(Conflict, match="belong to another database"):
        run(UpOptions(config=config, agent=False))
