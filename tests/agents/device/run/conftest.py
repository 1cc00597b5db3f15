"""Fixtures: what a phone shows of itself, for the `phone` of whoever asks."""

from pathlib import Path

import pytest

from agents.virtual.course import Course, set_course
from tests.agents.device.run.sampled_runs import FILES
from tests.support.agents.shell_phone import Phone


@pytest.fixture
def state(phone: Phone, tmp_path: Path) -> Path:
    """The folder of what the phone shows in sysfs."""
    state = tmp_path / "state of the phone"
    (state / "sys").mkdir(parents=True)
    phone.env["BENCHFARM_SYS"] = str(state / "sys")
    set_course(state, Course(files=FILES))
    return state
