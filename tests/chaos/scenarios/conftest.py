"""Fixtures of the chaos tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.scenarios.scenario import Stage, set_stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with set_stage(tmp_path) as stage:
        yield stage
