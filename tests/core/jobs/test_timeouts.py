"""How long the farm waits is a setting, and one that contradicts another is refused by name."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from farm.config import FarmConfig, invalid_setting
from farm.core.jobs.timeouts import AgentTimeouts


def test_a_farm_is_as_patient_as_its_settings_say(tmp_path: Path) -> None:
    config = FarmConfig(data_dir=tmp_path, silent_after_s=7, lost_after_s=15, start_within_s=5)
    assert config.agent_timeouts == AgentTimeouts(
        silent_after=timedelta(seconds=7), lost_after=timedelta(seconds=15), start_within=timedelta(seconds=5)
    )


def test_settings_that_are_left_out_are_the_defaults(tmp_path: Path) -> None:
    assert FarmConfig(data_dir=tmp_path).agent_timeouts == AgentTimeouts()


@pytest.mark.invariant("I8")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"silent_after_s": 60, "lost_after_s": 60}, "FARM_LOST_AFTER_S"),
        # The default of the other one counts, too.
        ({"silent_after_s": 600}, "FARM_LOST_AFTER_S"),
        ({"start_within_s": 130}, "FARM_UNSTARTED_AFTER_S"),
    ],
)
def test_no_one_is_lost_before_they_are_silent_and_no_grant_starts_after_it_was_taken_back(
    tmp_path: Path, given: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        FarmConfig(data_dir=tmp_path, **given)
    assert named in invalid_setting(refused.value, "FARM_").message
