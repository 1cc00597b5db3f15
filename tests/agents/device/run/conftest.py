"""Fixtures: a phone's shell under each shell that it may have, and what it shows of itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.virtual.course import Course, set_course
from tests.agents.device.run.sampled_runs import FILES
from tests.support.agents.shell_phone import ALL_SHELLS, Phone, shell_phone


@pytest.fixture(params=ALL_SHELLS)
def phone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Phone]:
    with shell_phone(request.param, tmp_path) as phone:
        yield phone


@pytest.fixture
def state(phone: Phone, tmp_path: Path) -> Path:
    """The folder of what the phone shows in sysfs."""
    state = tmp_path / "state of the phone"
    (state / "sys").mkdir(parents=True)
    phone.env["BENCHFARM_SYS"] = str(state / "sys")
    set_course(state, Course(files=FILES))
    return state
